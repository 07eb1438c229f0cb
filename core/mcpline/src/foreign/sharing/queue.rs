//! A queue with a limit in bytes that drops its oldest entries.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::limits::ENTRY_BYTES;

/// Entries from many threads to one reader.
pub(super) struct BoundedQueue<T> {
    state: Mutex<State<T>>,
    changed: Notify,
    limit: usize,
}

struct State<T> {
    /// With their sizes.
    entries: VecDeque<(T, usize)>,
    bytes: usize,
    /// Bytes that the reader works on.
    taken: usize,
}

impl<T> BoundedQueue<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                entries: VecDeque::new(),
                bytes: 0,
                taken: 0,
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
            state.entries.push_back((entry, bytes));
            state.bytes += bytes;
            let mut dropped = Vec::new();
            while state.bytes > self.limit && state.entries.len() > 1 {
                let Some((oldest, bytes)) = state.entries.pop_front() else {
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

    /// Takes entries, at least one, and several up to this number of bytes. Their bytes count until the next call. Returns `None`
    /// once the queue is empty and `stop` is set.
    pub(super) async fn take(
        &self,
        most: usize,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<Vec<T>> {
        {
            let mut state = self.lock();
            state.bytes -= state.taken;
            state.taken = 0;
        }
        self.changed.notify_waiters();
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let is_stopped = *stop.borrow_and_update();
            {
                let state = &mut *self.lock();
                let mut batch = Vec::new();
                while let Some(&(_, bytes)) = state.entries.front() {
                    if !batch.is_empty() && state.taken + bytes > most {
                        break;
                    }
                    state.taken += bytes;
                    batch.extend(state.entries.pop_front().map(|(entry, _)| entry));
                }
                if !batch.is_empty() {
                    return Some(batch);
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

    /// Waits until the queue is empty, and the reader has processed what it took.
    pub(super) async fn processed(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.lock().bytes == 0 {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
