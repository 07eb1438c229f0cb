//! The signal that stops a transport.

use std::sync::Arc;

use tokio::sync::watch;

/// A signal that stops what serves with it. Cheap to clone; clones are the same signal.
#[derive(Debug, Clone)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// Creates a signal.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Creates a signal that is never given.
    pub fn never() -> Self {
        Self::new()
    }

    /// Gives the signal. From any thread, any number of times.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Returns whether the signal was given.
    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits for the signal.
    pub async fn stopped(&self) {
        let mut receiver = self.sender.subscribe();
        // Cannot fail, because the sender lives as long as `self`.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}
