//! Keeps results of requests and answers equal requests with them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_protocol::session::Change;
use mcpline_protocol::wire::{Method, Raw};
use mcpline_runtime::clock;

use crate::sync::{Arc, Mutex, PoisonError};

use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// A [`Middleware`] that keeps results and answers equal requests with them: the contents of resources, prompts, and the results of
/// the tools that it is given.
///
/// A result is kept for the caller that it was made for, with its scopes; without authorization for the session or connection.
/// Requests of 2026-07-28 over HTTP without authorization share nothing private. A result with `"cacheScope": "public"`
/// (2026-07-28, `server/utilities/caching`) is kept for all. Errors, results with `isError` and those that ask for input are
/// not kept. Requests are equal if they have the same method, parameters (without `_meta`) and revision. An answer from the cache runs
/// no handler, so it sends no progress and no log messages.
///
/// Results are forgotten when features of their kind are added, changed, enabled, disabled or removed, and those of a resource
/// with [`Server::notify_resource_updated`](crate::Server::notify_resource_updated). Call [`clear`](Self::clear) if the results
/// of tools or prompts have changed otherwise.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use mcpline::Server;
/// use mcpline::middleware::ResponseCache;
/// use mcpline::server::MiddlewareScope;
///
/// let server = Server::new("weather", "1.0.0");
/// let cache = Arc::new(ResponseCache::new(Duration::from_secs(60)).with_tools(["forecast"]));
/// server.add_middleware(MiddlewareScope::all(), cache.clone())?;
/// // When something has changed:
/// cache.clear();
/// # Ok::<(), mcpline::Error>(())
/// ```
#[derive(Debug)]
pub struct ResponseCache {
    ttl: Duration,
    tools: BTreeSet<String>,
    kept: Arc<Mutex<CachedResults>>,
}

/// Default limit of the results that are kept, in bytes.
const DEFAULT_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What a result takes beside its bytes, approximately.
const ENTRY_BYTES: usize = 256;

#[derive(Debug)]
struct CachedResults {
    max_bytes: usize,
    bytes: usize,
    results: HashMap<Key, Entry>,
    /// Keys with the numbers of their entries, oldest first.
    order: VecDeque<(u64, Key)>,
    next: u64,
    /// Counts how often results were forgotten: those of requests that began before are not kept.
    cleared: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The caller, session or connection; `None` for all.
    caller: Option<Arc<str>>,
    revision: &'static str,
    method: Box<str>,
    /// The parameters as they are written, without `_meta`.
    params: Arc<str>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    result: Raw,
    expires: Duration,
}

impl ResponseCache {
    /// Creates a cache that keeps results for `ttl`, and 16 MiB of them.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            tools: BTreeSet::new(),
            kept: Arc::new(Mutex::new(CachedResults {
                max_bytes: DEFAULT_MAX_BYTES,
                bytes: 0,
                results: HashMap::new(),
                order: VecDeque::new(),
                next: 0,
                cleared: 0,
            })),
        }
    }

    /// Keeps the results of these tools, too. They must have no effects, because not every call runs them.
    #[must_use]
    pub fn with_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many bytes of results are kept. If there is no room, the oldest are dropped. Default: 16 MiB.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        lock(&self.kept).max_bytes = max_bytes;
        self
    }

    /// Forgets all results.
    pub fn clear(&self) {
        lock(&self.kept).forget(|_| true);
    }

    fn keeps(&self, request: &MiddlewareRequest) -> bool {
        let is_kept = match request.protocol_method() {
            Method::ResourcesRead | Method::PromptsGet => true,
            Method::ToolsCall => request.name().is_some_and(|name| self.tools.contains(name)),
            _ => false,
        };
        // The retry of a request that asked for input continues a handler.
        is_kept
            && request.params().is_some_and(|params| {
                params.member("requestState").is_none() && params.member("inputResponses").is_none()
            })
    }
}

