//! How processes tell one another.

use std::sync::Arc;

use bytes::Bytes;

/// Carries messages among the processes of a service: publish and subscribe on one topic.
///
/// What is carried is JSON that only mcpline reads. A message that is lost costs a notification, a
/// question's answer that a client gave at another process, or a session that makes room where many are begun, which its
/// client then begins anew; nothing breaks.
pub trait Bus: Send + Sync + 'static {
    /// Hands a message to every subscriber, in this process and the others. Must not block.
    fn publish(&self, message: Bytes);

    /// Has `receive` called with every message published from now on, in the order in which each process
    /// published, until the subscription is dropped. `receive` doesn't block.
    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription;
}

/// A subscription of a [`Bus`]; dropping it ends it.
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// A subscription that `end` ends.
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
