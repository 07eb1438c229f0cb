//! Cache hints of results (2026-07-28, "Caching").

use serde::{Deserialize, Serialize};

use super::macros::open_words;

/// How long a result may be cached, and who may cache it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CacheHints {
    /// How long the result is fresh, in milliseconds; 0 means not cacheable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may cache the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

impl CacheHints {
    /// Creates hints: fresh for `ttl_ms` milliseconds, in caches of `scope`.
    pub fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self {
            ttl_ms: Some(ttl_ms),
            cache_scope: Some(scope),
        }
    }
}

open_words! {
    /// Who may cache a result.
    CacheScope {
        /// Anyone, including shared caches.
        Public = "public",
        /// Only the client that sent the request.
        Private = "private",
    }
}
