//! One client's session with a server, of either era, as a state machine.
//!
//! The same machine serves a pipe that carries both eras ([`Scope::Connection`]), a handshake-era HTTP
//! session ([`Scope::Session`]) and a single 2026-07-28 HTTP exchange ([`Scope::Exchange`]), so that no
//! rule is written for one transport only.

use std::sync::Arc;
use std::time::Duration;

use crate::error::RpcError;
use crate::revision::{Batches, Revision};
use crate::vocabulary::{LoggingLevel, SubscriptionFilter};
use crate::wire::{
    Message, Method, Notification, Params, Raw, Request, RequestId, Response, encode, json_string,
};

use super::asks::{AskError, AskKey, AskRequest, AskTable};
use super::gate::{self, Destination};
use super::meta::RequestMeta;
use super::peer::{Need, Peer, ServerProfile};
use super::requests::{Entry, RequestKey, RequestTable};
use super::subscriptions::{Change, Listen, SubscribedUris, honoured};
use super::thin::{Rate, Thinner};

/// How far request ids and the handshake reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Scope {
    /// A pipe of its own: both eras, told apart message by message.
    Connection,
    /// A handshake-era HTTP session.
    Session,
    /// One 2026-07-28 HTTP request; ids of other exchanges don't matter.
    Exchange,
}

/// Bounds of one session, each with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Requests in flight. Past it a request is answered with a busy error; responses, cancellations and
    /// pings always pass, or a handler would wait for an answer that nobody reads.
    pub in_flight: usize,
    /// Questions to the client that are open at once, so that a handler's loop can't flood a user.
    pub open_asks: usize,
    /// `resources/subscribe` URIs, because each is memory that a client makes us keep.
    pub subscriptions: usize,
    /// Progress notifications of one request.
    pub progress_rate: Rate,
    /// Log messages of one session (handshake era) or one request (2026-07-28).
    pub log_rate: Rate,
    /// After how much silence a handshake-era client is pinged; `None` for never.
    pub ping_interval: Option<Duration>,
    /// How many pings in a row may go unanswered before the session counts as dead.
    pub ping_misses: u32,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            in_flight: 1024,
            open_asks: 64,
            subscriptions: 1024,
            progress_rate: Rate {
                burst: 64,
                per_second: 20,
            },
            log_rate: Rate {
                burst: 128,
                per_second: 50,
            },
            ping_interval: None,
            ping_misses: 3,
        }
    }
}

/// A message to send, and the request whose stream carries it (`None`: the session's own stream).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The request that it relates to.
    pub related: Option<RequestKey>,
    /// One JSON-RPC message.
    pub message: Vec<u8>,
}

/// A request that passed every gate and is now in flight.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Names it until [`ServerSession::finish`].
    pub key: RequestKey,
    /// Its JSON-RPC id.
    pub id: RequestId,
    /// What is asked for; always a method that the server's features answer.
    pub method: Method,
    /// Its parameters.
    pub params: Option<Params>,
    /// Who asks.
    pub peer: Arc<Peer>,
    /// The token under which it wants progress, if it wants any.
    pub progress_token: Option<Raw>,
}

/// A `subscriptions/listen` stream that was opened.
#[derive(Debug, Clone)]
pub struct Listening {
    /// Names the stream until it is cancelled or finished.
    pub key: RequestKey,
    /// The acknowledgment: the stream's first message.
    pub acknowledgment: Vec<u8>,
}

