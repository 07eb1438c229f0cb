//! All shared parts in the memory of one process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::clock;

use super::Pending;
use super::bus::{Bus, Subscription};
use super::log::{EventLog, Logged};
use super::store::SessionStore;

/// Events held of one stream: as many as a stream of a server that runs alone keeps by default.
const EVENTS_PER_STREAM: usize = 1_024;
/// Streams held, oldest first to go: a few for each of the sessions that a server takes by default.
const STREAMS: usize = 40_000;
/// After how many saved sessions those whose lifetime is over are looked for.
const SWEEP: usize = 1_024;

type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

/// A [`SessionStore`], [`EventLog`] and [`Bus`] in the memory of one process.
#[derive(Default)]
pub struct Memory {
    sessions: Mutex<Sessions>,
    streams: Mutex<Streams>,
    receivers: Arc<Mutex<Receivers>>,
}

#[derive(Default)]
struct Sessions {
    /// What is held, and until when.
    held: HashMap<String, (Bytes, Duration)>,
    saved: usize,
}

#[derive(Default)]
struct Streams {
    by_name: HashMap<String, Stream>,
    order: VecDeque<String>,
}

#[derive(Default)]
struct Stream {
    first: u64,
    events: VecDeque<Bytes>,
    ended: bool,
}

#[derive(Default)]
struct Receivers {
    by_number: HashMap<u64, Receiver>,
    next: u64,
}

impl SessionStore for Memory {
    fn save<'a>(&'a self, id: &'a str, session: Bytes, lifetime: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            let now = clock::now();
            let mut sessions = lock(&self.sessions);
            sessions
                .held
                .insert(id.to_owned(), (session, now + lifetime));
            sessions.saved += 1;
            if sessions.saved.is_multiple_of(SWEEP) {
                sessions.held.retain(|_, (_, until)| *until > now);
            }
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move {
            let sessions = lock(&self.sessions);
            let held = sessions.held.get(id);
            Ok(held
                .filter(|(_, until)| *until > clock::now())
                .map(|(session, _)| session.clone()))
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            lock(&self.sessions).held.remove(id);
            Ok(())
        })
    }
}

impl EventLog for Memory {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        let mut streams = lock(&self.streams);
        if !streams.by_name.contains_key(stream) {
            streams.begin(stream, number);
        }
        if let Some(stream) = streams.by_name.get_mut(stream) {
            stream.events.push_back(event);
            if stream.events.len() > EVENTS_PER_STREAM {
                stream.events.pop_front();
                stream.first += 1;
            }
        }
    }

    fn end(&self, stream: &str) {
        if let Some(stream) = lock(&self.streams).by_name.get_mut(stream) {
            stream.ended = true;
        }
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<Logged>> {
        Box::pin(async move {
            let streams = lock(&self.streams);
            let Some(stream) = streams.by_name.get(stream) else {
                return Ok(None);
            };
            let held = stream.first..=stream.first + stream.events.len() as u64;
            let next = after + 1;
            if !held.contains(&next) {
                return Ok(None);
            }
            let skipped = usize::try_from(next - stream.first).unwrap_or(usize::MAX);
            let events = stream.events.iter().skip(skipped).cloned().collect();
            Ok(Some(Logged::new(events, stream.ended)))
        })
    }
}

impl Streams {
    fn begin(&mut self, name: &str, first: u64) {
        if self.order.len() >= STREAMS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_name.remove(&oldest);
        }
        self.order.push_back(name.to_owned());
        let stream = Stream {
            first,
            ..Stream::default()
        };
        self.by_name.insert(name.to_owned(), stream);
    }
}

impl Bus for Memory {
    fn publish(&self, message: Bytes) {
        let receivers: Vec<Receiver> = lock(&self.receivers).by_number.values().cloned().collect();
        for receive in receivers {
            receive(message.clone());
        }
    }

    fn subscribe(&self, receive: Receiver) -> Subscription {
        let mut receivers = lock(&self.receivers);
        let number = receivers.next;
        receivers.next += 1;
        receivers.by_number.insert(number, receive);
        drop(receivers);
        let receivers = self.receivers.clone();
        Subscription::new(move || {
            let receive = lock(&receivers).by_number.remove(&number);
            // Dropped outside of the lock: it may hold what subscribes itself.
            drop(receive);
        })
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// A lock whose data stays good when a panic poisoned it: each step leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
