//! Events on their way to a foreign event log: those of one stream in order, together as far as they wait.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::background;
use crate::sharing::{LoggedEvents, SharingError, SharingReply, SharingRequest};
use crate::warning_limit::warn_limited;

use super::limits::{
    MAX_APPENDED_BYTES, MAX_APPENDED_EVENTS, MAX_READ_BYTES, MAX_WAITING_EVENT_BYTES,
    MAX_WRITTEN_STREAMS,
};
use super::queue::BoundedQueue;
use super::requests::{Requests, wrong_reply};

/// Bytes of waiting events that are written before others are looked at: those of one stream become few requests, and a slow log
/// delays the rest by one round.
const MAX_ROUND_BYTES: usize = 8 * 1024 * 1024;

/// Waiting events.
pub(super) struct EventQueue(BoundedQueue<Entry>);

struct Entry {
    stream: String,
    /// `None` for the end of the stream.
    event: Option<(u64, Bytes)>,
}

impl EventQueue {
    pub(super) fn new() -> Self {
        Self(BoundedQueue::new(MAX_WAITING_EVENT_BYTES))
    }

    /// Adds an event of a stream, or its end.
    pub(super) fn push(&self, stream: &str, event: Option<(u64, Bytes)>) {
        let bytes = stream.len() + event.as_ref().map_or(0, |(_, event)| event.len());
        let stream = stream.to_owned();
        if self.0.push(Entry { stream, event }, bytes) {
            warn_limited!("the event log is too slow: its oldest events were dropped");
        }
    }

    /// Waits until what waits now is written.
    pub(super) async fn written(&self) {
        self.0.processed().await;
    }

    /// Writes events until `stop` is set and all are written.
    pub(super) async fn write(&self, requests: Arc<Requests>, mut stop: watch::Receiver<bool>) {
        while let Some(entries) = self.0.take(MAX_ROUND_BYTES, &mut stop).await {
            let mut writing = JoinSet::new();
            for steps in by_stream(entries) {
                if writing.len() == MAX_WRITTEN_STREAMS {
                    writing.join_next().await;
                }
                writing.spawn(background::task(write_stream(requests.clone(), steps)));
            }
            while writing.join_next().await.is_some() {}
        }
    }
}

/// Sends the requests of one stream. What follows a request that fails is not sent: the store is slow, or would have a gap.
async fn write_stream(requests: Arc<Requests>, steps: Vec<SharingRequest>) {
    for request in steps {
        let name = request.name();
        let error = match requests.send(request).await {
            Ok(SharingReply::Done) => continue,
            Ok(_) => wrong_reply(name),
            Err(error) => error,
        };
        warn_limited!(%error, "events were not written to the event log");
        return;
    }
}

/// Returns the requests of each stream.
fn by_stream(entries: Vec<Entry>) -> Vec<Vec<SharingRequest>> {
    let mut streams: Vec<Vec<SharingRequest>> = Vec::new();
    let mut indices: HashMap<String, usize> = HashMap::new();
    for Entry { stream, event } in entries {
        let index = *indices.entry(stream.clone()).or_insert_with(|| {
            streams.push(Vec::new());
            streams.len() - 1
        });
        let steps = &mut streams[index];
        let Some((number, event)) = event else {
            steps.push(SharingRequest::End { stream });
            continue;
        };
        match steps.last_mut() {
            Some(SharingRequest::Append {
                number: first,
                events,
                ..
            }) if *first + events.len() as u64 == number
                && events.len() < MAX_APPENDED_EVENTS
                && events.iter().map(Bytes::len).sum::<usize>() + event.len()
                    <= MAX_APPENDED_BYTES =>
            {
                events.push(event);
            }
            _ => steps.push(SharingRequest::Append {
                stream,
                number,
                events: vec![event],
            }),
        }
    }
    streams
}

/// Reads a part of a stream, and limits it.
pub(super) async fn read(
    requests: &Requests,
    stream: &str,
    after: u64,
) -> Result<Option<LoggedEvents>, SharingError> {
    let request = SharingRequest::Read {
        stream: stream.to_owned(),
        after,
    };
    let name = request.name();
    let SharingReply::Events(part) = requests.send(request).await? else {
        return Err(wrong_reply(name));
    };
    let Some(mut part) = part else {
        return Ok(None);
    };
    if part.has_more && part.events.is_empty() {
        return Err(SharingError::new(format!(
            "{name}: a part that others follow must have an event"
        )));
    }
    let mut bytes = 0;
    let fitting = part.events.iter().take_while(|event| {
        let is_first = bytes == 0;
        bytes += event.len().max(1);
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

    fn entry(stream: &str, number: u64) -> Entry {
        Entry {
            stream: stream.to_owned(),
            event: Some((number, Bytes::from(number.to_string()))),
        }
    }

    #[test]
    fn events_of_a_stream_that_follow_each_other_are_one_request() {
        let end = Entry {
            stream: "a".to_owned(),
            event: None,
        };
        let entries = vec![
            entry("a", 0),
            entry("b", 4),
            entry("a", 1),
            entry("a", 3),
            end,
        ];
        let streams: Vec<Vec<_>> = by_stream(entries)
            .into_iter()
            .map(|steps| {
                let steps = steps.into_iter().map(|step| match step {
                    SharingRequest::Append { number, events, .. } => Some((number, events.len())),
                    _ => None,
                });
                steps.collect()
            })
            .collect();
        let first = vec![Some((0, 2)), Some((3, 1)), None];
        assert_eq!(streams, [first, vec![Some((4, 1))]]);
    }

    #[test]
    fn the_events_of_one_request_are_limited() {
        let count = MAX_APPENDED_EVENTS as u64 + 1;
        let many = (0..count).map(|number| entry("a", number)).collect();
        assert_eq!(by_stream(many)[0].len(), 2);
        let large = (0..3).map(|number| Entry {
            stream: "a".to_owned(),
            event: Some((number, Bytes::from(vec![b'x'; MAX_APPENDED_BYTES / 2]))),
        });
        assert_eq!(by_stream(large.collect())[0].len(), 2);
    }
}
