//! Limits and their usage.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline_protocol::RpcError;

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitOwner {
    /// All clients together.
    Server,
    /// One client.
    Client,
}

/// A limit of bytes or of a number of things, with its usage. Charges to it are also charged to its parent.
#[derive(Debug)]
pub(crate) struct UsageLimit {
    /// What is counted, with the setting that limits it: `bytes held for peers (max_total_client_bytes)`.
    what: &'static str,
    level: LimitOwner,
    limit: usize,
    used: AtomicUsize,
    parent: Option<Arc<UsageLimit>>,
    /// Dropped with the budget: when its owner and all charges to it are gone.
    _drop_guard: Option<Box<dyn Any + Send + Sync>>,
}

/// A budget has no room for a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}; try again later", match level {
    LimitOwner::Server => "the server is at its limit",
    LimitOwner::Client => "this client is at its limit",
})]
pub(crate) struct Exceeded {
    what: &'static str,
    /// Whose limit it is.
    pub(crate) level: LimitOwner,
}

impl From<Exceeded> for RpcError {
    fn from(exceeded: Exceeded) -> Self {
        Self::busy(exceeded.to_string())
    }
}

/// How much of a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) used: usize,
    pub(crate) limit: usize,
}

/// A charge to a budget, returned on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<UsageLimit>,
    amount: usize,
}

impl UsageLimit {
    /// Creates the budget of a server.
    pub(crate) fn of_server(what: &'static str, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            level: LimitOwner::Server,
            limit,
            used: AtomicUsize::new(0),
            parent: None,
            _drop_guard: None,
        })
    }

    /// Creates the budget of a client, which may use this share of its server's.
    pub(crate) fn of_client(server: &Arc<Self>, share: f64) -> Arc<Self> {
        Self::of_client_with_drop_guard(server, share, None)
    }

    /// Like [`of_client`](Self::of_client). `drop_guard` is dropped when the budget's owner and all charges to it are
    /// gone.
    pub(crate) fn of_client_with_drop_guard(
        server: &Arc<Self>,
        share: f64,
        drop_guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            what: server.what,
            level: LimitOwner::Client,
            limit: share_of(server.limit, share),
            used: AtomicUsize::new(0),
            parent: Some(server.clone()),
            _drop_guard: drop_guard,
        })
    }

    /// Returns the used amount.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the used amount and the limit.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            used: self.used(),
            limit: self.limit,
        }
    }

    /// Charges `amount` to this budget and its parent, or to neither.
    pub(crate) fn charge(self: &Arc<Self>, amount: usize) -> Result<Charge, Exceeded> {
        self.add(amount, |limit| limit)?;
        Ok(Charge {
            budget: self.clone(),
            amount,
        })
    }

    /// Like [`charge`](Self::charge), but only if at most half of each limit is used afterwards.
    pub(crate) fn charge_within_half(self: &Arc<Self>, amount: usize) -> Result<Charge, Exceeded> {
        self.add(amount, |limit| limit / 2)?;
        Ok(Charge {
            budget: self.clone(),
            amount,
        })
    }

    /// Charges `amount` whatever the limit, for something that exists already and cannot be refused. Later charges are
    /// refused.
    pub(crate) fn charge_anyway(self: &Arc<Self>, amount: usize) -> Charge {
        let mut level = Some(&**self);
        while let Some(budget) = level {
            budget.used.fetch_add(amount, Ordering::Relaxed);
            level = budget.parent.as_deref();
        }
        Charge {
            budget: self.clone(),
            amount,
        }
    }

    // The counters do not order other memory accesses.
    fn add(&self, amount: usize, part: fn(usize) -> usize) -> Result<(), Exceeded> {
        let most = part(self.limit);
        let added = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= most)
            });
        if added.is_err() {
            return Err(Exceeded {
                what: self.what,
                level: self.level,
            });
        }
        if let Some(parent) = &self.parent
            && let Err(exceeded) = parent.add(amount, part)
        {
            self.used.fetch_sub(amount, Ordering::Relaxed);
            return Err(exceeded);
        }
        Ok(())
    }

    fn subtract(&self, amount: usize) {
        let mut level = Some(self);
        while let Some(budget) = level {
            budget.used.fetch_sub(amount, Ordering::Relaxed);
            level = budget.parent.as_deref();
        }
    }
}

/// Returns the share of a limit that one client may use: at least 1, so that a small limit excludes no client.
pub(crate) fn share_of(limit: usize, share: f64) -> usize {
    if share >= 1.0 {
        return limit;
    }
    ((limit as f64 * share.max(0.0)) as usize).max(1)
}

impl Charge {
    /// Adds another charge to the same budget.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget));
        self.amount += std::mem::take(&mut other.amount);
    }

    /// Returns the charged amount.
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Returns everything except `amount` to the budget.
    pub(crate) fn shrink_to(&mut self, amount: usize) {
        let surplus = self.amount.saturating_sub(amount);
        self.budget.subtract(surplus);
        self.amount -= surplus;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.subtract(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_client_and_server_and_gives_back_to_both() {
        let server = UsageLimit::of_server("bytes", 100);
        let client = UsageLimit::of_client(&server, 0.5);
        let mut charge = client.charge(30).expect("room");
        assert_eq!((client.used(), server.used()), (30, 30));
        charge.absorb(client.charge(20).expect("room"));
        assert_eq!((client.used(), server.used()), (50, 50));
        assert_eq!(
            client.charge(1).expect_err("full").level,
            LimitOwner::Client
        );
        charge.shrink_to(10);
        assert_eq!((client.used(), server.used()), (10, 10));
        drop(charge);
        assert_eq!((client.used(), server.used()), (0, 0));
    }

    #[test]
    fn one_client_leaves_room_for_others_within_the_limit_of_the_server() {
        let server = UsageLimit::of_server("bytes", 100);
        let greedy = UsageLimit::of_client(&server, 0.5);
        let honest = UsageLimit::of_client(&server, 0.5);
        let third = UsageLimit::of_client(&server, 0.5);
        let _held = greedy.charge(50).expect("its share");
        assert!(greedy.charge(1).is_err());
        let _other = honest.charge(50).expect("its share");
        let refused = third.charge(1).expect_err("the server is full");
        assert_eq!(refused.level, LimitOwner::Server);
        assert_eq!(third.used(), 0, "what was refused is not counted");
    }

    #[test]
    fn counts_charges_that_cannot_be_refused() {
        let server = UsageLimit::of_server("bytes", 10);
        let client = UsageLimit::of_client(&server, 1.0);
        let charge = client.charge_anyway(25);
        assert!(client.charge(0).is_err() && client.charge(1).is_err());
        drop(charge);
        assert!(client.charge(10).is_ok());
    }

    #[test]
    fn a_share_is_never_zero() {
        assert_eq!(share_of(3, 0.25), 1);
        assert_eq!(share_of(1_000, 0.25), 250);
        assert_eq!(share_of(1_000, 7.0), 1_000);
        assert_eq!(share_of(1_000, f64::NAN), 1);
    }
}