fn lock(kept: &Mutex<CachedResults>) -> crate::sync::MutexGuard<'_, CachedResults> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CachedResults {
    fn get(&self, key: &Key, now: Duration) -> Option<Raw> {
        let entry = self.results.get(key)?;
        (now < entry.expires).then(|| entry.result.clone())
    }

    fn put(&mut self, key: Key, result: &Raw, expires: Duration) {
        let bytes = size(&key, result);
        if bytes > self.max_bytes {
            return;
        }
        self.remove(&key);
        self.next += 1;
        let number = self.next;
        self.bytes += bytes;
        self.order.push_back((number, key.clone()));
        let entry = Entry {
            number,
            // A copy, because the slice of a message would keep all of it.
            result: result.detached(),
            expires,
        };
        self.results.insert(key, entry);
        while self.bytes > self.max_bytes {
            let Some((number, oldest)) = self.order.pop_front() else {
                return;
            };
            if self
                .results
                .get(&oldest)
                .is_some_and(|entry| entry.number == number)
            {
                self.remove(&oldest);
            }
        }
        // Entries that were replaced leave their places.
        if self.order.len() > 2 * self.results.len() + 64 {
            let results = &self.results;
            self.order.retain(|(number, key)| {
                results
                    .get(key)
                    .is_some_and(|entry| entry.number == *number)
            });
        }
    }

    /// Removes the results whose keys match.
    fn forget(&mut self, matches: impl Fn(&Key) -> bool) {
        let bytes = &mut self.bytes;
        self.results.retain(|key, entry| {
            let is_kept = !matches(key);
            if !is_kept {
                *bytes -= size(key, &entry.result);
            }
            is_kept
        });
        let results = &self.results;
        self.order.retain(|(_, key)| results.contains_key(key));
        self.cleared += 1;
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.results.remove(key) {
            self.bytes -= size(key, &entry.result);
        }
    }
}

fn size(key: &Key, result: &Raw) -> usize {
    result.as_bytes().len() + key.params.len() + ENTRY_BYTES
}

/// Returns whom a private result may be kept for; `None` if that is not known.
fn caller_of(request: &MiddlewareRequest) -> Option<Arc<str>> {
    let scopes = request.auth().map(|auth| auth.scopes().to_string());
    let caller = match (request.principal(), request.session_id()) {
        ("", Some(session)) => ("session", session),
        // Requests that stand alone may come from anyone behind their address.
        ("", None) if request.transport().starts_with("http") => return None,
        ("", None) => ("connection", request.client()),
        (principal, _) => ("principal", principal),
    };
    Some(format!("{caller:?} {scopes:?}").into())
}

/// Whether a result may be kept.
fn is_final(result: &Raw) -> bool {
    let is = |name: &str, value: &[u8]| {
        let member = result.member(name);
        member.is_some_and(|member| member.as_bytes() == value)
    };
    let result_type = result.member("resultType");
    let is_complete =
        result_type.is_none_or(|result_type| result_type.as_bytes() == b"\"complete\"");
    is_complete && !is("isError", b"true")
}

fn is_public(result: &Raw) -> bool {
    let scope = result.member("cacheScope");
    scope.is_some_and(|scope| scope.as_bytes() == b"\"public\"")
}

impl Key {
    /// Whether a change may concern the result.
    fn is_concerned_by(&self, change: &Change) -> bool {
        let method = match change {
            Change::Tools => Method::ToolsCall,
            Change::Prompts => Method::PromptsGet,
            Change::Resources | Change::Resource(_) => Method::ResourcesRead,
            _ => return true,
        };
        let is_of_resource = |uri: &str| {
            let params = Raw::from_trusted(self.params.as_bytes().to_vec());
            let read = params.member("uri");
            read.is_some_and(|read| read.string_value().is_some_and(|read| read == uri))
        };
        *self.method == *method.as_str()
            && match change {
                Change::Resource(uri) => is_of_resource(uri),
                _ => true,
            }
    }
}

impl Middleware for ResponseCache {
    fn on_features_changed(&self, change: &Change) {
        lock(&self.kept).forget(|key| key.is_concerned_by(change));
    }

    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        if !self.keeps(&request) {
            return Box::pin(async move { next.run(request).await });
        }
        let revision: Revision = request.revision();
        let params = request
            .params()
            .unwrap_or(&Raw::EMPTY_OBJECT)
            .without("_meta");
        let of_all = Key {
            caller: None,
            revision: revision.as_str(),
            method: request.method().into(),
            params: params.as_str().into(),
        };
        let own = caller_of(&request).map(|caller| Key {
            caller: Some(caller),
            ..of_all.clone()
        });
        let (found, cleared) = {
            let kept = lock(&self.kept);
            let now = clock::now();
            let own = own.as_ref();
            let found = kept.get(&of_all, now);
            let found = found.or_else(|| own.and_then(|own| kept.get(own, now)));
            (found, kept.cleared)
        };
        if let Some(result) = found {
            return Box::pin(std::future::ready(Ok(result)));
        }
        let (kept, ttl) = (self.kept.clone(), self.ttl);
        Box::pin(async move {
            let asked = request.clone();
            let result = next.run(request).await?;
            // The user is asked for each call.
            if is_final(&result) && !asked.was_approved() {
                let key = match is_public(&result) {
                    true => Some(of_all),
                    false => own,
                };
                let mut kept = lock(&kept);
                if let Some(key) = key.filter(|_| kept.cleared == cleared) {
                    kept.put(key, &result, clock::now().saturating_add(ttl));
                }
            }
            Ok(result)
        })
    }
}
