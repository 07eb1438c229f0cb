//! The operations that wait for the thread, in order, with a limit in bytes. Above it events and messages are dropped first, and
//! removals of sessions never.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{
    BucketPolicy, LoggedEvents, SaveOutcome, SharingError, TakeOutcome, UseOutcome,
};
use mcpline_runtime::WarningLimit;
use tokio::sync::{Notify, oneshot};

use crate::limits::{ENTRY_BYTES, MAX_BATCH_OPERATIONS, MAX_QUEUED_BYTES, WARNINGS};
use crate::sessions::Expiry;

/// Where the outcome of an operation goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, SharingError>>;

/// What the thread does.
#[derive(Debug)]
pub(crate) enum Operation {
    Save {
        session: String,
        value: Bytes,
        replaces: Bytes,
        expiry: Expiry,
        reply: Reply<SaveOutcome>,
    },
    Load {
        session: String,
        reply: Reply<Option<Bytes>>,
    },
    Remove {
        session: String,
        reply: Reply<()>,
    },
    RecordUse {
        key: String,
        lifetime: Duration,
        reply: Reply<UseOutcome>,
    },
    Take {
        key: String,
        policy: BucketPolicy,
        tokens: u32,
        reply: Reply<TakeOutcome>,
    },
    GiveBack {
        key: String,
        policy: BucketPolicy,
        tokens: u32,
        reply: Reply<()>,
    },
    Append {
        stream: String,
        number: u64,
        event: Bytes,
    },
    End {
        stream: String,
        last: u64,
    },
    Read {
        stream: String,
        after: u64,
        reply: Reply<Option<LoggedEvents>>,
    },
    Flush {
        reply: Reply<()>,
    },
    Publish(Bytes),
}

impl Operation {
    fn bytes(&self) -> usize {
        let message = match self {
            Self::Save {
                value, replaces, ..
            } => value.len() + replaces.len(),
            Self::Append { event, .. } => event.len(),
            Self::Publish(message) => message.len(),
            _ => 0,
        };
        ENTRY_BYTES + message
    }

    fn priority(&self) -> usize {
        match self {
            Self::Append { .. } | Self::End { .. } | Self::Publish(_) => EVENT,
            Self::Save { .. }
            | Self::Load { .. }
            | Self::RecordUse { .. }
            | Self::Take { .. }
            | Self::GiveBack { .. }
            | Self::Read { .. }
            | Self::Flush { .. } => REQUEST,
            Self::Remove { .. } => REMOVAL,
        }
    }
}

/// Dropped first: clients have received the events from this process, and messages are less than the state of sessions.
const EVENT: usize = 0;
/// Dropped, the oldest first, if there are no events: what waits for it fails.
const REQUEST: usize = 1;
/// Never dropped: the session would be continued by other processes. A session is removed once, so they are as many as sessions.
const REMOVAL: usize = 2;
const PRIORITIES: usize = 3;

/// The operations that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    overflows: WarningLimit,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// By priority, each with its place in the order of all.
    operations: [VecDeque<(u64, Operation)>; PRIORITIES],
    /// The place of the next operation.
    next: u64,
    bytes: usize,
    is_closed: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            overflows: WarningLimit::new(WARNINGS),
        }
    }
}

impl State {
    /// Returns what is dropped for it.
    fn push(&mut self, operation: Operation) -> Vec<Operation> {
        self.bytes += operation.bytes();
        self.operations[operation.priority()].push_back((self.next, operation));
        self.next += 1;
        let mut dropped = Vec::new();
        for priority in [EVENT, REQUEST] {
            while self.bytes > MAX_QUEUED_BYTES
                && self.len() > 1
                && let Some((_, oldest)) = self.operations[priority].pop_front()
            {
                self.bytes -= oldest.bytes();
                dropped.push(oldest);
            }
        }
        dropped
    }

    fn len(&self) -> usize {
        self.operations.iter().map(VecDeque::len).sum()
    }

    /// Takes the oldest.
    fn pop(&mut self) -> Option<Operation> {
        let waiting = self.operations.iter_mut().filter(|queue| !queue.is_empty());
        let oldest = waiting.min_by_key(|queue| queue.front().map(|(place, _)| *place))?;
        let (_, operation) = oldest.pop_front()?;
        self.bytes -= operation.bytes();
        Some(operation)
    }
}

impl Queue {
    /// Adds an operation; drops others if too much waits, or this one. One is always taken, whatever its size.
    pub(crate) fn push(&self, operation: Operation) {
        let dropped = self.lock().push(operation);
        self.changed.notify_one();
        if !dropped.is_empty()
            && let Some(suppressed) = self.overflows.admit()
        {
            tracing::warn!(
                dropped = dropped.len(),
                suppressed,
                "the queue for other processes is full: dropped the oldest events, messages or requests"
            );
        }
        // Outside the lock, because a dropped reply wakes a task, and a message may release what it was charged.
        drop(dropped);
    }

