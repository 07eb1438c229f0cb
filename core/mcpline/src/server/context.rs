//! The context of a call: its request, and what the handler can send meanwhile.

use std::sync::Arc;

use mcpline_protocol::Scopes;
use mcpline_protocol::session::{ClientProfile, InputRequestError, Outgoing, RequestKey};
use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::{Method, Raw, encode};
use mcpline_protocol::{Revision, RpcError};
use mcpline_runtime::clock;
use serde::Serialize;

use crate::caller::Caller;
use crate::error::Error;
use crate::message_sink::{self, MessageSink};
use crate::quota::ClientQuota;
use crate::sharing::SharingRequest;
use crate::span;
use crate::trace_context::TraceContext;
use crate::warning_limit::warn_limited;

use super::Inner;
use super::call::{CallState, CurrentRequest};
use super::call_kind::CallKind;
use super::connection::{Connection, SessionGuard};
use super::custom_methods;
use super::input_requests::{self, InputRequest};
use super::middleware::{MessageMiddlewares, NextCallback};
use super::permission;
use super::request_info::HttpInfo;
use super::request_span::TracedRequest;
use super::sent_notifications::{self, LogRecord, ProgressReport, SentNotification};

/// The context of the request that a handler serves. Cheap to clone, usable on any thread.
///
/// On 2026-07-28 the client answers input requests with a new request (see [`Context::request_input`]); from then on the context
/// describes that one.
#[derive(Clone)]
pub struct Context {
    call: Arc<CallState>,
}

impl Context {
    pub(crate) fn new(call: Arc<CallState>) -> Self {
        Self { call }
    }

    /// Returns the client that everything held for the call is charged to.
    pub(crate) fn client(&self) -> Arc<ClientQuota> {
        self.call.lock_current_request().connection.client().clone()
    }

