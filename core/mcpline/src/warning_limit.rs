//! Limits of warnings that peers can cause in the log.

use mcpline_protocol::session::Rate;
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
pub(crate) struct WarningLimit(mcpline_runtime::WarningLimit);

impl WarningLimit {
    pub(crate) const fn new() -> Self {
        Self(mcpline_runtime::WarningLimit::new(RATE))
    }

    /// Returns whether another warning may be logged. Logs the number of suppressed ones first.
    #[cold]
    pub(crate) fn admits(&self) -> bool {
        match self.0.admit() {
            None => false,
            Some(0) => true,
            Some(suppressed) => {
                tracing::warn!(suppressed, "warnings like the next one were suppressed");
                true
            }
        }
    }
}
