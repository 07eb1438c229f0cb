//! The table of handlers that wait for a client's retry.
//!
//! One per server, not per connection: the retry may come on another connection. A ticket is good once.
//! The table is capped, entries lapse, and tickets that were used are remembered until they would have
//! lapsed, so that a duplicate retry is told apart from one that belongs to another process.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Names one suspended handler. Made of random bytes by the driver; unguessable, sealed in the state.
pub type Ticket = String;

/// The table is full; the handler that wanted to suspend must fail instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{cap} handlers are suspended already")]
pub struct SuspendedFull {
    /// How many may be suspended at once.
    pub cap: usize,
}

/// What presenting a ticket yields.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumption<T> {
    /// The handler is here; it is now the caller's.
    Here(T),
    /// The ticket was used before in this process.
    Used,
    /// This process has never seen the ticket, or no longer: replay.
    Elsewhere,
}

/// Suspended handlers by ticket. `T` is the driver's handle to one.
#[derive(Debug)]
pub struct Suspended<T> {
    entries: HashMap<Ticket, Entry<T>>,
    by_expiry: BTreeSet<(Duration, Ticket)>,
    cap: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Entry<T> {
    expires: Duration,
    /// `None` once the ticket was used.
    waiting: Option<T>,
}

impl<T> Suspended<T> {
    /// An empty table for at most `cap` handlers.
    pub fn new(cap: usize) -> Self {
        Self {
            entries: HashMap::new(),
            by_expiry: BTreeSet::new(),
            cap,
            waiting: 0,
        }
    }

    /// How many handlers are suspended.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no handler is suspended.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Puts a handler into the table until `expires` (on the driver's clock).
    ///
    /// # Errors
    ///
    /// [`SuspendedFull`] when the cap is reached; the handler is not taken.
    pub fn insert(
        &mut self,
        ticket: Ticket,
        handler: T,
        expires: Duration,
    ) -> Result<(), SuspendedFull> {
        if self.waiting >= self.cap {
            return Err(SuspendedFull { cap: self.cap });
        }
        self.forget_oldest_used();
        self.waiting += 1;
        self.by_expiry.insert((expires, ticket.clone()));
        self.entries.insert(
            ticket,
            Entry {
                expires,
                waiting: Some(handler),
            },
        );
        Ok(())
    }

    /// Looks at a suspended handler without taking it.
    pub fn peek(&self, ticket: &str) -> Option<&T> {
        self.entries.get(ticket)?.waiting.as_ref()
    }

    /// Presents a ticket. A handler is handed out once.
    pub fn take(&mut self, ticket: &str) -> Resumption<T> {
        match self.entries.get_mut(ticket) {
            None => Resumption::Elsewhere,
            Some(entry) => match entry.waiting.take() {
                Some(handler) => {
                    self.waiting -= 1;
                    Resumption::Here(handler)
                }
                None => Resumption::Used,
            },
        }
    }

    /// Removes what has lapsed at `now` and hands out the handlers that nobody came back for; the driver
    /// cancels them.
    pub fn expire(&mut self, now: Duration) -> Vec<T> {
        let mut lapsed = Vec::new();
        while let Some((expires, _)) = self.by_expiry.first() {
            if *expires > now {
                break;
            }
            if let Some((_, ticket)) = self.by_expiry.pop_first()
                && let Some(entry) = self.entries.remove(&ticket)
                && let Some(handler) = entry.waiting
            {
                self.waiting -= 1;
                lapsed.push(handler);
            }
        }
        lapsed
    }

    /// Removes and hands out every suspended handler, for a shutdown.
    pub fn drain(&mut self) -> Vec<T> {
        self.drain_where(|_| true)
    }

    /// Removes and hands out the suspended handlers that nobody can come back for any more. Their tickets are
    /// forgotten.
    pub fn drain_where(&mut self, mut lost: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut drained = Vec::new();
        self.entries.retain(|ticket, entry| {
            let Some(handler) = entry.waiting.take() else {
                return true;
            };
            if !lost(&handler) {
                entry.waiting = Some(handler);
                return true;
            }
            self.by_expiry.remove(&(entry.expires, ticket.clone()));
            drained.push(handler);
            false
        });
        self.waiting -= drained.len();
        drained
    }

    /// When [`Suspended::expire`] has something to do next.
    pub fn poll_deadline(&self) -> Option<Duration> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// Used tickets are remembered at most as many as handlers may wait, so that memory stays bounded.
    fn forget_oldest_used(&mut self) {
        if self.entries.len() - self.waiting < self.cap {
            return;
        }
        let oldest = self
            .by_expiry
            .iter()
            .find(|(_, ticket)| {
                self.entries
                    .get(ticket)
                    .is_some_and(|e| e.waiting.is_none())
            })
            .cloned();
        if let Some(key) = oldest {
            if let Some(entry) = self.entries.remove(&key.1) {
                debug_assert_eq!(entry.expires, key.0);
            }
            self.by_expiry.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_ticket_is_good_once_and_a_duplicate_is_told_apart() {
        let mut table = Suspended::new(4);
        table.insert("a".into(), 1, s(10)).expect("room");
        assert_eq!(table.take("a"), Resumption::Here(1));
        assert_eq!(table.take("a"), Resumption::Used);
        assert_eq!(table.take("b"), Resumption::Elsewhere);
        assert!(table.is_empty());
    }

    #[test]
    fn lapsed_handlers_are_handed_out_to_be_cancelled() {
        let mut table = Suspended::new(4);
        table.insert("a".into(), 1, s(10)).expect("room");
        table.insert("b".into(), 2, s(20)).expect("room");
        assert_eq!(table.poll_deadline(), Some(s(10)));
        assert_eq!(table.expire(s(10)), vec![1]);
        assert_eq!(table.take("a"), Resumption::Elsewhere);
        assert_eq!(table.take("b"), Resumption::Here(2));
        assert_eq!(table.expire(s(30)), Vec::<i32>::new());
    }

    #[test]
    fn those_whose_client_is_gone_are_handed_out_and_the_others_stay() {
        let mut table = Suspended::new(4);
        for (ticket, handler) in [("a", 1), ("b", 2), ("c", 3)] {
            table.insert(ticket.into(), handler, s(10)).expect("room");
        }
        assert_eq!(table.take("c"), Resumption::Here(3));
        assert_eq!(table.drain_where(|handler| *handler == 1), vec![1]);
        assert_eq!(table.len(), 1);
        assert_eq!(table.take("a"), Resumption::Elsewhere);
        assert_eq!(table.take("c"), Resumption::Used);
        assert_eq!(table.expire(s(10)), vec![2]);
    }

    #[test]
    fn the_cap_counts_waiting_handlers_and_bounds_what_is_remembered() {
        let mut table = Suspended::new(2);
        table.insert("a".into(), 1, s(10)).expect("room");
        table.insert("b".into(), 2, s(10)).expect("room");
        assert_eq!(
            table.insert("c".into(), 3, s(10)),
            Err(SuspendedFull { cap: 2 })
        );
        for (index, ticket) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            if index >= 2 {
                table.insert(ticket.into(), 0, s(20)).expect("room");
            }
            assert!(matches!(table.take(ticket), Resumption::Here(_)));
        }
        assert!(table.entries.len() <= 4);
        assert_eq!(table.by_expiry.len(), table.entries.len());
    }
}
