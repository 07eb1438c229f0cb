//! Recently verified tokens, so that the same signature is not verified with every request.

use std::sync::Arc;

use mcpline_jose::JwkSet;

use crate::caller::Caller;

use super::token_cache::{Digest, TokenCache};

/// Recently verified tokens. Some kilobytes each.
#[derive(Default)]
pub(super) struct VerifiedTokens(TokenCache<VerifiedToken>);

/// A verified token.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) authorized: Caller,
    /// Until when it needs no further introspection, in seconds since 1970.
    pub(super) until: u64,
    /// The issuer and the keys that verified it: with other keys it has to be verified again.
    pub(super) keys: Option<(usize, Arc<JwkSet>)>,
}

impl VerifiedTokens {
    pub(super) fn get(&mut self, digest: &Digest, now: u64) -> Option<VerifiedToken> {
        let entry = self.0.get(digest)?;
        (now < entry.until).then(|| entry.clone())
    }

    pub(super) fn put(&mut self, digest: Digest, entry: VerifiedToken) {
        self.0.put(digest, entry);
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

    fn entry(until: u64) -> VerifiedToken {
        VerifiedToken {
            authorized: Caller::new(),
            until,
            keys: None,
        }
    }

    #[test]
    fn remembers_a_token_until_it_expires() {
        let mut remembered = VerifiedTokens::default();
        remembered.put(digest(1), entry(10));
        assert!(remembered.get(&digest(1), 9).is_some());
        assert!(remembered.get(&digest(1), 10).is_none());
        assert!(remembered.get(&digest(2), 0).is_none());
    }
}
