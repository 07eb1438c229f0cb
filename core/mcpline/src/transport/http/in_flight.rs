//! 2026-07-28 requests in flight over HTTP. Each is an exchange with a connection of its own that nothing else tracks.

use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::server::connection::Connection;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The requests of one service that were not answered immediately, and notifications whose handlers are running. There
/// are at most as many requests as the HTTP server reads concurrently: the option `max_connections` limits those of the
/// standalone server. Handlers of notifications count among their client's calls in flight.
#[derive(Default)]
pub(super) struct RequestsInFlight {
    state: Mutex<State>,
    /// Number of messages that are being passed to their handlers, which may be running before these are in `state`: most
    /// requests are answered immediately and never are.
    starting: AtomicUsize,
}

#[derive(Default)]
struct State {
    connections: HashMap<u64, Arc<Connection>, RandomState>,
    phase: ShutdownPhase,
}

/// Phase of a shutdown.
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ShutdownPhase {
    #[default]
    Serving,
    /// Streams of change notifications end, calls go on.
    NoListening,
    Over,
}

/// A request in flight. No longer counted after drop.
pub(super) struct InFlight {
    requests: Arc<RequestsInFlight>,
    number: u64,
}

/// A message that is being passed to its handler.
#[must_use]
pub(super) struct StartGuard<'a>(&'a RequestsInFlight);

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Release);
    }
}

impl RequestsInFlight {
    /// Adds the request of this connection to those in flight. A shutdown in progress applies to it at once.
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
            ShutdownPhase::Over => connection.end_with_shutdown_error(),
        }
        InFlight {
            requests: self.clone(),
            number,
        }
    }

    /// Counts a message as in flight while it is passed to its handler.
    pub(super) fn start(&self) -> StartGuard<'_> {
        self.starting.fetch_add(1, Ordering::Relaxed);
        StartGuard(self)
    }

    pub(super) fn is_empty(&self) -> bool {
        // In this order: a request is added to the state before it is no longer starting.
        self.starting.load(Ordering::Acquire) == 0 && self.lock().connections.is_empty()
    }

    /// Ends streams of change notifications with their result; later ones end at once.
    pub(super) fn end_listening(&self) {
        self.advance(ShutdownPhase::NoListening);
        for connection in self.all() {
            connection.end_listening();
        }
    }

    /// Ends everything in flight with the shutdown error; later requests too unless they are answered immediately.
    pub(super) fn end_with_shutdown_error(&self) {
        self.advance(ShutdownPhase::Over);
        for connection in self.all() {
            connection.end_with_shutdown_error();
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
        // Outside the lock: this may be the last reference to the connection.
        drop(connection);
    }
}
