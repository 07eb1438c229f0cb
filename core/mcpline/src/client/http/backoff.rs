//! Delays before a lost stream is reopened.

use std::time::Duration;

use crate::http_client::HttpSettings;

/// Shortest delay after a stream that ended at once, where the server demanded none. It doubles with each such stream
/// in a row, so that a server cannot make its clients reconnect as fast as they can.
const LEAST: Duration = Duration::from_millis(25);

/// Longest of these delays. A server that wants to be polled demands a longer one itself.
const MOST_OF_LEAST: Duration = Duration::from_secs(1);

/// A stream that ends within this time has ended at once.
pub(super) const HASTY: Duration = Duration::from_secs(1);

/// Exponential delays between two bounds. The caller provides the randomness.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backoff {
    /// Delay after the first failure, before jitter shortens it.
    pub(super) first: Duration,
    /// Longest delay that the server has not demanded.
    pub(super) cap: Duration,
}

impl Backoff {
    pub(super) fn of(settings: &HttpSettings) -> Self {
        Self {
            first: settings.resume_delay,
            cap: settings.resume_max_delay,
        }
    }

    /// Returns the delay after `failures` attempts in a row; `random` is uniformly distributed.
    ///
    /// The delay that the server demanded is a minimum, as the standard of server-sent events and the transport's page
    /// require, and exact after a stream that ended without a failure: the server wants to be polled. After a failure,
    /// and without a demanded delay, half of the exponential delay is random, so that the clients of a restarting server
    /// do not reconnect all at once. As much is random if `spread`: the server may have ended the streams of all its clients.
    /// `hasty` is the number of streams in a row that ended at once.
    pub(super) fn delay(
        self,
        failures: u32,
        hasty: u32,
        retry: Option<Duration>,
        spread: bool,
        random: u32,
    ) -> Duration {
        let least = match hasty {
            0 => Duration::ZERO,
            _ => LEAST
                .saturating_mul(1 << (hasty - 1).min(10))
                .min(MOST_OF_LEAST),
        };
        let half = self.full(failures) / 2;
        let jitter = half.mul_f64(f64::from(random) / f64::from(u32::MAX));
        match retry {
            Some(retry) if failures == 0 && spread => retry.max(least).saturating_add(jitter),
            Some(retry) if failures == 0 => retry.max(least),
            retry => retry.unwrap_or_default().max(half).saturating_add(jitter),
        }
    }

    /// Returns the exponential delay before jitter shortens it.
    fn full(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(500),
        cap: Duration::from_secs(30),
    };

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_demanded_delay_is_exact() {
        for random in [0, 1, u32::MAX / 3, u32::MAX] {
            assert_eq!(BACKOFF.delay(0, 1, Some(ms(500)), false, random), ms(500));
            assert_eq!(BACKOFF.delay(0, 0, Some(ms(0)), false, random), ms(0));
            assert_eq!(
                BACKOFF.delay(0, 9, Some(ms(90_000)), false, random),
                ms(90_000)
            );
        }
    }

    #[test]
    fn streams_that_end_at_once_are_reopened_with_growing_delays() {
        let waits: Vec<_> = [0, 1, 2, 3, 6, 7, u32::MAX]
            .map(|hasty| BACKOFF.delay(0, hasty, Some(ms(0)), false, 0).as_millis())
            .into();
        assert_eq!(waits, [0, 25, 50, 100, 800, 1_000, 1_000]);
    }

    #[test]
    fn failures_never_shorten_a_demanded_delay() {
        for failures in 0..40 {
            for random in [0, u32::MAX] {
                assert!(BACKOFF.delay(failures, 0, Some(ms(3_000)), false, random) >= ms(3_000));
            }
        }
    }

    #[test]
    fn clients_that_lost_the_same_server_do_not_return_at_the_same_time() {
        // The server demands the same delay of all.
        for (failures, full) in [(1, 500), (2, 1_000), (3, 2_000)] {
            let earliest = BACKOFF.delay(failures, 0, Some(ms(500)), false, 0);
            let latest = BACKOFF.delay(failures, 0, Some(ms(500)), false, u32::MAX);
            assert_eq!(latest - earliest, ms(full / 2), "after {failures}");
        }
    }

    #[test]
    fn clients_whose_streams_ended_together_do_not_return_at_the_same_time() {
        for retry in [0, 500, 90_000] {
            let [earliest, latest] =
                [0, u32::MAX].map(|random| BACKOFF.delay(0, 0, Some(ms(retry)), true, random));
            assert_eq!(earliest, ms(retry));
            assert_eq!(latest, ms(retry + 250));
        }
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let waits: Vec<_> = (0..9)
            .map(|failures| {
                BACKOFF
                    .delay(failures, 0, None, false, u32::MAX)
                    .as_millis()
            })
            .collect();
        assert_eq!(
            waits,
            [500, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
        );
        assert_eq!(
            BACKOFF.delay(u32::MAX, 0, None, false, u32::MAX),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn jitter_shortens_a_delay_by_at_most_half() {
        assert_eq!(BACKOFF.delay(3, 0, None, false, 0), ms(1_000));
        let middle = BACKOFF.delay(3, 0, None, false, u32::MAX / 2);
        assert!(middle > ms(1_499) && middle < ms(1_501), "{middle:?}");
    }
}
