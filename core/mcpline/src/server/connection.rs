//! One client at a server: the sans-I/O session together with its lock, message sinks and timers.
//!
//! A connection is shared by the transport that reads its messages, the handlers that answer, the server that reports
//! changes, and the timer. Its lock is held for one step of the session only, never while a handler runs.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use mcpline_protocol::session::{
    Change, ClientProfile, EarlierSubscription, InputRequestError, Outgoing, ReceiveOutcome,
    RequestKey, ServerSession, SessionLimits, SessionScope, SessionState, TimeoutEvent,
};
use mcpline_protocol::wire::{
    Incoming, Message, Method, OversizeBatch, Params, ReadError, Request, RequestId, encode,
};
use mcpline_protocol::{ErrorCode, RpcError};
use mcpline_runtime::clock;
use tokio::sync::{Notify, watch};

use crate::background;
use crate::caller::Caller;
use crate::message_sink::{self, BatchSink, MessageKind, MessageSink, ResponseStatus};
use crate::quota::{Charge, ClientQuota, Exceeded};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::timers::{Alarm, Timed};
use crate::warning_limit::{warn_limited, warn_of_limit};

use super::Inner;
use super::call::CallState;
use super::client_notifications::{self, ClientNotification, RunningNotificationHandlers};
use super::dispatch;
use super::input_requests::InputResponseCallback;
use super::open_session::{OpenSession, SessionPhase};
use super::permission;
use super::request_info::HttpInfo;
use super::request_log::{RequestOutcome, RunningRequest};
use super::request_span::RequestSpan;
use super::response_writes::{ResponseWriteGuard, ResponseWrites};
use super::state::SessionValues;
use super::traffic::{self, TrafficOrigin, TransportKind};
use super::uri_matching::{InterruptOnDrop, Subscribable, SubscribedUris};

#[cfg(test)]
mod tests;

type Session = ServerSession<RequestHandle, InputResponseCallback>;

/// The locked session.
pub(crate) type SessionGuard<'c> = MutexGuard<'c, Session>;

/// What the session keeps for the server with each request in flight.
pub(crate) struct RequestHandle {
    /// The call, once the request was dispatched to a handler.
    pub(super) call: Option<Arc<CallState>>,
    sink: Arc<dyn MessageSink>,
    /// Keeps the request's parameters charged while the session holds a copy of them.
    _params: Option<Params>,
    /// Interrupts computations for the request that run before its call is attached.
    _interrupt: Option<InterruptOnDrop>,
    /// Dropped when the request ends: ends its middleware and its list handlers.
    end: Option<watch::Sender<()>>,
    /// Records how the request ends.
    pub(super) log: Option<RunningRequest>,
}

/// Approximate size of a session after the handshake, without what its client declares.
const SESSION_BYTES: usize = 4 * 1024;

/// One client. See the [module](self).
pub(crate) struct Connection {
    number: u64,
    server: Arc<Inner>,
    runtime: tokio::runtime::Handle,
    session: Mutex<Session>,
    /// The responses of calls that have ended in the session.
    response_writes: ResponseWrites,
    /// Sink for messages that belong to no request.
    general: Arc<dyn MessageSink>,
    /// Handlers of events and custom notifications, outside of calls.
    events: RunningNotificationHandlers,
    session_id: Option<String>,
    /// The caller as authenticated by the transport. `None` for HTTP, where each request has its own.
    auth: Option<Caller>,
    /// HTTP details that handlers see for every message of a client in this process.
    #[cfg(feature = "http")]
    simulated_http: Option<Arc<HttpInfo>>,
    /// Values of the program that live as long as the session; `None` if every request stands alone.
    session_state: Option<SessionValues>,
    /// Principal that input requests and sessions are bound to.
    principal: String,
    transport: TransportId,
    transport_kind: TransportKind,
    /// The client as the record of each message names it; `None` if messages are not recorded.
    traffic: Option<Arc<TrafficOrigin>>,
    /// Client that everything here is charged to.
    client: Arc<ClientQuota>,
    /// Charge for the client's data in the session.
    kept: Mutex<Option<Charge>>,
    /// Whether its session is open: from the handshake to the end.
    session_phase: Mutex<SessionPhase>,
    alarm: Alarm,
    on_ping_timeout: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The server is winding down: streams of change notifications end as soon as they begin.
    has_ended_listening: AtomicBool,
    /// Number of subscriptions whose permission check is still running.
    undecided: AtomicUsize,
    decided: Notify,
}

/// What a connection is created with.
pub(crate) struct ConnectionOptions {
    pub(crate) scope: SessionScope,
    pub(crate) limits: SessionLimits,
    pub(crate) general: Arc<dyn MessageSink>,
    pub(crate) session_id: Option<String>,
    /// The caller as authenticated by the transport. `None` for HTTP, where each request has its own.
    pub(crate) auth: Option<Caller>,
    /// Principal that input requests and sessions are bound to.
    pub(crate) principal: String,
    pub(crate) transport: TransportId,
    pub(crate) transport_kind: TransportKind,
    /// The client as the record of its request names it; `None` if that has no record, or names another.
    pub(crate) traffic: Option<Arc<TrafficOrigin>>,
    pub(crate) client: Arc<ClientQuota>,
}

/// Identifies the transport that a connection came over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransportId(pub(crate) u64);

impl RequestHandle {
    fn of(sink: &Arc<dyn MessageSink>) -> Self {
        Self {
            call: None,
            sink: sink.clone(),
            _params: None,
            _interrupt: None,
            end: None,
            log: None,
        }
    }
}

