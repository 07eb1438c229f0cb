//! A cache for results of lists and reads (2026-07-28, `server/utilities/caching`).
//!
//! One cache belongs to one client, and to one set of credentials at a time: private results are never shared
//! ([`ResultCache::set_authorization`]). Results that request input are not cached, nor are those of retries with input
//! responses or state, no matter who sent them.

use std::collections::HashMap;
use std::time::Duration;

use crate::wire::{Method, Notification, Raw};

use super::input_required::is_input_required;

/// The largest number of cached results per client. Those that expire first are dropped.
pub const MAX_CACHED_RESULTS: usize = 256;

/// The largest size of a cached result in bytes: a client that reads larger ones keeps them itself.
pub const MAX_CACHED_RESULT_BYTES: usize = 1024 * 1024;

/// The largest size of all cached results of a client in bytes, including their parameters: twice the longest message.
/// Those that expire first are dropped.
pub const MAX_CACHED_TOTAL_BYTES: usize = 32 * 1024 * 1024;

/// The longest parameters of a cached result in bytes. They contain values that a server chose, such as cursors;
/// legitimate URIs and cursors are far shorter.
pub const MAX_CACHED_PARAMS_BYTES: usize = 16 * 1024;

/// The longest time that a result is cached, whatever its server says: a day.
pub const MAX_CACHE_TTL: Duration = Duration::from_secs(24 * 3_600);

/// Cached results by method and parameters.
#[derive(Debug, Default)]
pub struct ResultCache {
    results: HashMap<(Method, Box<str>), CachedResult>,
    /// The size of all cached results.
    bytes: usize,
    /// Counts invalidations, so that a response that was in flight during one isn't cached.
    generation: u64,
    /// Identifies the authorization of the results' requests.
    authorization: u64,
}

#[derive(Debug)]
struct CachedResult {
    result: Raw,
    expires_at: Duration,
    /// The resource, if this is the result of a read.
    uri: Option<Box<str>>,
    /// The size of result and parameters.
    bytes: usize,
}

/// Whether results of this method may be cached.
pub fn is_cacheable(method: &Method) -> bool {
    method.is(|spec| spec.is_cacheable)
}

