//! The sessions of each client, approximately in the order of their last use, to decide which one makes room when there
//! are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use super::sessions::Session;

/// Above the limit, a session that has been idle for this fraction of its idle timeout makes room for a new one.
/// Otherwise clients that start a session for every call and never end one would lock themselves out.
pub(super) const ROOM_AFTER: u32 = 30;

/// Maximum number of sessions of a client that are examined for one that makes room, to bound the cost in a flood of
/// sessions.
const LOOKED_AT: usize = 256;

/// The sessions of each client that has any.
#[derive(Default)]
pub(super) struct SessionsByClient {
    /// By the client's number.
    clients: HashMap<u64, ClientSessions>,
    /// Number of places taken by all clients.
    total: usize,
}

#[derive(Default)]
struct ClientSessions {
    /// Number of places taken: by sessions that can be found, and by reservations.
    count: usize,
    order: VecDeque<Weak<Session>>,
}

impl SessionsByClient {
    /// Returns the number of places that this client's sessions take.
    pub(super) fn count(&self, client: u64) -> usize {
        self.clients.get(&client).map_or(0, |of| of.count)
    }

    /// Returns the number of places that all sessions take.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Reserves a place for a session of this client, to be [added](Self::add) later.
    pub(super) fn reserve(&mut self, client: u64) {
        self.clients.entry(client).or_default().count += 1;
        self.total += 1;
    }

    /// Returns the client with the most places.
    pub(super) fn largest(&self) -> Option<u64> {
        let largest = self.clients.iter().max_by_key(|(_, of)| of.count)?;
        Some(*largest.0)
    }

    /// Adds a session whose place is reserved.
    pub(super) fn add(&mut self, session: &Arc<Session>) {
        let of = self.clients.entry(session.client_number()).or_default();
        of.order.push_back(Arc::downgrade(session));
        if of.order.len() > 2 * of.count + LOOKED_AT {
            of.order.retain(|session| session.strong_count() > 0);
        }
    }

    /// Releases the place of a session of this client that has ended, or was never added.
    pub(super) fn remove(&mut self, client: u64) {
        if let Some(of) = self.clients.get_mut(&client) {
            of.count = of.count.saturating_sub(1);
            self.total = self.total.saturating_sub(1);
            if of.count == 0 {
                self.clients.remove(&client);
            }
        }
    }

    /// Returns a session of this client that can make room: one that was never used beyond its handshake, because a
    /// hostile client can create those at no cost, otherwise the one that has been idle longest. Examined sessions that
    /// stay move to the end of the queue.
    pub(super) fn least_needed(&mut self, client: u64) -> Option<Arc<Session>> {
        let of = self.clients.get_mut(&client)?;
        let mut idle = None;
        for _ in 0..LOOKED_AT.min(of.order.len()) {
            let oldest = of.order.pop_front()?;
            let Some(session) = oldest
                .upgrade()
                .filter(|session| !session.has_ended_locally())
            else {
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
