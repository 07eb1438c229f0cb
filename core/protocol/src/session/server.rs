//! A server's session with one client, of either era, as a state machine.
//!
//! The same state machine serves a stdio connection that carries both eras ([`SessionScope::Connection`]), a
//! handshake-era HTTP session ([`SessionScope::Session`]) and a single 2026-07-28 HTTP exchange
//! ([`SessionScope::Exchange`]), so that no rule is written for one transport only.

use std::sync::Arc;
use std::time::Duration;

use crate::error::RpcError;
use crate::revision::Revision;
use crate::vocabulary::LoggingLevel;
use crate::wire::{Method, Notification, Params, Raw, RequestId};

use super::handshake_queue::HandshakeQueue;
use super::incoming_requests::{IncomingRequests, RequestKey};
use super::notification_limiter::{LogMessage, NotificationLimiter, Rate};
use super::peer_profiles::ClientProfile;
use super::server_requests::{InputRequestError, ServerRequestKey, ServerRequests};
use super::shared_state::{RecentChange, SessionState};
use super::subscriptions::{SubscribedUris, SubscriptionStream};
use super::url_elicitations::SentUrlElicitations;
use super::writing::cancellation;

/// The scope of request ids and the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SessionScope {
    /// A stdio connection: both eras, distinguished by message.
    Connection,
    /// A handshake-era HTTP session.
    Session,
    /// One 2026-07-28 HTTP request; ids of other exchanges don't matter.
    Exchange,
    /// One HTTP request of a handshake revision, served without a session: nothing is kept between requests, so there are
    /// no subscriptions and no notifications of changes.
    Sessionless,
}

/// Limits of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of requests in flight. Default: 1,024. More are rejected as busy; responses, cancellations and
    /// pings always pass.
    pub max_requests_in_flight: usize,
    /// Maximum number of open input requests, so that a handler cannot flood a user. Default: 64.
    pub max_open_input_requests: usize,
    /// Maximum size of `clientInfo` and `capabilities` together, in bytes of JSON. Default: 64 KiB. A session keeps
    /// both; real ones have a few hundred bytes.
    pub max_client_info_bytes: usize,
    /// Maximum number of URIs of `resources/subscribe`, and of one `subscriptions/listen`. Default: 1,024.
    pub max_subscriptions: usize,
    /// Maximum size of these URIs together, in bytes. Default: 256 KiB, room for `max_subscriptions` URIs of 256 bytes.
    pub max_subscription_bytes: usize,
    /// Maximum rate of progress notifications of one request. Default: 20 per second, burst 64.
    pub progress_rate: Rate,
    /// Maximum rate of log messages of one session (handshake revisions) or one request (2026-07-28). Default: 50 per
    /// second, burst 128.
    pub log_rate: Rate,
    /// Least level of the log messages that a client of a handshake revision receives until it calls `logging/setLevel`,
    /// which replaces it. Default: `None`, all levels. On 2026-07-28 each request names its level.
    pub client_log_level: Option<LoggingLevel>,
    /// Idle time after which a client of a handshake revision is pinged. Default: `None`, never.
    pub ping_interval: Option<Duration>,
    /// Number of unanswered pings in a row after which the session is closed. Default: 3.
    pub max_missed_pings: u32,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_requests_in_flight: 1024,
            max_open_input_requests: 64,
            max_client_info_bytes: 64 * 1024,
            max_subscriptions: 1024,
            max_subscription_bytes: 256 * 1024,
            progress_rate: Rate {
                burst: 64,
                per_second: 20,
            },
            log_rate: Rate {
                burst: 128,
                per_second: 50,
            },
            client_log_level: None,
            ping_interval: None,
            max_missed_pings: 3,
        }
    }
}

/// The memory of a subscription besides its URI, in bytes.
const SUBSCRIPTION_OVERHEAD_BYTES: usize = 64;

/// A message to send, and the request whose stream carries it (`None`: the session's own stream).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The request that it relates to.
    pub related: Option<RequestKey>,
    /// One JSON-RPC message.
    pub message: Vec<u8>,
}

