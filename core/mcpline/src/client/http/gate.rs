//! What some messages wait for so that they don't overtake others: each HTTP request takes its own way.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Opens once, and stays open.
#[derive(Clone)]
pub(super) struct Gate(Arc<Semaphore>);

impl Gate {
    /// A gate that is shut, and what opens it.
    pub(super) fn shut() -> (Self, Opener) {
        let gate = Self(Arc::new(Semaphore::new(0)));
        (gate.clone(), Opener(gate))
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.is_closed()
    }

    /// Resolves when it is open.
    pub(super) async fn passed(&self) {
        // There never is a permit: this fails, when the semaphore is closed.
        let _ = self.0.acquire().await;
    }
}

/// Opens a gate when it is dropped, whatever becomes of the task that has it.
pub(super) struct Opener(Gate);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.0.close();
    }
}
