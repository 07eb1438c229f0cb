//! All shared state in the memory of one process.

mod buckets;
mod removed_ids;
mod sessions;
mod streams;
#[cfg(test)]
mod tests;
mod used_keys;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline_runtime::clock;

use super::Pending;
use super::buckets::{BucketPolicy, SharedBuckets, TakeOutcome};
use super::bus::{Bus, Subscription};
use super::log::{EventLog, LoggedEvents};
use super::store::{SaveOutcome, SessionStore, UseOutcome};

use buckets::Buckets;
use sessions::SavedSessions;
use streams::LoggedStreams;
use used_keys::UsedKeys;

type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

/// A [`SessionStore`], [`EventLog`], [`Bus`] and [`SharedBuckets`] in the memory of one process.
///
/// Sessions may take 64 MiB, and streams 128 MiB. Above that the oldest are dropped, and other processes no longer find
/// them. A session's streams are dropped when it is removed or its lifetime is over. A session that was removed less than
/// five minutes ago is not saved again; the latest 32,768 of them are remembered. 200,000 keys of what may be used once
/// are remembered apart from sessions, and so are 100,000 buckets that are not full.
#[derive(Default)]
pub struct MemorySharing {
    sessions: Mutex<SavedSessions>,
    streams: Mutex<LoggedStreams>,
    used: Mutex<UsedKeys>,
    buckets: Mutex<Buckets>,
    receivers: Arc<Mutex<Receivers>>,
}

#[derive(Default)]
struct Receivers {
    by_number: HashMap<u64, Receiver>,
    next: u64,
}

impl SessionStore for MemorySharing {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        Box::pin(async move {
            let now = clock::now();
            let lapsed = {
                let mut sessions = lock(&self.sessions);
                if sessions.was_removed(id, now) {
                    return Ok(SaveOutcome::Saved);
                }
                if let Some(stored) = sessions.load(id, now)
                    && stored != replaces
                    && stored != session
                {
                    return Ok(SaveOutcome::Conflict(stored));
                }
                sessions.save(id, session, now.saturating_add(lifetime), now)
            };
            if !lapsed.is_empty() {
                let mut streams = lock(&self.streams);
                for id in lapsed {
                    streams.forget_session(&id);
                }
            }
            Ok(SaveOutcome::Saved)
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move { Ok(lock(&self.sessions).load(id, clock::now())) })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            lock(&self.sessions).remove(id, clock::now());
            lock(&self.streams).forget_session(id);
            Ok(())
        })
    }

    fn record_use<'a>(&'a self, key: &'a str, lifetime: Duration) -> Pending<'a, UseOutcome> {
        Box::pin(async move {
            let now = clock::now();
            let until = now.saturating_add(lifetime);
            Ok(lock(&self.used).record(key, until, now))
        })
    }
}

impl SharedBuckets for MemorySharing {
    fn take<'a>(
        &'a self,
        key: &'a str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Pending<'a, TakeOutcome> {
        Box::pin(async move { lock(&self.buckets).take(key, policy, tokens, clock::now()) })
    }

    fn give_back<'a>(&'a self, key: &'a str, policy: BucketPolicy, tokens: u32) -> Pending<'a, ()> {
        Box::pin(async move {
            lock(&self.buckets).give_back(key, policy, tokens);
            Ok(())
        })
    }
}

impl EventLog for MemorySharing {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        lock(&self.streams).append(stream, number, event);
    }

    fn end(&self, stream: &str, last: u64) {
        lock(&self.streams).end(stream, last);
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        Box::pin(async move { Ok(lock(&self.streams).read(stream, after)) })
    }
}

impl Bus for MemorySharing {
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
            // Dropped outside the lock, because it may hold something that subscribes itself.
            drop(receive);
        })
    }
}

impl std::fmt::Debug for MemorySharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySharing").finish_non_exhaustive()
    }
}

/// Locks a mutex even if a panic poisoned it: every step leaves the data consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
