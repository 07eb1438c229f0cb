//! 2026-07-28 requests in flight over HTTP: each is an exchange with a connection of its own, which nothing else lists.

use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::server::connection::Connection;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The requests of one service that weren't answered at once, and notifications whose handlers run. There are no more requests
/// than the HTTP server in front reads at the same time: the option `connections` bounds that of the standalone one. Handlers of
/// notifications count among their client's calls in flight.
#[derive(Default)]
pub(super) struct RequestsInFlight {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: HashMap<u64, Arc<Connection>, RandomState>,
    phase: ShutdownPhase,
}

/// How far a shutdown has come.
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ShutdownPhase {
    #[default]
    Serving,
    /// Streams of change notifications end, calls go on.
    NoListening,
    Over,
}

/// A request among those in flight; no longer one when dropped.
pub(super) struct InFlight {
    requests: Arc<RequestsInFlight>,
    number: u64,
}

impl RequestsInFlight {
    /// Counts the request of this connection among those in flight. What a shutdown ends is ended at once after it.
    pub(super) fn add(self: &Arc<Self>, connection: &Arc<Connection>) -> InFlight {
        let number = connection.number();
        let phase = {
            let mut state = self.lock();
            state.connections.insert(number, connection.clone());
            state.phase
        };
        match phase {
            ShutdownPhase::Serving => {}
            ShutdownPhase::NoListening => connection.end_listening(),
            ShutdownPhase::Over => connection.shut_down(),
        }
        InFlight {
            requests: self.clone(),
            number,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().connections.is_empty()
    }

    /// Ends streams of change notifications with their result, and from now on those of clients that ask again.
    pub(super) fn end_listening(&self) {
        self.advance(ShutdownPhase::NoListening);
        for connection in self.all() {
            connection.end_listening();
        }
    }

    /// Ends all that is in flight with an error that says why, and from now on whatever isn't answered at once.
    pub(super) fn shut_down(&self) {
        self.advance(ShutdownPhase::Over);
        for connection in self.all() {
            connection.shut_down();
        }
    }

    fn advance(&self, phase: ShutdownPhase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
    }

    fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().connections.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let connection = self.requests.lock().connections.remove(&self.number);
        // Outside of the lock: it may be the last that holds the connection.
        drop(connection);
    }
}
