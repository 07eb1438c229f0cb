//! Limits of the warnings that a failing server causes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::session::{Rate, TokenBucket};
use mcpline_runtime::clock;

/// Enough to notice an outage, and too few to fill the log during one.
const RATE: Rate = Rate {
    burst: 4,
    per_second: 1,
};

/// Limits the warnings of one kind, and counts those above the limit.
#[derive(Debug, Default)]
pub(crate) struct WarningLimiter(Mutex<State>);

#[derive(Debug)]
struct State {
    bucket: TokenBucket,
    suppressed: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            bucket: TokenBucket::new(),
            suppressed: 0,
        }
    }
}

impl WarningLimiter {
    /// Returns the number of warnings that were suppressed since the last one if another may be logged.
    pub(crate) fn admit(&self) -> Option<u64> {
        self.take(clock::now())
    }

    fn take(&self, now: Duration) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.bucket.take(RATE, now) {
            state.suppressed += 1;
            return None;
        }
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_warnings_are_counted() {
        let warnings = WarningLimiter::default();
        let now = Duration::from_secs(60);
        let admitted = (0..10).filter_map(|_| warnings.take(now)).count();
        assert_eq!(admitted, 4);
        assert_eq!(warnings.take(now + Duration::from_secs(1)), Some(6));
    }
}
