//! A table of handlers that wait for a client's retry.
//!
//! There is one per server, not per connection: the retry may arrive on another connection. A ticket can be used once.
//! The table has a limit, entries expire, and used tickets are remembered until they would have expired, so that a
//! duplicate retry can be distinguished from one that belongs to another process.
//!
//! A full table rejects no handler: the oldest handler of the client that has most is removed. A retry for it runs it
//! again from its start, as it would in another process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

/// Identifies a suspended handler. The driver makes it of random bytes; it is unguessable, and sealed in the state.
pub type SuspensionTicket = String;

/// The result of presenting a ticket.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumption<T> {
    /// The handler, which now belongs to the caller.
    Found(T),
    /// The ticket was used before in this process.
    AlreadyUsed,
    /// This process does not know the ticket, or no longer: replay the handler.
    Unknown,
}

/// The client that a handler is suspended for, and its share of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspensionOwner {
    /// Identifies the client.
    pub client: u64,
    /// The largest number of handlers that may be suspended for this client.
    pub share: usize,
}

/// Suspended handlers by ticket. `T` is the driver's handle of one.
#[derive(Debug)]
pub struct SuspendedHandlers<T> {
    entries: HashMap<SuspensionTicket, SuspendedEntry<T>>,
    by_expiry: BTreeSet<(Duration, SuspensionTicket)>,
    by_client: HashMap<u64, ClientHandlers>,
    /// Used tickets, oldest first; some have expired.
    used: VecDeque<SuspensionTicket>,
    cap: usize,
    waiting: usize,
}

/// The suspended handlers of one client.
#[derive(Debug, Default)]
struct ClientHandlers {
    waiting: usize,
    /// Tickets, oldest first; those that no longer wait are skipped.
    order: VecDeque<SuspensionTicket>,
}

/// How many tickets in a client's queue may no longer wait, besides as many as do.
const MAX_STALE_TICKETS: usize = 64;

#[derive(Debug)]
struct SuspendedEntry<T> {
    client: u64,
    expires: Duration,
    /// `None` once the ticket was used.
    waiting: Option<T>,
}

impl<T> SuspendedHandlers<T> {
    /// An empty table for at most `cap` handlers.
    pub fn new(cap: usize) -> Self {
        Self {
            entries: HashMap::new(),
            by_expiry: BTreeSet::new(),
            by_client: HashMap::new(),
            used: VecDeque::new(),
            // Room at least for the handler that is being suspended.
            cap: cap.max(1),
            waiting: 0,
        }
    }

    /// The number of suspended handlers.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no handler is suspended.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a handler until `expires` (on the driver's clock). If there are too many, of this client or in total,
    /// returns the one to remove; the driver cancels it.
    pub fn insert(
        &mut self,
        ticket: SuspensionTicket,
        handler: T,
        holder: SuspensionOwner,
        expires: Duration,
    ) -> Option<T> {
        let of_client = self.by_client.get(&holder.client);
        let crowded = if of_client.is_some_and(|of| of.waiting >= holder.share.max(1)) {
            Some(holder.client)
        } else if self.waiting >= self.cap {
            let largest = self.by_client.iter().max_by_key(|(_, of)| of.waiting);
            largest.map(|(client, _)| *client)
        } else {
            None
        };
        let evicted = crowded.and_then(|client| self.evict_oldest(client));
        self.forget_oldest_used();
        self.waiting += 1;
        self.by_expiry.insert((expires, ticket.clone()));
        let of = self.by_client.entry(holder.client).or_default();
        of.waiting += 1;
        of.order.push_back(ticket.clone());
        if of.order.len() > 2 * of.waiting + MAX_STALE_TICKETS {
            let entries = &self.entries;
            of.order.retain(|listed| {
                *listed == ticket || entries.get(listed).is_some_and(|e| e.waiting.is_some())
            });
        }
        self.entries.insert(
            ticket,
            SuspendedEntry {
                client: holder.client,
                expires,
                waiting: Some(handler),
            },
        );
        evicted
    }