/// The session's result for a message.
struct ReceivedMessage {
    received: ReceiveOutcome<RequestHandle, InputResponseCallback>,
    /// The record of a request that is not dispatched.
    log: Option<RunningRequest>,
    /// The span of a request, if it has one.
    span: Option<Arc<RequestSpan>>,
}

/// Records how a request ended, at the end of a block.
struct RecordOnDrop(Option<RunningRequest>, RequestOutcome);

impl Drop for RecordOnDrop {
    fn drop(&mut self) {
        if let Some(log) = self.0.take() {
            log.end(self.1);
        }
    }
}

/// Returns a sink that counts its messages for metrics and records them for traffic, as far as either is wanted.
#[inline]
fn observing_sink(
    server: &Arc<Inner>,
    transport: TransportKind,
    traffic: Option<&Arc<TrafficOrigin>>,
    sink: &Arc<dyn MessageSink>,
) -> Option<Arc<dyn MessageSink>> {
    let metrics = server.metrics.as_ref();
    let counting = metrics.map(|metrics| metrics.counting_sink(transport, sink));
    match traffic {
        None => counting,
        Some(origin) => {
            let sink = counting.as_ref().unwrap_or(sink);
            Some(traffic::recorded(server, origin, sink))
        }
    }
}

/// A subscription whose permission check is still running.
struct PendingSubscription(Arc<Connection>);

impl PendingSubscription {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.undecided.fetch_add(1, Ordering::Relaxed);
        Self(connection.clone())
    }
}

impl Drop for PendingSubscription {
    fn drop(&mut self) {
        self.0.undecided.fetch_sub(1, Ordering::Release);
        self.0.decided.notify_waiters();
    }
}

