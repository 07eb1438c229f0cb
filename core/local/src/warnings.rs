//! Limits the warnings that a failing file system or process causes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two warnings of one kind.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits the warnings of one kind.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Option<Instant>>);

impl Warnings {
    /// Whether another warning may be logged.
    pub(crate) fn admit(&self) -> bool {
        let now = Instant::now();
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.is_some_and(|latest| now.duration_since(latest) < INTERVAL) {
            return false;
        }
        *latest = Some(now);
        true
    }
}
