//! The bus between processes.

use std::sync::Arc;

use bytes::Bytes;

/// Distributes messages among the processes of a service: publish and subscribe on one topic.
///
/// Messages are JSON that only mcpline reads. The loss of a message costs a notification, a response to an input
/// request that a client sent to another process, or a session that makes room while many are started, which its client
/// then starts again; nothing breaks.
pub trait Bus: Send + Sync + 'static {
    /// Sends a message to every subscriber, in this process and the others. Must not block.
    fn publish(&self, message: Bytes);

    /// Calls `receive` with every message published from now on, in the order in which each process published them,
    /// until the subscription is dropped. `receive` does not block.
    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription;
}

/// A subscription to a [`Bus`]. Ends on drop.
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// Creates a subscription; `end` ends it.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}