impl ResultCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the size of the results and their parameters, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes everything if the authorization of requests changes: private results must not be shared
    /// (`server/utilities/caching`, cache scope). `authorization` is a number that identifies the current
    /// authorization.
    pub fn set_authorization(&mut self, authorization: u64) {
        if std::mem::replace(&mut self.authorization, authorization) != authorization {
            self.clear();
        }
    }

    /// Returns the cached result of an equal request, if it is fresh.
    pub fn get(&self, method: &Method, params: Option<&Raw>, now: Duration) -> Option<Raw> {
        if self.results.is_empty() || !is_cacheable(method) {
            return None;
        }
        let kept = self.results.get(&(method.clone(), params_key(params)?))?;
        (now < kept.expires_at).then(|| kept.result.clone())
    }

    /// The value to pass to [`ResultCache::insert`] with the response to a request that is sent now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Caches a result for as long as its hints say, unless something was invalidated since `generation`.
    pub fn insert(
        &mut self,
        method: &Method,
        params: Option<&Raw>,
        result: &Raw,
        generation: u64,
        now: Duration,
    ) {
        if !is_cacheable(method)
            || generation != self.generation
            || result.as_bytes().len() > MAX_CACHED_RESULT_BYTES
            || is_retry(params)
            || is_input_required(result) != Ok(false)
        {
            return;
        }
        let hints = result
            .member("ttlMs")
            .and_then(|ttl| ttl.decode::<u64>().ok());
        let Some(ttl) = hints.filter(|ttl| *ttl > 0) else {
            return;
        };
        let expires_at = now + Duration::from_millis(ttl).min(MAX_CACHE_TTL);
        let Some(key) = params_key(params) else {
            return;
        };
        let uri = params
            .filter(|_| *method == Method::ResourcesRead)
            .and_then(|params| params.member("uri"))
            .and_then(|uri| Some(Box::from(&*uri.string_value()?)));
        let key = (method.clone(), key);
        self.remove(&key);
        let bytes = result.as_bytes().len() + key.1.len();
        if !self.has_room(bytes) {
            self.make_room(bytes, now);
        }
        let kept = CachedResult {
            // A slice would keep the whole message in memory; a list may be cached for hours.
            result: result.detached(),
            expires_at,
            uri,
            bytes,
        };
        self.bytes += bytes;
        self.results.insert(key, kept);
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.results.len() < MAX_CACHED_RESULTS && self.bytes + bytes <= MAX_CACHED_TOTAL_BYTES
    }

    fn make_room(&mut self, bytes: usize, now: Duration) {
        self.retain(|_, kept| now < kept.expires_at);
        while !self.has_room(bytes) {
            let first = self.results.iter().min_by_key(|(_, kept)| kept.expires_at);
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                return;
            };
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &(Method, Box<str>)) {
        if let Some(kept) = self.results.remove(key) {
            self.bytes -= kept.bytes;
        }
    }

    fn retain(&mut self, mut which: impl FnMut(&Method, &CachedResult) -> bool) {
        let bytes = &mut self.bytes;
        self.results.retain(|(method, _), kept| {
            let stays = which(method, kept);
            if !stays {
                *bytes -= kept.bytes;
            }
            stays
        });
    }

    /// Removes the results that a notification reports as changed.
    pub fn invalidate(&mut self, notification: &Notification) {
        let outdated = notification.method.spec().map(|spec| spec.invalidates);
        if let Some(outdated) = outdated.filter(|outdated| !outdated.is_empty()) {
            self.invalidate_where(|method, _| outdated.contains(method));
        }
        if notification.method == Method::NotificationsResourcesUpdated {
            let params = notification.params.as_ref();
            self.remove_resource(params.and_then(|params| params.get_str("uri")).as_deref());
        }
    }

    /// Removes reads of a resource; of all resources if `uri` is `None`.
    fn remove_resource(&mut self, uri: Option<&str>) {
        self.invalidate_where(|_, kept| {
            // An update may concern a part of what was read.
            kept.uri.as_deref().is_some_and(|read| {
                uri.is_none_or(|uri| uri.starts_with(read) || read.starts_with(uri))
            })
        });
    }

    /// Removes everything, because another server may respond from now on.
    pub fn clear(&mut self) {
        self.generation += 1;
        self.results.clear();
        self.bytes = 0;
    }

    /// Removes all pages of a list, because its server rejected a cursor (`server/utilities/caching`, interaction with
    /// pagination).
    pub fn remove_pages(&mut self, list: &Method) {
        self.invalidate_where(|method, _| method == list);
    }

    /// Removes the lists of tools, because a header of a call did not match them.
    pub fn remove_tools(&mut self) {
        self.invalidate_where(|method, _| *method == Method::ToolsList);
    }

    fn invalidate_where(&mut self, which: impl Fn(&Method, &CachedResult) -> bool) {
        self.generation += 1;
        self.retain(|method, kept| !which(method, kept));
    }
}

/// Whether a request carries input responses, or the state of an earlier round (2026-07-28, `server/utilities/caching`,
/// cache key).
fn is_retry(params: Option<&Raw>) -> bool {
    let has = |name| params.is_some_and(|params| params.member(name).is_some());
    has("inputResponses") || has("requestState")
}

/// The cache key of these parameters; `None` if they are too long for their result to be cached.
fn params_key(params: Option<&Raw>) -> Option<Box<str>> {
    match params.map(|params| params.as_str()) {
        None | Some("{}") => Some("".into()),
        Some(text) => (text.len() <= MAX_CACHED_PARAMS_BYTES).then(|| text.into()),
    }
}
