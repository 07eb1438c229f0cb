//! Requests whose response is written, but not their record.
//!
//! A request is recorded, and its span ends, after its response, on the thread that wrote it. The client may have the response
//! and end the connection before that thread runs again, so serving ends, and a client of a server in memory closes, only after
//! this.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the end of serving waits at most. Records take microseconds unless their thread waits for a processor or their
/// listener blocks; a handler that lets others keep its context keeps the span as long.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// How often it looks whether all are recorded.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The requests of a server that are answered and not yet recorded.
#[derive(Default)]
pub(super) struct PendingRecords {
    /// Those that were answered between two waits. The last group gets those that are answered now.
    groups: Mutex<Vec<Arc<Group>>>,
}

/// A number of requests.
#[derive(Default)]
struct Group(AtomicUsize);

/// A request that is about to be answered, until it is recorded and its span has ended.
pub(super) struct PendingRecord(Arc<Group>);

impl Group {
    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

impl PendingRecord {
    fn new(group: &Arc<Group>) -> Self {
        group.0.fetch_add(1, Ordering::Relaxed);
        Self(group.clone())
    }
}

impl Clone for PendingRecord {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl PendingRecords {
    /// Counts a request, before its response is written.
    pub(super) fn begin(&self) -> PendingRecord {
        let mut groups = self.lock();
        if groups.is_empty() {
            groups.push(Arc::default());
        }
        PendingRecord::new(&groups[groups.len() - 1])
    }

    /// Waits until those that were answered before are recorded, for a bounded time. No later wait is for these, so that what keeps
    /// a span delays only one.
    pub(super) async fn wait(&self) {
        let waited = {
            let mut groups = self.lock();
            groups.retain(|group| !group.is_empty());
            let waited = groups.clone();
            if !waited.is_empty() {
                groups.push(Arc::default());
            }
            waited
        };
        if waited.is_empty() {
            // Without a timer, which a runtime need not have.
            return;
        }
        let all_recorded = async {
            while !waited.iter().all(|group| group.is_empty()) {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(MAX_WAIT, all_recorded).await;
        let is_waited = |group: &Arc<_>| waited.iter().any(|other| Arc::ptr_eq(group, other));
        self.lock().retain(|group| !is_waited(group));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Group>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// Returns how long a wait takes, in milliseconds.
    async fn waited(records: &PendingRecords) -> u128 {
        let began = Instant::now();
        records.wait().await;
        began.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn waits_until_all_copies_are_dropped() {
        let records = PendingRecords::default();
        assert_eq!(waited(&records).await, 0);
        let (first, second) = (records.begin(), records.begin());
        let copy = first.clone();
        let dropping = async {
            drop((first, second));
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(copy);
        };
        // Several transports may end at once.
        let (one, other, ()) = tokio::join!(waited(&records), waited(&records), dropping);
        for took in [one, other] {
            assert!((100..110).contains(&took), "{took}");
        }
        assert_eq!(waited(&records).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_once_for_what_is_kept_and_not_for_later_ones() {
        let records = PendingRecords::default();
        let kept = records.begin();
        let mut later = None;
        let (took, ()) = tokio::join!(waited(&records), async {
            later = Some(records.begin());
        });
        assert!((500..510).contains(&took), "{took}");
        let dropping = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(later);
        };
        let (took, ()) = tokio::join!(waited(&records), dropping);
        assert!((100..110).contains(&took), "{took}");
        assert_eq!(waited(&records).await, 0);
        drop(kept);
        assert!(records.lock().is_empty());
    }
}
