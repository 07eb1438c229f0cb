//! 2026-07-28 requests in flight over HTTP: each is an exchange with a connection of its own, which nothing else lists.

use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::server::connection::Connection;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The requests of one service that weren't answered at once. There are no more than the HTTP server in front reads at
/// the same time: the option `connections` bounds that of the standalone one.
#[derive(Default)]
pub(super) struct RequestsInFlight {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: HashMap<u64, Arc<Connection>, RandomState>,
    shut_down: bool,
}

/// A request among those in flight; no longer one when dropped.
pub(super) struct InFlight {
    requests: Arc<RequestsInFlight>,
    number: u64,
}

impl RequestsInFlight {
    /// Counts the request of this connection among those in flight. After a [shutdown](Self::shut_down) it is ended
    /// at once.
    pub(super) fn add(self: &Arc<Self>, connection: &Arc<Connection>) -> InFlight {
        let number = connection.number();
        let too_late = {
            let mut state = self.lock();
            state.connections.insert(number, connection.clone());
            state.shut_down
        };
        if too_late {
            connection.shut_down();
        }
        InFlight {
            requests: self.clone(),
            number,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().connections.is_empty()
    }

    /// Ends streams of change notifications with their result.
    pub(super) fn end_listening(&self) {
        for connection in self.all() {
            connection.end_listening();
        }
    }

    /// Ends all that is in flight with an error that says why, and from now on whatever isn't answered at once.
    pub(super) fn shut_down(&self) {
        self.lock().shut_down = true;
        for connection in self.all() {
            connection.shut_down();
        }
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
