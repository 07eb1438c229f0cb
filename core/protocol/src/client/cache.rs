//! Results that may be kept for a while: lists and reads (2026-07-28, `server/utilities/caching`).
//!
//! One cache belongs to one client, and to one set of credentials at a time: private results are never shared
//! ([`Cache::authorized_by`]). Results that ask for input are not kept, nor are those of retries that carried answers or
//! state, whoever sent them.

use std::collections::HashMap;
use std::time::Duration;

use crate::wire::{Method, Notification, Raw};

use super::rounds::asks_for_input;

/// Most results kept by one client. The ones that lapse first make room.
pub const MAX_CACHED: usize = 256;

/// Most bytes of one result that is kept: a client that reads larger things keeps them itself.
pub const MAX_CACHED_BYTES: usize = 1024 * 1024;

/// Longest time that a result is kept, whatever its server says: a day.
pub const MAX_CACHED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Results by method and parameters.
#[derive(Debug, Default)]
pub struct Cache {
    kept: HashMap<(Method, Box<str>), Kept>,
    /// Counts invalidations, so that an answer which was on its way meanwhile isn't kept.
    generation: u64,
    /// What the requests of the results were authorized by.
    authorization: u64,
}

#[derive(Debug)]
struct Kept {
    result: Raw,
    until: Duration,
}

/// Whether results of this method may be kept.
pub fn is_cacheable(method: &Method) -> bool {
    method.is(|spec| spec.is_cacheable)
}

impl Cache {
    /// Nothing kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything if requests are authorized by something else from now on: private results are never given to
    /// anybody else (`server/utilities/caching`, cache scope). `authorization` is a number that tells one from another.
    pub fn authorized_by(&mut self, authorization: u64) {
        if std::mem::replace(&mut self.authorization, authorization) != authorization {
            self.clear();
        }
    }

    /// The result of an equal request, if it is fresh.
    pub fn get(&self, method: &Method, params: Option<&Raw>, now: Duration) -> Option<Raw> {
        if self.kept.is_empty() || !is_cacheable(method) {
            return None;
        }
        let kept = self.kept.get(&(method.clone(), params_key(params)))?;
        (now < kept.until).then(|| kept.result.clone())
    }

    /// What is to be handed to [`Cache::keep`] with the answer to a request that is sent now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Keeps a result for as long as its hints say, unless something changed since `generation`.
    pub fn keep(
        &mut self,
        method: &Method,
        params: Option<&Raw>,
        result: &Raw,
        generation: u64,
        now: Duration,
    ) {
        if !is_cacheable(method)
            || generation != self.generation
            || result.as_bytes().len() > MAX_CACHED_BYTES
            || is_retry(params)
            || asks_for_input(result) != Ok(false)
        {
            return;
        }
        let hints = result
            .member("ttlMs")
            .and_then(|ttl| ttl.decode::<u64>().ok());
        let Some(ttl) = hints.filter(|ttl| *ttl > 0) else {
            return;
        };
        let until = now + Duration::from_millis(ttl).min(MAX_CACHED_FOR);
        if self.kept.len() >= MAX_CACHED {
            self.make_room(now);
        }
        // A slice would hold the whole message that it came in; a list may be kept for hours.
        let result = Raw::from_trusted(result.as_bytes().to_vec());
        let kept = Kept { result, until };
        self.kept.insert((method.clone(), params_key(params)), kept);
    }

    fn make_room(&mut self, now: Duration) {
        self.kept.retain(|_, kept| now < kept.until);
        while self.kept.len() >= MAX_CACHED {
            let first = self.kept.iter().min_by_key(|(_, kept)| kept.until);
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                return;
            };
            self.kept.remove(&key);
        }
    }

    /// Forgets what a notification says has changed.
    pub fn heard(&mut self, notification: &Notification) {
        let outdated = notification.method.spec().map(|spec| spec.invalidates);
        if let Some(outdated) = outdated.filter(|outdated| !outdated.is_empty()) {
            self.forget(|method, _| outdated.contains(method));
        }
        if notification.method == Method::NotificationsResourcesUpdated {
            let params = notification.params.as_ref();
            self.forget_resource(params.and_then(|params| params.get_str("uri")).as_deref());
        }
    }

    /// Forgets what was read of a resource; of all resources if it isn't known which.
    fn forget_resource(&mut self, uri: Option<&str>) {
        self.forget(|method, params| {
            let read = Raw::parse(params.as_bytes().to_vec()).ok();
            let read = read.and_then(|params| params.member("uri"));
            // An update may be about a part of what was read.
            *method == Method::ResourcesRead
                && read
                    .as_ref()
                    .and_then(Raw::string_value)
                    .is_some_and(|read| {
                        uri.is_none_or(|uri| uri.starts_with(&*read) || read.starts_with(uri))
                    })
        });
    }

    /// Forgets everything: another server may answer from now on.
    pub fn clear(&mut self) {
        self.generation += 1;
        self.kept.clear();
    }

    /// Forgets all pages of a list: its server refused a cursor (`server/utilities/caching`, interaction with pagination).
    pub fn forget_pages(&mut self, list: &Method) {
        self.forget(|method, _| method == list);
    }

    /// Forgets the lists of tools: a header of a call did not match them.
    pub fn forget_tools(&mut self) {
        self.forget(|method, _| *method == Method::ToolsList);
    }

    fn forget(&mut self, mut which: impl FnMut(&Method, &str) -> bool) {
        self.generation += 1;
        self.kept
            .retain(|(method, params), _| !which(method, params));
    }
}

/// Whether a request carries answers, or the state of an earlier round (2026-07-28, `server/utilities/caching`, cache key).
fn is_retry(params: Option<&Raw>) -> bool {
    let has = |name| params.is_some_and(|params| params.member(name).is_some());
    has("inputResponses") || has("requestState")
}

fn params_key(params: Option<&Raw>) -> Box<str> {
    match params.map(|params| params.as_str()) {
        None | Some("{}") => "".into(),
        Some(text) => text.into(),
    }
}
