//! Messages of a server that wait to be taken, limited by number and bytes.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Limits of a [`Backlog`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct BacklogLimits {
    /// Maximum number of messages.
    pub(crate) messages: usize,
    /// Maximum total number of bytes. A single message may exceed it.
    pub(crate) bytes: usize,
    /// The log message when messages are dropped.
    pub(crate) overflow: &'static str,
}

/// Counts the waiting messages of one server. Clones share the count.
#[derive(Debug, Clone)]
pub struct Backlog {
    waiting: Arc<BacklogCounters>,
}

#[derive(Debug)]
struct BacklogCounters {
    limits: BacklogLimits,
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether a message was dropped since the backlog was last empty.
    overflowed: AtomicBool,
}

/// Room for one message in a [`Backlog`]. Dropping it frees the room: drop it when the message was taken.
#[derive(Debug)]
pub struct BacklogSlot {
    waiting: Arc<BacklogCounters>,
    bytes: usize,
}

impl Backlog {
    pub(crate) fn new(limits: BacklogLimits) -> Self {
        Self {
            waiting: Arc::new(BacklogCounters {
                limits,
                count: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                overflowed: AtomicBool::new(false),
            }),
        }
    }

    /// Reserves room for a message of this size. Returns `None` if the message has to be dropped, which is logged once
    /// per overflow.
    pub fn admit(&self, bytes: usize) -> Option<BacklogSlot> {
        let waiting = &self.waiting;
        // Concurrent threads may exceed the limits by one message each.
        let count = waiting.count.load(Ordering::Relaxed);
        let kept = waiting.bytes.load(Ordering::Relaxed);
        let limits = &waiting.limits;
        if count >= limits.messages || (count > 0 && kept + bytes > limits.bytes) {
            if !waiting.overflowed.swap(true, Ordering::Relaxed) {
                tracing::warn!(waiting = count, bytes = kept, "{}", limits.overflow);
            }
            return None;
        }
        waiting.count.fetch_add(1, Ordering::Relaxed);
        waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(BacklogSlot {
            waiting: waiting.clone(),
            bytes,
        })
    }
}

impl Drop for BacklogSlot {
    fn drop(&mut self) {
        self.waiting.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.waiting.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.waiting.overflowed.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(mcpline_models)))]
mod tests {
    use super::*;

    const LIMITS: BacklogLimits = BacklogLimits {
        messages: 4,
        bytes: 100,
        overflow: "dropped",
    };

    #[test]
    fn is_bounded_by_number_until_slots_are_dropped() {
        let backlog = Backlog::new(LIMITS);
        let mut slots: Vec<_> = (0..4).map(|_| backlog.admit(1).unwrap()).collect();
        assert!(backlog.admit(1).is_none());
        slots.pop();
        assert!(backlog.admit(1).is_some());
    }

    #[test]
    fn is_bounded_by_bytes_but_takes_any_single_message() {
        let backlog = Backlog::new(LIMITS);
        let large = backlog.admit(LIMITS.bytes + 1);
        assert!(large.is_some());
        assert!(backlog.admit(1).is_none());
        drop(large);
        assert!(backlog.clone().admit(1).is_some());
    }
}
