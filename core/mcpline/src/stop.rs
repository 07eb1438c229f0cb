//! The signal that stops a transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// A signal that stops what serves with it. Cheap to clone; clones are the same signal.
#[derive(Debug, Clone)]
pub struct Stop {
    signal: Arc<Signal>,
}

#[derive(Debug)]
struct Signal {
    /// What the sender sends, readable without its lock.
    is_given: AtomicBool,
    sender: watch::Sender<bool>,
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
            signal: Arc::new(Signal {
                is_given: AtomicBool::new(false),
                sender: watch::Sender::new(false),
            }),
        }
    }

    /// Creates a signal that is never given.
    pub fn never() -> Self {
        Self::new()
    }

    /// Gives the signal. From any thread, any number of times.
    pub fn stop(&self) {
        // First, so that whoever is notified finds it set.
        self.signal.is_given.store(true, Ordering::Release);
        self.signal.sender.send_replace(true);
    }

    /// Returns whether the signal was given.
    pub fn is_stopped(&self) -> bool {
        self.signal.is_given.load(Ordering::Acquire)
    }

    /// Waits for the signal.
    pub async fn stopped(&self) {
        let mut receiver = self.signal.sender.subscribe();
        // Cannot fail, because the sender lives as long as `self`.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}
