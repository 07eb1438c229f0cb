//! One call of a handler: its arguments, the request that it currently serves, and its single outcome.
//!
//! A call can outlive its first request: on 2026-07-28 it is suspended while the client answers input requests, and the
//! client's retry, a different request and possibly on another connection, becomes its [`CurrentRequest`].

use std::fmt;
use std::time::Duration;

#[cfg(feature = "openapi")]
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::session::{ClientProfile, InputRequestError, RequestKey};
use mcpline_protocol::wire::{Method, Params, Raw};
use mcpline_protocol::{RequestId, RpcError};
use mcpline_runtime::clock;

use crate::message_sink::MessageSink;
use crate::quota::Charge;
use crate::sharing::SharingRequest;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{self, Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Inner;
#[cfg(feature = "openapi")]
use super::api_function::{ApiFunctionCall, ApiRequest};
use super::argument_map::ArgumentMap;
use super::call_kind::CallKind;
use super::call_timeout::CallTimeout;
use super::client_notifications::ClientNotification;
use super::connection::Connection;
use super::context::Context;
use super::custom_methods::MethodEntry;
use super::feature_entries::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use super::input_requests::InputRecord;
use super::middleware::{
    self, AwaitedOutcome, MessageQueue, MiddlewareCall, NextCallback, WaitingMessage,
};
use super::reply::{HandlerError, Reply};
use super::request_info::HttpInfo;
use super::request_span::RequestSpan;
#[cfg(feature = "routes")]
use super::routes::{self, RouteCall};
use super::sharing_call::SharingCall;
use super::template_lists::{self, ListCall};
use super::tool_approval;

/// A call passed to a [`Handler`](super::Handler).
///
/// Answer it with [`Call::reply`], from any thread, immediately or later. A call that is dropped without an answer is
/// answered with an internal error.
pub struct Call {
    state: Option<Arc<CallState>>,
    transformed: Option<Box<TransformedCall>>,
}

/// What the handler of a transformed tool knows of its call.
struct TransformedCall {
    /// The arguments, by the names that the handler knows.
    arguments: Raw,
    /// How they differ from those that the client has sent: a tool that was transformed several times has several.
    maps: Vec<Arc<ArgumentMap>>,
}

/// Target of a call.
pub(crate) enum Target {
    Tool(Arc<ToolEntry>),
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
    Prompt(Arc<PromptEntry>),
    /// The server that the prompt or resource comes from, if it is a mounted one.
    Completion(Option<Arc<Inner>>),
    ResourceList(Arc<ListCall>),
    Request(Arc<MethodEntry>),
    Notification(Arc<MethodEntry>),
    Event(ClientNotification),
    Middleware(Arc<MiddlewareCall>),
    Sharing(Arc<SharingCall>),
    #[cfg(feature = "openapi")]
    ApiFunction(Arc<ApiFunctionCall>),
    #[cfg(feature = "routes")]
    Route(Arc<RouteCall>),
}

/// The request that a call serves at the moment.
pub(crate) struct CurrentRequest {
    pub(crate) connection: Arc<Connection>,
    pub(crate) sink: Arc<dyn MessageSink>,
    /// `None` while the call is suspended between a round and the client's retry.
    pub(crate) key: Option<RequestKey>,
    pub(crate) id: RequestId,
    pub(crate) peer: Arc<ClientProfile>,
    pub(crate) http: Option<Arc<HttpInfo>>,
    pub(crate) meta: Option<Raw>,
    /// Counts the call among those of its client that are in flight; `None` while it is suspended.
    pub(crate) in_flight: Option<Charge>,
    /// The span of the request, if it has one.
    pub(super) span: Option<Arc<RequestSpan>>,
    /// The middleware that waits for the outcome, in place of the client.
    pub(super) middleware: Option<Arc<AwaitedOutcome>>,
    /// Whether the user was asked before the tool ran, the last time that middleware passed the request on.
    pub(super) was_approved: AtomicBool,
}

/// Responses of a client to input requests that a handler returned.
#[derive(Debug, Clone)]
pub(crate) struct InputResponses {
    pub(crate) responses: Raw,
    pub(crate) state: Option<String>,
    pub(crate) round: u32,
}

type CancelCallback = Box<dyn FnOnce() + Send>;

/// How a handler ended. Boxed, because outcomes are large.
type Outcome = Box<Result<Reply, HandlerError>>;

pub(crate) struct CallState {
    /// When the call was dispatched, on the monotonic clock; `None` if metrics are off.
    queued: Option<Duration>,
    pub(crate) server: Arc<Inner>,
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) params: Option<Params>,
    pub(crate) arguments: Raw,
    pub(crate) input: Option<InputResponses>,
    pub(crate) record: Mutex<InputRecord>,
    /// Number of input requests sent to a client of a handshake revision.
    input_request_count: AtomicU32,
    /// An `Arc`, because code that sends messages keeps a copy after it releases the lock.
    current_request: Mutex<Arc<CurrentRequest>>,
    /// The handler's outcome, if it ended while the call was suspended; the client's retry gets it. Locked within
    /// `current_request`.
    outcome: Mutex<Option<Outcome>>,
    /// Whether the user is asked before the handler runs.
    needs_approval: AtomicBool,
    /// An atomic of `std`, because the validation of large values takes a reference to it.
    cancelled: std::sync::atomic::AtomicBool,
    on_cancel: Mutex<Vec<CancelCallback>>,
    done: AtomicBool,
    /// The timeout of a tool that has one, once its handler was started.
    timeout: OnceLock<Arc<CallTimeout>>,
    /// Messages of the handler that middleware delays.
    pub(super) messages: MessageQueue,
    /// The servers whose middlewares see what the handler sends, the innermost first: as they are when the call begins, because
    /// a feature may be removed, or its server unmounted, while it runs.
    message_servers: OnceLock<Arc<[Arc<Inner>]>>,
}

