//! What a server has told a client, and waits until the host's listeners have taken it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many notifications, progress reports and lines of one server wait for its client's listeners: any burst of a
/// server that means well.
pub const MAX_WAITING_NOTIFICATIONS: usize = 4_096;

/// How many bytes of them wait: two of the longest messages.
pub const MAX_WAITING_NOTIFICATION_BYTES: usize = 32 * 1024 * 1024;

/// What waits of one server. Clones are the same.
///
/// A listener that is slower than its server loses what comes while this is full, and nothing else: answers pass, and so do
/// the notifications of other servers. To stop reading instead would be a deadlock wherever a listener waits for an answer of
/// the same server.
#[derive(Debug, Clone, Default)]
pub struct Backlog {
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Something was dropped since the backlog was last empty.
    overflowed: AtomicBool,
}

/// A place in a [`Backlog`], free again when it is dropped: when the listener has taken what it is for.
#[derive(Debug)]
pub struct Place {
    waiting: Arc<Waiting>,
    bytes: usize,
}

impl Backlog {
    /// A place for a notification of so many bytes; `None` if it has to be dropped, which is logged once for each overflow.
    pub fn admit(&self, bytes: usize) -> Option<Place> {
        let waiting = &self.waiting;
        // What several threads add at once may exceed the limits by as many messages as there are threads.
        let count = waiting.count.load(Ordering::Relaxed);
        let kept = waiting.bytes.load(Ordering::Relaxed);
        if count >= MAX_WAITING_NOTIFICATIONS
            || (count > 0 && kept + bytes > MAX_WAITING_NOTIFICATION_BYTES)
        {
            if !waiting.overflowed.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    waiting = count,
                    bytes = kept,
                    "a listener is slower than its server: notifications are dropped until it has caught up"
                );
            }
            return None;
        }
        waiting.count.fetch_add(1, Ordering::Relaxed);
        waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(Place {
            waiting: waiting.clone(),
            bytes,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.waiting.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.waiting.overflowed.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_bounded_by_number_until_places_are_free() {
        let backlog = Backlog::default();
        let mut places: Vec<_> = (0..MAX_WAITING_NOTIFICATIONS)
            .map(|_| backlog.admit(1).expect("there is room"))
            .collect();
        assert!(backlog.admit(1).is_none());
        places.pop();
        assert!(backlog.admit(1).is_some());
    }

    #[test]
    fn is_bounded_by_bytes_but_takes_any_single_message() {
        let backlog = Backlog::default();
        let large = backlog.admit(MAX_WAITING_NOTIFICATION_BYTES + 1);
        assert!(large.is_some());
        assert!(backlog.admit(1).is_none());
        drop(large);
        assert!(backlog.clone().admit(1).is_some());
    }
}
