//! Proofs of possession that this process has accepted: each is valid for one request (RFC 9449, section 11.1).

use std::collections::{HashMap, HashSet};

use mcpline_auth::proof::MAX_AGE;
use sha2::{Digest as _, Sha256};

/// Maximum number of proofs in one period, because each costs memory: more than a process can verify. One principal may
/// use no more of them than are left for all others: half if it is alone.
const MAX_PROOFS: usize = 1_000_000;

/// What identifies a proof: a digest of its id and its key.
pub(super) type ProofDigest = [u8; 32];

/// Returns the digest of the proof with this id, by the key with this thumbprint.
pub(super) fn proof_digest(thumbprint: &str, id: &str) -> ProofDigest {
    // Unambiguous, because thumbprints have a fixed length.
    Sha256::new()
        .chain_update(thumbprint)
        .chain_update(id)
        .finalize()
        .into()
}

/// Used proofs, as remembered by this process only.
pub(super) struct ProofReplayCache {
    /// Maximum number in one period.
    max: usize,
    /// Proofs of this period and of the previous one. A period lasts as long as a proof is valid.
    lately: HashSet<ProofDigest>,
    before: HashSet<ProofDigest>,
    /// Number of proofs in `lately` by principal, as the digest of its name.
    counts: HashMap<[u8; 32], usize>,
    /// When the period of `lately` ends, in seconds since 1970.
    turns: u64,
}

/// Why a proof is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofRefusal {
    /// It was used before.
    Replayed,
    /// Its principal has too many to remember.
    Full,
}

impl Default for ProofReplayCache {
    fn default() -> Self {
        Self::with_room(MAX_PROOFS)
    }
}

impl ProofReplayCache {
    /// Remembers up to `max` proofs of one period.
    fn with_room(max: usize) -> Self {
        Self {
            max,
            lately: HashSet::new(),
            before: HashSet::new(),
            counts: HashMap::new(),
            turns: 0,
        }
    }

    /// Uses a valid proof. `principal` is the owner of its token, who may have many keys.
    pub(super) fn record_use(
        &mut self,
        proof: ProofDigest,
        principal: &str,
        now: u64,
        skew: u64,
    ) -> Result<(), ProofRefusal> {
        // A proof is accepted from `skew` before its time until a minute and `skew` after it.
        let period = skew.saturating_mul(2).saturating_add(MAX_AGE + 1);
        if now >= self.turns.saturating_add(period) {
            self.lately.clear();
        }
        if now >= self.turns {
            self.before = std::mem::take(&mut self.lately);
            self.counts = HashMap::new();
            self.turns = now.saturating_add(period);
        }
        if self.before.contains(&proof) || self.lately.contains(&proof) {
            return Err(ProofRefusal::Replayed);
        }
        let left = self.max - self.lately.len();
        let principal = Sha256::digest(principal).into();
        if self.counts.get(&principal).copied().unwrap_or(0) >= left {
            return Err(ProofRefusal::Full);
        }
        self.lately.insert(proof);
        *self.counts.entry(principal).or_default() += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_used_proof_while_it_would_be_valid() {
        let mut proofs = ProofReplayCache::default();
        assert_eq!(
            proofs.record_use(proof_digest("key", "1"), "ann", 1_000, 5),
            Ok(())
        );
        for now in 1_000..=1_070 {
            assert_eq!(
                proofs.record_use(proof_digest("key", "1"), "ann", now, 5),
                Err(ProofRefusal::Replayed),
                "{now}"
            );
        }
        assert_eq!(
            proofs.record_use(proof_digest("yek", "1"), "ann", 1_000, 5),
            Ok(())
        );
        assert_eq!(
            proofs.record_use(proof_digest("key", "2"), "ann", 1_000, 5),
            Ok(())
        );
    }

    #[test]
    fn remembers_proofs_from_the_end_of_a_period_in_the_next_one() {
        let mut proofs = ProofReplayCache::default();
        assert_eq!(
            proofs.record_use(proof_digest("key", "first"), "ann", 1_000, 5),
            Ok(())
        );
        assert_eq!(
            proofs.record_use(proof_digest("key", "last"), "ann", 1_069, 5),
            Ok(())
        );
        for now in 1_070..=1_139 {
            assert_eq!(
                proofs.record_use(proof_digest("key", "last"), "ann", now, 5),
                Err(ProofRefusal::Replayed),
                "{now}"
            );
        }
        assert!(proofs.lately.len() + proofs.before.len() <= 2);
    }

    #[test]
    fn a_skew_without_a_limit_keeps_every_proof() {
        let mut proofs = ProofReplayCache::default();
        for (id, now) in [("1", 1_000), ("2", u64::MAX - 1)] {
            let proof = proof_digest("key", id);
            assert_eq!(proofs.record_use(proof, "ann", now, u64::MAX), Ok(()));
        }
        assert_eq!(proofs.lately.len(), 2);
    }

    #[test]
    fn forgets_proofs_that_can_no_longer_be_valid() {
        let mut proofs = ProofReplayCache::default();
        assert_eq!(
            proofs.record_use(proof_digest("key", "1"), "ann", 1_000, 5),
            Ok(())
        );
        assert_eq!(
            proofs.record_use(proof_digest("key", "2"), "ann", 5_000, 5),
            Ok(())
        );
        assert_eq!(
            proofs.record_use(proof_digest("key", "1"), "ann", 5_000, 5),
            Ok(())
        );
        assert_eq!(proofs.lately.len(), 2);
        assert!(proofs.before.is_empty());
    }

    #[test]
    fn a_principal_with_many_proofs_leaves_room_for_others() {
        let mut proofs = ProofReplayCache::with_room(90);
        let mut show_all = |principal: &str, keys: usize| {
            let mut shown = 0;
            for id in 0..100 {
                let key = format!("{principal}-{keys}-{}", id % keys);
                let proof = proof_digest(&key, &id.to_string());
                match proofs.record_use(proof, principal, 1_000, 5) {
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
        assert_eq!(
            proofs.record_use(proof_digest("key", "new"), "flood", 2_000, 5),
            Ok(())
        );
        assert_eq!(proofs.counts.len(), 1);
    }
}
