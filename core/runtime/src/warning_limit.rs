//! Limits of warnings in the log that a peer or a failing server can cause.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::session::{Rate, TokenBucket};

use crate::clock;

/// Limits the warnings of one place in the code, and counts those above the limit.
#[derive(Debug)]
pub struct WarningLimit {
    rate: Rate,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bucket: TokenBucket,
    /// Number of warnings that were suppressed since the last one.
    suppressed: u64,
}

impl WarningLimit {
    /// Creates a limit that admits warnings at this rate.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            state: Mutex::new(State {
                bucket: TokenBucket::new(),
                suppressed: 0,
            }),
        }
    }

    /// Returns the number of warnings that were suppressed since the last one if another may be logged now; `None` if it is
    /// suppressed.
    pub fn admit(&self) -> Option<u64> {
        self.admit_at(clock::now())
    }

    fn admit_at(&self, now: Duration) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.bucket.take(self.rate, now) {
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
        let limit = WarningLimit::new(Rate {
            burst: 16,
            per_second: 1,
        });
        let now = Duration::from_secs(60);
        let admitted: Vec<u64> = (0..100).filter_map(|_| limit.admit_at(now)).collect();
        assert_eq!(admitted, [0; 16]);
        let later = now + Duration::from_secs(1);
        let admitted: Vec<u64> = (0..100).filter_map(|_| limit.admit_at(later)).collect();
        assert_eq!(admitted, [84]);
    }
}
