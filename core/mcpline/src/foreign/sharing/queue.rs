//! A queue with a limit in bytes that drops its oldest entries.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::limits::ENTRY_BYTES;

/// Entries from many threads to one reader.
pub(super) struct BoundedQueue<T> {
    state: Mutex<State<T>>,
    changed: Notify,
    limit: usize,
}

struct State<T> {
    /// With their sizes, and when they came.
    entries: VecDeque<(T, usize, Instant)>,
    bytes: usize,
}

impl<T> BoundedQueue<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                entries: VecDeque::new(),
                bytes: 0,
            }),
            changed: Notify::new(),
            limit,
        }
    }

    /// Adds an entry of this size. Returns whether others were dropped to make room.
    pub(super) fn push(&self, entry: T, bytes: usize) -> bool {
        let bytes = bytes + ENTRY_BYTES;
        let dropped = {
            let mut state = self.lock();
            state.entries.push_back((entry, bytes, Instant::now()));
            state.bytes += bytes;
            let mut dropped = Vec::new();
            while state.bytes > self.limit && state.entries.len() > 1 {
                let Some((oldest, bytes, _)) = state.entries.pop_front() else {
                    break;
                };
                state.bytes -= bytes;
                dropped.push(oldest);
            }
            dropped
        };
        self.changed.notify_waiters();
        !dropped.is_empty()
    }

    /// Takes an entry, and when it came. Returns `None` once the queue is empty and `stop` is set.
    pub(super) async fn take(&self, stop: &mut watch::Receiver<bool>) -> Option<(T, Instant)> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let is_stopped = *stop.borrow_and_update();
            {
                let mut state = self.lock();
                if let Some((entry, bytes, came)) = state.entries.pop_front() {
                    state.bytes -= bytes;
                    return Some((entry, came));
                }
            }
            if is_stopped {
                return None;
            }
            tokio::select! {
                () = changed => {}
                // An error: what would stop it is gone, and so is this reader's owner.
                changed = stop.changed() => if changed.is_err() { return None },
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