impl Call {
    pub(crate) fn new(state: Arc<CallState>) -> Self {
        Self {
            state: Some(state),
            transformed: None,
        }
    }

    fn state(&self) -> &Arc<CallState> {
        // Only `reply` and `drop` take the state, and both consume the call.
        self.state
            .as_ref()
            .expect("a call keeps its state until it is answered")
    }

    /// Returns the kind of feature that is called.
    pub fn kind(&self) -> CallKind {
        self.state().kind()
    }

    /// Records how long the call waited for the thread of its handler, which begins now, if metrics are on.
    pub(crate) fn record_queue_time(&self) {
        let state = self.state();
        // The time in which a user decides is not that of a queue.
        if state.needs_approval.load(Ordering::Acquire) {
            return;
        }
        if let (Some(metrics), Some(queued)) = (&state.server.metrics, state.queued) {
            metrics.record_queue_time(clock::now().saturating_sub(queued));
        }
    }

    /// Returns the server that serves the call.
    pub(crate) fn server(&self) -> &Inner {
        &self.state().server
    }

    /// Returns the name of the tool or prompt, the URI of the resource, the method of a custom request, custom
    /// notification or event, the URI template whose resources are listed, or the methods and the path of a route; `""` for a
    /// completion.
    pub fn name(&self) -> String {
        self.state().name()
    }

    /// Returns the arguments: a JSON object.
    ///
    /// For a resource template these are its variables; for a completion `ref`, `argument` and `context`; for a custom
    /// request or notification its parameters without `_meta` and the members that a retry adds.
    pub fn arguments(&self) -> &Raw {
        let transformed = self.transformed.as_ref();
        transformed.map_or(&self.state().arguments, |transformed| {
            &transformed.arguments
        })
    }

    /// Returns the request of a route, with its [`PathVariables`](super::PathVariables) in the extensions; `None` for other
    /// features.
    ///
    /// Its headers do not contain a token that the server has verified: see [`HttpInfo::headers`].
    #[cfg(feature = "routes")]
    #[cfg_attr(docsrs, doc(cfg(feature = "routes")))]
    pub fn http_request(&self) -> Option<&http::Request<bytes::Bytes>> {
        self.state().http_request()
    }

    /// Replaces the arguments by those that the handler of a transformed tool knows.
    pub(super) fn transformed(mut self, map: &Arc<ArgumentMap>) -> Self {
        let arguments = map.apply(self.arguments());
        let mut maps = self.transformed.take().map_or_else(Vec::new, |it| it.maps);
        maps.push(map.clone());
        self.transformed = Some(Box::new(TransformedCall { arguments, maps }));
        self
    }

    /// Whether it is a tool with an output schema.
    #[cfg(feature = "openapi")]
    pub(crate) fn has_output_schema(&self) -> bool {
        matches!(&self.state().target, Target::Tool(entry) if entry.output.is_some())
    }

