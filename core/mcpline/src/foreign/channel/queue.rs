//! One direction of a channel: waiting messages with their size in bytes.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{ChannelEndResult, MAX_WAITING_CHANNEL_BYTES};

/// Memory overhead of each message.
const ENTRY_BYTES: usize = 64;

/// Messages in one direction, from many threads to one reader.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Notified of every change that a task may wait for.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// A batch was taken and is being sent.
    is_sending: bool,
    end: Option<ChannelEndResult>,
}

impl Queue {
    /// Adds a message. Returns the number of bytes that wait then, or `None` if the queue has ended.
    pub(super) fn push(&self, message: Bytes) -> Option<usize> {
        let waiting = {
            let mut state = self.lock();
            if state.end.is_some() {
                return None;
            }
            state.bytes += message.len() + ENTRY_BYTES;
            state.messages.push_back(message);
            state.bytes
        };
        self.changed.notify_waiters();
        Some(waiting)
    }

    /// Ends the queue. Waiting messages can still be taken. Only the first end counts.
    pub(super) fn end(&self, end: ChannelEndResult) {
        self.lock().end.get_or_insert(end);
        self.changed.notify_waiters();
    }

    /// Drops the waiting messages.
    pub(super) fn discard(&self) {
        let dropped = {
            let mut state = self.lock();
            state.bytes = 0;
            std::mem::take(&mut state.messages)
        };
        drop(dropped);
        self.changed.notify_waiters();
    }

    pub(super) fn has_room(&self) -> bool {
        self.lock().bytes <= MAX_WAITING_CHANNEL_BYTES
    }

    /// Waits until there is room or the queue has ended.
    pub(super) async fn wait_for_room(&self) {
        self.wait(|state| {
            let is_done = state.bytes <= MAX_WAITING_CHANNEL_BYTES || state.end.is_some();
            is_done.then_some(())
        })
        .await;
    }

    /// Waits until the queue has ended, and returns why.
    pub(super) async fn ended(&self) -> ChannelEndResult {
        self.wait(|state| state.end.clone()).await
    }

    /// Waits until all messages were taken and the last batch has been sent.
    pub(super) async fn sent(&self) {
        self.wait(|state| (state.messages.is_empty() && !state.is_sending).then_some(()))
            .await;
    }

    /// Takes the next message, or returns why there are no more.
    pub(super) async fn take(&self) -> Result<Bytes, ChannelEndResult> {
        let taken = self
            .wait(|state| match (state.messages.pop_front(), &state.end) {
                (Some(message), _) => {
                    state.bytes -= message.len() + ENTRY_BYTES;
                    Some(Ok(message))
                }
                (None, Some(end)) => Some(Err(end.clone())),
                (None, None) => None,
            })
            .await;
        // There may be room now.
        self.changed.notify_waiters();
        taken
    }

    /// Takes the next messages: at least one, and several up to this number of bytes. Returns `None` at the end.
    pub(super) async fn take_batch(&self, most: usize) -> Option<Vec<Bytes>> {
        {
            self.lock().is_sending = false;
        }
        self.changed.notify_waiters();
        let taken = self
            .wait(|state| {
                let mut batch = Vec::new();
                let mut bytes = 0;
                while let Some(message) = state.messages.front() {
                    bytes += message.len() + ENTRY_BYTES;
                    if bytes > most && !batch.is_empty() {
                        break;
                    }
                    state.bytes -= message.len() + ENTRY_BYTES;
                    batch.extend(state.messages.pop_front());
                }
                match (batch.is_empty(), &state.end) {
                    (false, _) => {
                        state.is_sending = true;
                        Some(Some(batch))
                    }
                    (true, Some(_)) => Some(None),
                    (true, None) => None,
                }
            })
            .await;
        self.changed.notify_waiters();
        taken
    }

    async fn wait<T>(&self, mut done: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if let Some(outcome) = done(&mut self.lock()) {
                return outcome;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