    /// Ends the thread once it has done what waits.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for operations; `None` after the last. One thread calls this.
    pub(crate) async fn take(&self) -> Option<Vec<Operation>> {
        loop {
            {
                let mut state = self.lock();
                let next = std::iter::from_fn(|| state.pop());
                let batch: Vec<Operation> = next.take(MAX_BATCH_OPERATIONS).collect();
                if !batch.is_empty() {
                    return Some(batch);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1024 * 1024;

    fn large_message() -> Operation {
        Operation::Publish(Bytes::from(vec![0; LARGE]))
    }

    fn save(
        bytes: usize,
    ) -> (
        Operation,
        oneshot::Receiver<Result<SaveOutcome, SharingError>>,
    ) {
        let (reply, outcome) = oneshot::channel();
        let operation = Operation::Save {
            session: "one".to_owned(),
            value: Bytes::from(vec![0; bytes]),
            replaces: Bytes::new(),
            expiry: Expiry::after(std::time::Duration::MAX),
            reply,
        };
        (operation, outcome)
    }

    async fn drain(queue: &Queue) -> Vec<Operation> {
        queue.close();
        let mut taken = Vec::new();
        while let Some(mut batch) = queue.take().await {
            taken.append(&mut batch);
        }
        assert_eq!(queue.lock().bytes, 0);
        taken
    }

    #[tokio::test]
    async fn the_oldest_events_above_the_limit_of_bytes_are_dropped() {
        let queue = Queue::default();
        let fitting = MAX_QUEUED_BYTES / (LARGE + ENTRY_BYTES);
        for number in 0..2 * fitting as u64 {
            queue.push(Operation::Append {
                stream: "one/1".to_owned(),
                number,
                event: Bytes::from(vec![0; LARGE]),
            });
            assert!(queue.lock().bytes <= MAX_QUEUED_BYTES);
        }
        let taken = drain(&queue).await;
        assert_eq!(taken.len(), fitting);
        let first = fitting as u64;
        assert!(matches!(&taken[0], Operation::Append { number, .. } if *number == first));
    }

    #[tokio::test]
    async fn events_are_dropped_before_requests_and_removals_never() {
        let queue = Queue::default();
        let (reply, mut removed) = oneshot::channel();
        queue.push(Operation::Remove {
            session: "removed".to_owned(),
            reply,
        });
        let (first, first_outcome) = save(LARGE);
        queue.push(first);
        for _ in 0..64 {
            queue.push(large_message());
        }
        let mut outcomes = vec![first_outcome];
        let is_dropped = |outcome: &mut oneshot::Receiver<_>| {
            matches!(
                outcome.try_recv(),
                Err(oneshot::error::TryRecvError::Closed)
            )
        };
        assert!(!is_dropped(&mut outcomes[0]));
        for _ in 0..64 {
            let (next, outcome) = save(LARGE);
            queue.push(next);
            outcomes.push(outcome);
        }
        let dropped = outcomes.iter_mut().map(is_dropped);
        let dropped: Vec<bool> = dropped.collect();
        assert!(dropped[0], "the oldest");
        assert!(!dropped[64], "the newest");
        let waits = oneshot::error::TryRecvError::Empty;
        assert_eq!(removed.try_recv().unwrap_err(), waits);
        let taken = drain(&queue).await;
        assert!(matches!(&taken[0], Operation::Remove { .. }));
        let is_save = |operation: &Operation| matches!(operation, Operation::Save { .. });
        assert!(taken[1..].iter().all(is_save));
    }

    #[tokio::test]
    async fn operations_of_different_kinds_stay_in_order() {
        let queue = Queue::default();
        let (reply, _outcome) = oneshot::channel();
        let (save, _saved) = save(10);
        queue.push(large_message());
        queue.push(save);
        queue.push(Operation::End {
            stream: "one/1".to_owned(),
            last: 0,
        });
        queue.push(Operation::Flush { reply });
        let taken = drain(&queue).await;
        assert!(matches!(
            taken[..],
            [
                Operation::Publish(_),
                Operation::Save { .. },
                Operation::End { .. },
                Operation::Flush { .. }
            ]
        ));
    }

    #[tokio::test]
    async fn one_operation_is_taken_whatever_its_size() {
        let queue = Queue::default();
        let (huge, _outcome) = save(2 * MAX_QUEUED_BYTES);
        queue.push(huge);
        assert_eq!(drain(&queue).await.len(), 1);
    }
}
