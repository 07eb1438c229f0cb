//! A gate that keeps messages in order: HTTP requests would otherwise overtake each other.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Opens once and stays open.
#[derive(Clone)]
pub(super) struct Latch(Arc<Semaphore>);

impl Latch {
    /// Returns a closed gate and its opener.
    pub(super) fn new_closed() -> (Self, Opener) {
        let gate = Self(Arc::new(Semaphore::new(0)));
        (gate.clone(), Opener(gate))
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until the gate is open.
    pub(super) async fn wait_until_open(&self) {
        // The semaphore never has a permit: this returns, with an error, when it is closed.
        let _ = self.0.acquire().await;
    }
}

/// Opens a gate on drop, however its task ends.
pub(super) struct Opener(Latch);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.0.close();
    }
}