    fn remember_used(&mut self, ticket: &str) {
        if self.used.len() > 2 * self.cap {
            let entries = &self.entries;
            self.used.retain(|used| entries.contains_key(used));
        }
        self.used.push_back(ticket.to_owned());
    }

    fn evict_oldest(&mut self, client: u64) -> Option<T> {
        loop {
            let ticket = self.by_client.get_mut(&client)?.order.pop_front()?;
            let Some(entry) = self.entries.get_mut(&ticket) else {
                continue;
            };
            let Some(handler) = entry.waiting.take() else {
                continue;
            };
            let expires = entry.expires;
            // The ticket is forgotten, so that its retry runs the handler again.
            self.entries.remove(&ticket);
            self.by_expiry.remove(&(expires, ticket));
            self.count_retrieved(client);
            return Some(handler);
        }
    }

    fn count_retrieved(&mut self, client: u64) {
        self.waiting -= 1;
        if let Some(of) = self.by_client.get_mut(&client) {
            of.waiting -= 1;
            if of.waiting == 0 {
                self.by_client.remove(&client);
            }
        }
    }

    /// Returns a suspended handler without removing it.
    pub fn peek(&self, ticket: &str) -> Option<&T> {
        self.entries.get(ticket)?.waiting.as_ref()
    }

    /// Uses a ticket. A handler is returned once.
    pub fn take(&mut self, ticket: &str) -> Resumption<T> {
        match self.entries.get_mut(ticket) {
            None => Resumption::Unknown,
            Some(entry) => match entry.waiting.take() {
                Some(handler) => {
                    let client = entry.client;
                    self.count_retrieved(client);
                    self.remember_used(ticket);
                    Resumption::Found(handler)
                }
                None => Resumption::AlreadyUsed,
            },
        }
    }

