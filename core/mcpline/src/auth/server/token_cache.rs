//! A bounded map that keeps what is used.

use std::collections::HashMap;

/// What a token is remembered by: its SHA-256. The token itself isn't kept.
pub(super) type Digest = [u8; 32];

/// The most tokens that are remembered. Their entries take up to some kilobytes each.
pub(super) const MOST: usize = 10_000;

/// What is known of tokens, [`MOST`] at the most. When there are too many, those that were not asked for lately go first.
///
/// Entries are in two generations. When the newer one is full, it becomes the older one, whose entries are dropped; what is
/// asked for in the older one moves to the newer. So there is no list to keep in order.
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
    /// What is known of a token.
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

/// The digest of a token of tests.
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
    fn there_are_never_more_than_so_many_and_those_in_use_stay() {
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
    fn the_latest_entry_of_a_token_counts() {
        let mut recent = TokenCache::default();
        recent.put(digest(0), "first");
        for number in 1..=MOST / 2 {
            recent.put(digest(number), "other");
        }
        recent.put(digest(0), "second");
        assert_eq!(recent.get(&digest(0)), Some(&"second"));
    }
}
