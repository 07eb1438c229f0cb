//! How long a client may keep a result; since 2026-07-28 ("Caching").

use serde::{Deserialize, Serialize};

use super::shape::open_words;

/// How long, and for whom, a result may be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheHints {
    /// Milliseconds for which it is fresh; 0 means not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

impl CacheHints {
    /// Fresh for `ttl_ms` milliseconds, for `scope`.
    pub fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self {
            ttl_ms: Some(ttl_ms),
            cache_scope: Some(scope),
        }
    }
}

open_words! {
    /// Who may keep a result.
    CacheScope {
        /// Anyone, shared caches included.
        Public = "public",
        /// Only the client that asked.
        Private = "private",
    }
}
