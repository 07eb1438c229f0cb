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
}

#[derive(Default)]
struct OfClient {
    /// How many can be found.
    count: usize,
    order: VecDeque<Weak<Session>>,
}

impl SessionsByClient {
    /// How many sessions this client has.
    pub(super) fn count(&self, client: u64) -> usize {
        self.clients.get(&client).map_or(0, |of| of.count)
    }

    /// The client that has most.
    pub(super) fn largest(&self) -> Option<u64> {
        let largest = self.clients.iter().max_by_key(|(_, of)| of.count)?;
        Some(*largest.0)
    }

    /// Notes a session that can be found from now on.
    pub(super) fn add(&mut self, session: &Arc<Session>) {
        let of = self.clients.entry(session.client_number()).or_default();
        of.count += 1;
        of.order.push_back(Arc::downgrade(session));
        if of.order.len() > 2 * of.count + LOOKED_AT {
            of.order.retain(|session| session.strong_count() > 0);
        }
    }

    /// Notes that a session of this client has ended.
    pub(super) fn remove(&mut self, client: u64) {
        if let Some(of) = self.clients.get_mut(&client) {
            of.count = of.count.saturating_sub(1);
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
            let Some(session) = oldest.upgrade() else {
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
