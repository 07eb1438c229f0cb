//! Results that may be kept for a while: lists and reads (2026-07-28, `server/utilities/caching`).
//!
//! One cache belongs to one client, and to one set of credentials at a time: private results are never shared
//! ([`ResultCache::set_authorization`]). Results that ask for input are not kept, nor are those of retries that carried answers or
//! state, whoever sent them.

use std::collections::HashMap;
use std::time::Duration;

use crate::wire::{Method, Notification, Raw};

use super::input_required::is_input_required;

/// Most results kept by one client. The ones that lapse first make room.
pub const MAX_CACHED_RESULTS: usize = 256;

/// Most bytes of one result that is kept: a client that reads larger things keeps them itself.
pub const MAX_CACHED_RESULT_BYTES: usize = 1024 * 1024;

/// Most bytes of all results that one client keeps, with the parameters that they belong to: as many as two of the longest
/// messages. The ones that lapse first make room.
pub const MAX_CACHED_TOTAL_BYTES: usize = 32 * 1024 * 1024;

/// Longest parameters whose result is kept. They hold what a server chose, such as cursors; URIs and cursors that mean well
/// are far shorter.
pub const MAX_CACHED_PARAMS_BYTES: usize = 16 * 1024;

/// Longest time that a result is kept, whatever its server says: a day.
pub const MAX_CACHE_TTL: Duration = Duration::from_secs(24 * 3_600);

/// Cached results by method and parameters.
#[derive(Debug, Default)]
pub struct ResultCache {
    results: HashMap<(Method, Box<str>), CachedResult>,
    /// The size of all cached results.
    bytes: usize,
    /// Counts invalidations, so that an answer which was on its way meanwhile isn't kept.
    generation: u64,
    /// What the requests of the results were authorized by.
    authorization: u64,
}

#[derive(Debug)]
struct CachedResult {
    result: Raw,
    expires_at: Duration,
    /// The resource that was read, where that is what this is.
    uri: Option<Box<str>>,
    /// Of the result and of the parameters.
    bytes: usize,
}

/// Whether results of this method may be kept.
pub fn is_cacheable(method: &Method) -> bool {
    method.is(|spec| spec.is_cacheable)
}

impl ResultCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything if requests are authorized by something else from now on: private results are never given to
    /// anybody else (`server/utilities/caching`, cache scope). `authorization` is a number that tells one from another.
    pub fn set_authorization(&mut self, authorization: u64) {
        if std::mem::replace(&mut self.authorization, authorization) != authorization {
            self.clear();
        }
    }

    /// The result of an equal request, if it is fresh.
    pub fn get(&self, method: &Method, params: Option<&Raw>, now: Duration) -> Option<Raw> {
        if self.results.is_empty() || !is_cacheable(method) {
            return None;
        }
        let kept = self.results.get(&(method.clone(), params_key(params)?))?;
        (now < kept.expires_at).then(|| kept.result.clone())
    }

    /// What is to be handed to [`ResultCache::insert`] with the answer to a request that is sent now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Keeps a result for as long as its hints say, unless something changed since `generation`.
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
            // A slice would hold the whole message that it came in; a list may be kept for hours.
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

    /// Removes the results that a notification says have changed.
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

    /// Forgets what was read of a resource; of all resources if it isn't known which.
    fn remove_resource(&mut self, uri: Option<&str>) {
        self.invalidate_where(|_, kept| {
            // An update may be about a part of what was read.
            kept.uri.as_deref().is_some_and(|read| {
                uri.is_none_or(|uri| uri.starts_with(read) || read.starts_with(uri))
            })
        });
    }

    /// Forgets everything: another server may answer from now on.
    pub fn clear(&mut self) {
        self.generation += 1;
        self.results.clear();
        self.bytes = 0;
    }

    /// Forgets all pages of a list: its server refused a cursor (`server/utilities/caching`, interaction with pagination).
    pub fn remove_pages(&mut self, list: &Method) {
        self.invalidate_where(|method, _| method == list);
    }

    /// Forgets the lists of tools: a header of a call did not match them.
    pub fn remove_tools(&mut self) {
        self.invalidate_where(|method, _| *method == Method::ToolsList);
    }

    fn invalidate_where(&mut self, which: impl Fn(&Method, &CachedResult) -> bool) {
        self.generation += 1;
        self.retain(|method, kept| !which(method, kept));
    }
}

/// Whether a request carries answers, or the state of an earlier round (2026-07-28, `server/utilities/caching`, cache key).
fn is_retry(params: Option<&Raw>) -> bool {
    let has = |name| params.is_some_and(|params| params.member(name).is_some());
    has("inputResponses") || has("requestState")
}

/// What tells the results of one method apart; `None` if these parameters are too long for their result to be kept.
fn params_key(params: Option<&Raw>) -> Option<Box<str>> {
    match params.map(|params| params.as_str()) {
        None | Some("{}") => Some("".into()),
        Some(text) => (text.len() <= MAX_CACHED_PARAMS_BYTES).then(|| text.into()),
    }
}
