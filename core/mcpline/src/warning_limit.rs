//! How many warnings peers can cause in the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::session::{Rate, TokenBucket};
use mcpline_protocol::{ErrorCode, RpcError};

/// Enough warnings to notice a mistake, and too few for a peer to fill the log.
const RATE: Rate = Rate {
    burst: 16,
    per_second: 1,
};

/// Logs a warning that a peer can cause, with the arguments of `tracing::warn!`. Each place in the code has a limit of its own,
/// for the whole process; what exceeds it is logged at level DEBUG.
macro_rules! warn_limited {
    ($($event:tt)+) => {{
        static LIMIT: std::sync::LazyLock<$crate::warning_limit::WarningLimit> =
            std::sync::LazyLock::new(Default::default);
        match LIMIT.admits(mcpline_runtime::clock::now()) {
            true => tracing::warn!($($event)+),
            false => tracing::debug!($($event)+),
        }
    }};
}
pub(crate) use warn_limited;

/// Logs that a request is refused with this error, if that is because a limit is reached.
pub(crate) fn warn_of_limit(error: &RpcError) {
    if error.code == ErrorCode::BUSY {
        warn_limited!(reason = %error.message, "a limit is reached: a request was refused");
    }
}

/// Limits the warnings about one kind of message. What exceeds the limit is logged at level DEBUG.
#[derive(Debug, Default)]
pub(crate) struct WarningLimit(Mutex<TokenBucket>);

impl WarningLimit {
    /// Whether another warning may be logged at `now`.
    pub(crate) fn admits(&self, now: Duration) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(RATE, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_a_burst_and_then_one_per_second() {
        let limit = WarningLimit::default();
        let now = Duration::from_secs(60);
        assert_eq!((0..100).filter(|_| limit.admits(now)).count(), 16);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| limit.admits(later)).count(), 1);
    }
}
