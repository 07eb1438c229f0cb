//! Token buckets that every process takes from.

use std::time::Duration;

use super::Pending;

/// Token buckets of rate limits, for every process of a service: see [`RateLimit::shared`](crate::middleware::RateLimit::shared).
///
/// A bucket that does not exist is full, so a store may drop one that is full again. Taking tokens must be one step, by a clock
/// that all processes have in common. Keys are digests; they differ from the ids of sessions.
///
/// An error of the store refuses no request: the process counts on its own meanwhile.
pub trait SharedBuckets: Send + Sync + 'static {
    /// Takes up to `tokens`, at least 1, of a bucket.
    fn take<'a>(
        &'a self,
        key: &'a str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Pending<'a, TakeOutcome>;

    /// Gives back tokens that were taken a second ago and not used.
    fn give_back<'a>(&'a self, key: &'a str, policy: BucketPolicy, tokens: u32) -> Pending<'a, ()>;
}

/// How a token bucket is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketPolicy {
    /// The time after which it gets another token.
    pub interval: Duration,
    /// How many tokens it has when it is full: at least 1.
    pub burst: u32,
}

/// What was taken of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum TakeOutcome {
    /// So many tokens: at least one.
    Taken(u32),
    /// None: there is one after this time.
    Empty(Duration),
}