/// A request that passed every check and is now in flight.
#[derive(Debug, Clone)]
pub struct AdmittedRequest {
    /// Identifies it until [`ServerSession::finish`].
    pub key: RequestKey,
    /// Its JSON-RPC id.
    pub id: RequestId,
    /// The method, which the server's features always answer.
    pub method: Method,
    /// Its parameters.
    pub params: Option<Params>,
    /// The client that sent it.
    pub peer: Arc<ClientProfile>,
}

/// A `subscriptions/listen` stream that was opened.
#[derive(Debug, Clone)]
pub struct OpenedSubscription {
    /// Identifies the stream until it is cancelled or finished.
    pub key: RequestKey,
    /// The acknowledgment: the stream's first message.
    pub acknowledgment: Vec<u8>,
}

/// The meaning of a received message. `C` and `A` are the driver's handles of calls and of requests to the client.
#[derive(Debug)]
pub enum ReceiveOutcome<C, A> {
    /// Dispatch this request; end it with [`ServerSession::finish`].
    Request(AdmittedRequest),
    /// Respond to this request with the result or the error; it is not in flight.
    Reply {
        /// The id for the response.
        id: RequestId,
        /// A result object, or the error.
        outcome: Result<Vec<u8>, RpcError>,
    },
    /// Send the acknowledgment and keep the stream open.
    Subscription(OpenedSubscription),
    /// The response to the handshake: send it, and take note of the client.
    Initialized {
        /// The id of the `initialize` request.
        id: RequestId,
        /// The `initialize` result.
        result: Vec<u8>,
        /// The client.
        peer: Arc<ClientProfile>,
    },
    /// The handshake is complete; send the messages that were queued until now.
    Ready(Vec<Outgoing>),
    /// A request was cancelled: stop its handler and send no response.
    Cancelled {
        /// The request.
        key: RequestKey,
        /// The driver's handle.
        handle: Option<C>,
        /// Its open requests to the client, each with the cancellation to send if the request was sent.
        server_requests: Vec<(A, Option<Outgoing>)>,
        /// The client's reason, if it gave one.
        reason: Option<String>,
    },
    /// The client responded to a request of the server.
    Answer {
        /// The driver's handle.
        handle: A,
        /// The client's result, or its error.
        outcome: Result<Raw, InputRequestError>,
    },
    /// The client's roots changed.
    RootsChanged,
    /// A custom notification that has a handler.
    Notification {
        /// The notification.
        notification: Notification,
        /// The client that sent it.
        peer: Arc<ClientProfile>,
    },
    /// Nothing to do; the text says why, for a log.
    Ignored(&'static str),
}

/// A request that ended.
#[derive(Debug)]
pub struct FinishedRequest<A> {
    /// The id for the response.
    pub id: RequestId,
    /// Messages to send before the response, which the rate limits held back.
    pub before: Vec<Vec<u8>>,
    /// Its open requests to the client, with the cancellation to send for each.
    pub abandoned: Vec<(A, Outgoing)>,
}

/// What a timeout requires.
#[derive(Debug)]
pub enum TimeoutEvent<A> {
    /// A request to the client timed out: fail it, and send the cancellation.
    ServerRequest {
        /// The driver's handle.
        handle: A,
        /// The error for the handle.
        error: InputRequestError,
        /// The cancellation to send.
        cancel: Outgoing,
    },
    /// Send this message, which a rate limit held back.
    Send(Outgoing),
    /// The client no longer answers pings: close the session.
    ClientUnresponsive,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// No handshake yet.
    Fresh,
    /// `initialize` was answered; `notifications/initialized` has not arrived.
    Initializing(Arc<ClientProfile>),
    /// The handshake is complete.
    Ready(Arc<ClientProfile>),
}

/// The server's side of one session. See the [module](super) for how to drive it.
///
/// `receive` takes input, `poll_deadline` and `handle_timeout` deal with time, and the remaining methods are commands
/// of handlers and the server.
#[derive(Debug)]
pub struct ServerSession<C, A> {
    pub(super) scope: SessionScope,
    pub(super) limits: SessionLimits,
    pub(super) phase: Phase,
    pub(super) requests: IncomingRequests<C>,
    pub(super) server_requests: ServerRequests<A>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) log: NotificationLimiter<LogMessage<Outgoing>>,
    pub(super) subscribed: SubscribedUris,
    /// How many changes led to the state that processes share.
    pub(super) state_version: u64,
    /// The state that other processes have, while changes of this process are not saved.
    pub(super) shared_base: Option<Box<SessionState>>,
    /// When the latest change that processes share was received: seconds since 1970.
    pub(super) change_time: Option<u64>,
    /// The latest changes that processes share.
    pub(super) changes: Vec<RecentChange>,
    /// Whether a process has received `notifications/initialized`.
    pub(super) is_initialized: bool,
    pub(super) subscription_streams: Vec<SubscriptionStream>,
    pub(super) url_elicitations: SentUrlElicitations,
    pub(super) held: HandshakeQueue,
    pub(super) last_received: Duration,
    pub(super) ping: Option<ServerRequestKey>,
    pub(super) pings_missed: u32,
    pub(super) next_ping: Option<Duration>,
    /// The error that new requests get because the server shuts down, or because the session has ended.
    pub(super) refusal: Option<Box<RpcError>>,
    /// The revision of messages as the transport declares it.
    pub(super) declared_revision: Option<Revision>,
}