    /// Removes entries that have expired at `now` and returns the handlers without a retry; the driver cancels them.
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
                self.count_retrieved(entry.client);
                lapsed.push(handler);
            }
        }
        lapsed
    }

    /// Removes and returns every suspended handler, for a shutdown.
    pub fn drain(&mut self) -> Vec<T> {
        self.drain_where(|_| true)
    }

    /// Removes and returns the suspended handlers that can't get a retry any more. Their tickets are forgotten.
    pub fn drain_where(&mut self, mut lost: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut drained = Vec::new();
        let mut clients = Vec::new();
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
            clients.push(entry.client);
            false
        });
        for client in clients {
            self.count_retrieved(client);
        }
        drained
    }

    /// When to call [`SuspendedHandlers::expire`] next.
    pub fn poll_deadline(&self) -> Option<Duration> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// Limits the remembered used tickets to the number of handlers that may wait, so that memory stays bounded.
    fn forget_oldest_used(&mut self) {
        if self.entries.len() - self.waiting < self.cap {
            return;
        }
        while let Some(ticket) = self.used.pop_front() {
            if let Some(entry) = self.entries.remove(&ticket) {
                self.by_expiry.remove(&(entry.expires, ticket));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn insert<T: std::fmt::Debug + PartialEq>(
        table: &mut SuspendedHandlers<T>,
        ticket: SuspensionTicket,
        handler: T,
        expires: Duration,
    ) {
        let holder = SuspensionOwner {
            client: 1,
            share: usize::MAX,
        };
        table.insert(ticket, handler, holder, expires);
    }

    #[test]
    fn ticket_works_once_and_duplicates_are_recognized() {
        let mut table = SuspendedHandlers::new(4);
        insert(&mut table, "a".into(), 1, s(10));
        assert_eq!(table.take("a"), Resumption::Found(1));
        assert_eq!(table.take("a"), Resumption::AlreadyUsed);
        assert_eq!(table.take("b"), Resumption::Unknown);
        assert!(table.is_empty());
    }

    #[test]
    fn expired_handlers_are_returned_for_cancellation() {
        let mut table = SuspendedHandlers::new(4);
        insert(&mut table, "a".into(), 1, s(10));
        insert(&mut table, "b".into(), 2, s(20));
        assert_eq!(table.poll_deadline(), Some(s(10)));
        assert_eq!(table.expire(s(10)), vec![1]);
        assert_eq!(table.take("a"), Resumption::Unknown);
        assert_eq!(table.take("b"), Resumption::Found(2));
        assert_eq!(table.expire(s(30)), Vec::<i32>::new());
    }

    #[test]
    fn drains_only_handlers_of_gone_clients() {
        let mut table = SuspendedHandlers::new(4);
        for (ticket, handler) in [("a", 1), ("b", 2), ("c", 3)] {
            insert(&mut table, ticket.into(), handler, s(10));
        }
        assert_eq!(table.take("c"), Resumption::Found(3));
        assert_eq!(table.drain_where(|handler| *handler == 1), vec![1]);
        assert_eq!(table.len(), 1);
        assert_eq!(table.take("a"), Resumption::Unknown);
        assert_eq!(table.take("c"), Resumption::AlreadyUsed);
        assert_eq!(table.expire(s(10)), vec![2]);
    }

    #[test]
    fn a_full_table_makes_room_and_remembers_a_bounded_number_of_tickets() {
        let mut table = SuspendedHandlers::new(2);
        for (handler, ticket) in ["a", "b", "c"].into_iter().enumerate() {
            insert(&mut table, ticket.into(), handler, s(10));
        }
        assert_eq!(table.len(), 2);
        assert_eq!(table.take("a"), Resumption::Unknown, "its retry replays");
        for ticket in ["b", "c", "d", "e", "f"] {
            if !matches!(ticket, "b" | "c") {
                insert(&mut table, ticket.into(), 0, s(20));
            }
            assert!(matches!(table.take(ticket), Resumption::Found(_)));
        }
        assert!(table.entries.len() <= 4);
        assert_eq!(table.by_expiry.len(), table.entries.len());
        assert!(table.by_client.is_empty());
    }

    #[test]
    fn client_over_its_share_displaces_only_its_own_handlers() {
        let mut table = SuspendedHandlers::new(100);
        let (honest, greedy) = (
            SuspensionOwner {
                client: 1,
                share: 3,
            },
            SuspensionOwner {
                client: 2,
                share: 3,
            },
        );
        assert_eq!(table.insert("honest".into(), 0, honest, s(10)), None);
        let evicted: Vec<_> = (1..=10)
            .filter_map(|number| table.insert(format!("greedy {number}"), number, greedy, s(10)))
            .collect();
        assert_eq!(evicted, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(table.take("honest"), Resumption::Found(0));
    }

    #[test]
    fn a_full_table_takes_room_from_the_client_that_has_most() {
        let mut table = SuspendedHandlers::new(4);
        let holder = |client| SuspensionOwner { client, share: 100 };
        table.insert("honest".into(), 0, holder(1), s(10));
        for number in 1..=3 {
            table.insert(format!("greedy {number}"), number, holder(2), s(10));
        }
        assert_eq!(table.insert("another".into(), 9, holder(3), s(10)), Some(1));
        assert_eq!(table.take("honest"), Resumption::Found(0));
    }

    #[test]
    fn stale_tickets_are_dropped() {
        let mut table = SuspendedHandlers::new(1_000_000);
        let holder = SuspensionOwner {
            client: 1,
            share: 1_000_000,
        };
        table.insert("stays".into(), 0, holder, s(1_000));
        for number in 0..10_000 {
            table.insert(number.to_string(), 0, holder, s(1));
            table.expire(s(1));
        }
        let kept = table.by_client.get(&1).map_or(0, |of| of.order.len());
        assert!(kept <= 2 + 2 * MAX_STALE_TICKETS, "{kept}");
    }
}
