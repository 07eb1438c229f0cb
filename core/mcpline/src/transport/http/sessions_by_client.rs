//! The sessions of each client, in about the order in which they were last used, to decide which one makes room when
//! there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use super::sessions::Session;

/// A session that has been idle for this part of what it may be makes room for a new one when there are too many:
/// clients that begin a session for every call, and never end one, would otherwise lock themselves out.
pub(super) const ROOM_AFTER: u32 = 30;

/// How many sessions of a client are looked at for one that makes room, so that a flood of them costs no more each.
const LOOKED_AT: usize = 256;

/// The sessions of each client that has any.
#[derive(Default)]
pub(super) struct SessionsByClient {
    /// By the client's number.
    clients: HashMap<u64, OfClient>,
    /// The places that are taken, of all clients.
    total: usize,
}

#[derive(Default)]
struct OfClient {
    /// How many places are taken: by sessions that can be found, and by those that are about to be.
    count: usize,
    order: VecDeque<Weak<Session>>,
}

impl SessionsByClient {
    /// How many places this client's sessions take.
    pub(super) fn count(&self, client: u64) -> usize {
        self.clients.get(&client).map_or(0, |of| of.count)
    }

    /// How many places the sessions of all clients take.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Takes a place for a session of this client, which is [added](Self::add) later.
    pub(super) fn reserve(&mut self, client: u64) {
        self.clients.entry(client).or_default().count += 1;
        self.total += 1;
    }

    /// The client that has most.
    pub(super) fn largest(&self) -> Option<u64> {
        let largest = self.clients.iter().max_by_key(|(_, of)| of.count)?;
        Some(*largest.0)
    }

    /// Notes a session that can be found from now on. Its place is reserved.
    pub(super) fn add(&mut self, session: &Arc<Session>) {
        let of = self.clients.entry(session.client_number()).or_default();
        of.order.push_back(Arc::downgrade(session));
        if of.order.len() > 2 * of.count + LOOKED_AT {
            of.order.retain(|session| session.strong_count() > 0);
        }
    }

    /// Gives back the place of a session of this client that has ended, or never came to be.
    pub(super) fn remove(&mut self, client: u64) {
        if let Some(of) = self.clients.get_mut(&client) {
            of.count = of.count.saturating_sub(1);
            self.total = self.total.saturating_sub(1);
            if of.count == 0 {
                self.clients.remove(&client);
            }
        }
    }

    /// A session of this client that can make room: one that was never used for more than a handshake, because it costs a
    /// hostile client nothing to make those, else the one that has been idle for longest. Those that are looked at and
    /// stay go to the end of the queue.
    pub(super) fn least_needed(&mut self, client: u64) -> Option<Arc<Session>> {
        let of = self.clients.get_mut(&client)?;
        let mut idle = None;
        for _ in 0..LOOKED_AT.min(of.order.len()) {
            let oldest = of.order.pop_front()?;
            let Some(session) = oldest.upgrade().filter(|session| !session.has_left()) else {
                continue;
            };
            of.order.push_back(oldest);
            if session.is_in_use() {
                continue;
            }
            if !session.is_used() {
                return Some(session);
            }
            if idle.is_none() && session.is_idle_enough() {
                idle = Some(session);
            }
        }
        idle
    }
}
