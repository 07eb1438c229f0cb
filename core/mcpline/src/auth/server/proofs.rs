//! Proofs of possession that were shown already: each is good for one request (RFC 9449, section 11.1).

use std::collections::{HashMap, HashSet};

use mcpline_auth::proof::MAX_AGE;
use sha2::{Digest as _, Sha256};

/// The most proofs of one period, because each costs memory: as many as a process can verify, and then some. One principal
/// may show no more of them than are left for all others: half if it is alone.
const MAX_PROOFS: usize = 1_000_000;

/// Proofs that were shown. They are remembered by this process alone.
pub(super) struct Proofs {
    /// How many are remembered of one period.
    max: usize,
    /// Those that came lately, and those before, in periods as long as a proof is good.
    lately: HashSet<[u8; 32]>,
    before: HashSet<[u8; 32]>,
    /// How many of `lately` are of each principal, by the digest of its name.
    counts: HashMap<[u8; 32], usize>,
    /// When the period of `lately` ends, in seconds since 1970.
    turns: u64,
}

/// Why a proof isn't accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofRefusal {
    /// It was shown before.
    Replayed,
    /// There are too many of its principal to remember.
    Full,
}

impl Default for Proofs {
    fn default() -> Self {
        Self::with_room(MAX_PROOFS)
    }
}

impl Proofs {
    /// Remembers so many proofs of one period.
    fn with_room(max: usize) -> Self {
        Self {
            max,
            lately: HashSet::new(),
            before: HashSet::new(),
            counts: HashMap::new(),
            turns: 0,
        }
    }

    /// Takes a proof that is right in itself. `principal` is whose token it goes with: a principal may have many keys.
    pub(super) fn show(
        &mut self,
        id: &str,
        (principal, thumbprint): (&str, &str),
        now: u64,
        skew: u64,
    ) -> Result<(), ProofRefusal> {
        // From the future by the skew at the earliest, that much and a minute old at the latest.
        let period = MAX_AGE + 2 * skew + 1;
        if now >= self.turns + period {
            self.lately.clear();
        }
        if now >= self.turns {
            self.before = std::mem::take(&mut self.lately);
            self.counts = HashMap::new();
            self.turns = now + period;
        }
        // A thumbprint has one length, so that no two pairs are one text.
        let key = Sha256::new()
            .chain_update(thumbprint)
            .chain_update(id)
            .finalize()
            .into();
        if self.before.contains(&key) || self.lately.contains(&key) {
            return Err(ProofRefusal::Replayed);
        }
        let left = self.max - self.lately.len();
        let principal = Sha256::digest(principal).into();
        if self.counts.get(&principal).copied().unwrap_or(0) >= left {
            return Err(ProofRefusal::Full);
        }
        self.lately.insert(key);
        *self.counts.entry(principal).or_default() += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_refused_for_as_long_as_it_would_be_good() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("1", ("ann", "key"), 1_000, 5), Ok(()));
        for now in 1_000..=1_070 {
            assert_eq!(
                proofs.show("1", ("ann", "key"), now, 5),
                Err(ProofRefusal::Replayed),
                "{now}"
            );
        }
        assert_eq!(proofs.show("1", ("ann", "yek"), 1_000, 5), Ok(()));
        assert_eq!(proofs.show("2", ("ann", "key"), 1_000, 5), Ok(()));
    }

    #[test]
    fn a_proof_that_came_at_the_end_of_a_period_is_remembered_in_the_next() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("first", ("ann", "key"), 1_000, 5), Ok(()));
        assert_eq!(proofs.show("last", ("ann", "key"), 1_069, 5), Ok(()));
        for now in 1_070..=1_139 {
            assert_eq!(
                proofs.show("last", ("ann", "key"), now, 5),
                Err(ProofRefusal::Replayed),
                "{now}"
            );
        }
        assert!(proofs.lately.len() + proofs.before.len() <= 2);
    }

    #[test]
    fn what_no_proof_could_be_any_more_is_forgotten() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.show("1", ("ann", "key"), 1_000, 5), Ok(()));
        assert_eq!(proofs.show("2", ("ann", "key"), 5_000, 5), Ok(()));
        assert_eq!(proofs.show("1", ("ann", "key"), 5_000, 5), Ok(()));
        assert_eq!(proofs.lately.len(), 2);
        assert!(proofs.before.is_empty());
    }

    #[test]
    fn a_principal_that_shows_many_proofs_leaves_room_for_those_of_others() {
        let mut proofs = Proofs::with_room(90);
        let mut show_all = |principal: &str, keys: usize| {
            let mut shown = 0;
            for id in 0..100 {
                let key = format!("{principal}-{keys}-{}", id % keys);
                match proofs.show(&id.to_string(), (principal, &key), 1_000, 5) {
                    Ok(()) => shown += 1,
                    Err(refused) => assert_eq!(refused, ProofRefusal::Full),
                }
            }
            shown
        };
        // However many keys its tokens are bound to.
        assert_eq!(show_all("flood", 10), 45);
        assert_eq!(show_all("flood", 1), 0);
        assert_eq!(show_all("another", 1), 23);
        assert_eq!(show_all("ann", 1), 11);
        assert_eq!(proofs.lately.len(), 79);
        // In the next period it has room again.
        assert_eq!(proofs.show("new", ("flood", "key"), 2_000, 5), Ok(()));
        assert_eq!(proofs.counts.len(), 1);
    }
}
