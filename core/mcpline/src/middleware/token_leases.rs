//! Tokens of [shared buckets](SharedBuckets) that are leased to this process, so that a request rarely waits for the store.

use std::collections::HashMap;
use std::time::Duration;

use mcpline_protocol::session::TokenBucket;
use mcpline_runtime::clock;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::background;
use crate::sharing::{BucketPolicy, SharedBuckets, TakeOutcome};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::warning_limit::warn_limited;

use super::rate_limit::{Admission, MAX_KEYS};

/// How long leased tokens may be used before they are given back. Other processes cannot use them meanwhile, and what the bucket
/// gets in this time comes on top of them; with less time, clients that send few requests in a second would need a round trip for
/// each.
const LEASE_LIFETIME: Duration = Duration::from_secs(1);

/// A lease has at most this part of a full bucket: a process must not keep others from a limit that is not reached.
const MAX_LEASE_PART: u32 = 8;

/// How long a request waits for the store, as with the keys of what may be used once. A store answers within milliseconds; one
/// that does not is overloaded or unreachable.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the process counts on its own after the store has failed, before another request tries it. Each attempt may take the
/// time above.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The leases of one limit.
#[derive(Debug, Default)]
pub(super) struct TokenLeases(Arc<Mutex<Leases>>);

/// A request to the store, for a request of a client.
pub(super) struct TokenRequest {
    pub(super) store: Arc<dyn SharedBuckets>,
    /// The name of the bucket.
    pub(super) name: String,
    pub(super) key: u64,
    pub(super) policy: BucketPolicy,
}

impl TokenLeases {
    /// Takes a leased token.
    pub(super) fn take(&self, key: u64, policy: BucketPolicy, now: Duration) -> Admission {
        lock(&self.0).take(key, policy, now)
    }

    /// Takes tokens from the store, in a task that outlives the request: its lease is not lost if a client cancels it. The
    /// receiver gets nothing if the runtime ends.
    pub(super) fn request(
        &self,
        runtime: &Handle,
        request: TokenRequest,
        wanted: WantedTokens,
    ) -> oneshot::Receiver<Result<(), Duration>> {
        let (reply, answer) = oneshot::channel();
        let leases = self.0.clone();
        background::spawn(runtime, async move {
            let (key, policy) = (request.key, request.policy);
            let taken = request.take(wanted.tokens).await;
            let now = clock::now();
            let admitted = lock(&leases).record(key, policy, wanted, taken, now);
            // The request may have ended.
            let _ = reply.send(admitted);
            let mut check_at = lock(&leases).lapse_check(key, now);
            while let Some(time) = check_at {
                background::sleep(time.saturating_sub(clock::now())).await;
                let lapse = lock(&leases).lapse(key, time, clock::now());
                check_at = match lapse {
                    Lapse::CheckAt(time) => Some(time),
                    Lapse::Unused(tokens) => {
                        request.give_back(tokens).await;
                        None
                    }
                };
            }
        });
        answer
    }
}

impl TokenRequest {
    /// Takes up to so many tokens; `None` if the store fails.
    async fn take(&self, tokens: u32) -> Option<TakeOutcome> {
        let taking = self.store.take(&self.name, self.policy, tokens);
        let error = match timeout(STORE_TIMEOUT, taking).await {
            Ok(Ok(taken)) => return Some(taken),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} ms", STORE_TIMEOUT.as_millis()),
        };
        warn_limited!(
            error,
            "the store of shared rate limits failed: each process counts on its own"
        );
        None
    }

    async fn give_back(&self, tokens: u32) {
        if tokens > 0 {
            let giving = self.store.give_back(&self.name, self.policy, tokens);
            // If it fails, the bucket gets as many with time.
            let _ = timeout(STORE_TIMEOUT, giving).await;
        }
    }
}

/// Tokens that a request needs from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WantedTokens {
    tokens: u32,
    /// Whether those that the request does not use are a lease; else it takes one for itself.
    is_lease: bool,
}

impl WantedTokens {
    const ONE: Self = Self {
        tokens: 1,
        is_lease: false,
    };
}

#[derive(Debug, Default)]
struct Leases {
    by_key: HashMap<u64, Lease>,
    /// The bucket of keys that have no room, while the store fails.
    own: TokenBucket,
    /// The store has failed: when a request tries it again.
    retry_at: Option<Duration>,
}

/// What this process has of a bucket.
#[derive(Debug, Default)]
struct Lease {
    /// Those that are left, until then.
    tokens: u32,
    until: Duration,
    /// How many tokens were requested.
    size: u32,
    /// The end of the request for a lease, if there is one.
    requesting_until: Duration,
    /// When a task looks whether the lease has lapsed.
    lapse_check_at: Duration,
    /// The bucket was empty: when it is asked again, and when it has a token.
    ask_again_at: Duration,
    next_token_at: Duration,
    /// Counts while the store fails.
    own: TokenBucket,
}

