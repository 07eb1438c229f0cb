//! Tokens that their issuer has recently rejected, so that a client that keeps sending one does not cause a request to
//! the issuer each time.

use super::token_cache::{Digest, TokenCache};

/// How long a rejection is cached, in seconds, unless [`Introspection::keep_for`](super::Introspection::keep_for) is
/// shorter. A token that is not valid yet, because clocks differ, soon will be.
const BELIEVED: u64 = 30;

/// Recently rejected tokens. About 100 bytes each.
#[derive(Default)]
pub(super) struct RefusedTokens(TokenCache<RefusedToken>);

struct RefusedToken {
    why: String,
    /// When the entry expires, in seconds since 1970.
    until: u64,
}

impl RefusedTokens {
    /// Returns why the token was rejected, if that was recently.
    pub(super) fn get(&mut self, digest: &Digest, now: u64) -> Option<String> {
        let entry = self.0.get(digest)?;
        (now < entry.until).then(|| entry.why.clone())
    }

    /// Remembers a rejection for at most `keep_for` seconds.
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
    fn caches_a_rejection_no_longer_than_responses() {
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
