//! Telling a transport to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells whatever serves with it to stop. Cheap to clone; clones are the same signal.
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
    /// A signal that has not been given.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    /// A signal that nobody gives.
    pub fn never() -> Self {
        Self::new()
    }

    /// Gives the signal. From any thread, any number of times.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Whether the signal was given.
    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits for the signal.
    pub async fn stopped(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives as long as `self`, so waiting can't fail.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}
