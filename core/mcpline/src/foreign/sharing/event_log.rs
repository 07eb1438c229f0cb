//! Events on their way to a foreign event log: those of one stream in order, together as far as they wait.
//!
//! A stream has one request at a time. The next one begins once the function has returned, also if that is after its timeout: a
//! store would else get events out of order. Other streams do not wait for it.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::background;
use crate::sharing::{LoggedEvents, SharingError, SharingReply, SharingRequest};
use crate::warning_limit::warn_limited;

use super::limits::{
    ENTRY_BYTES, MAX_APPENDED_BYTES, MAX_APPENDED_EVENTS, MAX_READ_BYTES, MAX_WAITING_EVENT_BYTES,
    MAX_WRITTEN_STREAMS,
};
use super::requests::{Requests, wrong_reply};

/// Events that wait or are written.
#[derive(Default)]
pub(super) struct EventQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: BTreeMap<u64, Entry>,
    next: u64,
    /// Those with waiting entries, or a function that runs.
    streams: HashMap<Arc<str>, Stream>,
    /// The streams that can be written, by the number of their first entry.
    ready: BTreeMap<u64, Arc<str>>,
    /// Bytes that wait, or that functions have which have not returned.
    bytes: usize,
    /// Number of functions that have not returned.
    running: usize,
}

#[derive(Default)]
struct Stream {
    /// The numbers of waiting entries.
    waiting: VecDeque<u64>,
    /// Whether a function has not returned.
    is_running: bool,
}

struct Entry {
    stream: Arc<str>,
    step: StreamAppend,
    bytes: usize,
}

/// What is added to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamAppend {
    /// The event with this number.
    Event(u64, Bytes),
    /// Its end after the event with this number.
    End(u64),
}

/// The function that writes to a stream, until it has returned.
struct WriteGuard {
    queue: Arc<EventQueue>,
    stream: Arc<str>,
    bytes: usize,
}

impl EventQueue {
    /// Adds an event of a stream, or its end.
    pub(super) fn push(&self, stream: &str, step: StreamAppend) {
        let event_bytes = match &step {
            StreamAppend::Event(_, event) => event.len(),
            StreamAppend::End(_) => 0,
        };
        let bytes = stream.len() + event_bytes + ENTRY_BYTES;
        let dropped = {
            let mut state = self.lock();
            state.push(stream, step, bytes);
            state.drop_oldest()
        };
        self.changed.notify_waiters();
        if !dropped.is_empty() {
            warn_limited!("the event log is too slow: its oldest events were dropped");
        }
    }