impl<C, A> ServerSession<C, A> {
    /// A session that has not received anything yet.
    pub fn new(scope: SessionScope, limits: SessionLimits) -> Self {
        Self {
            scope,
            limits,
            phase: Phase::Fresh,
            requests: IncomingRequests::new(),
            server_requests: ServerRequests::new(),
            log_level: None,
            log: NotificationLimiter::default(),
            subscribed: SubscribedUris::new(),
            state_version: 0,
            shared_base: None,
            change_time: None,
            changes: Vec::new(),
            is_initialized: false,
            subscription_streams: Vec::new(),
            url_elicitations: SentUrlElicitations::default(),
            held: HandshakeQueue::default(),
            last_received: Duration::ZERO,
            ping: None,
            pings_missed: 0,
            next_ping: None,
            refusal: None,
            declared_revision: None,
        }
    }

    /// Sets the revision of messages that don't name one: a notification in an exchange (2026-07-28,
    /// `basic/transports/streamable-http`, `MCP-Protocol-Version`).
    pub fn declare_revision(&mut self, revision: Revision) {
        self.declared_revision = Some(revision);
    }

    /// Serves the messages of a client whose handshake was not kept ([`SessionScope::Sessionless`]). All that is known of
    /// it is its revision; it cannot be sent requests.
    pub fn assume_client(&mut self, revision: Revision) {
        self.is_initialized = true;
        self.phase = Phase::Ready(Arc::new(ClientProfile {
            revision,
            info: None,
            capabilities: Raw::EMPTY_OBJECT,
        }));
    }

    /// The client, once the handshake has identified it.
    pub fn peer(&self) -> Option<&Arc<ClientProfile>> {
        match &self.phase {
            Phase::Fresh => None,
            Phase::Initializing(peer) | Phase::Ready(peer) => Some(peer),
        }
    }

    /// Whether the handshake is complete.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// The approximate size in bytes of the client information that the session keeps besides requests in flight:
    /// identity, capabilities, subscriptions, and recent changes of these.
    pub fn retained_bytes(&self) -> usize {
        let peer = self.peer().map_or(0, |peer| {
            peer.capabilities.as_bytes().len()
                + peer.info.as_ref().map_or(0, |info| info.as_bytes().len())
        });
        let subscribed = self
            .subscribed
            .iter()
            .map(|uri| SUBSCRIPTION_OVERHEAD_BYTES + uri.len());
        let changes = self.changes.iter().map(RecentChange::bytes);
        peer + subscribed.sum::<usize>() + changes.sum::<usize>()
    }

