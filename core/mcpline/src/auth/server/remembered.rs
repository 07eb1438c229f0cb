//! Tokens that were checked lately, so that a conversation needn't verify the same signature with every request.

use std::collections::HashMap;
use std::sync::Arc;

use mcpline_protocol::auth::jose::JwkSet;

use super::authorized::Authorized;

/// The most tokens that are remembered, because each costs memory. Some kilobytes each.
const MOST: usize = 10_000;

/// What a token is remembered by: its SHA-256. The token itself isn't kept.
pub(super) type Digest = [u8; 32];

/// Tokens that were checked lately. When there are too many, those that were not asked for lately go first.
#[derive(Default)]
pub(super) struct Remembered {
    lately: HashMap<Digest, Entry>,
    before: HashMap<Digest, Entry>,
}

/// One token.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) authorized: Authorized,
    /// Until when nobody need be asked again, in seconds since 1970.
    pub(super) until: u64,
    /// Which issuer's keys verified it, and which these were: when there are others, it has to be verified anew.
    pub(super) keys: Option<(usize, Arc<JwkSet>)>,
}

impl Remembered {
    pub(super) fn get(&mut self, digest: &Digest, now: u64) -> Option<Entry> {
        if let Some(entry) = self.lately.get(digest) {
            return (now < entry.until).then(|| entry.clone());
        }
        let entry = self.before.remove(digest)?;
        if now >= entry.until {
            return None;
        }
        self.put(*digest, entry.clone());
        Some(entry)
    }

    pub(super) fn put(&mut self, digest: Digest, entry: Entry) {
        if self.lately.len() >= MOST / 2 {
            self.before = std::mem::take(&mut self.lately);
        }
        self.lately.insert(digest, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
        digest
    }

    fn entry(until: u64) -> Entry {
        Entry {
            authorized: Authorized::new(),
            until,
            keys: None,
        }
    }

    #[test]
    fn a_token_is_remembered_until_its_time() {
        let mut remembered = Remembered::default();
        remembered.put(digest(1), entry(10));
        assert!(remembered.get(&digest(1), 9).is_some());
        assert!(remembered.get(&digest(1), 10).is_none());
        assert!(remembered.get(&digest(2), 0).is_none());
    }

    #[test]
    fn there_are_never_more_than_so_many_and_those_in_use_stay() {
        let mut remembered = Remembered::default();
        remembered.put(digest(0), entry(10));
        for number in 1..=3 * MOST {
            remembered.put(digest(number), entry(10));
            assert!(remembered.lately.len() + remembered.before.len() <= MOST);
            if number % 1_000 == 0 {
                assert!(remembered.get(&digest(0), 0).is_some(), "{number}");
            }
        }
        assert!(remembered.get(&digest(1), 0).is_none());
    }
}