    /// Returns whether nothing waits, and all functions have returned.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until everything is written, and all functions have returned.
    pub(super) async fn written(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Writes events until `stop` is set and all are written.
    pub(super) async fn write(
        self: &Arc<Self>,
        requests: &Arc<Requests>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut writing = JoinSet::new();
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            while let Some((request, held)) = self.take() {
                writing.spawn(background::task(write(requests.clone(), request, held)));
            }
            while writing.try_join_next().is_some() {}
            if *stop.borrow_and_update() && self.lock().is_empty() {
                return;
            }
            tokio::select! {
                () = changed => {}
                // An error: what would stop it is gone, and so is the task's owner.
                changed = stop.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Takes the next request: events of one stream that follow each other, or its end.
    fn take(self: &Arc<Self>) -> Option<(SharingRequest, WriteGuard)> {
        let (stream, steps, bytes) = self.lock().take()?;
        let writing = WriteGuard {
            queue: self.clone(),
            stream,
            bytes,
        };
        Some((request(&writing.stream, steps), writing))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }

    fn push(&mut self, name: &str, step: StreamAppend, bytes: usize) {
        let known = self.streams.get_key_value(name);
        let name = known.map_or_else(|| Arc::from(name), |(name, _)| name.clone());
        let number = self.next;
        self.next += 1;
        self.bytes += bytes;
        let stream = self.streams.entry(name.clone()).or_default();
        stream.waiting.push_back(number);
        if !stream.is_running && stream.waiting.len() == 1 {
            self.ready.insert(number, name.clone());
        }
        let entry = Entry {
            stream: name,
            step,
            bytes,
        };
        self.waiting.insert(number, entry);
    }

    /// Removes the oldest entries above the limit, but not the latest. Returns them.
    fn drop_oldest(&mut self) -> Vec<Entry> {
        let mut dropped = Vec::new();
        while self.bytes > MAX_WAITING_EVENT_BYTES && self.waiting.len() > 1 {
            let Some((number, entry)) = self.waiting.pop_first() else {
                break;
            };
            self.bytes -= entry.bytes;
            if let Some(stream) = self.streams.get_mut(&entry.stream) {
                stream.waiting.pop_front();
            }
            if self.ready.remove(&number).is_some() {
                self.set_ready(&entry.stream);
            }
            dropped.push(entry);
        }
        dropped
    }

    /// Puts a stream where it belongs, of which no function runs.
    fn set_ready(&mut self, name: &Arc<str>) {
        let first = self.streams.get(name).map(|it| it.waiting.front().copied());
        match first {
            Some(Some(first)) => {
                self.ready.insert(first, name.clone());
            }
            Some(None) => {
                self.streams.remove(name);
            }
            None => {}
        }
    }

    /// Takes steps of the stream that waits longest, which are one request, and their bytes.
    fn take(&mut self) -> Option<(Arc<str>, Vec<StreamAppend>, usize)> {
        if self.running == MAX_WRITTEN_STREAMS {
            return None;
        }
        let (_, name) = self.ready.pop_first()?;
        let stream = self.streams.get_mut(&name)?;
        let (mut steps, mut bytes, mut event_bytes) = (Vec::new(), 0, 0);
        while let Some(number) = stream.waiting.front() {
            let Some(entry) = self.waiting.get(number) else {
                break;
            };
            let fits = match (steps.last(), &entry.step) {
                (None, _) => true,
                (Some(StreamAppend::Event(last, _)), StreamAppend::Event(number, event)) => {
                    last.checked_add(1) == Some(*number)
                        && steps.len() < MAX_APPENDED_EVENTS
                        && event_bytes + event.len() <= MAX_APPENDED_BYTES
                }
                _ => false,
            };
            if !fits {
                break;
            }
            if let StreamAppend::Event(_, event) = &entry.step {
                event_bytes += event.len();
            }
            let number = stream.waiting.pop_front();
            if let Some(entry) = number.and_then(|number| self.waiting.remove(&number)) {
                bytes += entry.bytes;
                steps.push(entry.step);
            }
        }
        stream.is_running = true;
        self.running += 1;
        Some((name, steps, bytes))
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        {
            let mut state = self.queue.lock();
            state.bytes -= self.bytes;
            state.running -= 1;
            if let Some(stream) = state.streams.get_mut(&self.stream) {
                stream.is_running = false;
            }
            state.set_ready(&self.stream);
        }
        self.queue.changed.notify_waiters();
    }
}

/// Returns the request of steps that are one.
fn request(stream: &str, steps: Vec<StreamAppend>) -> SharingRequest {
    let stream = stream.to_owned();
    let number = match steps.first() {
        Some(&StreamAppend::Event(number, _)) => number,
        Some(&StreamAppend::End(last)) => return SharingRequest::End { stream, last },
        None => 0,
    };
    let events = steps.into_iter().filter_map(|step| match step {
        StreamAppend::Event(_, event) => Some(event),
        StreamAppend::End(_) => None,
    });
    SharingRequest::Append {
        stream,
        number,
        events: events.collect(),
    }
}

/// Sends a request. After one that fails, the store finds that events are missing: the numbers of later ones do not follow.
async fn write(requests: Arc<Requests>, request: SharingRequest, held: WriteGuard) {
    let name = request.name();
    let error = match requests.send(request, held).await {
        Ok(SharingReply::Done) => return,
        Ok(_) => wrong_reply(name),
        Err(error) => error,
    };
    warn_limited!(%error, "events were not written to the event log");
}

/// Reads a part of a stream, and limits it.
pub(super) async fn read(
    requests: &Requests,
    stream: &str,
    after: u64,
    held: impl Any + Send,
) -> Result<Option<LoggedEvents>, SharingError> {
    let request = SharingRequest::Read {
        stream: stream.to_owned(),
        after,
    };
    let name = request.name();
    let SharingReply::Events(part) = requests.send(request, held).await? else {
        return Err(wrong_reply(name));
    };
    let Some(mut part) = part else {
        return Ok(None);
    };
    if part.has_more && part.events.is_empty() {
        return Err(SharingError::new(format!(
            "{name}: the result has `has_more`, but no events: it would be read without end"
        )));
    }
    let mut bytes = 0;
    let fitting = part.events.iter().take_while(|event| {
        let is_first = bytes == 0;
        bytes += event.len() + ENTRY_BYTES;
        is_first || bytes <= MAX_READ_BYTES
    });
    let fitting = fitting.count();
    if fitting < part.events.len() {
        part.events.truncate(fitting);
        part.has_more = true;
    }
    // Further events follow, so this is not the end.
    part.ended &= !part.has_more;
    Ok(Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first number and the number of events of the next request; `None` for an end.
    fn taken(queue: &Arc<EventQueue>) -> (String, Option<(u64, usize)>, WriteGuard) {
        let (request, writing) = queue.take().expect("a request");
        match request {
            SharingRequest::Append {
                stream,
                number,
                events,
            } => (stream, Some((number, events.len())), writing),
            SharingRequest::End { stream, last: 3 } => (stream, None, writing),
            _ => panic!("another request"),
        }
    }

    fn event(number: u64) -> StreamAppend {
        StreamAppend::Event(number, Bytes::from(number.to_string()))
    }

    #[test]
    fn events_of_a_stream_that_follow_each_other_are_one_request() {
        let queue = Arc::<EventQueue>::default();
        for (stream, step) in [
            ("a", event(0)),
            ("b", event(4)),
            ("a", event(1)),
            ("a", event(3)),
            ("a", StreamAppend::End(3)),
        ] {
            queue.push(stream, step);
        }
        let (a, first, of_a) = taken(&queue);
        let (b, other, _of_b) = taken(&queue);
        assert_eq!(
            (&*a, first, &*b, other),
            ("a", Some((0, 2)), "b", Some((4, 1)))
        );
        assert!(queue.take().is_none(), "one request of a stream at a time");
        drop(of_a);
        let (_, second, of_a) = taken(&queue);
        assert_eq!(second, Some((3, 1)));
        drop(of_a);
        let (_, end, of_a) = taken(&queue);
        assert_eq!(end, None);
        assert_eq!(queue.lock().streams.len(), 2);
        drop((of_a, _of_b));
        let state = queue.lock();
        assert!(state.is_empty() && state.streams.is_empty() && state.ready.is_empty());
        assert_eq!(state.bytes, 0);
    }

    #[test]
    fn the_events_of_one_request_are_limited() {
        let queue = Arc::<EventQueue>::default();
        let count = MAX_APPENDED_EVENTS as u64 + 1;
        (0..count).for_each(|number| queue.push("a", event(number)));
        let half = Bytes::from(vec![b'x'; MAX_APPENDED_BYTES / 2]);
        (0..3).for_each(|number| queue.push("b", StreamAppend::Event(number, half.clone())));
        assert_eq!(taken(&queue).1, Some((0, MAX_APPENDED_EVENTS)));
        assert_eq!(taken(&queue).1, Some((MAX_APPENDED_EVENTS as u64, 1)));
        assert_eq!(taken(&queue).1, Some((0, 2)));
    }

    #[test]
    fn names_of_streams_are_dropped_with_their_events() {
        let queue = Arc::<EventQueue>::default();
        let large = Bytes::from(vec![b'x'; MAX_WAITING_EVENT_BYTES / 4]);
        for number in 0..100 {
            queue.push(&number.to_string(), StreamAppend::Event(0, large.clone()));
        }
        let state = queue.lock();
        assert_eq!((state.streams.len(), state.ready.len()), (3, 3));
        assert!(state.bytes <= MAX_WAITING_EVENT_BYTES);
    }
}
