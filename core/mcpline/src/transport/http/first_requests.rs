//! Counts connections whose first request has not been answered. Load balancers open a connection when they have a request to send:
//! a server that shuts down meanwhile still serves it, because few balancers may send a POST again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a shutdown waits for the first requests of connections. Most clients send them at once. Others, such as browsers, may
/// open a connection in advance; they do not delay the end of the process by more.
pub(super) const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

/// The connections whose first request has not been answered.
#[derive(Default)]
pub(super) struct AwaitedFirstRequests(Arc<AtomicUsize>);

/// The first request of one connection. Counted until it is answered or the connection ends.
pub(super) struct AwaitedFirstRequest {
    count: Arc<AtomicUsize>,
    is_over: AtomicBool,
}

impl AwaitedFirstRequests {
    pub(super) fn begin(&self) -> AwaitedFirstRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        AwaitedFirstRequest {
            count: self.0.clone(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

impl AwaitedFirstRequest {
    /// Records that a request was answered.
    pub(super) fn end(&self) {
        // Without a write for all requests but the first.
        if !self.is_over.load(Ordering::Relaxed) && !self.is_over.swap(true, Ordering::Relaxed) {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Drop for AwaitedFirstRequest {
    fn drop(&mut self) {
        self.end();
    }
}