    /// Reverts a handshake that can't be answered after all.
    pub fn undo_handshake(&mut self) {
        self.phase = Phase::Fresh;
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Attaches the driver's handle to a request. The session returns it when the request is cancelled.
    pub fn attach(&mut self, key: RequestKey, handle: C) {
        if let Some(entry) = self.requests.get_mut(key) {
            entry.handle = Some(handle);
        }
    }

    /// The driver's handle of a request in flight; `None` if it was cancelled or has ended.
    pub fn request_handle_mut(&mut self, key: RequestKey) -> Option<&mut C> {
        self.requests.get_mut(key)?.handle.as_mut()
    }

    /// The driver's handle of a request in flight.
    pub fn request_handle(&mut self, key: RequestKey) -> Option<&C> {
        self.requests.get_mut(key)?.handle.as_ref()
    }

    /// The driver's handles of all requests in flight.
    pub fn request_handles(&self) -> impl Iterator<Item = (RequestKey, &C)> {
        self.requests
            .iter()
            .filter_map(|(key, entry)| Some((key, entry.handle.as_ref()?)))
    }

    /// Ends a request. `None` if it was cancelled in the meantime: then no response may be sent.
    pub fn finish(&mut self, key: RequestKey) -> Option<FinishedRequest<A>> {
        let (id, progress, log) = self.requests.remove(key, |entry| {
            let log = entry.log.as_mut().and_then(|log| log.flush());
            (entry.id.clone(), entry.progress.flush(), log)
        })?;
        if !self.subscription_streams.is_empty() {
            self.subscription_streams.retain(|listen| listen.key != key);
        }
        let of_session = self
            .log
            .flush_if(|held| held.message.related == Some(key))
            .map(|held| held.message.message);
        let log = of_session.or_else(|| log.map(|held| held.message));
        let mut before = Vec::new();
        before.extend(progress);
        before.extend(log);
        let abandoned = if self.server_requests.open.is_empty() {
            Vec::new()
        } else {
            self.server_requests
                .take_related(key)
                .into_iter()
                .map(|(server_request, table)| {
                    (
                        table.handle,
                        cancellation(server_request, Some(key), "no longer needed"),
                    )
                })
                .collect()
        };
        Some(FinishedRequest {
            id,
            before,
            abandoned,
        })
    }

    /// Whether a request is in flight.
    pub fn is_in_flight(&mut self, key: RequestKey) -> bool {
        self.requests.get_mut(key).is_some()
    }

    /// Cancels a request on the server's initiative: the client disconnected, or the server shuts down.
    ///
    /// Returns the driver's handles of the call and of its open requests to the client, each with the cancellation to
    /// send unless the request is still queued.
    #[allow(clippy::type_complexity, reason = "each part is given away at once")]
    pub fn cancel(&mut self, key: RequestKey) -> Option<(Option<C>, Vec<(A, Option<Outgoing>)>)> {
        let handle = self.requests.remove(key, |entry| entry.handle.take())?;
        self.subscription_streams.retain(|listen| listen.key != key);
        let was_sent = self.is_ready();
        let server_requests =
            self.server_requests
                .take_related(key)
                .into_iter()
                .map(|(server_request, table)| {
                    let cancel =
                        || cancellation(server_request, Some(key), "the request was cancelled");
                    (table.handle, was_sent.then(cancel))
                });
        Some((handle, server_requests.collect()))
    }

    /// Rejects new requests with this error, or with an earlier one. Those in flight continue.
    pub fn refuse_requests(&mut self, error: RpcError) {
        self.refusal.get_or_insert_with(|| Box::new(error));
    }

    /// Ends every request because the server shuts down or the session ends. The driver sends this error for each one
    /// with an [attached](Self::attach) handle. Later requests are rejected with it, too.
    pub fn end_with_error(&mut self, error: &RpcError) -> Vec<(C, FinishedRequest<A>)> {
        self.refuse_requests(error.clone());
        let keys = self.requests.keys().into_iter();
        keys.filter_map(|key| {
            let handle = self.requests.get_mut(key)?.handle.take()?;
            Some((handle, self.finish(key)?))
        })
        .collect()
    }

    /// Ends the session because the connection is gone. Returns the handles of every call and request to the client,
    /// for the driver to fail.
    pub fn close(&mut self) -> (Vec<C>, Vec<A>) {
        self.subscription_streams.clear();
        self.held.clear();
        let calls = self
            .requests
            .keys()
            .into_iter()
            .filter_map(|key| self.requests.remove(key, |entry| entry.handle.take())?)
            .collect();
        (calls, self.drop_server_requests())
    }

    /// Ends every open request to the client and returns the driver's handles.
    pub fn drop_server_requests(&mut self) -> Vec<A> {
        let server_requests = std::mem::take(&mut self.server_requests.open);
        server_requests
            .into_values()
            .map(|server_request| server_request.handle)
            .collect()
    }
}
