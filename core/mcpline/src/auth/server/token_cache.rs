//! A bounded map that keeps recently used entries.

use std::collections::HashMap;

/// Key of a token: its SHA-256, so that the token itself is not stored.
pub(super) type Digest = [u8; 32];

/// Maximum number of remembered tokens. Their entries take up to some kilobytes each.
pub(super) const MOST: usize = 10_000;

/// Information about up to [`MOST`] tokens. Above it, those that were not used recently are dropped first.
///
/// Entries are in two generations. When the newer one is full, it becomes the older one, whose entries are dropped;
/// entries of the older one move to the newer one when they are used. This needs no ordered list.
#[derive(Debug)]
pub(super) struct TokenCache<T> {
    newer: HashMap<Digest, T>,
    older: HashMap<Digest, T>,
}

impl<T> Default for TokenCache<T> {
    fn default() -> Self {
        Self {
            newer: HashMap::new(),
            older: HashMap::new(),
        }
    }
}

impl<T> TokenCache<T> {
    /// Returns the entry of a token.
    pub(super) fn get(&mut self, digest: &Digest) -> Option<&T> {
        if !self.newer.contains_key(digest) {
            let entry = self.older.remove(digest)?;
            self.put(*digest, entry);
        }
        self.newer.get(digest)
    }

    pub(super) fn put(&mut self, digest: Digest, entry: T) {
        if self.newer.len() >= MOST / 2 {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(digest, entry);
    }
}

/// Returns a digest for tests.
#[cfg(test)]
pub(super) fn digest(number: usize) -> Digest {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_its_entries_and_keeps_those_in_use() {
        let mut recent = TokenCache::default();
        recent.put(digest(0), 0);
        for number in 1..=3 * MOST {
            recent.put(digest(number), number);
            assert!(recent.newer.len() + recent.older.len() <= MOST);
            if number % 1_000 == 0 {
                assert_eq!(recent.get(&digest(0)), Some(&0), "{number}");
            }
        }
        assert_eq!(recent.get(&digest(1)), None);
        assert_eq!(recent.get(&digest(3 * MOST)), Some(&(3 * MOST)));
    }

    #[test]
    fn the_latest_entry_of_a_token_wins() {
        let mut recent = TokenCache::default();
        recent.put(digest(0), "first");
        for number in 1..=MOST / 2 {
            recent.put(digest(number), "other");
        }
        recent.put(digest(0), "second");
        assert_eq!(recent.get(&digest(0)), Some(&"second"));
    }
}
