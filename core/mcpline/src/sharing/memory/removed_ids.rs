//! Ids of sessions that were removed, each for a while.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long the id of a removed session is remembered: longer than a server takes to save what it changed before it received that
/// the session ended.
pub(super) const REMOVED_LIFETIME: Duration = Duration::from_secs(300);

/// Maximum number of ids, above which the oldest are forgotten: more than 30,000 sessions were removed since, which takes longer
/// than a save. Each takes some 150 bytes, so this is 5 MB.
pub(super) const MAX_REMOVED_IDS: usize = 32_768;

/// Ids of sessions that were removed.
#[derive(Default)]
pub(super) struct RemovedIds {
    ids: HashSet<Arc<str>>,
    /// The ids with the times of their removals, in this order.
    by_time: VecDeque<(Duration, Arc<str>)>,
}

impl RemovedIds {
    /// Remembers an id that was removed now.
    pub(super) fn add(&mut self, id: &str, now: Duration) {
        self.forget_old(now);
        if self.ids.contains(id) {
            return;
        }
        let id: Arc<str> = id.into();
        self.ids.insert(id.clone());
        self.by_time.push_back((now, id));
        if self.ids.len() > MAX_REMOVED_IDS {
            self.forget_oldest();
        }
    }

    pub(super) fn contains(&mut self, id: &str, now: Duration) -> bool {
        self.forget_old(now);
        self.ids.contains(id)
    }

    fn forget_old(&mut self, now: Duration) {
        while let Some((removed, _)) = self.by_time.front()
            && removed.saturating_add(REMOVED_LIFETIME) <= now
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.by_time.pop_front() {
            self.ids.remove(&id);
        }
    }

    /// Returns the number of ids.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