impl Connection {
    /// Opens a connection that receives change notifications from now on.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) fn open(server: &Arc<Inner>, options: ConnectionOptions) -> Arc<Self> {
        let connection = Self::for_one_exchange(server, options);
        server.list_connection(connection.number, &connection);
        connection
    }

    /// Opens a connection of a client in this process, whose handlers see these headers.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[cfg(feature = "http")]
    pub(crate) fn open_with_headers(
        server: &Arc<Inner>,
        options: ConnectionOptions,
        headers: http::HeaderMap,
    ) -> Arc<Self> {
        let http = HttpInfo {
            headers,
            principal: options.principal.clone(),
            auth: options.auth.clone(),
            ..HttpInfo::default()
        };
        let mut connection = Self::new(server, options);
        connection.simulated_http = Some(Arc::new(http));
        let connection = Arc::new(connection);
        server.list_connection(connection.number, &connection);
        connection
    }

    /// Creates a connection for one exchange, which receives no change notifications until it opens a stream for them.
    pub(crate) fn for_one_exchange(server: &Arc<Inner>, options: ConnectionOptions) -> Arc<Self> {
        Arc::new(Self::new(server, options))
    }

    fn new(server: &Arc<Inner>, options: ConnectionOptions) -> Self {
        let request = options.traffic;
        let number = request.as_ref().and_then(|origin| origin.connection());
        let number = number.unwrap_or_else(|| server.next_connection());
        let traffic = server.traffic.as_ref().map(|_| {
            let session = options.session_id.as_deref();
            request.unwrap_or_else(|| {
                Arc::new(TrafficOrigin::new(options.transport_kind, number, session))
            })
        });
        let general = observing_sink(
            server,
            options.transport_kind,
            traffic.as_ref(),
            &options.general,
        );
        let general = general.unwrap_or(options.general);
        Self {
            number,
            server: server.clone(),
            runtime: tokio::runtime::Handle::current(),
            session: Mutex::new(ServerSession::new(options.scope, options.limits)),
            response_writes: ResponseWrites::default(),
            general,
            events: RunningNotificationHandlers::default(),
            session_id: options.session_id,
            auth: options.auth,
            #[cfg(feature = "http")]
            simulated_http: None,
            session_state: match options.scope {
                SessionScope::Connection | SessionScope::Session => Some(SessionValues::default()),
                SessionScope::Exchange | SessionScope::Sessionless => None,
            },
            principal: options.principal,
            transport: options.transport,
            transport_kind: options.transport_kind,
            traffic,
            client: options.client,
            kept: Mutex::new(None),
            session_phase: Mutex::default(),
            alarm: Alarm::default(),
            on_ping_timeout: Mutex::new(None),
            has_ended_listening: AtomicBool::new(false),
            undecided: AtomicUsize::new(0),
            decided: Notify::new(),
        }
    }

    /// Returns the number that identifies the connection within its server.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn transport(&self) -> TransportId {
        self.transport
    }

    pub(crate) fn transport_kind(&self) -> TransportKind {
        self.transport_kind
    }

    /// Whether all messages of its client come over it: not so over HTTP.
    pub(super) fn is_pipe(&self) -> bool {
        self.session_state.is_some() && self.session_id.is_none()
    }

    /// Returns the client as the record of each message names it; `None` if messages are not recorded.
    #[inline]
    pub(crate) fn traffic(&self) -> Option<&TrafficOrigin> {
        self.traffic.as_deref()
    }

    /// Returns a sink that records and counts its messages, if messages are recorded or counted.
    #[inline]
    fn observing_sink(&self, sink: &Arc<dyn MessageSink>) -> Option<Arc<dyn MessageSink>> {
        let traffic = self.traffic.as_ref();
        observing_sink(&self.server, self.transport_kind, traffic, sink)
    }

    pub(crate) fn server(&self) -> &Arc<Inner> {
        &self.server
    }

    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    pub(crate) fn client(&self) -> &Arc<ClientQuota> {
        &self.client
    }

    pub(crate) fn principal(&self) -> &str {
        &self.principal
    }

    /// Returns the caller as authenticated by the transport: the caller of every request that does not come over HTTP.
    pub(crate) fn auth(&self) -> Option<&Caller> {
        self.auth.as_ref()
    }

    /// Returns the HTTP details that handlers see although no request comes over HTTP.
    #[cfg(feature = "http")]
    pub(super) fn simulated_http(&self) -> Option<&Arc<HttpInfo>> {
        self.simulated_http.as_ref()
    }

    /// Returns the values of the session, if there is one.
    pub(super) fn session_state(&self) -> Option<&SessionValues> {
        self.session_state.as_ref()
    }

    pub(crate) fn lock_session(&self) -> SessionGuard<'_> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn general(&self) -> &Arc<dyn MessageSink> {
        &self.general
    }

    pub(super) fn events(&self) -> &RunningNotificationHandlers {
        &self.events
    }

    /// Returns the client of a session whose handshake is complete.
    pub(super) fn ready_peer(&self) -> Option<Arc<ClientProfile>> {
        let session = self.lock_session();
        session.peer().filter(|_| session.is_ready()).cloned()
    }

    /// Returns the client, once the handshake has identified it.
    pub(crate) fn peer(&self) -> Option<Arc<ClientProfile>> {
        self.lock_session().peer().cloned()
    }

    /// Registers a callback that runs when the client no longer answers pings.
    pub(crate) fn on_ping_timeout(&self, callback: impl FnOnce() + Send + 'static) {
        *self
            .on_ping_timeout
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Box::new(callback));
    }

    /// Handles the content of one line or body; responses go to `sink`.
    pub(crate) fn receive(
        self: &Arc<Self>,
        incoming: Result<Incoming, ReadError>,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let observed = self.observing_sink(sink);
        let sink = observed.as_ref().unwrap_or(sink);
        match incoming {
            Ok(Incoming::Single(message)) => self.receive_one(message, false, sink, http),
            Ok(Incoming::Batch(entries)) => self.receive_batch(entries, sink, http),
            Err(error) => self.answer_unreadable(&**sink, &error),
        }
    }

    /// Handles the content of one line while the client's memory limit is exhausted: requests are refused; responses
    /// and cancellations pass, because they free memory.
    pub(crate) fn receive_without_room(
        self: &Arc<Self>,
        incoming: Result<Incoming, ReadError>,
        sink: &Arc<dyn MessageSink>,
        exceeded: Exceeded,
    ) {
        let observed = self.observing_sink(sink);
        let sink = observed.as_ref().unwrap_or(sink);
        let error = RpcError::from(exceeded);
        let receive = |message, in_batch| match message {
            Message::Request(request) => refuse(&**sink, &request.id, &error),
            Message::Notification(custom) if custom.method.spec().is_none() => {
                self.server.warn_of_drop(custom.method.as_str(), &error);
            }
            message => self.receive_one(message, in_batch, sink, None),
        };
        match incoming {
            Ok(Incoming::Single(message)) => receive(message, false),
            Ok(Incoming::Batch(entries)) => {
                for entry in entries {
                    match entry {
                        Ok(message) => receive(message, true),
                        Err(error) => self.answer_unreadable(&**sink, &error),
                    }
                }
            }
            Err(error) => self.answer_unreadable(&**sink, &error),
        }
    }

    /// Answers an invalid message. If its id is unknown the error has none, or `null` where the client's revision
    /// requires one: the schemas before 2025-11-25 require an id in each error, and JSON-RPC 2.0 (section 5) specifies
    /// `null`.
    fn answer_unreadable(&self, sink: &dyn MessageSink, error: &ReadError) {
        if !error.is_answerable() {
            warn_limited!(error = %error.error, "ignored an invalid message of a client");
            sink.abandon();
            return;
        }
        if let Some(batch) = &error.batch
            && batch.requests().next().is_some()
        {
            return self.refuse_oversize(sink, batch, &error.error);
        }
        let features = self.peer().map(|peer| peer.revision.features());
        let without_id = features.is_none_or(|features| features.errors_without_id);
        let ErrorCode(code) = error.error.code;
        sink.write(
            MessageKind::Response(ResponseStatus::Unreadable(code)),
            192,
            &mut |out| match &error.id {
                None if without_id => encode::error_without_id(out, &error.error),
                id => encode::error(out, id.as_ref(), &error.error),
            },
        );
    }

    /// Answers each request of an oversized batch, in one batch where the client's revision has batches. The ids are
    /// written as they are read, so that no list of them is held in memory.
    fn refuse_oversize(&self, sink: &dyn MessageSink, batch: &OversizeBatch, error: &RpcError) {
        if self.lock_session().admit_batch().is_err() {
            for id in batch.requests() {
                refuse(sink, &id, error);
            }
            return;
        }
        let ErrorCode(code) = error.code;
        let kind = MessageKind::Response(ResponseStatus::Unreadable(code));
        sink.write(kind, 192, &mut |out| {
            let mut separator = b'[';
            for id in batch.requests() {
                out.push(separator);
                encode::error(out, Some(&id), error);
                separator = b',';
            }
            out.push(b']');
        });
    }

    fn receive_batch(
        self: &Arc<Self>,
        entries: Vec<Result<Message, ReadError>>,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let refused = self.lock_session().admit_batch().err();
        if let Some(error) = refused {
            return self.refuse_batch(&entries, &**sink, error);
        }
        let answered = |entry: &Result<Message, ReadError>| match entry {
            Ok(Message::Request(_)) => true,
            Ok(_) => false,
            Err(error) => error.is_answerable(),
        };
        let awaited = entries.iter().filter(|entry| answered(entry)).count();
        let sink: Arc<dyn MessageSink> = Arc::new(BatchSink::new(sink.clone(), awaited));
        for entry in entries {
            match entry {
                Ok(message) => self.receive_one(message, true, &sink, http),
                Err(error) if error.is_answerable() => self.answer_unreadable(&*sink, &error),
                Err(error) => {
                    warn_limited!(error = %error.error, "ignored an invalid message in a batch of a client");
                }
            }
        }
    }

    /// Refuses a batch on a revision without batches: each request gets the error under its own id. If no id can be
    /// read but an entry requires a response, there is one error for the whole batch.
    fn refuse_batch(
        &self,
        entries: &[Result<Message, ReadError>],
        sink: &dyn MessageSink,
        error: RpcError,
    ) {
        let mut is_answered = false;
        for entry in entries {
            let id = match entry {
                Ok(Message::Request(request)) => Some(&request.id),
                Err(unreadable) if unreadable.is_answerable() => unreadable.id.as_ref(),
                _ => None,
            };
            if let Some(id) = id {
                refuse(sink, id, &error);
                is_answered = true;
            }
        }
        let wants_answer = |entry: &ReadError| entry.is_answerable();
        if !is_answered
            && entries
                .iter()
                .filter_map(|entry| entry.as_ref().err())
                .any(wants_answer)
        {
            self.answer_unreadable(sink, &ReadError::unreadable(error));
        }
    }

    fn receive_one(
        self: &Arc<Self>,
        message: Message,
        in_batch: bool,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        // In a function of its own: few requests subscribe, and all would have its stack frame.
        if let Message::Request(Request {
            method: Method::ResourcesSubscribe | Method::SubscriptionsListen,
            ..
        }) = &message
        {
            return self.receive_subscription(message, in_batch, sink, http);
        }
        self.admit(message, in_batch, sink, http, None);
    }

    /// Receives a request that subscribes to URIs, after it was checked that the caller may.
    #[inline(never)]
    fn receive_subscription(
        self: &Arc<Self>,
        message: Message,
        in_batch: bool,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let mut unknown = None;
        if let Message::Request(request) = &message {
            let limits = &self.server.settings.session;
            let permitted = match SubscribedUris::of(request, || self.server.registry(), limits) {
                Ok(None) => Ok(()),
                Ok(Some(uris)) => match uris.look_up_inline() {
                    Some(found) => {
                        unknown = Some(found.unknown);
                        permission::check(self, http.map(|http| &**http), &**sink, &found.scopes)
                    }
                    None => {
                        let request = request.clone();
                        return self.permit_on_offload_thread(uris, request, in_batch, sink, http);
                    }
                },
                Err(error) => Err(error),
            };
            if let Err(error) = permitted {
                let log = RunningRequest::begin(self, &message, http.map(|http| &**http));
                if let Some(span) = log.as_ref().and_then(RunningRequest::span) {
                    span.set_error(&error);
                }
                refuse_subscribing(&**sink, &request.id, &error);
                if let Some(log) = log {
                    log.end(RequestOutcome::Error(error.code));
                }
                return;
            }
        }
        self.admit(message, in_batch, sink, http, unknown.as_ref());
    }

    fn admit(
        self: &Arc<Self>,
        message: Message,
        in_batch: bool,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
        unknown: Option<&HashSet<String>>,
    ) {
        let admission = self.admit_locked(
            &mut self.lock_session(),
            message,
            in_batch,
            sink,
            http.map(|http| &**http),
            unknown,
        );
        self.handle_received(admission, sink, http);
    }

    /// Looks up the URIs of a subscription on another thread, then continues with the request. Meanwhile the request is
    /// in flight, and cancelling it interrupts the lookup.
    fn permit_on_offload_thread(
        self: &Arc<Self>,
        uris: SubscribedUris,
        request: Request,
        in_batch: bool,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let interrupt = Arc::new(AtomicBool::new(false));
        let reserved = self.client.begin_call().map_err(RpcError::from);
        let reserved = reserved.and_then(|call| {
            let mut session = self.lock_session();
            let key = session.reserve(&request.id)?;
            let served = RequestHandle {
                _interrupt: Some(InterruptOnDrop(interrupt.clone())),
                ..RequestHandle::of(sink)
            };
            session.attach(key, served);
            Ok((call, key))
        });
        let (call, key) = match reserved {
            Ok(reserved) => reserved,
            Err(error) => return refuse(&**sink, &request.id, &error),
        };
        let undecided = PendingSubscription::new(self);
        let (sink, http) = (sink.clone(), http.cloned());
        background::spawn(&self.runtime, async move {
            let connection = &undecided.0;
            let found = uris.look_up(connection.client.peer, interrupt).await;
            drop(call);
            connection.receive_reserved(key, request, in_batch, found, &sink, http.as_ref());
        });
    }

    /// Continues with a reserved request, unless it was cancelled meanwhile.
    fn receive_reserved(
        self: &Arc<Self>,
        key: RequestKey,
        request: Request,
        in_batch: bool,
        found: Result<Subscribable, RpcError>,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let _answering = self.begin_response_write();
        let permitted = found.and_then(|found| {
            permission::check(self, http.map(|http| &**http), &**sink, &found.scopes)?;
            Ok(found.unknown)
        });
        let mut session = self.lock_session();
        let Some((served, _)) = session.cancel(key) else {
            return;
        };
        let received = match permitted {
            Ok(unknown) => {
                let message = Message::Request(request);
                let http = http.map(|http| &**http);
                let unknown = Some(&unknown);
                Ok(self.admit_locked(&mut session, message, in_batch, sink, http, unknown))
            }
            Err(error) => Err((request.id, error)),
        };
        drop(session);
        // Outside the lock: dropping it may lock the session.
        drop(served);
        match received {
            Ok(admission) => self.handle_received(admission, sink, http),
            Err((id, error)) => refuse_subscribing(&**sink, &id, &error),
        }
    }

    /// Waits for the permission checks of all subscriptions.
    pub(crate) async fn wait_for_subscription_checks(&self) {
        loop {
            let decided = self.decided.notified();
            if self.undecided.load(Ordering::Acquire) == 0 {
                return;
            }
            decided.await;
        }
    }

    /// Acts on the session's result for a message.
    fn handle_received(
        self: &Arc<Self>,
        admission: ReceivedMessage,
        sink: &Arc<dyn MessageSink>,
        http: Option<&Arc<HttpInfo>>,
    ) {
        let ReceivedMessage {
            received,
            log,
            span,
        } = admission;
        let outcome = match &received {
            ReceiveOutcome::Reply {
                outcome: Err(error),
                ..
            } => {
                if let Some(span) = &span {
                    span.set_error(error);
                }
                RequestOutcome::Error(error.code)
            }
            _ => RequestOutcome::Ok,
        };
        // After the response; that of a dispatched request is in its handle.
        let _recorded = log.map(|mut log| {
            log.await_record();
            RecordOnDrop(Some(log), outcome)
        });
        match received {
            ReceiveOutcome::Request(admitted) => {
                if let Some(span) = span.as_ref().filter(|span| span.has_contents()) {
                    span.set_arguments(&self.server, admitted.params.as_ref());
                }
                dispatch::dispatch(self, admitted, sink, http, span);
            }
            ReceiveOutcome::Reply { id, outcome } => answer(&**sink, &id, outcome),
            ReceiveOutcome::Subscription(_) => {
                self.server.list_connection(self.number, self);
                if self.has_ended_listening.load(Ordering::Acquire) {
                    self.end_listening();
                }
            }
            ReceiveOutcome::Initialized { id, result, peer } => {
                tracing::debug!(
                    revision = peer.revision.as_str(),
                    "a client completed the handshake"
                );
                self.begin_session(&peer);
                answer(&**sink, &id, Ok(result));
            }
            ReceiveOutcome::Ready(_) => {
                self.schedule();
                client_notifications::handle_client_event(
                    self,
                    ClientNotification::Initialized,
                    http,
                );
            }
            ReceiveOutcome::Cancelled {
                handle,
                server_requests,
                reason,
                ..
            } => self.handle_cancellation(handle, server_requests, reason.as_deref()),
            ReceiveOutcome::Answer { handle, outcome } => handle(outcome),
            ReceiveOutcome::RootsChanged => {
                client_notifications::handle_client_event(
                    self,
                    ClientNotification::RootsListChanged,
                    http,
                );
            }
            ReceiveOutcome::Notification { notification, peer } => {
                client_notifications::handle_custom_notification(self, notification, peer, http);
            }
            ReceiveOutcome::Ignored(why) => tracing::trace!(why, "a message was ignored"),
        }
    }

    #[inline(never)]
    fn handle_cancellation(
        &self,
        handle: Option<RequestHandle>,
        server_requests: Vec<(InputResponseCallback, Option<Outgoing>)>,
        reason: Option<&str>,
    ) {
        tracing::debug!(reason, "a request was cancelled");
        let sink = handle.as_ref().map_or(&self.general, |served| &served.sink);
        let callbacks = server_requests.into_iter().map(|(callback, cancellation)| {
            if let Some(cancellation) = cancellation {
                message_sink::send(&**sink, MessageKind::Request, &cancellation.message);
            }
            callback
        });
        let callbacks = callbacks.collect();
        cancel_request(handle, callbacks, &InputRequestError::Cancelled);
    }

    /// Passes one message to the session, and does what must happen under the same lock: a request gets its sink, so
    /// that a cancellation can abandon it; no change notification precedes a stream's acknowledgment, or the
    /// notifications queued during the handshake; the session's memory is charged to the client. A subscription to an
    /// `unknown` URI is refused, or left out of a stream's acknowledgment.
    fn admit_locked(
        &self,
        session: &mut Session,
        message: Message,
        in_batch: bool,
        sink: &Arc<dyn MessageSink>,
        http: Option<&HttpInfo>,
        unknown: Option<&HashSet<String>>,
    ) -> ReceivedMessage {
        let mut log = RunningRequest::begin(self, &message, http);
        let span = log.as_ref().and_then(RunningRequest::span);
        // The parameters of a subscription, kept while they are charged and may have to be rolled back.
        let params = match &message {
            Message::Request(request)
                if matches!(
                    request.method,
                    Method::SubscriptionsListen
                        | Method::ResourcesSubscribe
                        | Method::ResourcesUnsubscribe
                ) =>
            {
                request.params.clone()
            }
            _ => None,
        };
        let earlier = match &message {
            Message::Request(request) if request.method != Method::SubscriptionsListen => {
                let uri = params.as_ref().and_then(|params| params.get_str("uri"));
                uri.map(|uri| session.subscription(&uri))
            }
            _ => None,
        };
        let before_unsubscribing = match &message {
            Message::Request(request) if request.method == Method::ResourcesUnsubscribe => {
                Some(session.retained_bytes())
            }
            _ => None,
        };
        let profile = self.server.profile();
        let mut received = session.receive(message, in_batch, &profile, clock::now());
        match &mut received {
            ReceiveOutcome::Request(admitted) => {
                let mut served = RequestHandle::of(sink);
                served.log = log.take().map(|mut log| {
                    log.set_client(admitted.peer.clone());
                    log
                });
                session.attach(admitted.key, served);
            }
            ReceiveOutcome::Subscription(listening) => {
                if let Some(unknown) = unknown.filter(|unknown| !unknown.is_empty()) {
                    session.remove_unknown_resources(listening, unknown);
                }
                let mut served = RequestHandle::of(sink);
                served._params = params;
                session.attach(listening.key, served);
                message_sink::send(&**sink, MessageKind::Request, &listening.acknowledgment);
            }
            ReceiveOutcome::Ready(held) => {
                session.start_pings(clock::now());
                for outgoing in held.drain(..) {
                    self.send(session, MessageKind::Request, &outgoing);
                }
            }
            ReceiveOutcome::Initialized { id, .. } => {
                if let Err(exceeded) = self.charge_session_memory(session) {
                    session.undo_handshake();
                    received = ReceiveOutcome::Reply {
                        id: id.clone(),
                        outcome: Err(exceeded.into()),
                    };
                }
            }
            ReceiveOutcome::Reply { outcome, .. } if outcome.is_ok() => {
                if let Some(subscribed) = params {
                    let uri = subscribed.get_str("uri").unwrap_or_default();
                    let kept = match session.peer() {
                        Some(peer) if unknown.is_some_and(|unknown| unknown.contains(&*uri)) => {
                            Err(RpcError::resource_not_found(peer.revision, Some(&uri)))
                        }
                        _ => self.charge_session_memory(session).map_err(RpcError::from),
                    };
                    // The end of a subscription is never refused. What is kept of it takes no more than the subscription did.
                    let must_succeed = before_unsubscribing.is_some_and(|before| {
                        session.retained_bytes() <= before
                            || earlier
                                .as_ref()
                                .is_some_and(EarlierSubscription::is_subscribed)
                    });
                    if let Err(error) = kept
                        && !must_succeed
                    {
                        if let Some(earlier) = earlier {
                            session.restore_subscription(earlier);
                        }
                        *outcome = Err(error);
                    }
                }
            }
            _ => {}
        }
        if let (Some(log), Some(client)) = (&mut log, session.peer()) {
            log.set_client(client.clone());
        }
        if let Some(origin) = &self.traffic {
            let peer = match &received {
                ReceiveOutcome::Request(admitted) => Some(&admitted.peer),
                _ => session.peer(),
            };
            if let Some(peer) = peer {
                origin.set_revision(peer.revision);
            }
        }
        ReceivedMessage {
            received,
            log,
            span,
        }
    }

    /// Counts the session that a handshake has begun, here or in another process, if it is one and has not ended.
    fn begin_session(&self, peer: &ClientProfile) {
        if self.session_state.is_none() {
            return;
        }
        let mut phase = self.lock_session_phase();
        if matches!(*phase, SessionPhase::Fresh) {
            *phase = SessionPhase::Open {
                _session: Box::new(OpenSession::begin(self, peer.revision)),
            };
        }
    }

    fn lock_session_phase(&self) -> MutexGuard<'_, SessionPhase> {
        self.session_phase
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the client for the memory of its session.
    fn charge_session_memory(&self, session: &Session) -> Result<(), Exceeded> {
        let bytes = SESSION_BYTES + session.retained_bytes();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *kept {
            Some(charge) if charge.amount() >= bytes => charge.shrink_to(bytes),
            Some(charge) => charge.absorb(self.client.hold_bytes(bytes - charge.amount())?),
            None => *kept = Some(self.client.hold_bytes(bytes)?),
        }
        Ok(())
    }

    /// Sets `interrupt` when the request ends before a call is attached to it. Returns `false` if that has happened
    /// already.
    pub(super) fn interrupt_at_end(&self, key: RequestKey, interrupt: &Arc<AtomicBool>) -> bool {
        let mut session = self.lock_session();
        let Some(served) = session.request_handle_mut(key) else {
            return false;
        };
        served._interrupt = Some(InterruptOnDrop(interrupt.clone()));
        true
    }

    /// Whether a request has neither ended nor been cancelled.
    pub(super) fn is_in_flight(&self, key: RequestKey) -> bool {
        self.lock_session().request_handle(key).is_some()
    }

    /// Returns a channel that is closed when the request ends; `None` if that has happened already.
    pub(super) fn end_of_request(&self, key: RequestKey) -> Option<watch::Receiver<()>> {
        let mut session = self.lock_session();
        let served = session.request_handle_mut(key)?;
        let end = served.end.get_or_insert_with(|| watch::channel(()).0);
        Some(end.subscribe())
    }

    /// Hands a call to the session, which returns it when the client cancels or the server shuts down. Returns `false`
    /// if that has happened already.
    pub(crate) fn attach(&self, key: RequestKey, call: Arc<CallState>) -> bool {
        let replaced = match self.lock_session().request_handle_mut(key) {
            Some(served) => served.call.replace(call),
            None => return false,
        };
        // Outside the lock: dropping it may lock the session.
        drop(replaced);
        true
    }

    /// Cancels all requests in flight, because the only client of this exchange disconnected.
    pub(crate) fn cancel_all(&self) {
        self.close_with(&InputRequestError::Cancelled);
    }

    /// Closes a lost connection: cancels its calls and fails its input requests.
    pub(crate) fn close(&self) {
        self.server.unlist_connection(self.number);
        *self.lock_session_phase() = SessionPhase::Ended;
        self.close_with(&InputRequestError::ConnectionLost);
        if let Some(state) = &self.session_state {
            state.end();
        }
    }

    /// Ends the requests in flight because the server shuts down. See [`end_with_error`](Self::end_with_error).
    pub(crate) fn end_with_shutdown_error(&self) {
        self.end_listening();
        self.end_with_error(&RpcError::shutting_down());
    }

    /// Ends the requests in flight: cancels their handlers and answers with this error. Later requests get the same error.
    /// A request that its handler is ending on another thread gets the response of the handler.
    pub(crate) fn end_with_error(&self, error: &RpcError) {
        self.events.close();
        let _answering = self.begin_response_write();
        let ended = self.lock_session().end_with_error(error);
        // All answers first: what is called at the end is foreign code, which may panic.
        let mut called_back = Vec::new();
        for (served, finished) in ended {
            let _recorded = served.log.map(|mut log| {
                log.await_record();
                RecordOnDrop(Some(log), RequestOutcome::Error(error.code))
            });
            for message in &finished.before {
                message_sink::send(&*served.sink, MessageKind::Notification, message);
            }
            let mut input_requests = Vec::new();
            for (callback, cancellation) in finished.abandoned {
                message_sink::send(&*served.sink, MessageKind::Request, &cancellation.message);
                input_requests.push(callback);
            }
            let ErrorCode(code) = error.code;
            let kind = MessageKind::Response(ResponseStatus::Error(code));
            served.sink.write(kind, 192, &mut |out| {
                encode::error(out, Some(&finished.id), error);
            });
            called_back.push((served.call, input_requests));
        }
        for (call, input_requests) in called_back {
            if let Some(call) = call {
                call.cancel();
            }
            for callback in input_requests {
                callback(Err(InputRequestError::ConnectionLost));
            }
        }
    }

    fn close_with(&self, error: &InputRequestError) {
        self.events.close();
        let (served, input_requests) = self.lock_session().close();
        for served in served {
            cancel_request(Some(served), Vec::new(), error);
        }
        for callback in input_requests {
            callback(Err(error.clone()));
        }
    }

    /// Fails every open input request, because no client is left to answer. Calls in flight go on.
    pub(crate) fn fail_input_requests(&self) {
        let input_requests = self.lock_session().drop_server_requests();
        for callback in input_requests {
            callback(Err(InputRequestError::ConnectionLost));
        }
    }

    /// Starts to close a connection that is the transport's only one: later requests are answered with the shutdown
    /// error, streams of change notifications end and input requests fail. Calls in flight go on, and the client may
    /// still cancel them.
    pub(crate) fn wind_down(&self) {
        self.lock_session()
            .refuse_requests(RpcError::shutting_down());
        self.end_listening();
        self.fail_input_requests();
    }

    /// Whether nothing is in flight, every response is written and every custom notification handled.
    pub(crate) fn is_idle(&self) -> bool {
        self.has_answered() && self.events.has_none_running()
    }

    /// Whether nothing is in flight and every response is written. A handler of notifications may run as long as the
    /// session, so it does not count.
    pub(crate) fn has_answered(&self) -> bool {
        // In this order: a response is counted before its request leaves the session.
        self.lock_session().in_flight() == 0 && self.response_writes.is_idle()
    }

    /// Whether every custom notification has been handled.
    pub(crate) fn has_handled_notifications(&self) -> bool {
        self.events.has_none_running()
    }

    /// Holds `held` until every custom notification has been handled.
    pub(crate) fn hold_until_handled(&self, held: impl std::any::Any + Send) {
        self.events.hold_until_handled(held);
    }

    /// Keeps the connection from being idle while the response to a finished request is written.
    pub(crate) fn begin_response_write(&self) -> ResponseWriteGuard<'_> {
        self.response_writes.begin()
    }

    /// Calls `callback` as soon as no response is being written: at once, or at the end of the last write.
    pub(crate) fn when_responses_are_written(&self, callback: impl FnOnce() + Send + 'static) {
        self.response_writes.at_end(callback);
    }

    /// Notifies the client of a change, if it has subscribed to it.
    pub(crate) fn notify_change(&self, change: &Change) {
        let mut session = self.lock_session();
        for outgoing in session.notify_change(change) {
            self.send(&mut session, MessageKind::Notification, &outgoing);
        }
    }

    /// Notifies the client that a URL elicitation is complete. Returns `false` if this client did not get it.
    pub(crate) fn elicitation_complete(&self, elicitation_id: &str) -> bool {
        let mut session = self.lock_session();
        let outgoing = session.complete_url_elicitation(elicitation_id);
        if let Some(outgoing) = &outgoing {
            self.send(&mut session, MessageKind::Request, outgoing);
        }
        outgoing.is_some()
    }

    /// Takes over another process's state of this session.
    pub(crate) fn adopt(self: &Arc<Self>, state: &SessionState) {
        self.change_state(|session| session.adopt(state));
    }

    /// Takes over the state of this session that the store has.
    pub(crate) fn adopt_stored(self: &Arc<Self>, stored: &SessionState) {
        self.change_state(|session| session.adopt_stored(stored));
    }

    /// Merges the changes of this process that are not saved with the state that the store has.
    pub(crate) fn merge_stored(self: &Arc<Self>, stored: &SessionState) {
        self.change_state(|session| session.merge_stored(stored));
    }

    /// Concludes from a message that the handshake is complete, if another process may have received the notification.
    pub(crate) fn conclude_handshake(self: &Arc<Self>, message: &Message) {
        if !self.lock_session().is_ready() {
            self.change_state(|session| session.conclude_handshake(message));
        }
    }

    fn change_state(&self, change: impl FnOnce(&mut Session) -> Vec<Outgoing>) {
        let mut session = self.lock_session();
        for outgoing in change(&mut session) {
            self.send(&mut session, MessageKind::Request, &outgoing);
        }
        if let Some(peer) = session.peer() {
            self.begin_session(peer);
        }
    }

    /// Ends the client's streams of change notifications gracefully. Streams that it opens later end at once.
    pub(crate) fn end_listening(&self) {
        // Set before the session is read: streams admitted later see the flag.
        self.has_ended_listening.store(true, Ordering::Release);
        let mut session = self.lock_session();
        let sinks = session.request_handles();
        let sinks: HashMap<RequestKey, Arc<dyn MessageSink>> = sinks
            .map(|(key, served)| (key, served.sink.clone()))
            .collect();
        let ended = session.end_subscription_streams();
        drop(session);
        for (key, id, result) in ended {
            if let Some(sink) = sinks.get(&key) {
                answer(&**sink, &id, Ok(result));
            }
        }
    }

    /// Schedules the timer for the session's next deadline.
    pub(crate) fn schedule(self: &Arc<Self>) {
        let Some(deadline) = self.lock_session().poll_deadline() else {
            return;
        };
        self.server.timers().schedule(deadline, self);
    }

    fn send(&self, session: &mut Session, kind: MessageKind, outgoing: &Outgoing) {
        let sink = outgoing
            .related
            .and_then(|key| session.request_handle(key))
            .map_or_else(|| self.general.clone(), |served| served.sink.clone());
        message_sink::send(&*sink, kind, &outgoing.message);
    }
}

