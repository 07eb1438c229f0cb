//! Token buckets in memory.

use std::collections::HashMap;
use std::time::Duration;

use mcpline_protocol::session::TokenBucket;

use crate::sharing::{BucketPolicy, SharingError, TakeOutcome};

/// Maximum number of buckets that are not full: ten times as many as one process keeps of a limit. Each takes some 100 bytes, so
/// this is 10 MB.
pub(super) const MAX_BUCKETS: usize = 100_000;

/// Buckets by key. One that does not exist is full.
#[derive(Default)]
pub(super) struct Buckets(HashMap<Box<str>, TokenBucket>);

impl Buckets {
    /// Takes up to so many tokens.
    ///
    /// # Errors
    ///
    /// There are too many buckets.
    pub(super) fn take(
        &mut self,
        key: &str,
        policy: BucketPolicy,
        tokens: u32,
        now: Duration,
    ) -> Result<TakeOutcome, SharingError> {
        let is_known = self.0.contains_key(key);
        if !is_known && self.0.len() >= MAX_BUCKETS {
            self.0.retain(|_, bucket| !bucket.is_full(now));
            if self.0.len() >= MAX_BUCKETS {
                return Err(SharingError::new(format!(
                    "{MAX_BUCKETS} keys of rate limits are in use"
                )));
            }
        }
        let bucket = self.0.entry(key.into()).or_default();
        let taken = bucket.take_up_to(tokens, policy.interval, policy.burst, now);
        Ok(taken.map_or_else(TakeOutcome::Empty, TakeOutcome::Taken))
    }

    pub(super) fn give_back(&mut self, key: &str, policy: BucketPolicy, tokens: u32) {
        if let Some(bucket) = self.0.get_mut(key) {
            bucket.give_back(tokens, policy.interval);
        }
    }
}