    /// Returns the schema that the structured content of a tool has to match, if the server validates results.
    #[cfg(feature = "openapi")]
    pub(crate) fn output_schema(&self) -> Option<CompiledSchema> {
        match &self.state().target {
            Target::Tool(entry) if self.server().settings.check_output => entry.output.clone(),
            _ => None,
        }
    }

    /// Returns the context of the call. Cheap to clone, usable on any thread.
    pub fn context(&self) -> Context {
        Context::new(self.state().clone())
    }

    /// Returns the span of the request, if it has one.
    pub(super) fn span(&self) -> Option<Arc<RequestSpan>> {
        self.state().lock_current_request().span.clone()
    }

    /// Returns the number of the request, if another language traces it.
    pub(crate) fn span_number(&self) -> Option<u64> {
        let current = self.state().lock_current_request();
        Some(current.span.as_ref()?.traced()?.number())
    }

    /// Returns the client that limits count the call for. Calls that wait take turns by it.
    pub(crate) fn quota_peer(&self) -> crate::fair_queue::PeerId {
        self.state().lock_current_request().connection.client().peer
    }

    /// Ends the call with a result or an error. Does nothing if the request was cancelled.
    pub fn reply(mut self, outcome: Result<Reply, HandlerError>) {
        let Some(state) = self.state.take() else {
            return;
        };
        let outcome = match (&self.transformed, outcome) {
            (Some(transformed), Err(HandlerError::Tool(text))) => {
                // The last map is that of the handler.
                let maps = transformed.maps.iter().rev();
                let text = maps.fold(text, |text, map| map.with_names_of_client(text));
                Err(HandlerError::Tool(text))
            }
            (_, outcome) => outcome,
        };
        state.complete(outcome);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else {
            return;
        };
        // A cancelled handler is expected to give up.
        let error = if state.is_cancelled() {
            HandlerError::Tool(InputRequestError::Cancelled.to_string())
        } else {
            HandlerError::Internal("the handler ended without a result".into())
        };
        state.complete(Err(error));
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("kind", &self.kind())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl CurrentRequest {
    /// Registers `call` with the session, which cancels it when the client cancels the request or the server shuts
    /// down. Returns
    /// `false` if that has happened already: the call must not start then.
    pub(super) fn attach(&self, call: &Arc<CallState>) -> bool {
        let is_awaited = match &self.middleware {
            Some(awaited) => awaited.set_call(call),
            None => true,
        };
        is_awaited
            && self
                .key
                .is_some_and(|key| self.connection.attach(key, call.clone()))
    }

    /// Whether middleware has changed the parameters, so that headers need not match them.
    pub(super) fn is_changed(&self) -> bool {
        self.middleware
            .as_ref()
            .is_some_and(|awaited| awaited.is_changed())
    }

    /// Returns a copy for a call whose outcome is not that of the request: one of a middleware of another language, or of a list
    /// handler.
    pub(super) fn with_separate_outcome(&self) -> Self {
        Self {
            key: self.key,
            span: self.span.clone(),
            ..self.suspended()
        }
    }

    /// Returns a copy for a run of the request whose outcome middleware awaits. The request itself counts as in flight.
    pub(super) fn with_middleware(&self, awaited: Arc<AwaitedOutcome>, meta: Option<Raw>) -> Self {
        Self {
            key: self.key,
            span: self.span.clone(),
            meta,
            middleware: Some(awaited),
            ..self.suspended()
        }
    }

    /// Returns a copy for the time between a round and the client's retry: without a request, and not counted as in
    /// flight.
    fn suspended(&self) -> Self {
        Self {
            connection: self.connection.clone(),
            sink: self.sink.clone(),
            key: None,
            id: self.id.clone(),
            peer: self.peer.clone(),
            http: self.http.clone(),
            meta: self.meta.clone(),
            in_flight: None,
            span: None,
            middleware: None,
            was_approved: AtomicBool::new(false),
        }
    }
}

impl CallState {
    pub(crate) fn new(
        target: Target,
        method: Method,
        params: Option<Params>,
        arguments: Raw,
        input: Option<InputResponses>,
        record: InputRecord,
        current_request: Arc<CurrentRequest>,
    ) -> Arc<Self> {
        let server = current_request.connection.server().clone();
        Arc::new(Self {
            queued: server.metrics.as_ref().map(|_| clock::now()),
            server,
            target,
            method,
            params,
            arguments,
            input,
            record: Mutex::new(record),
            input_request_count: AtomicU32::new(0),
            current_request: Mutex::new(current_request),
            outcome: Mutex::new(None),
            needs_approval: AtomicBool::new(false),
            cancelled: std::sync::atomic::AtomicBool::new(false),
            on_cancel: Mutex::new(Vec::new()),
            done: AtomicBool::new(false),
            timeout: OnceLock::new(),
            messages: MessageQueue::default(),
            message_servers: OnceLock::new(),
        })
    }

    /// Creates a second run of the same request, with the responses to the input requests that the first run returned.
    pub(crate) fn second_run(&self, input: InputResponses) -> Arc<Self> {
        Self::new(
            self.target.clone(),
            self.method.clone(),
            self.params.clone(),
            self.arguments.clone(),
            Some(input),
            InputRecord::default(),
            self.current_request(),
        )
    }

    pub(crate) fn kind(&self) -> CallKind {
        match &self.target {
            Target::Tool(_) => CallKind::Tool,
            Target::Resource(_) | Target::Template(_) => CallKind::Resource,
            Target::Prompt(_) => CallKind::Prompt,
            Target::Completion(_) => CallKind::Completion,
            Target::ResourceList(_) => CallKind::ResourceList,
            Target::Request(_) => CallKind::Request,
            Target::Notification(_) => CallKind::Notification,
            Target::Event(_) => CallKind::Event,
            Target::Middleware(_) => CallKind::Middleware,
            Target::Sharing(_) => CallKind::Sharing,
            #[cfg(feature = "openapi")]
            Target::ApiFunction(function) => function.kind(),
            #[cfg(feature = "routes")]
            Target::Route(_) => CallKind::Route,
        }
    }

    pub(crate) fn name(&self) -> String {
        match &self.target {
            Target::Tool(entry) => entry.tool.name.clone(),
            Target::Prompt(entry) => entry.prompt.name.clone(),
            Target::Resource(entry) => entry.resource.uri.clone(),
            Target::Template(_) => self
                .params
                .as_ref()
                .and_then(|params| params.get_str("uri"))
                .map(std::borrow::Cow::into_owned)
                .unwrap_or_default(),
            Target::Completion(_) => String::new(),
            Target::ResourceList(list) => list.name().to_owned(),
            Target::Request(entry) | Target::Notification(entry) => entry.method.to_string(),
            Target::Event(event) => event.method().as_str().to_owned(),
            Target::Middleware(middleware) => middleware.name(),
            Target::Sharing(call) => call.request().name().to_owned(),
            #[cfg(feature = "openapi")]
            Target::ApiFunction(function) => function.name(),
            #[cfg(feature = "routes")]
            Target::Route(route) => route.entry.name(),
        }
    }

    /// Returns the request of a route.
    #[cfg(feature = "routes")]
    pub(super) fn http_request(&self) -> Option<&http::Request<bytes::Bytes>> {
        match &self.target {
            Target::Route(route) => Some(&route.request),
            _ => None,
        }
    }

    /// Returns the request to shared state.
    pub(super) fn sharing_request(&self) -> Option<&SharingRequest> {
        match &self.target {
            Target::Sharing(shared) => Some(shared.request()),
            _ => None,
        }
    }

    /// Returns the request that the HTTP client of an imported API sends.
    #[cfg(feature = "openapi")]
    pub(super) fn api_request(&self) -> Option<&ApiRequest> {
        match &self.target {
            Target::ApiFunction(function) => function.request(),
            _ => None,
        }
    }

    /// Passes the request of a middleware's call on, with other parameters if `params` are given.
    pub(crate) fn run_next(&self, params: Option<Raw>, callback: NextCallback) {
        match &self.target {
            Target::Middleware(middleware) => middleware.run_next(params, callback),
            _ => callback(Err(RpcError::internal_error(
                "the call is not one of a middleware",
            ))),
        }
    }

    /// Whether the call is one of a middleware.
    pub(super) fn is_middleware(&self) -> bool {
        matches!(self.target, Target::Middleware(_))
    }

    /// Whether the call serves a notification, an event, a route, a middleware or another handler: the client waits for no
    /// response of it.
    pub(super) fn is_outside_request(&self) -> bool {
        match self.target {
            Target::Event(_)
            | Target::Notification(_)
            | Target::Middleware(_)
            | Target::Sharing(_) => true,
            #[cfg(feature = "openapi")]
            Target::ApiFunction(_) => true,
            #[cfg(feature = "routes")]
            Target::Route(_) => true,
            _ => false,
        }
    }

    /// Returns the servers whose middlewares see what the handler sends, the innermost first.
    pub(super) fn message_servers(&self) -> &Arc<[Arc<Inner>]> {
        self.message_servers
            .get_or_init(|| middleware::servers_of(self))
    }

    /// Lets the user be asked before the handler runs.
    pub(super) fn demand_approval(&self) {
        self.needs_approval.store(true, Ordering::Release);
    }

    /// Starts the handler, after the approval of the user if that is needed.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.server.middlewares.has_message_middleware() {
            let _ = self.message_servers();
        }
        match self.needs_approval.load(Ordering::Acquire) {
            true => tool_approval::request_approval_then_run(self),
            false => self.run(),
        }
    }