/// What a lease is when its time may be over.
#[derive(Debug, PartialEq, Eq)]
enum Lapse {
    /// There is a newer one: check again at this time.
    CheckAt(Duration),
    /// So many tokens were not used.
    Unused(u32),
}

impl Lease {
    /// Whether it says no more than a new one.
    fn is_over(&self, now: Duration) -> bool {
        let is_used_up = self.tokens == 0 || self.until.saturating_add(LEASE_LIFETIME) <= now;
        is_used_up
            && self.until <= now
            && self.requesting_until <= now
            && self.ask_again_at <= now
            && self.own.is_full(now)
    }
}

impl Leases {
    fn take(&mut self, key: u64, policy: BucketPolicy, now: Duration) -> Admission {
        let may_request = self.retry_at.is_none_or(|retry_at| retry_at <= now);
        if self.by_key.len() >= MAX_KEYS && !self.by_key.contains_key(&key) {
            self.by_key.retain(|_, lease| !lease.is_over(now));
        }
        let has_room = self.by_key.len() < MAX_KEYS || self.by_key.contains_key(&key);
        let mut lease = has_room.then(|| self.by_key.entry(key).or_default());
        if let Some(lease) = &mut lease {
            if lease.tokens > 0 && now < lease.until {
                lease.tokens -= 1;
                return Admission::Admitted;
            }
            if now < lease.ask_again_at {
                return Admission::Refused(lease.next_token_at.saturating_sub(now));
            }
        }
        if !may_request {
            let own = lease.map_or(&mut self.own, |lease| &mut lease.own);
            return own.take_at(policy.interval, policy.burst, now).into();
        }
        if let Some(retry_at) = &mut self.retry_at {
            // Others do not wait for the same store.
            *retry_at = now.saturating_add(RETRY_DELAY);
        }
        Admission::Requires(lease.map_or(WantedTokens::ONE, |lease| lease.wanted(policy, now)))
    }

    /// Notes what the store has answered; `None` if it failed. Returns whether the request is admitted, or how long to wait.
    fn record(
        &mut self,
        key: u64,
        policy: BucketPolicy,
        wanted: WantedTokens,
        taken: Option<TakeOutcome>,
        now: Duration,
    ) -> Result<(), Duration> {
        let lease = self.by_key.get_mut(&key);
        let Some(taken) = taken else {
            self.retry_at = Some(now.saturating_add(RETRY_DELAY));
            let own = match lease {
                Some(lease) => {
                    lease.end_request(wanted);
                    &mut lease.own
                }
                None => &mut self.own,
            };
            return own.take_at(policy.interval, policy.burst, now);
        };
        self.retry_at = None;
        if let Some(lease) = lease {
            lease.end_request(wanted);
            match taken {
                TakeOutcome::Taken(tokens) if wanted.is_lease => {
                    lease.tokens = lease.tokens.saturating_add(tokens.saturating_sub(1));
                    lease.until = now.saturating_add(LEASE_LIFETIME);
                }
                TakeOutcome::Taken(_) => {}
                TakeOutcome::Empty(wait) => {
                    lease.next_token_at = now.saturating_add(wait);
                    // Another process may give some back.
                    lease.ask_again_at = now.saturating_add(wait.min(LEASE_LIFETIME));
                }
            }
        }
        match taken {
            TakeOutcome::Taken(_) => Ok(()),
            TakeOutcome::Empty(wait) => Err(wait),
        }
    }

    /// Returns when to look whether the lease has lapsed, unless it has no tokens or a task does that already.
    fn lapse_check(&mut self, key: u64, now: Duration) -> Option<Duration> {
        let lease = self.by_key.get_mut(&key)?;
        if lease.tokens == 0 || lease.until <= now || lease.lapse_check_at > now {
            return None;
        }
        lease.lapse_check_at = lease.until;
        Some(lease.until)
    }

    /// Returns what is left of a lease, which has no tokens afterwards. `checked_for` is the time that the task has waited for.
    fn lapse(&mut self, key: u64, checked_for: Duration, now: Duration) -> Lapse {
        match self.by_key.get_mut(&key) {
            // Another task has begun to look before this one was woken.
            Some(lease) if lease.lapse_check_at > checked_for => Lapse::Unused(0),
            Some(lease) if now < lease.until => {
                lease.lapse_check_at = lease.until;
                Lapse::CheckAt(lease.until)
            }
            Some(lease) => Lapse::Unused(std::mem::take(&mut lease.tokens)),
            None => Lapse::Unused(0),
        }
    }
}