impl Timed for Connection {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    fn fire(self: Arc<Self>) {
        let mut failed = Vec::new();
        let mut dead = false;
        {
            let mut session = self.lock_session();
            if !self.general.is_connected() {
                session.postpone_pings(clock::now());
            }
            for due in session.handle_timeout(clock::now()) {
                match due {
                    TimeoutEvent::Send(outgoing) => {
                        self.send(&mut session, MessageKind::Notification, &outgoing);
                    }
                    TimeoutEvent::ServerRequest {
                        handle,
                        error,
                        cancel,
                    } => {
                        self.send(&mut session, MessageKind::Request, &cancel);
                        failed.push((handle, error));
                    }
                    TimeoutEvent::ClientUnresponsive => dead = true,
                }
            }
        }
        for (callback, error) in failed {
            callback(Err(error));
        }
        if dead {
            // Logged by number: a session id would give readers of the log access to the session.
            tracing::info!(connection = self.number, "a client no longer answers pings");
            let callback = self
                .on_ping_timeout
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            // First, because an HTTP session answers its calls, which a connection that is closed no longer can.
            if let Some(callback) = callback {
                callback();
            }
            self.close();
            return;
        }
        self.schedule();
    }
}

fn cancel_request(
    served: Option<RequestHandle>,
    input_requests: Vec<InputResponseCallback>,
    error: &InputRequestError,
) {
    for callback in input_requests {
        callback(Err(error.clone()));
    }
    if let Some(served) = served {
        if let Some(call) = served.call {
            call.cancel();
        }
        served.sink.abandon();
    }
}