/// What came of a received message. `C` and `A` are the driver's handles to calls and questions.
#[derive(Debug)]
pub enum Received<C, A> {
    /// Dispatch this request; end it by [`ServerSession::finish`].
    Request(Admitted),
    /// Answer this request with the result or the error; it is not in flight.
    Reply {
        /// The id to answer under.
        id: RequestId,
        /// A result object, or why there is none.
        outcome: Result<Vec<u8>, RpcError>,
    },
    /// Send the acknowledgment and keep the stream open.
    Listen(Listening),
    /// The handshake was answered: reply, and note who the client is.
    Initialized {
        /// The id of the `initialize` request.
        id: RequestId,
        /// The `initialize` result.
        result: Vec<u8>,
        /// The client.
        peer: Arc<Peer>,
    },
    /// The handshake is complete; send what was held back until now.
    Ready(Vec<Outgoing>),
    /// A request was cancelled: stop its handler and send no response.
    Cancelled {
        /// Which one.
        key: RequestKey,
        /// The driver's handle to it.
        handle: Option<C>,
        /// Its open questions.
        asks: Vec<A>,
        /// Why, if the client said.
        reason: Option<String>,
    },
    /// A question was answered.
    Answer {
        /// The driver's handle to it.
        handle: A,
        /// The client's result, or its error.
        outcome: Result<Raw, AskError>,
    },
    /// The client's roots changed.
    RootsChanged,
    /// A notification that the session has no use for.
    Notification(Notification),
    /// Nothing to do; the text says why, for a log.
    Ignored(&'static str),
}

/// A request that ended.
#[derive(Debug)]
pub struct Finished<A> {
    /// The id to answer under.
    pub id: RequestId,
    /// Whether the response follows 2026-07-28.
    pub modern: bool,
    /// Messages that go out before the response: what thinning held back.
    pub before: Vec<Vec<u8>>,
    /// Questions that nobody awaits any more, with the cancellation to send for each.
    pub abandoned: Vec<(A, Outgoing)>,
}

/// What fell due.
#[derive(Debug)]
pub enum TimedOut<A> {
    /// A question's time is over: fail it, and tell the client.
    Ask {
        /// The driver's handle to it.
        handle: A,
        /// Why.
        error: AskError,
        /// The cancellation to send.
        cancel: Outgoing,
    },
    /// A message whose time has come.
    Send(Outgoing),
    /// The client no longer answers pings: close the session.
    Dead,
}

/// Where a change must be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The messages, each with its stream.
    pub messages: Vec<Outgoing>,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// No handshake yet.
    Fresh,
    /// `initialize` was answered, `notifications/initialized` has not come.
    Initializing(Arc<Peer>),
    /// The handshake is complete.
    Ready(Arc<Peer>),
}

/// The server's side of one session. See the [module](self) for how to drive it.
///
/// Methods come in families: `receive` takes input, `poll_deadline`/`handle_timeout` deal with time,
/// plain verbs are what handlers and the server want.
#[derive(Debug)]
pub struct ServerSession<C, A> {
    pub(super) scope: Scope,
    pub(super) limits: SessionLimits,
    pub(super) phase: Phase,
    pub(super) requests: RequestTable<C>,
    pub(super) asks: AskTable<A>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) log: Thinner,
    pub(super) subscribed: SubscribedUris,
    pub(super) listens: Vec<Listen>,
    /// What must not be sent before `notifications/initialized`.
    pub(super) held: Vec<Outgoing>,
    pub(super) last_heard: Duration,
    pub(super) ping: Option<AskKey>,
    pub(super) pings_missed: u32,
    pub(super) next_ping: Option<Duration>,
}

impl<C, A> ServerSession<C, A> {
    /// A session that has heard nothing yet.
    pub fn new(scope: Scope, limits: SessionLimits) -> Self {
        Self {
            scope,
            limits,
            phase: Phase::Fresh,
            requests: RequestTable::new(),
            asks: AskTable::new(),
            log_level: None,
            log: Thinner::default(),
            subscribed: SubscribedUris::new(),
            listens: Vec::new(),
            held: Vec::new(),
            last_heard: Duration::ZERO,
            ping: None,
            pings_missed: 0,
            next_ping: None,
        }
    }

