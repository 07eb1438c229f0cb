//! Tokens that their issuer has called bad lately, so that a client that goes on sending one doesn't have the issuer asked
//! each time.

use super::token_cache::{Digest, TokenCache};

/// For how long a refusal is believed, in seconds, if not shorter by
/// [`Introspection::keep_for`](super::Introspection::keep_for): a token that is not good yet, by clocks that differ, is
/// soon.
const BELIEVED: u64 = 30;

/// Tokens that were refused lately. About 100 bytes each.
#[derive(Default)]
pub(super) struct RefusedTokens(TokenCache<RefusedToken>);

struct RefusedToken {
    why: String,
    /// Until when, in seconds since 1970.
    until: u64,
}

impl RefusedTokens {
    /// Why the token was refused, if that was lately.
    pub(super) fn get(&mut self, digest: &Digest, now: u64) -> Option<String> {
        let entry = self.0.get(digest)?;
        (now < entry.until).then(|| entry.why.clone())
    }

    /// Remembers a refusal for `keep_for` seconds at the most.
    pub(super) fn put(&mut self, digest: Digest, why: &str, keep_for: u64, now: u64) {
        if keep_for == 0 {
            return;
        }
        let entry = RefusedToken {
            why: why.to_owned(),
            until: now.saturating_add(keep_for.min(BELIEVED)),
        };
        self.0.put(digest, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::server::token_cache::digest;

    #[test]
    fn a_refusal_is_believed_for_a_while_and_never_longer_than_answers_are() {
        let mut refused = RefusedTokens::default();
        refused.put(digest(1), "not active", 60, 100);
        refused.put(digest(2), "not active", 5, 100);
        refused.put(digest(3), "not active", 0, 100);
        assert_eq!(refused.get(&digest(1), 129).as_deref(), Some("not active"));
        assert_eq!(refused.get(&digest(1), 130), None);
        assert_eq!(refused.get(&digest(2), 105), None);
        assert_eq!(refused.get(&digest(3), 100), None);
    }
}