impl Lease {
    /// Returns the tokens to request: a lease, unless another request has requested one.
    fn wanted(&mut self, policy: BucketPolicy, now: Duration) -> WantedTokens {
        if now < self.requesting_until {
            return WantedTokens::ONE;
        }
        let max_size = (policy.burst / MAX_LEASE_PART).max(1);
        let was_used_up = now < self.until;
        self.size = match was_used_up {
            true => self.size.saturating_mul(2).min(max_size),
            false => 1,
        };
        // Twice the time that it may take.
        self.requesting_until = now.saturating_add(2 * STORE_TIMEOUT);
        WantedTokens {
            tokens: self.size,
            is_lease: true,
        }
    }

    fn end_request(&mut self, wanted: WantedTokens) {
        if wanted.is_lease {
            self.requesting_until = Duration::ZERO;
        }
    }
}

fn lock(leases: &Mutex<Leases>) -> MutexGuard<'_, Leases> {
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A token each second, and 64 at once.
    const POLICY: BucketPolicy = BucketPolicy {
        interval: SECOND,
        burst: 64,
    };

    /// Takes a token for a request, from the store if there is no lease. Returns how many were requested there.
    fn admit(
        leases: &mut Leases,
        store: &mut TokenBucket,
        now: Duration,
    ) -> (Result<(), Duration>, u32) {
        let wanted = match leases.take(1, POLICY, now) {
            Admission::Admitted => return (Ok(()), 0),
            Admission::Refused(wait) => return (Err(wait), 0),
            Admission::Requires(wanted) => wanted,
        };
        let taken = store.take_up_to(wanted.tokens, POLICY.interval, POLICY.burst, now);
        let taken = taken.map_or_else(TakeOutcome::Empty, TakeOutcome::Taken);
        let admitted = leases.record(1, POLICY, wanted, Some(taken), now);
        (admitted, wanted.tokens)
    }

    fn required(admission: Admission) -> WantedTokens {
        match admission {
            Admission::Requires(wanted) => wanted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn leases_grow_while_they_are_used_up_and_admit_no_more_than_the_bucket() {
        let (mut leases, mut store) = (Leases::default(), TokenBucket::new());
        let mut requested = Vec::new();
        for _ in 0..64 {
            let (admitted, tokens) = admit(&mut leases, &mut store, SECOND);
            assert_eq!(admitted, Ok(()));
            requested.extend((tokens > 0).then_some(tokens));
        }
        // The last one gets the only token that is left.
        assert_eq!(requested, [1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8]);
        assert_eq!(admit(&mut leases, &mut store, SECOND), (Err(SECOND), 8));
        // Known without the store.
        let now = SECOND * 3 / 2;
        assert_eq!(admit(&mut leases, &mut store, now), (Err(SECOND / 2), 0));
        assert_eq!(admit(&mut leases, &mut store, 2 * SECOND).0, Ok(()));
    }

    #[test]
    fn requests_that_are_far_apart_take_one_token_each() {
        let (mut leases, mut store) = (Leases::default(), TokenBucket::new());
        for number in 1..5 {
            let now = number * LEASE_LIFETIME;
            assert_eq!(admit(&mut leases, &mut store, now), (Ok(()), 1));
            assert_eq!(leases.lapse_check(1, now), None);
        }
    }

    #[test]
    fn what_is_left_of_a_lease_is_given_back_after_its_time() {
        let (mut leases, mut store) = (Leases::default(), TokenBucket::new());
        for _ in 0..4 {
            assert_eq!(admit(&mut leases, &mut store, SECOND).0, Ok(()));
        }
        // 7 tokens were taken.
        assert_eq!(leases.lapse_check(1, SECOND), Some(2 * SECOND));
        assert_eq!(leases.lapse_check(1, SECOND), None, "one task is enough");
        assert_eq!(
            leases.lapse(1, 2 * SECOND, SECOND * 3 / 2),
            Lapse::CheckAt(2 * SECOND),
            "too early"
        );
        // A lapsed lease is not used.
        let now = 2 * SECOND;
        assert_eq!(required(leases.take(1, POLICY, now)).tokens, 1);
        assert_eq!(leases.lapse(1, now, now), Lapse::Unused(3));
        assert_eq!(leases.lapse(1, now, now), Lapse::Unused(0));
    }

    #[test]
    fn one_task_looks_after_a_lease_that_is_renewed_just_before_it_is_woken() {
        let (mut leases, mut store) = (Leases::default(), TokenBucket::new());
        for _ in 0..4 {
            assert_eq!(admit(&mut leases, &mut store, SECOND).0, Ok(()));
        }
        let first = leases.lapse_check(1, SECOND).expect("a lease");
        // At its time a request renews the lease, and its task looks later.
        let now = first;
        for _ in 0..2 {
            assert_eq!(admit(&mut leases, &mut store, now).0, Ok(()));
        }
        let second = leases.lapse_check(1, now).expect("a lease");
        assert_eq!(leases.lapse(1, first, now), Lapse::Unused(0));
        assert!(matches!(
            leases.lapse(1, second, second),
            Lapse::Unused(1..)
        ));
    }

    #[test]
    fn other_requests_take_a_token_each_while_a_lease_is_requested() {
        let mut leases = Leases::default();
        let lease = required(leases.take(1, POLICY, SECOND));
        assert!(lease.is_lease);
        let other = required(leases.take(1, POLICY, SECOND));
        assert_eq!(other, WantedTokens::ONE);
        let taken = Some(TakeOutcome::Taken(1));
        assert_eq!(leases.record(1, POLICY, other, taken, SECOND), Ok(()));
        assert_eq!(
            required(leases.take(1, POLICY, SECOND)),
            WantedTokens::ONE,
            "the lease is still requested"
        );
        assert_eq!(leases.record(1, POLICY, lease, taken, SECOND), Ok(()));
        assert_eq!(required(leases.take(1, POLICY, SECOND)).tokens, 2);
        // The task of the request ended with its runtime.
        let later = SECOND + 2 * STORE_TIMEOUT;
        assert!(required(leases.take(1, POLICY, later)).is_lease);
    }

    #[test]
    fn an_empty_bucket_is_asked_again_soon_for_what_others_give_back() {
        let mut leases = Leases::default();
        let wanted = required(leases.take(1, POLICY, SECOND));
        let empty = Some(TakeOutcome::Empty(60 * SECOND));
        let refused = leases.record(1, POLICY, wanted, empty, SECOND);
        assert_eq!(refused, Err(60 * SECOND));
        let before = SECOND + LEASE_LIFETIME - Duration::from_millis(1);
        let wait = 60 * SECOND - LEASE_LIFETIME + Duration::from_millis(1);
        assert_eq!(leases.take(1, POLICY, before), Admission::Refused(wait));
        let wanted = required(leases.take(1, POLICY, SECOND + LEASE_LIFETIME));
        assert_eq!(wanted.tokens, 1);
    }

    #[test]
    fn a_store_that_fails_is_tried_by_one_request_after_each_delay() {
        let mut leases = Leases::default();
        let policy = BucketPolicy {
            interval: 60 * SECOND,
            burst: 2,
        };
        let mut now = SECOND;
        let wanted = required(leases.take(1, policy, now));
        assert_eq!(leases.record(1, policy, wanted, None, now), Ok(()));
        assert_eq!(leases.take(1, policy, now), Admission::Admitted);
        // The process's own limit holds.
        let refused = Admission::Refused(60 * SECOND);
        assert_eq!(leases.take(1, policy, now), refused);
        now += RETRY_DELAY;
        let wanted = required(leases.take(1, policy, now));
        let refused = Admission::Refused(59 * SECOND);
        assert_eq!(leases.take(1, policy, now), refused, "another one tries");
        let taken = Some(TakeOutcome::Taken(1));
        assert_eq!(leases.record(1, policy, wanted, taken, now), Ok(()));
        required(leases.take(1, policy, now));
        required(leases.take(2, policy, now));
    }

    #[test]
    fn keys_without_room_take_single_tokens_until_leases_are_over() {
        let mut leases = Leases::default();
        let taken = Some(TakeOutcome::Taken(1));
        for key in 0..MAX_KEYS as u64 {
            let wanted = required(leases.take(key, POLICY, SECOND));
            assert_eq!(leases.record(key, POLICY, wanted, taken, SECOND), Ok(()));
        }
        let further = MAX_KEYS as u64;
        let wanted = required(leases.take(further, POLICY, SECOND));
        assert_eq!(wanted, WantedTokens::ONE);
        assert_eq!(
            leases.record(further, POLICY, wanted, taken, SECOND),
            Ok(())
        );
        assert_eq!(leases.by_key.len(), MAX_KEYS);
        // They share a bucket while the store fails.
        assert_eq!(leases.record(further, POLICY, wanted, None, SECOND), Ok(()));
        for key in 1..64 {
            let admitted = leases.take(further + key, POLICY, SECOND);
            assert_eq!(admitted, Admission::Admitted);
        }
        let refused = leases.take(further, POLICY, SECOND);
        assert_eq!(refused, Admission::Refused(SECOND));
        let later = SECOND + LEASE_LIFETIME;
        assert!(required(leases.take(further, POLICY, later)).is_lease);
        assert_eq!(leases.by_key.len(), 1);
    }
}
