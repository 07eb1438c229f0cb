//! Limits how often requests are answered.

use std::collections::HashMap;
use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::session::TokenBucket;
use mcpline_runtime::clock;
use serde_json::json;

use crate::sync::{Mutex, PoisonError};

use super::limit_key::{LimitKey, LimitKeys};
use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// Maximum number of keys that a limit counts. A client over IPv6 can use many networks, so keys must be bounded; 10,000 take
/// less than a megabyte.
const MAX_KEYS: usize = 10_000;

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
/// If requests have more than 10,000 keys at a time, the newest ones share one bucket.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    burst: u32,
    keys: LimitKeys,
    buckets: Mutex<Buckets>,
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
            interval: period / requests,
            burst: requests,
            keys: LimitKeys::default(),
            buckets: Mutex::default(),
        }
    }

    /// Sets how many requests may come at once. Default: as many as in a period.
    #[must_use]
    pub fn with_burst(mut self, burst: u32) -> Self {
        self.burst = burst.max(1);
        self
    }

    /// Sets what requests are counted by. Default: all are counted together.
    #[must_use]
    pub fn per(mut self, keys: impl IntoIterator<Item = LimitKey>) -> Self {
        self.keys = LimitKeys::new(keys);
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
        bucket.take_at(self.interval, self.burst, now)
    }
}

impl Middleware for RateLimit {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let key = self.keys.number_of(&request);
        match self.take(key, clock::now()) {
            Ok(()) => Box::pin(async move { next.run(request).await }),
            Err(wait) => {
                let seconds = wait.as_millis().div_ceil(1_000);
                let error = RpcError::busy(format!("too many requests; try again in {seconds} s"));
                let error = error.with_data(&json!({"retryAfter": seconds as u64}));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}