    /// Runs the handler.
    pub(super) fn run(self: &Arc<Self>) {
        let call = Call::new(self.clone());
        if let Target::Tool(entry) = &self.target
            && let Some(timeout) = entry.options.timeout
        {
            // A call is started once.
            let _ = self.timeout.set(CallTimeout::start(self, timeout));
        }
        match &self.target {
            Target::Tool(entry) => entry.handler.call(call),
            Target::Resource(entry) => entry.handler.call(call),
            Target::Template(entry) => entry.handler.call(call),
            Target::Prompt(entry) => entry.handler.call(call),
            Target::Request(entry) | Target::Notification(entry) => entry.handler.call(call),
            Target::Middleware(middleware) => middleware.handler.call(call),
            Target::Sharing(shared) => shared.handler.call(call),
            Target::ResourceList(list) => list.start(call),
            #[cfg(feature = "openapi")]
            Target::ApiFunction(function) => function.handler.call(call),
            #[cfg(feature = "routes")]
            Target::Route(route) => route.entry.handler.call(call),
            Target::Completion(source) => {
                let server = source.as_ref().unwrap_or(&self.server);
                match server.completion_handler(&self.arguments) {
                    Some(handler) => handler.call(call),
                    None => call.reply(Ok(Reply::Completion(Default::default()))),
                }
            }
            Target::Event(event) => match self.server.registry().event_handler(*event) {
                Some(handler) => handler.call(call),
                None => call.reply(Ok(Reply::Tool(Default::default()))),
            },
        }
    }

