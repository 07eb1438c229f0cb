//! The operations that wait for the thread, in order, with a limit in bytes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpline::sharing::{LoggedEvents, SaveOutcome, SharingError};
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
    Append {
        stream: String,
        number: u64,
        event: Bytes,
    },
    End {
        stream: String,
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
}

/// The operations that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    overflows: WarningLimit,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    operations: VecDeque<Operation>,
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

impl Queue {
    /// Adds an operation, or drops it if too much waits already. One is always taken, whatever its size.
    pub(crate) fn push(&self, operation: Operation) {
        let bytes = operation.bytes();
        let mut state = self.lock();
        if state.bytes > 0 && state.bytes + bytes > MAX_QUEUED_BYTES {
            drop(state);
            // A dropped reply fails the operation.
            if let Some(suppressed) = self.overflows.admit() {
                tracing::warn!(
                    suppressed,
                    "too much waits to be written for other processes: sessions, events or messages are dropped"
                );
            }
            return;
        }
        state.bytes += bytes;
        state.operations.push_back(operation);
        drop(state);
        self.changed.notify_one();
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
                let count = state.operations.len().min(MAX_BATCH_OPERATIONS);
                if count > 0 {
                    let batch: Vec<Operation> = state.operations.drain(..count).collect();
                    state.bytes -= batch.iter().map(Operation::bytes).sum::<usize>();
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

    #[tokio::test]
    async fn operations_above_the_limit_of_bytes_are_dropped_or_fail() {
        let queue = Queue::default();
        let fitting = MAX_QUEUED_BYTES / (LARGE + ENTRY_BYTES);
        for _ in 0..2 * fitting {
            queue.push(Operation::Publish(Bytes::from(vec![0; LARGE])));
            assert!(queue.lock().bytes <= MAX_QUEUED_BYTES);
        }
        let (reply, outcome) = oneshot::channel();
        let value = Bytes::from(vec![0; LARGE]);
        queue.push(Operation::Save {
            session: "one".to_owned(),
            value,
            replaces: Bytes::new(),
            expiry: Expiry::after(std::time::Duration::MAX),
            reply,
        });
        assert!(outcome.await.is_err(), "dropped");
        queue.close();
        let mut taken = 0;
        while let Some(batch) = queue.take().await {
            taken += batch.len();
        }
        assert_eq!(taken, fitting);
        assert_eq!(queue.lock().bytes, 0);
    }
}