    /// Reports progress (every revision, `basic/utilities/progress`).
    ///
    /// `progress` must increase with each report; `total` is its value at the end, if known. Does nothing if the client
    /// did not ask for progress. Reports above the session's `progress_rate` are dropped, except that the last one is
    /// always sent.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let method = Method::NotificationsProgress;
        let Some(middlewares) = MessageMiddlewares::of_call(&self.call, method.as_str()) else {
            return self.progress_now(progress, total, message);
        };
        if !self.wants(|session, key| key.is_some_and(|key| session.wants_progress(key))) {
            return;
        }
        let report = ProgressReport {
            progress,
            total,
            message: message.map(str::to_owned),
        };
        // A number that has no JSON form is not reported either.
        let Ok(params) = Raw::from_serialize(&report) else {
            return;
        };
        let ctx = self.clone();
        let send = Box::new(move |params: Option<&Raw>| {
            if let Some(report) =
                sent_notifications::read::<ProgressReport>("notifications/progress", params)
            {
                ctx.progress_now(report.progress, report.total, report.message.as_deref());
            }
        });
        let notification = SentNotification {
            method,
            params: Some(params),
            send,
        };
        sent_notifications::send_progress(&self.call, middlewares, notification);
    }

    /// Whether the client wants a notification of the call now, before middleware sees it.
    fn wants(&self, wants: impl FnOnce(&mut SessionGuard<'_>, Option<RequestKey>) -> bool) -> bool {
        let (connection, key) = {
            let current_request = self.call.lock_current_request();
            (current_request.connection.clone(), current_request.key)
        };
        if key.is_none() && !self.call.is_outside_request() {
            return false;
        }
        let mut session = connection.lock_session();
        wants(&mut session, key)
    }

    fn progress_now(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (connection, sink, key) = {
            let current_request = self.call.lock_current_request();
            let Some(key) = current_request.key else {
                return;
            };
            (
                current_request.connection.clone(),
                current_request.sink.clone(),
                key,
            )
        };
        let mut session = connection.lock_session();
        let outgoing = session.progress(key, progress, total, message, clock::now());
        send_or_schedule(&connection, session, &*sink, outgoing);
    }

    /// Sends a log message to the client, if the client wants messages of this level (`server/utilities/logging`).
    ///
    /// `data` is anything that has a JSON form: a text, a `json!` value, a struct. If it has none, a warning is logged
    /// and nothing is sent. On handshake revisions `logging/setLevel` sets the level; on 2026-07-28 each request does.
    ///
    /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        match Raw::from_serialize(&data) {
            Ok(data) => self.log_raw(level, logger, &data),
            Err(error) => {
                warn_limited!(%error, "dropped a log message: its data cannot be written as JSON")
            }
        }
    }

    /// [`Context::log`] with data that is JSON already.
    pub fn log_raw(&self, level: LoggingLevel, logger: Option<&str>, data: &Raw) {
        let method = Method::NotificationsMessage;
        let Some(middlewares) = MessageMiddlewares::of_call(&self.call, method.as_str()) else {
            return self.log_now(level, logger, data);
        };
        if !self.wants(|session, key| session.wants_log(key, level)) {
            return;
        }
        let record = LogRecord {
            level,
            logger: logger.map(str::to_owned),
            data: data.clone(),
        };
        // Its data is JSON already.
        let Ok(params) = Raw::from_serialize(&record) else {
            return;
        };
        let ctx = self.clone();
        let send = Box::new(move |params: Option<&Raw>| {
            if let Some(record) =
                sent_notifications::read::<LogRecord>("notifications/message", params)
            {
                ctx.log_now(record.level, record.logger.as_deref(), &record.data);
            }
        });
        let notification = SentNotification {
            method,
            params: Some(params),
            send,
        };
        sent_notifications::send(&self.call, middlewares, notification);
    }

    fn log_now(&self, level: LoggingLevel, logger: Option<&str>, data: &Raw) {
        let (connection, sink, key) = {
            let current_request = self.call.lock_current_request();
            if current_request.key.is_none()
                && (!self.call.is_outside_request() || current_request.peer.revision.is_modern())
            {
                return;
            }
            (
                current_request.connection.clone(),
                current_request.sink.clone(),
                current_request.key,
            )
        };
        let mut session = connection.lock_session();
        let outgoing = session.log(key, level, logger, data, clock::now());
        send_or_schedule(&connection, session, &*sink, outgoing);
    }

    /// Sends a custom notification on the call's stream.
    ///
    /// In handshake sessions, handlers of events and of custom notifications send it on the session's own stream. Does
    /// nothing after the request has ended or was cancelled, while it is suspended, and where there is no stream.
    /// Notifications are dropped while too much is unread by the client; on a resumable stream this is half of
    /// `max_kept_events` or `max_kept_bytes`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the protocol defines the method, its name begins with `rpc.` or
    /// is not 1 to 1024 bytes of visible ASCII, or `params` is not a JSON object.
    pub fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), Error> {
        custom_methods::check_notification(method, params)?;
        match MessageMiddlewares::of_call(&self.call, method) {
            None => self.notify_now(method, params),
            Some(middlewares) => {
                let is_sent =
                    self.wants(|session, key| key.is_none_or(|key| session.is_in_flight(key)));
                if !is_sent {
                    return Ok(());
                }
                let (ctx, name) = (self.clone(), method.to_owned());
                let notification = SentNotification {
                    method: Method::parse(method),
                    params: params.cloned(),
                    send: Box::new(move |params| ctx.notify_now(&name, params)),
                };
                sent_notifications::send(&self.call, middlewares, notification);
            }
        }
        Ok(())
    }

    fn notify_now(&self, method: &str, params: Option<&Raw>) {
        let (connection, sink, key) = {
            let current_request = self.call.lock_current_request();
            if current_request.key.is_none()
                && (!self.call.is_outside_request() || current_request.peer.revision.is_modern())
            {
                return;
            }
            (
                current_request.connection.clone(),
                current_request.sink.clone(),
                current_request.key,
            )
        };
        let mut session = connection.lock_session();
        if key.is_some_and(|key| !session.is_in_flight(key)) {
            return;
        }
        if sink.is_congested() {
            connection.client().counts().add_dropped_sent(1);
            tracing::debug!(
                method,
                "dropped a notification of a handler: its client has too many unread messages"
            );
            return;
        }
        let params = params.map(Raw::as_bytes);
        sink.write(
            message_sink::MessageKind::Notification,
            params.map_or(0, <[u8]>::len) + 96,
            &mut |out| encode::notification(out, method, params),
        );
    }

    /// Sends an input request to the client during the call, on every revision.
    ///
    /// On handshake revisions it is a JSON-RPC request. On 2026-07-28 the call is answered with `input_required` and
    /// its handler suspended; the client's retry resumes it. If the retry reaches another process, the handler runs
    /// again there with the recorded answers. Input requests that are open at the same time are sent together; on a
    /// multi-threaded runtime they may take two rounds.
    ///
    /// `sink` is called once, on any thread, with the client's result.
    pub fn request_input_with(
        &self,
        input_request: InputRequest,
        sink: impl FnOnce(Result<Raw, InputRequestError>) + Send + 'static,
    ) {
        input_requests::send_input_request(&self.call, input_request, Box::new(sink));
    }

    /// Sends an input request and waits for the answer; see [`Context::request_input_with`].
    ///
    /// # Errors
    ///
    /// [`InputRequestError`]: the client does not support the request, answered with an error, or took too long; or the
    /// call was cancelled.
    pub async fn request_input(
        &self,
        input_request: InputRequest,
    ) -> Result<Raw, InputRequestError> {
        match span::is_wanted() {
            true => Box::pin(self.request_input_in_span(input_request)).await,
            false => self.request_input_without_span(input_request).await,
        }
    }

    /// Sends an input request without a span.
    pub(super) async fn request_input_without_span(
        &self,
        input_request: InputRequest,
    ) -> Result<Raw, InputRequestError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.request_input_with(input_request, move |outcome| {
            // The handler may have dropped the future.
            let _ = sender.send(outcome);
        });
        receiver
            .await
            .unwrap_or(Err(InputRequestError::ConnectionLost))
    }

    /// Returns whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Returns whether the handler is suspended: its request was answered with input requests, and the client has not
    /// retried it yet (2026-07-28).
    pub fn is_suspended(&self) -> bool {
        self.call.lock_current_request().key.is_none() && !self.call.is_outside_request()
    }

    /// Registers a callback that runs once, on any thread, when the request is cancelled; at once if it already is.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        self.call.on_cancel(Box::new(callback));
    }

    /// Closes the HTTP response stream while the call continues; the client reconnects for the rest (2025-11-25,
    /// `basic/transports`, polling).
    ///
    /// Does nothing on other revisions and transports.
    pub fn close_stream(&self) {
        let current_request = self.call.current_request();
        if current_request.peer.revision.features().sse_priming {
            current_request.sink.close_stream();
        }
    }

    /// Returns the client: its revision, implementation and capabilities.
    pub fn peer(&self) -> Arc<ClientProfile> {
        self.call.lock_current_request().peer.clone()
    }

    /// Returns the settings, a JSON object, with which the client declared an extension, or `None` if it did not. On
    /// 2026-07-28 each request declares its own.
    pub fn client_extension(&self, identifier: &str) -> Option<Raw> {
        self.peer().extension(identifier)
    }

    /// Checks that the client declared an extension, for handlers that need it only in part.
    ///
    /// If the whole method belongs to an extension, use [`MethodOptions::extension`](super::MethodOptions::extension)
    /// instead.
    ///
    /// # Errors
    ///
    /// The error to return from the handler: -32021, which names the extension (2026-07-28, "Extensions", negotiation).
    pub fn require_extension(&self, identifier: &str) -> Result<(), RpcError> {
        match self.client_extension(identifier) {
            Some(_) => Ok(()),
            None => Err(RpcError::missing_extension(identifier)),
        }
    }

    /// Returns the trace context of the request: that of its `_meta` (2026-07-28, "Base protocol", `_meta`), or else that of
    /// the HTTP request. `None` if it has neither.
    pub fn trace_context(&self) -> Option<TraceContext> {
        let own = self.meta().as_ref().and_then(TraceContext::from_meta);
        #[cfg(feature = "http")]
        let own = own.or_else(|| self.http()?.trace_context());
        own
    }

    /// Returns what the code of the request runs in, if it has a span or is not sampled.
    #[cfg(feature = "otlp")]
    pub(crate) fn scope(&self) -> Option<span::SpanScope> {
        let current = self.call.lock_current_request();
        Some(current.span.as_ref()?.scope().clone())
    }

    /// Returns the trace context of the request's span; `None` if the span is not exported.
    #[cfg(feature = "otlp")]
    pub(crate) fn exported_context(&self) -> Option<TraceContext> {
        crate::open_telemetry::context_of_scope(&self.scope()?)
    }

    /// Returns the request as another language traces it, if one does.
    pub(crate) fn traced(&self) -> Option<Arc<TracedRequest>> {
        let current = self.call.lock_current_request();
        current.span.as_ref()?.traced().cloned()
    }

    /// Returns the name of the tool, if the call is one of a tool.
    pub fn tool_name(&self) -> Option<String> {
        (self.call.kind() == CallKind::Tool).then(|| self.call.name())
    }

    /// Returns the name of the prompt, if the call gets one.
    pub fn prompt_name(&self) -> Option<String> {
        (self.call.kind() == CallKind::Prompt).then(|| self.call.name())
    }

    /// Returns the URI of the resource, if the call reads one.
    pub fn uri(&self) -> Option<String> {
        (self.call.kind() == CallKind::Resource).then(|| self.call.name())
    }

    /// Returns the connection of the request that the call serves now.
    pub(super) fn connection(&self) -> Arc<Connection> {
        self.call.lock_current_request().connection.clone()
    }

    /// Returns the request that the call serves now.
    pub(super) fn current_request(&self) -> Arc<CurrentRequest> {
        self.call.current_request()
    }

    /// Returns the server of the call.
    pub(crate) fn server(&self) -> &Arc<Inner> {
        &self.call.server
    }

    /// Returns the revision of the request.
    pub fn revision(&self) -> Revision {
        self.call.lock_current_request().peer.revision
    }

    /// Returns the JSON-RPC id of the request as JSON; `""` outside a request.
    pub fn request_id(&self) -> Raw {
        Raw::from_trusted(bytes::Bytes::copy_from_slice(
            self.call.lock_current_request().id.raw(),
        ))
    }

    /// Passes the request of a middleware's call on.
    pub(crate) fn run_next(&self, params: Option<Raw>, callback: NextCallback) {
        self.call.run_next(params, callback);
    }

    /// Returns the kind of transport that the request came over: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
    pub fn transport(&self) -> &'static str {
        self.call
            .lock_current_request()
            .connection
            .transport_kind()
            .name()
    }

    /// Returns the id of the HTTP session, on handshake revisions.
    pub fn session_id(&self) -> Option<String> {
        self.call
            .lock_current_request()
            .connection
            .session_id()
            .map(Into::into)
    }

    /// Returns the HTTP request, if there is one, or what a client in this process has in its place
    /// ([`MemoryTransportOptions::with_headers`](crate::transport::MemoryTransportOptions::with_headers)).
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn http(&self) -> Option<Arc<HttpInfo>> {
        let current_request = self.call.lock_current_request();
        let simulated = current_request.connection.simulated_http();
        current_request.http.as_ref().or(simulated).cloned()
    }

    /// Returns the call that the context is of.
    #[cfg(feature = "openapi")]
    pub(super) fn call_state(&self) -> &Arc<CallState> {
        &self.call
    }

    /// Returns the name of what is called: see [`Call::name`](super::Call::name).
    #[cfg(feature = "openapi")]
    pub(crate) fn called_name(&self) -> String {
        self.call.name()
    }

    /// Returns the request that the HTTP client of an imported API sends.
    #[cfg(feature = "openapi")]
    pub(crate) fn api_request(&self) -> Option<&super::api_function::ApiRequest> {
        self.call.api_request()
    }

    /// Returns the request to shared state.
    pub(crate) fn sharing_request(&self) -> Option<&SharingRequest> {
        self.call.sharing_request()
    }

    /// Returns the request of a route.
    #[cfg(feature = "routes")]
    pub(crate) fn http_request(&self) -> Option<&http::Request<bytes::Bytes>> {
        self.call.http_request()
    }

    /// Returns the authenticated caller.
    ///
    /// Over HTTP it comes from the verified token, on other transports from the [principal](crate::Server::connect_as).
    /// `None` on transports without a principal and over HTTP without authorization.
    pub fn auth(&self) -> Option<Caller> {
        let current_request = self.call.lock_current_request();
        match &current_request.http {
            Some(http) => http.auth.clone(),
            None => current_request.connection.auth().cloned(),
        }
    }

    /// Checks that the caller has these scopes, for requirements that depend on the arguments.
    ///
    /// Declare fixed requirements with the tool instead ([`ToolOptions::scopes`](super::ToolOptions::scopes)). On
    /// transports without a principal every caller has all scopes.
    ///
    /// # Errors
    ///
    /// The error to return from the handler. Over HTTP it becomes status 403 with a challenge that names the scopes
    /// (2025-11-25, `basic/authorization`, scope challenge handling), unless part of the response was sent; on other
    /// transports JSON-RPC error -31001.
    pub fn require_scopes<S: AsRef<str>>(
        &self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<(), RpcError> {
        let needed = Scopes::checked(scopes).map_err(|text| {
            RpcError::internal_error(format!(
                "{text:?} can't be a scope: scopes are visible ASCII without quotes and backslashes"
            ))
        })?;
        let (connection, http) = {
            let current_request = self.call.lock_current_request();
            (
                current_request.connection.clone(),
                current_request.http.clone(),
            )
        };
        match permission::has_scopes(&connection, http.as_deref(), &needed) {
            true => Ok(()),
            false => Err(RpcError::insufficient_scope(&needed)),
        }
    }

    /// Returns the `_meta` of the request, as JSON.
    pub fn meta(&self) -> Option<Raw> {
        self.call.lock_current_request().meta.clone()
    }

    /// Returns the client's answers to the input requests that the handler returned in its last run, by key; `None` in
    /// the first run.
    pub fn input_responses(&self) -> Option<Raw> {
        self.call
            .input
            .as_ref()
            .map(|input| input.responses.clone())
    }

    /// Returns the state that the handler returned in its last run.
    pub fn request_state(&self) -> Option<String> {
        self.call.input.as_ref()?.state.clone()
    }
}

/// Sends a message within the session's lock, so that neither a later report nor the response overtakes it.
fn send_or_schedule(
    connection: &Arc<Connection>,
    session: SessionGuard<'_>,
    sink: &dyn MessageSink,
    outgoing: Option<Outgoing>,
) {
    match outgoing {
        Some(outgoing) => message_sink::send(
            sink,
            message_sink::MessageKind::Notification,
            &outgoing.message,
        ),
        None => {
            drop(session);
            connection.schedule();
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.call.name())
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}