    pub(crate) fn lock_current_request(&self) -> MutexGuard<'_, Arc<CurrentRequest>> {
        self.current_request
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current_request(&self) -> Arc<CurrentRequest> {
        self.lock_current_request().clone()
    }

    /// Takes the request away from the call, to answer it with input requests; any other outcome waits for the client's
    /// retry. Returns `None` if it was taken before, or the handler has ended.
    pub(super) fn suspend(&self) -> Option<Arc<CurrentRequest>> {
        let mut current = self.lock_current_request();
        if current.key.is_none() || self.is_done() {
            return None;
        }
        let current_request = current.clone();
        *current = Arc::new(current_request.suspended());
        Some(current_request)
    }

    /// Gives a suspended call a request to serve: the client's retry, or the request that was taken from it.
    pub(super) fn resume(self: &Arc<Self>, current_request: Arc<CurrentRequest>) {
        let outcome = {
            let mut current = self.lock_current_request();
            *current = current_request;
            self.lock_outcome().take()
        };
        if let Some(outcome) = outcome {
            super::finish_call::complete(self, *outcome);
        }
    }

    fn lock_outcome(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an input request to a client of a handshake revision. Returns whether it may still be sent.
    pub(super) fn try_count_input_request(&self) -> bool {
        self.input_request_count.fetch_add(1, Ordering::Relaxed)
            < self.server.settings.max_input_requests_per_call
    }

    pub(crate) fn lock_record(&self) -> MutexGuard<'_, InputRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the timeout of the handler, if it has one.
    pub(super) fn timeout(&self) -> Option<&Arc<CallTimeout>> {
        self.timeout.get()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Returns the flag that is set once the call is cancelled.
    pub(crate) fn cancellation(&self) -> &std::sync::atomic::AtomicBool {
        &self.cancelled
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        sync::yield_point();
        self.cancelled.load(Ordering::Acquire)
    }

    /// Cancels the call: runs its cancel callbacks, fails its pending input requests and drops its result.
    pub(crate) fn cancel(&self) {
        sync::yield_point();
        // First, because the validation of a finished result reads the flag.
        if self.cancelled.swap(true, Ordering::AcqRel) || self.is_done() {
            return;
        }
        let callbacks = std::mem::take(
            &mut *self
                .on_cancel
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for callback in callbacks {
            callback();
        }
        self.messages.close();
        super::input_requests::fail_pending(self, &InputRequestError::Cancelled);
    }

    /// Ends the call because its handler took too long: answers with a tool error and cancels the handler, whose own outcome
    /// is dropped. Returns `false` if the call was over already.
    ///
    /// A call is never suspended then: it has open input requests while it is, and they hold its time.
    pub(super) fn time_out(&self, text: &str) -> bool {
        let callbacks = {
            let mut callbacks = self
                .on_cancel
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if self.is_cancelled() || self.done.swap(true, Ordering::AcqRel) {
                return false;
            }
            // Within the lock: a callback that is registered meanwhile is either among these, or runs at once.
            self.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut *callbacks)
        };
        super::finish_call::answer_timeout(self, text);
        for callback in callbacks {
            callback();
        }
        self.messages.close();
        true
    }

    /// Registers a callback that runs once the call is cancelled; immediately if it already is.
    pub(crate) fn on_cancel(&self, callback: CancelCallback) {
        {
            let mut callbacks = self
                .on_cancel
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // First, because a cancelled call may be over already, while a function of its handler still runs on another
            // thread.
            if !self.is_cancelled() {
                // Kept callbacks of a call that is over would leak, with everything they hold, possibly this call.
                if !self.is_done() {
                    callbacks.push(callback);
                }
                return;
            }
        }
        callback();
    }

    // Inlined, because outcomes are large.
    #[inline]
    fn complete(self: &Arc<Self>, outcome: Result<Reply, HandlerError>) {
        if self.delivers_messages() {
            // The handler has ended in time.
            let held = self.timeout().map(CallTimeout::pause);
            let call = self.clone();
            let completing = async move {
                call.complete_now(outcome);
                drop(held);
            };
            return self.deliver(WaitingMessage::new(0, completing));
        }
        self.complete_now(outcome);
    }

    // Inlined, because outcomes are large.
    #[inline]
    fn complete_now(self: &Arc<Self>, outcome: Result<Reply, HandlerError>) {
        if self.done.swap(true, Ordering::AcqRel) {
            return;
        }
        self.on_cancel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        match self.target {
            Target::Event(event) => {
                return super::client_notifications::ended(self, event, &outcome);
            }
            Target::Notification(_) => return super::client_notifications::handled(self, &outcome),
            Target::Middleware(ref called) => return middleware::handled(self, called, outcome),
            Target::Sharing(ref shared) => return shared.end(outcome),
            Target::ResourceList(ref list) => return template_lists::ended(self, list, outcome),
            #[cfg(feature = "openapi")]
            Target::ApiFunction(ref function) => return function.end(outcome),
            #[cfg(feature = "routes")]
            Target::Route(_) => return routes::ended(self, outcome),
            _ => {}
        }
        let current = self.lock_current_request();
        if current.key.is_none() {
            *self.lock_outcome() = Some(Box::new(outcome));
            drop(current);
            super::input_requests::fail_pending(self, &InputRequestError::Cancelled);
            return;
        }
        drop(current);
        super::finish_call::complete(self, outcome);
    }
}

impl Clone for Target {
    fn clone(&self) -> Self {
        match self {
            Self::Tool(entry) => Self::Tool(entry.clone()),
            Self::Resource(entry) => Self::Resource(entry.clone()),
            Self::Template(entry) => Self::Template(entry.clone()),
            Self::Prompt(entry) => Self::Prompt(entry.clone()),
            Self::Completion(source) => Self::Completion(source.clone()),
            Self::ResourceList(list) => Self::ResourceList(list.clone()),
            Self::Request(entry) => Self::Request(entry.clone()),
            Self::Notification(entry) => Self::Notification(entry.clone()),
            Self::Event(event) => Self::Event(*event),
            Self::Middleware(middleware) => Self::Middleware(middleware.clone()),
            Self::Sharing(shared) => Self::Sharing(shared.clone()),
            #[cfg(feature = "openapi")]
            Self::ApiFunction(function) => Self::ApiFunction(function.clone()),
            #[cfg(feature = "routes")]
            Self::Route(route) => Self::Route(route.clone()),
        }
    }
}
