//! The write queue: operations that wait to be written, in order, with a limit in bytes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use crate::failure::Failure;
use crate::keys;
use crate::limits::{ENTRY_BYTES, MAX_BATCH_BYTES, MAX_BATCH_OPERATIONS, MAX_QUEUED_BYTES};
use crate::warning_limiter::WarningLimiter;

/// An operation that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Save {
        session: String,
        value: Bytes,
        lifetime: Duration,
    },
    Remove {
        session: String,
    },
    Append {
        stream: String,
        number: u64,
        event: Bytes,
    },
    End {
        stream: String,
    },
    Publish {
        /// The number of the message at this process.
        number: u64,
        message: Bytes,
    },
}

impl Operation {
    /// Returns the session that it concerns; `None` for the bus.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Save { session, .. } | Self::Remove { session } => Some(session),
            Self::Append { stream, .. } | Self::End { stream } => {
                Some(keys::split_stream_name(stream).0)
            }
            Self::Publish { .. } => None,
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Save { value, .. } => value.len(),
                Self::Append { event, .. } => event.len(),
                Self::Publish { message, .. } => message.len(),
                Self::Remove { .. } | Self::End { .. } => 0,
            }
    }
}

/// A queued operation, and who waits for its outcome.
pub(crate) struct Entry {
    pub(crate) operation: Operation,
    waiter: Option<oneshot::Sender<Result<(), Failure>>>,
}

impl Entry {
    /// Reports the outcome to whoever waits for it.
    fn report(&mut self, outcome: Result<(), Failure>) {
        if let Some(waiter) = self.waiter.take() {
            // Fails if nothing waits any more.
            let _ = waiter.send(outcome);
        }
    }
}

