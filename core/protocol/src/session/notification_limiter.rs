//! Limits the rate of notifications. The last one, or for log messages the most severe one, is always delivered.

use std::time::Duration;

use crate::vocabulary::LoggingLevel;

/// A rate limit: a burst, and a number per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many may pass at once.
    pub burst: u32,
    /// How many may pass per second on average.
    pub per_second: u32,
}

impl Rate {
    fn interval(self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }
}

/// A token bucket, which decides whether one more may pass at a rate.
#[derive(Debug, Default)]
pub struct TokenBucket {
    /// The time at which the bucket will be full again, on the driver's clock.
    full_at: Duration,
}

impl TokenBucket {
    /// A full bucket.
    pub const fn new() -> Self {
        Self {
            full_at: Duration::ZERO,
        }
    }

    /// Takes one token; `false` if there is none at `now`.
    pub fn take(&mut self, rate: Rate, now: Duration) -> bool {
        self.take_at(rate.interval(), rate.burst, now).is_ok()
    }

    /// Takes one token of a bucket that gets one each `interval` and has room for `burst` of them.
    ///
    /// # Errors
    ///
    /// How long to wait for the next token, if there is none at `now`.
    pub fn take_at(
        &mut self,
        interval: Duration,
        burst: u32,
        now: Duration,
    ) -> Result<(), Duration> {
        let full_at = self.full_at.max(now).saturating_add(interval);
        let latest = now.saturating_add(interval.saturating_mul(burst.max(1)));
        if full_at > latest {
            return Err(full_at - latest);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Returns a bucket that is full again at this time.
    pub const fn with_full_at(full_at: Duration) -> Self {
        Self { full_at }
    }

    /// Returns when the bucket is full again.
    pub const fn full_at(&self) -> Duration {
        self.full_at
    }

    /// Takes up to `tokens` of a bucket that gets one each `interval` and has room for `burst` of them; returns how many. The
    /// bucket may come from another clock: it lacks at most `burst` tokens.
    ///
    /// # Errors
    ///
    /// How long to wait for the next token, if there is none at `now`.
    pub fn take_up_to(
        &mut self,
        tokens: u32,
        interval: Duration,
        burst: u32,
        now: Duration,
    ) -> Result<u32, Duration> {
        let interval = interval.max(Duration::from_nanos(1));
        let room = interval.saturating_mul(burst.max(1));
        let full_at = self.full_at.clamp(now, now.saturating_add(room));
        let filled = room.saturating_sub(full_at - now);
        let available = filled.as_nanos() / interval.as_nanos();
        let taken = tokens.min(u32::try_from(available).unwrap_or(u32::MAX));
        if taken == 0 {
            // Kept, so that time fills it also if it lacked more.
            self.full_at = full_at;
            return Err(interval.saturating_sub(filled));
        }
        self.full_at = full_at.saturating_add(interval.saturating_mul(taken));
        Ok(taken)
    }

    /// Gives back tokens that were taken and not used.
    pub fn give_back(&mut self, tokens: u32, interval: Duration) {
        self.full_at = self.full_at.saturating_sub(interval.saturating_mul(tokens));
    }

    /// Whether no token is missing at `now`.
    pub fn is_full(&self, now: Duration) -> bool {
        self.full_at <= now
    }

    /// When the next token is available.
    fn next(&self, rate: Rate) -> Duration {
        self.full_at
            .saturating_sub(rate.interval() * rate.burst.max(1).saturating_sub(1))
    }
}

/// A message that a newer one may supersede.
pub(super) trait Supersedable {
    /// Whether this newer message supersedes a waiting one.
    fn supersedes(&self, waiting: &Self) -> bool;
}

/// A progress notification: only the newest matters.
impl Supersedable for Vec<u8> {
    fn supersedes(&self, _: &Self) -> bool {
        true
    }
}

/// A log message.
#[derive(Debug)]
pub(super) struct LogMessage<M> {
    pub(super) level: LoggingLevel,
    pub(super) message: M,
}

impl<M> Supersedable for LogMessage<M> {
    fn supersedes(&self, waiting: &Self) -> bool {
        self.level >= waiting.level
    }
}

/// A bucket that holds one message that did not pass: the newest one that no earlier message
/// [supersedes](Supersedable::supersedes).
#[derive(Debug)]
pub(super) struct NotificationLimiter<M = Vec<u8>> {
    bucket: TokenBucket,
    held: Option<M>,
}

impl<M> Default for NotificationLimiter<M> {
    fn default() -> Self {
        Self {
            bucket: TokenBucket::default(),
            held: None,
        }
    }
}

impl<M: Supersedable> NotificationLimiter<M> {
    /// Offers a message and returns the one that may be sent now: this one, or the held one if it is not superseded.
    pub(super) fn offer(&mut self, message: M, rate: Rate, now: Duration) -> Option<M> {
        let held = self.held.take();
        let waiting = held.filter(|held| !message.supersedes(held));
        let passes = self.bucket.take(rate, now);
        match (waiting, passes) {
            (None, true) => Some(message),
            (None, false) => {
                self.held = Some(message);
                None
            }
            (Some(waiting), true) => {
                self.held = Some(message);
                Some(waiting)
            }
            (Some(waiting), false) => {
                self.held = Some(waiting);
                None
            }
        }
    }

    /// Returns the held message once it is due.
    pub(super) fn due(&mut self, rate: Rate, now: Duration) -> Option<M> {
        if self.held.is_some() && self.bucket.take(rate, now) {
            return self.held.take();
        }
        None
    }

    /// Returns the held message at once: the request ends, and the message would be lost.
    pub(super) fn flush(&mut self) -> Option<M> {
        self.held.take()
    }

    /// Returns the held message at once if it matches.
    pub(super) fn flush_if(&mut self, ends: impl FnOnce(&M) -> bool) -> Option<M> {
        if self.held.as_ref().is_some_and(ends) {
            return self.held.take();
        }
        None
    }

    /// When the held message may be sent.
    pub(super) fn deadline(&self, rate: Rate) -> Option<Duration> {
        self.held.as_ref().map(|_| self.bucket.next(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        burst: 3,
        per_second: 10,
    };

    #[test]
    fn a_burst_passes_and_the_last_of_a_flood_is_kept() {
        let mut thinner = NotificationLimiter::default();
        let now = Duration::from_secs(5);
        let passed: Vec<_> = (0..10_u8)
            .filter_map(|n| thinner.offer(vec![n], RATE, now))
            .collect();
        assert_eq!(passed, [[0], [1], [2]]);
        let deadline = thinner.deadline(RATE).expect("one is held");
        assert!(
            thinner
                .due(RATE, deadline - Duration::from_millis(1))
                .is_none()
        );
        assert_eq!(thinner.due(RATE, deadline), Some(vec![9]));
        assert_eq!(thinner.deadline(RATE), None);
    }

    #[test]
    fn tokens_are_taken_as_far_as_there_are_any_and_given_back() {
        const SECOND: Duration = Duration::from_secs(1);
        let mut bucket = TokenBucket::default();
        let mut now = 5 * SECOND;
        assert_eq!(bucket.take_up_to(3, SECOND, 4, now), Ok(3));
        assert_eq!(bucket.take_up_to(3, SECOND, 4, now), Ok(1));
        assert_eq!(bucket.take_up_to(3, SECOND, 4, now), Err(SECOND));
        now += SECOND / 4;
        assert_eq!(bucket.take_up_to(1, SECOND, 4, now), Err(3 * SECOND / 4));
        bucket.give_back(2, SECOND);
        assert_eq!(bucket.take_up_to(9, SECOND, 4, now), Ok(2));
        // It never has more than the burst.
        bucket.give_back(9, SECOND);
        assert_eq!(bucket.take_up_to(9, SECOND, 4, now), Ok(4));
    }

    #[test]
    fn a_bucket_of_another_clock_lacks_no_more_than_the_burst() {
        const SECOND: Duration = Duration::from_secs(1);
        let mut bucket = TokenBucket::with_full_at(Duration::MAX);
        assert_eq!(bucket.take_up_to(1, SECOND, 2, SECOND), Err(SECOND));
        assert_eq!(bucket.take_up_to(1, SECOND, 2, 2 * SECOND), Ok(1));
        let mut bucket = TokenBucket::with_full_at(4 * SECOND);
        assert_eq!(bucket.take_up_to(1, SECOND, 2, 2 * SECOND), Err(SECOND));
        assert_eq!(bucket.take_up_to(1, SECOND, 2, 3 * SECOND), Ok(1));
        assert_eq!(bucket.full_at(), 5 * SECOND);
        // So many that there is no time between two.
        assert_eq!(
            TokenBucket::new().take_up_to(9, Duration::ZERO, 9, SECOND),
            Ok(9)
        );
    }

    fn log(level: LoggingLevel) -> LogMessage<()> {
        LogMessage { level, message: () }
    }

    #[test]
    fn held_log_message_is_kept_over_less_severe_ones() {
        use LoggingLevel::{Critical, Debug, Error};
        let rate = Rate {
            burst: 1,
            per_second: 10,
        };
        let mut thinner = NotificationLimiter::default();
        let now = Duration::from_secs(5);
        assert!(thinner.offer(log(Debug), rate, now).is_some());
        for level in [Debug, Error, Debug, Critical, Error] {
            assert!(thinner.offer(log(level), rate, now).is_none());
        }
        // One message may be sent, but not this one.
        let later = now + Duration::from_millis(100);
        let sent = thinner.offer(log(Debug), rate, later).expect("its time");
        assert_eq!(sent.level, Critical);
        assert_eq!(thinner.flush().expect("held").level, Debug);
    }

    #[test]
    fn held_message_is_flushed_at_the_end() {
        let mut thinner = NotificationLimiter::default();
        for n in 0..5_u8 {
            thinner.offer(vec![n], RATE, Duration::ZERO);
        }
        assert_eq!(thinner.flush(), Some(vec![4]));
        assert_eq!(thinner.flush(), None);
    }

    #[test]
    fn slow_stream_is_never_limited() {
        let mut thinner = NotificationLimiter::default();
        for n in 0..50_u64 {
            let now = Duration::from_millis(100 * n);
            assert!(thinner.offer(vec![0], RATE, now).is_some());
        }
    }
}
