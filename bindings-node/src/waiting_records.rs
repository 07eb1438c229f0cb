//! Records of requests that wait for the JavaScript thread: how many there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of records of a server that wait. Further ones are dropped: while JavaScript is busy, the core goes on
/// answering pings and lists, and their records must not use up the memory.
const CAPACITY: usize = 4096;

/// Counts as waiting until it is dropped.
pub(crate) struct WaitingRecord(Arc<AtomicUsize>);

impl WaitingRecord {
    /// Counts a record; `None` if too many are waiting.
    pub(crate) fn count(waiting: &Arc<AtomicUsize>) -> Option<Self> {
        // Before the check, so that two threads cannot both take the last place.
        let counted = Self(waiting.clone());
        (waiting.fetch_add(1, Ordering::Relaxed) < CAPACITY).then_some(counted)
    }
}

impl Drop for WaitingRecord {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_beyond_the_capacity_are_dropped_until_others_are_read() {
        let waiting = Arc::default();
        let mut records: Vec<_> = (0..CAPACITY)
            .map(|_| WaitingRecord::count(&waiting))
            .collect();
        assert!(records.iter().all(Option::is_some));
        assert!(WaitingRecord::count(&waiting).is_none());
        records.pop();
        assert!(WaitingRecord::count(&waiting).is_some());
    }
}