/// The queue. One task takes batches from it.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the task that takes.
    changed: Notify,
    overflows: WarningLimiter,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    /// Bytes of the entries, and of the batch that was taken last.
    bytes: usize,
    /// Bytes of the batch that was taken last.
    taken: usize,
    /// Why the last attempt to write failed; `None` after a success.
    failure: Option<Failure>,
    published: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds an operation.
    pub(crate) fn push(&self, operation: Operation) {
        let mut state = self.lock();
        let entry = Entry {
            operation,
            waiter: None,
        };
        let dropped = state.push(entry);
        drop(state);
        self.report_overflow(dropped);
        self.changed.notify_one();
    }

    /// Adds a message for the bus.
    pub(crate) fn publish(&self, message: Bytes) {
        let mut state = self.lock();
        state.published += 1;
        let operation = Operation::Publish {
            number: state.published,
            message,
        };
        let dropped = state.push(Entry {
            operation,
            waiter: None,
        });
        drop(state);
        self.report_overflow(dropped);
        self.changed.notify_one();
    }

    /// Adds an operation and waits for its outcome, but not while writing fails: then the operation is done later, and
    /// the failure is returned at once.
    pub(crate) async fn push_and_wait(
        &self,
        operation: Operation,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let (waiter, outcome) = oneshot::channel();
        let (failure, dropped) = {
            let mut state = self.lock();
            let failure = state.failure.clone();
            let waiter = failure.is_none().then_some(waiter);
            let dropped = state.push(Entry { operation, waiter });
            (failure, dropped)
        };
        self.report_overflow(dropped);
        self.changed.notify_one();
        if let Some(failure) = failure {
            return Err(failure);
        }
        match tokio::time::timeout(timeout, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Failure::Unreachable("the runtime has ended".to_owned())),
            Err(_) => Err(Failure::TimedOut(timeout)),
        }
    }

    /// Takes the next operations; `None` once the queue is closed and empty.
    pub(crate) async fn take(&self) -> Option<Vec<Entry>> {
        loop {
            // Registered before the state is read, so that no change is missed.
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                let batch = state.take();
                if !batch.is_empty() {
                    return Some(batch);
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Ends a batch: `kept` is tried again, before all others. `failure` is why; `None` if everything was written.
    pub(crate) fn finish_batch(&self, kept: Vec<Entry>, failure: Option<Failure>) {
        let mut state = self.lock();
        state.bytes -= state.taken;
        state.taken = 0;
        for entry in kept.into_iter().rev() {
            state.bytes += entry.operation.bytes();
            state.entries.push_front(entry);
        }
        if let Some(failure) = &failure {
            for entry in &mut state.entries {
                entry.report(Err(failure.clone()));
            }
        }
        state.failure = failure;
        let dropped = state.shrink();
        drop(state);
        self.report_overflow(dropped);
    }

    /// Lets [`take`](Self::take) end once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until the queue is closed or this time is over.
    pub(crate) async fn sleep(&self, time: Duration) {
        let closed = async {
            loop {
                let changed = self.changed.notified();
                if self.is_closed() {
                    return;
                }
                changed.await;
            }
        };
        // Either is fine.
        let _ = tokio::time::timeout(time, closed).await;
    }

    fn report_overflow(&self, dropped: usize) {
        if dropped > 0
            && let Some(suppressed) = self.overflows.admit()
        {
            tracing::warn!(
                dropped,
                suppressed,
                "Valkey is too slow or unreachable: dropped the oldest queued operations"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of what waits.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl State {
    /// Adds an entry; returns how many were dropped for it.
    fn push(&mut self, entry: Entry) -> usize {
        self.bytes += entry.operation.bytes();
        self.entries.push_back(entry);
        self.shrink()
    }

    fn shrink(&mut self) -> usize {
        let mut dropped = 0;
        while self.bytes > MAX_QUEUED_BYTES && self.entries.len() > 1 {
            if let Some(mut oldest) = self.entries.pop_front() {
                self.bytes -= oldest.operation.bytes();
                oldest.report(Err(Failure::Overflow));
                dropped += 1;
            }
        }
        dropped
    }

    fn take(&mut self) -> Vec<Entry> {
        let mut batch = Vec::new();
        while batch.len() < MAX_BATCH_OPERATIONS
            && let Some(next) = self.entries.front()
        {
            let bytes = next.operation.bytes();
            if !batch.is_empty() && self.taken + bytes > MAX_BATCH_BYTES {
                break;
            }
            self.taken += bytes;
            batch.extend(self.entries.pop_front());
        }
        batch
    }
}

/// Reports the outcome of an operation that was not kept.
pub(crate) fn report_outcome(mut entry: Entry, outcome: Result<(), Failure>) {
    entry.report(outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1024 * 1024;

    fn large(number: u64) -> Operation {
        Operation::Append {
            stream: "session/1".to_owned(),
            number,
            event: Bytes::from(vec![0; LARGE]),
        }
    }

    fn number(entry: &Entry) -> u64 {
        match entry.operation {
            Operation::Append { number, .. } | Operation::Publish { number, .. } => number,
            _ => u64::MAX,
        }
    }

    async fn drain(queue: &Queue) -> Vec<u64> {
        queue.close();
        let mut numbers = Vec::new();
        while let Some(batch) = queue.take().await {
            numbers.extend(batch.iter().map(number));
            queue.finish_batch(Vec::new(), None);
        }
        numbers
    }

    #[tokio::test]
    async fn the_oldest_are_dropped_above_the_limit_of_bytes() {
        let queue = Queue::default();
        let fitting = (MAX_QUEUED_BYTES / (LARGE + ENTRY_BYTES)) as u64;
        for number in 0..2 * fitting {
            queue.push(large(number));
            assert!(queue.bytes() <= MAX_QUEUED_BYTES);
        }
        assert_eq!(
            drain(&queue).await,
            (fitting..2 * fitting).collect::<Vec<_>>()
        );
        assert_eq!(queue.bytes(), 0);
    }

    #[tokio::test]
    async fn what_is_kept_comes_first_again_and_counts() {
        let queue = Queue::default();
        for number in 0..4 {
            queue.push(large(number));
        }
        let batch = queue.take().await.expect("a batch");
        assert_eq!(batch.len(), 1, "one MiB at a time");
        let held = queue.bytes();
        queue.finish_batch(batch, Some(Failure::TimedOut(Duration::ZERO)));
        assert_eq!(queue.bytes(), held);
        assert_eq!(drain(&queue).await, [0, 1, 2, 3]);
    }

    #[tokio::test]
    async fn a_dropped_operation_reports_overflow() {
        let queue = Queue::default();
        let save = Operation::Save {
            session: "one".to_owned(),
            value: Bytes::new(),
            lifetime: Duration::MAX,
        };
        let filling = async {
            for number in 0..=(MAX_QUEUED_BYTES / LARGE) as u64 {
                queue.push(large(number));
            }
        };
        let (saved, ()) = tokio::join!(queue.push_and_wait(save, Duration::MAX), filling);
        assert_eq!(saved, Err(Failure::Overflow));
    }

    #[tokio::test]
    async fn nothing_waits_while_writing_fails_but_all_is_written_later() {
        let queue = Queue::default();
        let remove = |session: &str| Operation::Remove {
            session: session.to_owned(),
        };
        let failure = Failure::Unreachable("closed".to_owned());
        let failing = async {
            let batch = queue.take().await.expect("a batch");
            queue.finish_batch(batch, Some(failure.clone()));
        };
        let (first, ()) = tokio::join!(queue.push_and_wait(remove("a"), Duration::MAX), failing);
        assert_eq!(first, Err(failure.clone()));
        let second = queue.push_and_wait(remove("b"), Duration::MAX).await;
        assert_eq!(second, Err(failure));
        let batch = queue.take().await.expect("a batch");
        let sessions: Vec<_> = batch
            .iter()
            .map(|entry| entry.operation.session())
            .collect();
        assert_eq!(sessions, [Some("a"), Some("b")]);
    }
}
