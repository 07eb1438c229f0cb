//! What happens in a session outside of any call, and the handlers of that: each is a call without a request, whose
//! context reaches the session.
//!
//! For each event one handler runs at a time in each session. What happens again meanwhile runs it once more when it has
//! ended, however often it happened: a client can't pile up calls by notifications.

use mcpline_protocol::RequestId;
use mcpline_protocol::session::Need;
use mcpline_protocol::wire::{Method, Raw};

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::asking::Book;
use super::call::{CallState, Seat, Target};
use super::connection::Connection;
use super::reply::{HandlerError, Reply};
use super::request_info::HttpInfo;

/// Something that a handshake-era client tells its server about the session. 2026-07-28 has no sessions, so none of this
/// happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEvent {
    /// `notifications/initialized`: the handshake is complete (every handshake revision, `basic/lifecycle`).
    Initialized,
    /// `notifications/roots/list_changed`: ask for the roots again (every handshake revision, `client/roots`).
    RootsListChanged,
}

impl SessionEvent {
    pub(super) const COUNT: usize = 2;

    /// The notification that tells of it.
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Initialized => Method::NotificationsInitialized,
            Self::RootsListChanged => Method::NotificationsRootsListChanged,
        }
    }
}

/// The handlers of a session's events that run.
#[derive(Default)]
pub(super) struct Events {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    running: [Option<Arc<CallState>>; SessionEvent::COUNT],
    again: [bool; SessionEvent::COUNT],
    is_closed: bool,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the call of a handler; `false` if one runs already, which is called again then, or the session is over.
    fn begin(&self, event: SessionEvent, call: &Arc<CallState>) -> bool {
        let mut slots = self.lock();
        let at = event as usize;
        if slots.is_closed {
            return false;
        }
        if slots.running[at].is_some() {
            slots.again[at] = true;
            return false;
        }
        slots.running[at] = Some(call.clone());
        true
    }

    /// A handler has ended: whether its event happened again meanwhile.
    fn end(&self, event: SessionEvent) -> bool {
        let mut slots = self.lock();
        let ended = slots.running[event as usize].take();
        let again = std::mem::take(&mut slots.again[event as usize]);
        drop(slots);
        drop(ended);
        again
    }

    /// Cancels what runs, and begins nothing more: the session is over.
    pub(super) fn close(&self) {
        let running = {
            let mut slots = self.lock();
            slots.is_closed = true;
            std::mem::take(&mut slots.running)
        };
        for call in running.into_iter().flatten() {
            call.cancel();
        }
    }
}

/// Calls the handler of an event, if there is one.
pub(super) fn happened(
    connection: &Arc<Connection>,
    event: SessionEvent,
    http: Option<&Arc<HttpInfo>>,
) {
    if connection
        .server()
        .registry()
        .event_handler(event)
        .is_none()
    {
        return;
    }
    let Some(peer) = connection.ready_peer() else {
        return;
    };
    if event == SessionEvent::RootsListChanged && !peer.can(Need::Roots) {
        tracing::debug!("a client tells of changed roots and has not declared any");
        return;
    }
    let seat = Seat {
        connection: connection.clone(),
        lane: connection.general().clone(),
        key: None,
        id: RequestId::string(""),
        peer,
        http: http.cloned(),
        meta: None,
        in_flight: None,
    };
    let call = CallState::new(
        Target::Event(event),
        event.method(),
        None,
        Raw::EMPTY_OBJECT,
        None,
        Book::default(),
        Arc::new(seat),
    );
    if connection.events().begin(event, &call) {
        call.start();
    }
}

/// The handler of an event has ended. Nobody waits for what it returned.
pub(super) fn ended(call: &CallState, event: SessionEvent, outcome: &Result<Reply, HandlerError>) {
    if let Err(error) = outcome
        && !call.is_cancelled()
    {
        let method = call.method.as_str();
        tracing::error!(method, ?error, "the handler of a session's event failed");
    }
    let seat = call.seat();
    if seat.connection.events().end(event) && !call.is_cancelled() {
        happened(&seat.connection, event, seat.http.as_ref());
    }
}
