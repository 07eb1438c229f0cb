//! Limits of warnings that peers can cause in the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::session::{Rate, TokenBucket};
use mcpline_protocol::{ErrorCode, RpcError};

/// Enough warnings to notice a mistake, and too few for a peer to fill the log.
const RATE: Rate = Rate {
    burst: 16,
    per_second: 1,
};

/// Logs a warning that a peer can cause, with the arguments of `tracing::warn!`. Each place in the code has a limit of
/// its own for the whole process; warnings above it are counted instead of logged.
macro_rules! warn_limited {
    ($($event:tt)+) => {{
        static LIMIT: $crate::warning_limit::WarningLimit =
            $crate::warning_limit::WarningLimit::new();
        if LIMIT.admits() {
            tracing::warn!($($event)+);
        }
    }};
}
pub(crate) use warn_limited;

/// Logs that a request is refused with this error, if a limit is the reason.
pub(crate) fn warn_of_limit(error: &RpcError) {
    if error.code == ErrorCode::BUSY {
        warn_limited!(reason = %error.message, "a limit is reached: a request was refused");
    }
}

/// Limits the warnings of one place in the code or of one server, and counts those above the limit.
#[derive(Debug)]
pub(crate) struct WarningLimit(Mutex<State>);

#[derive(Debug)]
struct State {
    bucket: TokenBucket,
    /// Number of warnings that were suppressed since the last one.
    suppressed: u64,
}

impl WarningLimit {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            bucket: TokenBucket::new(),
            suppressed: 0,
        }))
    }

    /// Returns whether another warning may be logged. Logs the number of suppressed ones first.
    #[cold]
    pub(crate) fn admits(&self) -> bool {
        match self.take(mcpline_runtime::clock::now()) {
            None => false,
            Some(0) => true,
            Some(suppressed) => {
                tracing::warn!(suppressed, "warnings like the next one were suppressed");
                true
            }
        }
    }

    /// Returns the number of suppressed warnings if another one may be logged at `now`.
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
    fn admits_a_burst_and_then_one_per_second() {
        let limit = WarningLimit::new();
        let now = Duration::from_secs(60);
        let admitted: Vec<u64> = (0..100).filter_map(|_| limit.take(now)).collect();
        assert_eq!(admitted, [0; 16]);
        let later = now + Duration::from_secs(1);
        let admitted: Vec<u64> = (0..100).filter_map(|_| limit.take(later)).collect();
        assert_eq!(admitted, [84]);
    }
}
