//! Delays between attempts to connect.

use std::time::Duration;

use mcpline_runtime::clock;

use crate::limits::{FIRST_DELAY, MAX_DELAY};

/// The delays between attempts. They double, and half of each is random, so that processes that lost the same server do
/// not return at the same time.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the delay before the next attempt, after another failure.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let random = u32::from_le_bytes(clock::random());
        let delay = delay(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Begins again after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

fn delay(failures: u32, random: u32) -> Duration {
    let longest = FIRST_DELAY
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(MAX_DELAY);
    let half = longest / 2;
    half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_half_of_each_is_random() {
        assert_eq!(delay(0, u32::MAX), FIRST_DELAY);
        assert_eq!(delay(0, 0), FIRST_DELAY / 2);
        assert_eq!(delay(2, u32::MAX), 4 * FIRST_DELAY);
        for failures in [10, 31, 32, u32::MAX] {
            assert_eq!(delay(failures, u32::MAX), MAX_DELAY);
            assert_eq!(delay(failures, 0), MAX_DELAY / 2);
        }
    }
}
