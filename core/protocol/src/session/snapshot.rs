//! Saves and restores sessions: for a shared store, and for tests that restart between any two messages.
//!
//! The driver's handles (of calls and of requests to the client) are not part of a session's state; restoring needs new
//! ones. Times are on the driver's clock and only make sense while that continues.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::input_method::InputMethod;
use crate::methods::check_custom_request;
use crate::revision::Revision;
use crate::vocabulary::{LoggingLevel, SubscriptionFilter};
use crate::wire::{Raw, RequestId};

use super::handshake_queue::QueuedMessage;
use super::incoming_requests::{IncomingRequests, RequestKey};
use super::server::{Outgoing, ServerSession, SessionLimits, SessionScope};
use super::server_requests::{
    InputRequestTimeouts, ServerRequest, ServerRequestKey, ServerRequests,
};
use super::shared_state::SessionState;
use super::subscriptions::SubscriptionStream;
use super::url_elicitations::{SentUrlElicitation, SentUrlElicitations};

/// A complete saved [`ServerSession`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    scope: SessionScope,
    state: SessionState,
    requests: Vec<RequestSnapshot>,
    server_requests: Vec<ServerRequestSnapshot>,
    #[serde(default)]
    url_elicitations: Vec<SentUrlElicitation>,
    next_server_request: u64,
    held: Vec<QueuedMessageSnapshot>,
    last_heard: Duration,
    next_ping: Option<Duration>,
    ping: Option<u64>,
    pings_missed: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RequestSnapshot {
    id: RequestId,
    progress_token: Option<Raw>,
    log_level: Option<LoggingLevel>,
    revision: Option<Revision>,
    last_progress: Option<f64>,
    listen: Option<SubscriptionFilter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ServerRequestSnapshot {
    key: u64,
    method: String,
    /// Index into `requests`.
    related: Option<usize>,
    idle: Duration,
    total: Duration,
    idle_at: Duration,
    total_at: Duration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct QueuedMessageSnapshot {
    #[serde(default)]
    server_request: Option<u64>,
    related: Option<usize>,
    message: String,
}

impl<C, A> ServerSession<C, A> {
    /// Sets the next number for requests to the client: several processes that send requests to one client must not use
    /// a number twice.
    pub fn number_server_requests_from(&mut self, first: u64) {
        self.server_requests.first = first;
        self.server_requests.next = first;
    }

    /// Whether another process may have sent the request to the client that has this id: this process has not, and the id is
    /// one that a process may use.
    pub fn may_have_sent_elsewhere(&self, id: &RequestId) -> bool {
        let own = self.server_requests.first..self.server_requests.next;
        let number = id.as_integer().and_then(|id| u64::try_from(id).ok());
        number.is_some_and(|number| number > 0 && !own.contains(&number))
    }

    /// Saves the session.
    pub fn snapshot(&self) -> SessionSnapshot {
        let order: Vec<RequestKey> = self.requests.iter().map(|(key, _)| key).collect();
        let place = |key: Option<RequestKey>| {
            key.and_then(|key| order.iter().position(|candidate| *candidate == key))
        };
        SessionSnapshot {
            scope: self.scope,
            state: self.state(),
            requests: self
                .requests
                .iter()
                .map(|(key, entry)| RequestSnapshot {
                    id: entry.id.clone(),
                    progress_token: entry.progress_token.clone(),
                    log_level: entry.log_level,
                    revision: entry.revision,
                    last_progress: entry.last_progress,
                    listen: self
                        .subscription_streams
                        .iter()
                        .find(|listen| listen.key == key)
                        .map(|listen| listen.filter.clone()),
                })
                .collect(),
            server_requests: self
                .server_requests
                .open
                .iter()
                .map(|(key, server_request)| ServerRequestSnapshot {
                    key: key.0,
                    method: server_request.method.clone().into_owned(),
                    related: place(server_request.related),
                    idle: server_request.timeouts.idle,
                    total: server_request.timeouts.total,
                    idle_at: server_request.idle_deadline,
                    total_at: server_request.total_deadline,
                })
                .collect(),
            url_elicitations: self.url_elicitations.all(),
            next_server_request: self.server_requests.next,
            held: self
                .held
                .iter()
                .map(|held| QueuedMessageSnapshot {
                    server_request: held.server_request.map(|server_request| server_request.0),
                    related: place(held.outgoing.related),
                    message: String::from_utf8_lossy(&held.outgoing.message).into_owned(),
                })
                .collect(),
            last_heard: self.last_received,
            next_ping: self.next_ping,
            ping: self.ping.map(|key| key.0),
            pings_missed: self.pings_missed,
        }
    }

    /// Restores a session. `call` and `ask` supply the driver's handles; they get the keys that the restored session
    /// uses.
    pub fn restore(
        snapshot: &SessionSnapshot,
        limits: SessionLimits,
        mut call: impl FnMut(RequestKey) -> Option<C>,
        mut server_request: impl FnMut(ServerRequestKey) -> A,
    ) -> Self {
        let mut session = Self::new(snapshot.scope, limits);
        // A new session has queued nothing yet; the queued messages are restored below.
        let _ = session.adopt(&snapshot.state);
        session.requests = IncomingRequests::new();
        let mut order = Vec::with_capacity(snapshot.requests.len());
        for request in &snapshot.requests {
            let inserted = session.requests.insert(&request.id, request.revision);
            let key = inserted.map(|(key, entry)| {
                entry.progress_token = request.progress_token.clone();
                entry.log_level = request.log_level;
                entry.last_progress = request.last_progress;
                key
            });
            order.push(key);
            let Some(key) = key else { continue };
            if let Some(handle) = call(key) {
                session.attach(key, handle);
            }
            if let Some(filter) = &request.listen {
                session.subscription_streams.push(SubscriptionStream {
                    key,
                    id: request.id.clone(),
                    filter: filter.clone(),
                });
            }
        }
        let key_at =
            |index: Option<usize>| index.and_then(|index| order.get(index).copied().flatten());
        session.server_requests = ServerRequests::new();
        for saved in &snapshot.server_requests {
            // Uses static names, as for a new request.
            let ping = (saved.method == "ping").then_some("ping");
            let known = InputMethod::parse(&saved.method).map(InputMethod::as_str);
            let method = match known.or(ping) {
                Some(known) => Cow::Borrowed(known),
                None if check_custom_request(&saved.method).is_ok() => {
                    Cow::Owned(saved.method.clone())
                }
                None => continue,
            };
            let key = ServerRequestKey(saved.key);
            let request = ServerRequest {
                method,
                params: None,
                related: key_at(saved.related),
                timeouts: InputRequestTimeouts {
                    idle: saved.idle,
                    total: saved.total,
                },
            };
            session.server_requests.next = saved.key;
            session
                .server_requests
                .insert(request, server_request(key), Duration::ZERO);
            if let Some(open) = session.server_requests.open.get_mut(&key) {
                open.idle_deadline = saved.idle_at;
                open.total_deadline = saved.total_at;
            }
        }
        session.server_requests.next = snapshot.next_server_request;
        session.server_requests.first = session
            .server_requests
            .open
            .keys()
            .next()
            .map_or(snapshot.next_server_request, |oldest| oldest.0);
        session.url_elicitations = SentUrlElicitations::restore(&snapshot.url_elicitations);
        for held in &snapshot.held {
            session.held.restore(QueuedMessage {
                server_request: held.server_request.map(ServerRequestKey),
                outgoing: Outgoing {
                    related: key_at(held.related),
                    message: held.message.clone().into_bytes(),
                },
            });
        }
        session.last_received = snapshot.last_heard;
        session.next_ping = snapshot.next_ping;
        session.ping = snapshot.ping.map(ServerRequestKey);
        session.pings_missed = snapshot.pings_missed;
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> ServerSession<(), ()> {
        ServerSession::new(SessionScope::Session, SessionLimits::default())
    }

    #[test]
    fn ids_of_other_processes_are_outside_of_the_own_range() {
        let mut session = session();
        session.number_server_requests_from(65_537);
        session.server_requests.next = 65_540;
        let may_be = |id: serde_json::Value| {
            let raw = Raw::parse(id.to_string().into_bytes()).expect("JSON");
            session.may_have_sent_elsewhere(&RequestId::from_raw(&raw).expect("an id"))
        };
        for own_or_invalid in [
            65_537.into(),
            65_539.into(),
            0.into(),
            (-1).into(),
            "1".into(),
        ] {
            assert!(!may_be(own_or_invalid));
        }
        for of_others in [1, 65_536, 65_540] {
            assert!(may_be(of_others.into()));
        }
    }
}
