//! Limits how many requests are answered at the same time.

use std::collections::HashMap;

use mcpline_protocol::RpcError;
use tokio::sync::Semaphore;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};

use super::limit_key::{LimitKey, LimitKeys};
use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// A [`Middleware`] that limits how many requests run at the same time. Further requests wait in the order of their arrival, and
/// are refused with the error -31000 when the queue is full. An input request of a handler, if the scope names its method, has its
/// place until the client has answered: on 2026-07-28 at most for [`Settings::state_lifetime`](crate::Settings::state_lifetime).
///
/// ```
/// use std::sync::Arc;
///
/// use mcpline::Server;
/// use mcpline::middleware::{ConcurrencyLimit, LimitKey};
/// use mcpline::server::{FeatureSelection, MiddlewareScope};
///
/// let server = Server::new("render", "1.0.0");
/// // Each tool with this tag runs twice at a time; 20 calls of it may wait.
/// let limit = ConcurrencyLimit::new(2).with_queue(20).per([LimitKey::Target]);
/// let slow = FeatureSelection::all().with_tags(["slow"]);
/// server.add_middleware(MiddlewareScope::all().with_features(slow), Arc::new(limit))?;
/// # Ok::<(), mcpline::Error>(())
/// ```
#[derive(Debug)]
pub struct ConcurrencyLimit {
    max_running: usize,
    max_waiting: usize,
    keys: LimitKeys,
    places: Arc<Places>,
}

/// The places by key. A key has an entry while requests of it are in flight, so the limits of calls in flight bound them.
type Places = Mutex<HashMap<u64, Arc<KeySemaphore>>>;

#[derive(Debug)]
struct KeySemaphore {
    running: Semaphore,
    waiting: AtomicUsize,
}

/// Keeps the places of a key while a request needs them.
struct PlacesGuard {
    places: Arc<Places>,
    key: u64,
    own: Option<Arc<KeySemaphore>>,
}

/// Counts a waiting request.
struct Waiting<'p>(&'p AtomicUsize);

impl ConcurrencyLimit {
    /// Creates a limit of requests that run at the same time, over all clients, and without a queue.
    pub fn new(max_running: usize) -> Self {
        Self {
            max_running: max_running.clamp(1, Semaphore::MAX_PERMITS),
            max_waiting: 0,
            keys: LimitKeys::default(),
            places: Arc::default(),
        }
    }

    /// Sets how many requests may wait. Default: 0.
    #[must_use]
    pub fn with_queue(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// Sets what requests are counted by. Default: all are counted together.
    #[must_use]
    pub fn per(mut self, keys: impl IntoIterator<Item = LimitKey>) -> Self {
        self.keys = LimitKeys::new(keys);
        self
    }

    fn guard(&self, key: u64) -> PlacesGuard {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let own = places.entry(key).or_insert_with(|| {
            Arc::new(KeySemaphore {
                running: Semaphore::new(self.max_running),
                waiting: AtomicUsize::new(0),
            })
        });
        PlacesGuard {
            places: self.places.clone(),
            key,
            own: Some(own.clone()),
        }
    }
}

impl Drop for PlacesGuard {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        self.own = None;
        // Under the lock: no request takes a copy meanwhile.
        if places
            .get(&self.key)
            .is_some_and(|unused| Arc::strong_count(unused) == 1)
        {
            places.remove(&self.key);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Middleware for ConcurrencyLimit {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let guard = self.guard(self.keys.number_of(&request));
        let max_waiting = self.max_waiting;
        Box::pin(async move {
            // Dropped before the guard.
            let Some(own) = guard.own.clone() else {
                return next.run(request).await;
            };
            let running = match own.running.try_acquire() {
                Ok(running) => Ok(running),
                Err(_) => {
                    let waiting = own.waiting.fetch_add(1, Ordering::Relaxed);
                    let _waiting = Waiting(&own.waiting);
                    if waiting >= max_waiting {
                        return Err(RpcError::busy(
                            "too many requests are running; try again later",
                        ));
                    }
                    own.running.acquire().await
                }
            };
            let outcome = next.run(request).await;
            drop(running);
            outcome
        })
    }
}