/// Writes the response to a request that the session answered itself.
fn answer(sink: &dyn MessageSink, id: &RequestId, outcome: Result<Vec<u8>, RpcError>) {
    match outcome {
        Ok(result) => sink.write(
            MessageKind::Response(ResponseStatus::Result),
            result.len() + 96,
            &mut |out| {
                encode::response(out, id, &result);
            },
        ),
        Err(error) => refuse(sink, id, &error),
    }
}

/// Refuses a subscription that its client has no permission for, or whose check failed.
fn refuse_subscribing(sink: &dyn MessageSink, id: &RequestId, error: &RpcError) {
    warn_of_limit(error);
    let ErrorCode(code) = error.code;
    let status = match error.code {
        ErrorCode::INSUFFICIENT_SCOPE => ResponseStatus::Forbidden(code),
        _ => ResponseStatus::Refused(code),
    };
    sink.write(MessageKind::Response(status), 192, &mut |out| {
        encode::error(out, Some(id), error);
    });
}

/// Refuses a request before it is dispatched.
fn refuse(sink: &dyn MessageSink, id: &RequestId, error: &RpcError) {
    warn_of_limit(error);
    let ErrorCode(code) = error.code;
    sink.write(
        MessageKind::Response(ResponseStatus::Refused(code)),
        192,
        &mut |out| {
            encode::error(out, Some(id), error);
        },
    );
}
