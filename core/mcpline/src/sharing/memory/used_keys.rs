//! Keys of what may be used once, in memory, each until its lifetime is over.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::sharing::UseOutcome;

/// Maximum number of keys, above which those are dropped whose lifetime ends first. Each takes some 200 bytes, so this is
/// 40 MB: enough for 1,000 DPoP proofs a second, each of which is valid for three minutes by default.
pub(super) const MAX_USED_KEYS: usize = 200_000;

/// Keys that were used.
#[derive(Default)]
pub(super) struct UsedKeys {
    keys: HashSet<Arc<str>>,
    /// The keys, in the order in which their lifetimes end.
    by_end: BTreeSet<(Duration, Arc<str>)>,
}

impl UsedKeys {
    /// Records the use of a key, until then.
    pub(super) fn record(&mut self, key: &str, until: Duration, now: Duration) -> UseOutcome {
        while let Some((end, _)) = self.by_end.first()
            && *end <= now
        {
            self.drop_first();
        }
        if self.keys.contains(key) {
            return UseOutcome::Repeated;
        }
        let key: Arc<str> = key.into();
        self.keys.insert(key.clone());
        self.by_end.insert((until, key));
        if self.keys.len() > MAX_USED_KEYS {
            self.drop_first();
        }
        UseOutcome::First
    }

    fn drop_first(&mut self) {
        if let Some((_, key)) = self.by_end.pop_first() {
            self.keys.remove(&key);
        }
    }

    /// Returns the number of keys.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}