    /// The client, once the handshake told who it is.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        match &self.phase {
            Phase::Fresh => None,
            Phase::Initializing(peer) | Phase::Ready(peer) => Some(peer),
        }
    }

    /// Whether the handshake is complete.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Whether a batch may be received now (JSON-RPC batching: received up to 2025-03-26, removed in
    /// 2025-06-18; unknown before the handshake, and `initialize` never comes in one).
    ///
    /// # Errors
    ///
    /// -32600 with the reason, to be answered without an id.
    pub fn admit_batch(&self) -> Result<(), RpcError> {
        let Some(peer) = self.peer() else {
            return Err(RpcError::invalid_request(
                "a batch can't be received before the handshake",
            ));
        };
        if peer.revision.features().batches != Batches::Removed {
            return Ok(());
        }
        Err(RpcError::invalid_request(format!(
            "revision {} has no JSON-RPC batches: send each message by itself",
            peer.revision.as_str()
        )))
    }

    /// Takes in one message.
    ///
    /// `in_batch` says that it came inside a batch. `now` is the time on the driver's clock.
    pub fn receive(
        &mut self,
        message: Message,
        in_batch: bool,
        profile: &ServerProfile,
        now: Duration,
    ) -> Received<C, A> {
        self.last_heard = now;
        match message {
            Message::Request(request) => self.receive_request(request, in_batch, profile),
            Message::Notification(notification) => self.receive_notification(notification, now),
            Message::Response(response) => self.receive_response(response),
        }
    }

    /// Hands the driver's handle of a call to the session, which gives it back when the call is cancelled.
    pub fn attach(&mut self, key: RequestKey, handle: C) {
        if let Some(entry) = self.requests.get_mut(key) {
            entry.handle = Some(handle);
        }
    }

    /// The driver's handle to a request in flight.
    pub fn handle(&mut self, key: RequestKey) -> Option<&C> {
        self.requests.get_mut(key)?.handle.as_ref()
    }

    /// The driver's handles to all requests in flight.
    pub fn handles(&self) -> impl Iterator<Item = (RequestKey, &C)> {
        self.requests
            .iter()
            .filter_map(|(key, entry)| Some((key, entry.handle.as_ref()?)))
    }

    /// Ends a request. `None` if it was cancelled meanwhile: then no response may be sent.
    pub fn finish(&mut self, key: RequestKey) -> Option<Finished<A>> {
        let mut entry = self.requests.remove(key)?;
        if !self.listens.is_empty() {
            self.listens.retain(|listen| listen.key != key);
        }
        let before = entry.progress.flush().into_iter().collect();
        let abandoned = if self.asks.open.is_empty() {
            Vec::new()
        } else {
            self.asks
                .take_related(key)
                .into_iter()
                .map(|(ask, table)| {
                    (
                        table.handle,
                        cancellation(ask, Some(key), "no longer needed"),
                    )
                })
                .collect()
        };
        Some(Finished {
            id: entry.id,
            modern: entry.modern,
            before,
            abandoned,
        })
    }

    /// Cancels a request from our side: the client disconnected, or the server shuts down.
    ///
    /// Returns the driver's handles to the call and to its open questions.
    pub fn cancel(&mut self, key: RequestKey) -> Option<(Option<C>, Vec<A>)> {
        let entry = self.requests.remove(key)?;
        self.listens.retain(|listen| listen.key != key);
        let asks = self.asks.take_related(key);
        Some((
            entry.handle,
            asks.into_iter().map(|(_, ask)| ask.handle).collect(),
        ))
    }

    /// Reports progress of a request.
    ///
    /// Sent only if the request carries a token, and only if the value increases (every revision,
    /// `basic/utilities/progress`). A flood is thinned to [`SessionLimits::progress_rate`].
    pub fn progress(
        &mut self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Duration,
    ) -> Option<Outgoing> {
        let rate = self.limits.progress_rate;
        let with_message = self.revision_of(key)?.features().progress_message;
        let entry = self.requests.get_mut(key)?;
        let token = entry.progress_token.as_ref()?;
        if !progress.is_finite() || entry.last_progress.is_some_and(|last| progress <= last) {
            return None;
        }
        entry.last_progress = Some(progress);
        let mut params = Vec::with_capacity(96);
        params.extend_from_slice(b"{\"progressToken\":");
        params.extend_from_slice(token.as_bytes());
        params.extend_from_slice(b",\"progress\":");
        write_number(&mut params, progress);
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params.extend_from_slice(b",\"total\":");
            write_number(&mut params, total);
        }
        if let Some(message) = message.filter(|_| with_message) {
            params.extend_from_slice(b",\"message\":");
            json_string(&mut params, message);
        }
        params.push(b'}');
        let message = notification("notifications/progress", &params);
        let message = entry.progress.offer(message, rate, now)?;
        Some(Outgoing {
            related: Some(key),
            message,
        })
    }

    /// Sends a log message, in the course of the request `key` or of the session.
    ///
    /// Handshake era: at or above the level of `logging/setLevel`, all levels before one was set.
    /// 2026-07-28: only for a request that named a level, at or above it. A flood is thinned to
    /// [`SessionLimits::log_rate`].
    pub fn log(
        &mut self,
        key: Option<RequestKey>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &Raw,
        now: Duration,
    ) -> Option<Outgoing> {
        let modern = match key {
            Some(key) => self.requests.get_mut(key)?.modern,
            None => false,
        };
        let threshold = match key {
            Some(key) if modern => Some(self.requests.get_mut(key)?.log_level?),
            _ => {
                self.peer()?;
                self.log_level
            }
        };
        if threshold.is_some_and(|threshold| level < threshold) {
            return None;
        }
        let mut params = Vec::with_capacity(64 + data.as_bytes().len());
        params.extend_from_slice(b"{\"level\":\"");
        params.extend_from_slice(level.as_str().as_bytes());
        params.push(b'"');
        if let Some(logger) = logger {
            params.extend_from_slice(b",\"logger\":");
            json_string(&mut params, logger);
        }
        params.extend_from_slice(b",\"data\":");
        params.extend_from_slice(data.as_bytes());
        params.push(b'}');
        let message = notification("notifications/message", &params);
        let message = self.log.offer(message, self.limits.log_rate, now)?;
        Some(Outgoing {
            related: key,
            message,
        })
    }

    /// Puts a question to a handshake-era client.
    ///
    /// Returns its key and what to send now; nothing to send means it is held until the handshake is
    /// complete. On 2026-07-28 questions travel in `input_required` instead.
    ///
    /// # Errors
    ///
    /// [`AskError::Unsupported`] if the client can't be asked this, [`AskError::Limit`] if too many
    /// questions are open, [`AskError::Cancelled`] if the request it relates to has ended. The handle is
    /// given back.
    #[allow(
        clippy::result_large_err,
        reason = "the handle must come back to its owner"
    )]
    pub fn ask(
        &mut self,
        ask: AskRequest,
        handle: A,
        now: Duration,
    ) -> Result<(AskKey, Option<Outgoing>), (AskError, A)> {
        let Some(peer) = self.peer() else {
            return Err((AskError::Closed, handle));
        };
        let need = Need::of(ask.method, ask.params.as_ref());
        if !peer.can(need) {
            return Err((AskError::Unsupported(need), handle));
        }
        if self.asks.open.len() >= self.limits.open_asks {
            return Err((AskError::Limit("too many questions are open"), handle));
        }
        if ask
            .related
            .is_some_and(|key| self.requests.get_mut(key).is_none())
        {
            return Err((AskError::Cancelled, handle));
        }
        let related = ask.related;
        let method = ask.method;
        let params = ask.params.clone();
        let key = self.asks.insert(ask, handle, now);
        let mut message = Vec::with_capacity(128);
        encode::request(
            &mut message,
            &RequestId::number(key.0 as i64),
            method,
            params.as_ref().map(Raw::as_bytes),
        );
        let outgoing = Outgoing { related, message };
        if self.is_ready() {
            return Ok((key, Some(outgoing)));
        }
        self.held.push(outgoing);
        Ok((key, None))
    }

    /// Withdraws a question; returns the cancellation to send, if it was still open.
    pub fn withdraw(&mut self, key: AskKey, reason: &str) -> Option<(A, Outgoing)> {
        let ask = self.asks.open.remove(&key)?;
        let outgoing = cancellation(key, ask.related, reason);
        Some((ask.handle, outgoing))
    }

    /// Tells subscribers of a change.
    pub fn changed(&mut self, change: &Change) -> Vec<Outgoing> {
        let mut messages = Vec::new();
        if let Some(peer) = self.peer() {
            let wanted = match change {
                Change::Resource(uri) => self.subscribed.contains(uri),
                _ => peer.revision.features().server_requests,
            };
            if wanted {
                let outgoing = Outgoing {
                    related: None,
                    message: change_message(change, None),
                };
                if self.is_ready() {
                    messages.push(outgoing);
                } else if !self.held.contains(&outgoing) {
                    self.held.push(outgoing);
                }
            }
        }
        for listen in self.listens.iter().filter(|listen| listen.wants(change)) {
            messages.push(Outgoing {
                related: Some(listen.key),
                message: change_message(change, Some(&listen.id)),
            });
        }
        messages
    }

    /// Ends every `subscriptions/listen` stream gracefully: the result of each (2026-07-28,
    /// `basic/patterns/subscriptions`, graceful closure).
    pub fn end_listening(&mut self) -> Vec<(RequestKey, RequestId, Vec<u8>)> {
        let listens = std::mem::take(&mut self.listens);
        listens
            .into_iter()
            .map(|listen| {
                self.requests.remove(listen.key);
                let mut result = Vec::new();
                result.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{\"");
                result.extend_from_slice(crate::vocabulary::meta::SUBSCRIPTION_ID.as_bytes());
                result.extend_from_slice(b"\":");
                result.extend_from_slice(listen.id.raw());
                result.extend_from_slice(b"}}");
                (listen.key, listen.id, result)
            })
            .collect()
    }

    /// The connection is gone: hands out every call and question for the driver to fail.
    pub fn close(&mut self) -> (Vec<C>, Vec<A>) {
        self.listens.clear();
        self.held.clear();
        let calls = self
            .requests
            .keys()
            .into_iter()
            .filter_map(|key| self.requests.remove(key)?.handle)
            .collect();
        (calls, self.drop_asks())
    }

    /// Gives up every open question; hands out the driver's handles to them.
    pub fn drop_asks(&mut self) -> Vec<A> {
        let asks = std::mem::take(&mut self.asks.open);
        asks.into_values().map(|ask| ask.handle).collect()
    }

    /// When [`ServerSession::handle_timeout`] has something to do next; `None` while nothing is due.
    pub fn poll_deadline(&self) -> Option<Duration> {
        let progress = self.limits.progress_rate;
        let thinned = self
            .requests
            .iter()
            .filter_map(|(_, entry)| entry.progress.deadline(progress));
        thinned
            .chain(self.asks.deadline())
            .chain(self.log.deadline(self.limits.log_rate))
            .chain(self.next_ping)
            .min()
    }

    /// Does what fell due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<TimedOut<A>> {
        let mut due = Vec::new();
        for (key, ask) in self.asks.take_late(now) {
            let waited = if ask.total_at <= now {
                ask.timeouts.total
            } else {
                ask.timeouts.idle
            };
            due.push(TimedOut::Ask {
                cancel: cancellation(key, ask.related, "timed out"),
                handle: ask.handle,
                error: AskError::TimedOut(waited),
            });
        }
        let rate = self.limits.progress_rate;
        for (key, entry) in self.requests.iter_mut() {
            if let Some(message) = entry.progress.due(rate, now) {
                due.push(TimedOut::Send(Outgoing {
                    related: Some(key),
                    message,
                }));
            }
        }
        if let Some(message) = self.log.due(self.limits.log_rate, now) {
            due.push(TimedOut::Send(Outgoing {
                related: None,
                message,
            }));
        }
        self.ping_if_due(now, &mut due);
        due
    }

    /// Starts pinging a silent handshake-era client, where the limits ask for it.
    pub fn start_pings(&mut self, now: Duration) {
        self.next_ping = self.limits.ping_interval.map(|interval| now + interval);
    }

    fn ping_if_due(&mut self, now: Duration, due: &mut Vec<TimedOut<A>>) {
        let (Some(interval), Some(at)) = (self.limits.ping_interval, self.next_ping) else {
            return;
        };
        if at > now {
            return;
        }
        if self.ping.is_none() && self.last_heard + interval > now {
            self.next_ping = Some(self.last_heard + interval);
            return;
        }
        if self.ping.is_some() {
            self.pings_missed += 1;
            if self.pings_missed >= self.limits.ping_misses {
                self.next_ping = None;
                due.push(TimedOut::Dead);
                return;
            }
        }
        let key = AskKey(self.asks.next);
        self.asks.next += 1;
        self.ping = Some(key);
        self.next_ping = Some(now + interval);
        let mut message = Vec::new();
        encode::request(&mut message, &RequestId::number(key.0 as i64), "ping", None);
        due.push(TimedOut::Send(Outgoing {
            related: None,
            message,
        }));
    }

    fn revision_of(&mut self, key: RequestKey) -> Option<Revision> {
        if self.requests.get_mut(key)?.modern {
            return Some(Revision::LATEST);
        }
        self.peer().map(|peer| peer.revision)
    }

    fn receive_request(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> Received<C, A> {
        let id = request.id.clone();
        match self.admit_request(request, in_batch, profile) {
            Ok(received) => received,
            Err(error) => Received::Reply {
                id,
                outcome: Err(error),
            },
        }
    }

    fn admit_request(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> Result<Received<C, A>, RpcError> {
        let meta = RequestMeta::of(request.params.as_ref());
        if self.is_modern(&request.method, &meta) {
            return self.admit_modern(request, &meta, profile);
        }
        if request.method == Method::Initialize {
            return self.initialize(request, in_batch, profile);
        }
        let peer = match &self.phase {
            Phase::Initializing(peer) | Phase::Ready(peer) => peer.clone(),
            Phase::Fresh if request.method == Method::Ping => {
                return Ok(Received::Reply {
                    id: request.id,
                    outcome: Ok(b"{}".to_vec()),
                });
            }
            Phase::Fresh => {
                return Err(RpcError::invalid_request(format!(
                    "{} before the handshake: send initialize first, or name the revision in \
                     params._meta",
                    request.method.as_str()
                )));
            }
        };
        match gate::admit(&request.method, peer.revision, &profile.capabilities)? {
            Destination::Session => self.serve_legacy(request),
            Destination::Server => self.enter(request, &meta, peer, None),
        }
    }

    /// One connection-level rule tells each message's era: a request that names its version is modern,
    /// an exchange always is, and `server/discover` exists nowhere else.
    fn is_modern(&self, method: &Method, meta: &RequestMeta) -> bool {
        match self.scope {
            Scope::Exchange => true,
            Scope::Session => false,
            Scope::Connection => meta.version.is_some() || *method == Method::ServerDiscover,
        }
    }

    fn admit_modern(
        &mut self,
        request: Request,
        meta: &RequestMeta,
        profile: &ServerProfile,
    ) -> Result<Received<C, A>, RpcError> {
        // `initialize` and other methods of the handshake era don't exist here, whatever their `_meta`.
        let gated = gate::admit(&request.method, Revision::LATEST, &profile.capabilities);
        if meta.version.is_none() {
            gated.clone()?;
        }
        let modern = meta.check_modern(&profile.revisions)?;
        let peer = Arc::new(Peer {
            revision: modern.revision,
            info: meta.client_info.clone(),
            capabilities: modern.capabilities,
        });
        match (gated?, &request.method) {
            (Destination::Session, Method::ServerDiscover) => Ok(Received::Reply {
                id: request.id,
                outcome: Ok(super::peer::discover_result(profile)),
            }),
            (Destination::Session, _) => self.listen(request, profile),
            (Destination::Server, _) => self.enter(request, meta, peer, modern.log_level),
        }
    }

    fn enter(
        &mut self,
        request: Request,
        meta: &RequestMeta,
        peer: Arc<Peer>,
        log_level: Option<LoggingLevel>,
    ) -> Result<Received<C, A>, RpcError> {
        let modern = peer.revision.is_modern();
        let progress_token = meta.progress_token();
        let key = self.table(Entry {
            id: request.id.clone(),
            progress_token: progress_token.clone(),
            log_level,
            modern,
            last_progress: None,
            progress: Thinner::default(),
            handle: None,
        })?;
        Ok(Received::Request(Admitted {
            key,
            id: request.id,
            method: request.method,
            params: request.params,
            peer,
            progress_token,
        }))
    }

    fn table(&mut self, entry: Entry<C>) -> Result<RequestKey, RpcError> {
        if self.requests.len() >= self.limits.in_flight {
            return Err(RpcError::busy(format!(
                "{} requests are in flight already; try again when one has ended",
                self.limits.in_flight
            )));
        }
        let refused = RpcError::invalid_request(format!(
            "a request with the id {} is in flight",
            String::from_utf8_lossy(entry.id.raw())
        ));
        self.requests.insert(entry).ok_or(refused)
    }

    fn initialize(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> Result<Received<C, A>, RpcError> {
        if in_batch {
            return Err(RpcError::invalid_request(
                "initialize must not be in a batch",
            ));
        }
        if self.peer().is_some() {
            return Err(RpcError::invalid_request(
                "this session is initialized already",
            ));
        }
        let params = request
            .params
            .as_ref()
            .ok_or_else(|| RpcError::invalid_params("initialize needs params"))?;
        let requested: String = params
            .get("protocolVersion")
            .and_then(|version| version.decode().ok())
            .ok_or_else(|| RpcError::invalid_params("params.protocolVersion must be a string"))?;
        let capabilities = params
            .get("capabilities")
            .filter(|value| value.as_bytes().first() == Some(&b'{'))
            .ok_or_else(|| RpcError::invalid_params("params.capabilities must be an object"))?;
        let info = params
            .get("clientInfo")
            .filter(|value| value.as_bytes().first() == Some(&b'{'))
            .ok_or_else(|| RpcError::invalid_params("params.clientInfo must be an object"))?;
        let revision = negotiate(&requested, &profile.revisions)
            .ok_or_else(|| RpcError::unsupported_version(&requested, &profile.revisions))?;
        let peer = Arc::new(Peer {
            revision,
            info: Some(info),
            capabilities,
        });
        self.phase = Phase::Initializing(peer.clone());
        Ok(Received::Initialized {
            id: request.id,
            result: super::peer::initialize_result(profile, revision),
            peer,
        })
    }

    fn serve_legacy(&mut self, request: Request) -> Result<Received<C, A>, RpcError> {
        let params = request.params.as_ref();
        let uri = || {
            params
                .and_then(|params| params.get_str("uri"))
                .ok_or_else(|| RpcError::invalid_params("params.uri must be a string"))
        };
        match request.method {
            Method::LoggingSetLevel => {
                let level = params
                    .and_then(|params| params.get("level"))
                    .and_then(|level| level.decode().ok())
                    .ok_or_else(|| RpcError::invalid_params("params.level is not a log level"))?;
                self.log_level = Some(level);
            }
            Method::ResourcesSubscribe => {
                if self.subscribed.len() >= self.limits.subscriptions {
                    return Err(RpcError::busy(format!(
                        "{} resources are subscribed to already",
                        self.limits.subscriptions
                    )));
                }
                self.subscribed.insert(uri()?.into_owned());
            }
            Method::ResourcesUnsubscribe => {
                self.subscribed.remove(uri()?.as_ref());
            }
            _ => {}
        }
        Ok(Received::Reply {
            id: request.id,
            outcome: Ok(b"{}".to_vec()),
        })
    }

    fn listen(
        &mut self,
        request: Request,
        profile: &ServerProfile,
    ) -> Result<Received<C, A>, RpcError> {
        let filter: SubscriptionFilter = request
            .params
            .as_ref()
            .and_then(|params| params.get("notifications"))
            .ok_or_else(|| RpcError::invalid_params("params.notifications must be an object"))?
            .decode()
            .map_err(|error| RpcError::invalid_params(format!("params.notifications: {error}")))?;
        let filter = honoured(&filter, &profile.capabilities);
        let key = self.table(Entry {
            id: request.id.clone(),
            progress_token: None,
            log_level: None,
            modern: true,
            last_progress: None,
            progress: Thinner::default(),
            handle: None,
        })?;
        let mut params = Vec::with_capacity(128);
        params.extend_from_slice(b"{\"_meta\":{\"");
        params.extend_from_slice(crate::vocabulary::meta::SUBSCRIPTION_ID.as_bytes());
        params.extend_from_slice(b"\":");
        params.extend_from_slice(request.id.raw());
        params.extend_from_slice(b"},\"notifications\":");
        params.extend_from_slice(honoured_json(&filter).as_bytes());
        params.push(b'}');
        self.listens.push(Listen {
            key,
            id: request.id,
            filter,
        });
        Ok(Received::Listen(Listening {
            key,
            acknowledgment: notification("notifications/subscriptions/acknowledged", &params),
        }))
    }

    fn receive_notification(
        &mut self,
        notification: Notification,
        now: Duration,
    ) -> Received<C, A> {
        match notification.method {
            Method::NotificationsInitialized => match &self.phase {
                Phase::Initializing(peer) => {
                    self.phase = Phase::Ready(peer.clone());
                    Received::Ready(std::mem::take(&mut self.held))
                }
                Phase::Fresh => Received::Ignored("notifications/initialized before initialize"),
                Phase::Ready(_) => Received::Ignored("notifications/initialized twice"),
            },
            Method::NotificationsCancelled => self.receive_cancelled(notification.params.as_ref()),
            Method::NotificationsProgress => {
                self.receive_progress(notification.params.as_ref(), now);
                Received::Ignored("progress on a question")
            }
            Method::NotificationsRootsListChanged => Received::RootsChanged,
            _ => Received::Notification(notification),
        }
    }

    fn receive_cancelled(&mut self, params: Option<&Params>) -> Received<C, A> {
        let Some(id) = params
            .and_then(|params| params.get("requestId"))
            .and_then(|id| RequestId::from_raw(&id).ok())
        else {
            return Received::Ignored("notifications/cancelled without a request id");
        };
        let Some(key) = self.requests.key_of(&id) else {
            return Received::Ignored("notifications/cancelled for a request that has ended");
        };
        let reason = params
            .and_then(|params| params.get_str("reason"))
            .map(std::borrow::Cow::into_owned);
        match self.cancel(key) {
            Some((handle, asks)) => Received::Cancelled {
                key,
                handle,
                asks,
                reason,
            },
            None => Received::Ignored("notifications/cancelled for a request that has ended"),
        }
    }

    /// Progress on a question starts its idle timeout anew.
    fn receive_progress(&mut self, params: Option<&Params>, now: Duration) {
        let token: Option<u64> = params
            .and_then(|params| params.get("progressToken"))
            .and_then(|token| token.decode().ok());
        if let Some(ask) = token.and_then(|token| self.asks.open.get_mut(&AskKey(token))) {
            ask.idle_at = now + ask.timeouts.idle;
        }
    }

    fn receive_response(&mut self, response: Response) -> Received<C, A> {
        let Some(key) = response
            .id
            .as_ref()
            .and_then(RequestId::as_integer)
            .and_then(|id| u64::try_from(id).ok())
            .map(AskKey)
        else {
            return Received::Ignored("a response to nothing that was asked");
        };
        if self.ping == Some(key) {
            self.ping = None;
            self.pings_missed = 0;
            return Received::Ignored("the answer to a ping");
        }
        let Some(ask) = self.asks.open.remove(&key) else {
            return Received::Ignored("a response to nothing that was asked");
        };
        Received::Answer {
            handle: ask.handle,
            outcome: response.outcome.map_err(AskError::Refused),
        }
    }
}

/// The revision that answers a requested one: the same if it is served, else the newest handshake-era
/// one (every handshake revision, `basic/lifecycle`, version negotiation).
fn negotiate(requested: &str, served: &[Revision]) -> Option<Revision> {
    let wanted = Revision::negotiate(requested);
    if served.contains(&wanted) {
        return Some(wanted);
    }
    served
        .iter()
        .copied()
        .filter(|revision| !revision.is_modern())
        .max()
}

fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(params.len() + method.len() + 48);
    encode::notification(&mut message, method, Some(params));
    message
}

fn change_message(change: &Change, subscription: Option<&RequestId>) -> Vec<u8> {
    let mut params = Vec::new();
    if let Some(id) = subscription {
        params.extend_from_slice(b"{\"_meta\":{\"");
        params.extend_from_slice(crate::vocabulary::meta::SUBSCRIPTION_ID.as_bytes());
        params.extend_from_slice(b"\":");
        params.extend_from_slice(id.raw());
        params.push(b'}');
    }
    if let Change::Resource(uri) = change {
        params.extend_from_slice(if params.is_empty() {
            b"{\"uri\":"
        } else {
            b",\"uri\":"
        });
        json_string(&mut params, uri);
    }
    let mut message = Vec::with_capacity(params.len() + 80);
    if params.is_empty() {
        encode::notification(&mut message, change.method(), None);
    } else {
        params.push(b'}');
        encode::notification(&mut message, change.method(), Some(&params));
    }
    message
}

fn cancellation(ask: AskKey, related: Option<RequestKey>, reason: &str) -> Outgoing {
    let mut params = format!("{{\"requestId\":{},\"reason\":", ask.0).into_bytes();
    json_string(&mut params, reason);
    params.push(b'}');
    Outgoing {
        related,
        message: notification("notifications/cancelled", &params),
    }
}

fn honoured_json(filter: &SubscriptionFilter) -> Raw {
    // A struct of booleans and strings always serializes.
    Raw::from_serialize(filter).unwrap_or(Raw::EMPTY_OBJECT)
}

/// Writes a finite number; an integral one without a fraction, as the oldest clients expect.
fn write_number(out: &mut Vec<u8>, number: f64) {
    use std::io::Write;

    const EXACT: f64 = 9_007_199_254_740_992.0;
    // Writing to a Vec cannot fail.
    let _ = if number.fract() == 0.0 && number.abs() < EXACT {
        write!(out, "{}", number as i64)
    } else {
        write!(out, "{number}")
    };
}
