//! The keys of an authorization server.

use std::sync::Arc;
use std::time::Duration;

use mcpline_auth::url::Url;
use mcpline_jose::JwkSet;

use crate::auth::BoxFuture;

use super::Fetch;
use super::document_cache::{
    DocumentCache, FetchedDocument, fetch_document, fetch_metadata, max_age,
};

/// Delay after a failed fetch while there are no keys at all and every request fails.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Where the keys of an issuer come from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Keys {
    /// From the URL in the issuer's metadata (RFC 8414, OpenID Connect Discovery).
    #[default]
    Discovered,
    /// From this URL.
    At(String),
    /// Fixed keys.
    These(JwkSet),
}

/// The keys of one issuer.
#[derive(Clone)]
pub(super) enum KeyCache {
    /// Fetched, and again when they change.
    Fetched(Arc<DocumentCache<JwkSet>>),
    Fixed(Arc<JwkSet>),
}

impl KeyCache {
    pub(super) fn new(issuer: Option<Url>, source: Keys, fetch: Fetch) -> Self {
        if let Keys::These(keys) = source {
            return Self::Fixed(Arc::new(keys));
        }
        let of = issuer.clone();
        let fetch_keys = move || -> BoxFuture<'static, FetchedDocument<JwkSet>> {
            let (issuer, source, fetch) = (issuer.clone(), source.clone(), fetch.clone());
            Box::pin(async move {
                let url = match (source, issuer) {
                    (Keys::At(url), _) => url,
                    (_, Some(issuer)) => discover(&fetch, &issuer).await?,
                    (_, None) => {
                        return Err("no issuer is configured to fetch keys from".to_owned());
                    }
                };
                let response = fetch_document(&fetch, &url).await?;
                let fresh = max_age(&response);
                let keys =
                    JwkSet::parse(response.body).map_err(|error| format!("{url}: {error}"))?;
                Ok((keys, fresh))
            })
        };
        let cache = DocumentCache::new(of.as_ref(), RETRY_PAUSE, Box::new(fetch_keys));
        Self::Fetched(cache)
    }

    /// Returns the keys, if they are available and fresh.
    pub(super) fn fresh(&self) -> Option<Arc<JwkSet>> {
        match self {
            Self::Fetched(cache) => cache.fresh(),
            Self::Fixed(keys) => Some(keys.clone()),
        }
    }

    /// Returns the keys, and fetches them if they are missing, not fresh, or lack the key that a token names.
    ///
    /// # Errors
    ///
    /// If there are none and none can be fetched.
    pub(super) async fn get(&self, id: Option<&str>) -> Result<Arc<JwkSet>, String> {
        let keys = match self {
            Self::Fetched(cache) => cache.get(|keys| id.is_none_or(|id| keys.has(id))).await,
            Self::Fixed(keys) => Some(keys.clone()),
        };
        keys.ok_or_else(|| "the keys of the authorization server cannot be fetched".to_owned())
    }

    /// Returns other keys than these, fetched now unless there was a fetch recently.
    pub(super) async fn fetch_newer(&self, than: &Arc<JwkSet>) -> Option<Arc<JwkSet>> {
        match self {
            Self::Fetched(cache) => cache.fetch_newer(than).await,
            Self::Fixed(_) => None,
        }
    }
}

/// Returns the URL of the keys in the issuer's metadata.
async fn discover(fetch: &Fetch, issuer: &Url) -> Result<String, String> {
    let (metadata, _) = fetch_metadata(fetch, issuer).await?;
    let url = metadata
        .jwks_uri
        .ok_or_else(|| format!("the metadata of {} has no `jwks_uri`", issuer.as_str()))?;
    Url::secure("jwks_uri", &url)
        .map(|_| url)
        .map_err(|error| error.to_string())
}
