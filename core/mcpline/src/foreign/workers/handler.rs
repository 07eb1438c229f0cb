//! Handlers whose calls run on a pool's workers.

use mcpline_protocol::RpcError;

use crate::server::{Call, Handler, HandlerError};
use crate::sync::Arc;

use super::super::call_queue::QueueFull;
use super::{MAX_WAITING_CALLS, Refused, WorkerPool};

impl<T: Clone + Send + Sync + 'static> WorkerPool<(T, Call)> {
    /// Returns a handler whose calls run on the pool's workers, each with `tag`: whatever the foreign side needs to
    /// find its function.
    pub fn handler(self: &Arc<Self>, tag: T) -> Arc<dyn Handler> {
        Arc::new(PooledHandler {
            pool: self.clone(),
            tag,
        })
    }

    /// Runs a call on a thread of the pool, or answers it with an error if too many wait or the pool has ended.
    pub fn run_call(&self, tag: T, call: Call) {
        match self.push(call.quota_peer(), (tag, call)) {
            Ok(()) => {}
            Err(Refused::Full((_, call))) => call.reply(Err(too_many_calls())),
            Err(Refused::Closed((_, call))) => call.reply(Err(HandlerError::Internal(
                "the server's worker threads have ended".into(),
            ))),
        }
    }
}

/// Returns the error for a call that is refused because too many wait.
pub fn too_many_calls() -> HandlerError {
    let full = QueueFull {
        capacity: MAX_WAITING_CALLS,
    };
    HandlerError::Rpc(RpcError::busy(full.to_string()))
}

struct PooledHandler<T: Send + 'static> {
    pool: Arc<WorkerPool<(T, Call)>>,
    tag: T,
}

impl<T: Clone + Send + Sync + 'static> Handler for PooledHandler<T> {
    fn call(&self, call: Call) {
        self.pool.run_call(self.tag.clone(), call);
    }
}
