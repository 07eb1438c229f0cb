//! Proofs of possession that were shown already: each is good for one request (RFC 9449, section 11.1).

use std::collections::HashSet;

use mcpline_jose::proof::MAX_AGE;
use sha2::{Digest as _, Sha256};

/// The most proofs of one minute, because each costs memory: as many as a process can verify, and then some.
const MOST: usize = 1_000_000;

/// Proofs that were shown. They are remembered by this process alone.
#[derive(Default)]
pub(super) struct Proofs {
    /// Those that came lately, and those before, in periods as long as a proof is good.
    lately: HashSet<[u8; 32]>,
    before: HashSet<[u8; 32]>,
    /// When the period of `lately` ends, in seconds since 1970.
    turns: u64,
}

/// Why a proof isn't accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It was shown before.
    Replayed,
    /// There are too many to remember.
    Full,
}

impl Proofs {
    /// Takes a proof that is right in itself.
    pub(super) fn show(
        &mut self,
        id: &str,
        thumbprint: &str,
        now: u64,
        skew: u64,
    ) -> Result<(), Refused> {
        // From the future by the skew at the earliest, that much and a minute old at the latest.
        let period = MAX_AGE + 2 * skew + 1;
        if now >= self.turns + period {
            self.lately.clear();
        }
        if now >= self.turns {
            self.before = std::mem::take(&mut self.lately);
            self.turns = now + period;
        }
        // A thumbprint has one length, so that no two pairs are one text.
        let key = Sha256::new()
            .chain_update(thumbprint)
            .chain_update(id)
            .finalize()
            .into();
        if self.before.contains(&key) || self.lately.contains(&key) {
            return Err(Refused::Replayed);
        }
        if self.lately.len() >= MOST {
            return Err(Refused::Full);
        }
        self.lately.insert(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_refused_for_as_long_as_it_would_be_good() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("1", "key", 1_000, 5), Ok(()));
        for now in 1_000..=1_070 {
            assert_eq!(
                proofs.show("1", "key", now, 5),
                Err(Refused::Replayed),
                "{now}"
            );
        }
        assert_eq!(proofs.show("1", "yek", 1_000, 5), Ok(()));
        assert_eq!(proofs.show("2", "key", 1_000, 5), Ok(()));
    }

    #[test]
    fn a_proof_that_came_at_the_end_of_a_period_is_remembered_in_the_next() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("first", "key", 1_000, 5), Ok(()));
        assert_eq!(proofs.show("last", "key", 1_069, 5), Ok(()));
        for now in 1_070..=1_139 {
            assert_eq!(
                proofs.show("last", "key", now, 5),
                Err(Refused::Replayed),
                "{now}"
            );
        }
        assert!(proofs.lately.len() + proofs.before.len() <= 2);
    }

    #[test]
    fn what_no_proof_could_be_any_more_is_forgotten() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("1", "key", 1_000, 5), Ok(()));
        assert_eq!(proofs.show("2", "key", 5_000, 5), Ok(()));
        assert_eq!(proofs.show("1", "key", 5_000, 5), Ok(()));
        assert_eq!(proofs.lately.len(), 2);
        assert!(proofs.before.is_empty());
    }
}
