//! Limits how often requests are answered.

use std::collections::HashMap;
use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::session::TokenBucket;
use mcpline_runtime::clock;
use serde_json::json;

use crate::sharing::BucketPolicy;
use crate::sync::{Mutex, PoisonError};

use super::limit_key::{LimitKey, LimitKeys};
use super::token_leases::{TokenLeases, TokenRequest, WantedTokens};
use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// Maximum number of keys that a limit counts. A client over IPv6 can use many networks, so keys must be bounded; 10,000 take
/// less than a megabyte, or a shared limit less than two.
pub(super) const MAX_KEYS: usize = 10_000;

/// A [`Middleware`] that limits how often requests are answered: a token bucket for each key. Further requests are refused with
/// the error -31000, whose data say in how many seconds (`retryAfter`) one may succeed.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use mcpline::Server;
/// use mcpline::middleware::{LimitKey, RateLimit};
/// use mcpline::server::MiddlewareScope;
///
/// let server = Server::new("search", "1.0.0");
/// // 60 calls of each client per minute, 10 of them at once.
/// let limit = RateLimit::new(60, Duration::from_secs(60)).with_burst(10).per([LimitKey::Client]);
/// server.add_middleware(MiddlewareScope::all().with_methods(["tools/call"]), Arc::new(limit))?;
/// # Ok::<(), mcpline::Error>(())
/// ```
///
/// If requests have more than 10,000 keys at a time, the newest ones share one bucket. Each process counts on its own, unless the
/// limit is [shared](Self::shared).
#[derive(Debug)]
pub struct RateLimit {
    policy: BucketPolicy,
    keys: LimitKeys,
    buckets: Mutex<Buckets>,
    shared: Option<SharedLimit>,
}

/// A limit that counts for all processes.
#[derive(Debug)]
struct SharedLimit {
    name: String,
    leases: TokenLeases,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// It is refused, for this time.
    Refused(Duration),
    /// The store has to be asked.
    Requires(WantedTokens),
}

impl From<Result<(), Duration>> for Admission {
    fn from(taken: Result<(), Duration>) -> Self {
        taken.map_or_else(Self::Refused, |()| Self::Admitted)
    }
}

#[derive(Debug, Default)]
struct Buckets {
    by_key: HashMap<u64, TokenBucket>,
    /// The bucket of keys that have no room.
    shared: TokenBucket,
}

impl RateLimit {
    /// Creates a limit of `requests` in each `period` on average, and as many at once, over all clients.
    pub fn new(requests: u32, period: Duration) -> Self {
        let requests = requests.max(1);
        Self {
            policy: BucketPolicy {
                interval: period / requests,
                burst: requests,
            },
            keys: LimitKeys::default(),
            buckets: Mutex::default(),
            shared: None,
        }
    }

    /// Sets how many requests may come at once. Default: as many as in a period.
    #[must_use]
    pub fn with_burst(mut self, burst: u32) -> Self {
        self.policy.burst = burst.max(1);
        self
    }

    /// Sets what requests are counted by. Default: all are counted together.
    #[must_use]
    pub fn per(mut self, keys: impl IntoIterator<Item = LimitKey>) -> Self {
        self.keys = LimitKeys::new(keys);
        self
    }

    /// Lets the limit count for all processes that share state ([`Settings::sharing`](crate::Settings::sharing)). All limits with
    /// this name and the same keys count together; they should have the same options. Default: each process counts on its own.
    ///
    /// Processes take tokens of a shared bucket in advance, up to an eighth of the burst. A burst may be larger by what the rate
    /// gives in about a second, and a request may be refused while other processes have tokens left. Clients that are known by
    /// their connection only, as on pipes, are counted by their process.
    ///
    /// A store that fails or takes more than half a second refuses no request: each process counts on its own meanwhile. It also
    /// does if the state has no [buckets](crate::sharing::Sharing::buckets).
    #[must_use]
    pub fn shared(mut self, name: impl Into<String>) -> Self {
        self.shared = Some(SharedLimit {
            name: name.into(),
            leases: TokenLeases::default(),
        });
        self
    }

    /// Takes a token.
    ///
    /// # Errors
    ///
    /// How long to wait for the next one.
    fn take(&self, key: u64, now: Duration) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = &mut *buckets;
        if buckets.by_key.len() >= MAX_KEYS && !buckets.by_key.contains_key(&key) {
            // A full bucket is as good as a new one.
            buckets.by_key.retain(|_, bucket| !bucket.is_full(now));
        }
        let has_room = buckets.by_key.len() < MAX_KEYS || buckets.by_key.contains_key(&key);
        let bucket = match has_room {
            true => buckets.by_key.entry(key).or_default(),
            false => &mut buckets.shared,
        };
        bucket.take_at(self.policy.interval, self.policy.burst, now)
    }
}

impl Middleware for RateLimit {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let key = self.keys.number_of(&request);
        let now = clock::now();
        let shared = self.shared.as_ref().and_then(|shared| {
            let store = request.shared_buckets()?;
            (!self.keys.have_connection(&request)).then_some((shared, store))
        });
        let Some((shared, store)) = shared else {
            return match self.take(key, now) {
                Ok(()) => Box::pin(async move { next.run(request).await }),
                Err(wait) => refuse(wait),
            };
        };
        let wanted = match shared.leases.take(key, self.policy, now) {
            Admission::Admitted => return Box::pin(async move { next.run(request).await }),
            Admission::Refused(wait) => return refuse(wait),
            Admission::Requires(wanted) => wanted,
        };
        let tokens = TokenRequest {
            store: store.clone(),
            name: self.keys.shared_name(&shared.name, &request),
            key,
            policy: self.policy,
        };
        let answer = shared.leases.request(request.runtime(), tokens, wanted);
        Box::pin(async move {
            match answer.await {
                Ok(Err(wait)) => refuse(wait).await,
                // Without an answer the runtime ends.
                _ => next.run(request).await,
            }
        })
    }
}

fn refuse(wait: Duration) -> MiddlewareFuture {
    let seconds = wait.as_millis().div_ceil(1_000);
    let error = RpcError::busy(format!("too many requests; try again in {seconds} s"));
    let error = error.with_data(&json!({"retryAfter": seconds as u64}));
    Box::pin(std::future::ready(Err(error)))
}
