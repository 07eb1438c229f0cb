//! Spans of requests, by the OpenTelemetry semantic conventions for MCP (`docs/gen-ai/mcp.md` of
//! `open-telemetry/semantic-conventions-genai`): for subscribers of `tracing`, and for the OpenTelemetry of other languages.
//!
//! A span begins when a request arrives, and ends after its response. Handlers and middleware run within it. Another language
//! creates its span when the first of its handlers begins, or after the end of a request that has reached none
//! ([`TracedRequest::begin_handler`]).

use std::borrow::Cow;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcpline_protocol::session::ClientProfile;
use mcpline_protocol::vocabulary::meta::PROTOCOL_VERSION;
use mcpline_protocol::wire::{Method, Params, Raw, Request};
use mcpline_protocol::{Revision, RpcError};
#[cfg(feature = "opentelemetry")]
use opentelemetry::trace::SpanKind;
use serde_json::{Map, Value};
use tracing::Span;

#[cfg(feature = "opentelemetry")]
use crate::open_telemetry::{self, Decision, Sampling};
use crate::span::{
    self, EXECUTE_TOOL, NetworkAddress, NetworkAttributes, SpanScope, SpanStart, SpanTarget, TOOL,
    shortened, shown,
};
use crate::sync::{Arc, Mutex, OnceLock, RwLock};
use crate::trace_context::TraceContext;

use super::Server;
use super::connection::Connection;
use super::inner::Inner;
use super::pending_records::PendingRecord;
use super::request_info::HttpInfo;
use super::request_log::RequestOutcome;
use super::traffic::TransportKind;

/// The span of a request.
pub(crate) struct RequestSpan {
    /// Its span is disabled if no subscriber wants it.
    scope: SpanScope,
    /// Whether it gets the arguments and the result.
    has_contents: bool,
    /// For another language; `None` if none traces the server.
    traced: Option<Arc<TracedRequest>>,
    /// From the response on. After the span, as fields are dropped in this order.
    pending: OnceLock<PendingRecord>,
}

/// A request as another language traces it.
pub(crate) struct TracedRequest {
    number: u64,
    method: Method,
    target: Option<SpanTarget>,
    request_id: String,
    /// The first eight characters of its id: the whole id gives access to the session.
    session: Option<String>,
    network: NetworkAttributes,
    /// The address of the client, over HTTP.
    client: Option<NetworkAddress>,
    /// The revision that the message names.
    named_revision: Option<Revision>,
    peer: OnceLock<Arc<ClientProfile>>,
    started: SystemTime,
    context: Option<TraceContext>,
    /// The context of the HTTP request, if the message has its own.
    http_context: Option<TraceContext>,
    /// Message of the JSON-RPC error that the request ended with.
    error: Mutex<Option<String>>,
    arguments: OnceLock<String>,
    result: OnceLock<String>,
    state: AtomicU8,
    listener: Option<Listener>,
}

/// No handler has begun.
const WAITING: u8 = 0;
/// A handler has begun.
const HANDLED: u8 = 1;
/// The request has ended.
const ENDED: u8 = 2;

type Listener = Arc<dyn Fn(&TracedRequest, RequestEnd) + Send + Sync>;

/// How a traced request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestEnd {
    outcome: RequestOutcome,
    /// Whether a handler had begun.
    was_handled: bool,
    duration: Duration,
}

/// Receives the requests of a server when they end.
#[derive(Default)]
pub(super) struct RequestTracing {
    listener: RwLock<Option<Listener>>,
}

impl RequestTracing {
    fn listener(&self) -> Option<Listener> {
        self.listener
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Server {
    /// Traces the requests of the server: calls `listener` on the thread that writes the response, when a request has
    /// ended.
    pub(crate) fn trace_requests(
        &self,
        listener: impl Fn(&TracedRequest, RequestEnd) + Send + Sync + 'static,
    ) {
        let inner = self.inner();
        let listener: Listener = Arc::new(listener);
        let before = inner
            .tracing
            .listener
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(listener);
        inner.request_log.enable_spans();
        drop(before);
    }
}

/// What `_meta` of a request says about it, and the trace context of its HTTP request.
#[derive(Default)]
pub(super) struct ReceivedMeta {
    /// The revision that the message names, also if the request is refused or needs no client.
    pub(super) revision: Option<Revision>,
    /// That of the message, or else of the HTTP request.
    parent: Option<TraceContext>,
    /// That of the HTTP request, if the message has its own.
    http: Option<TraceContext>,
}

impl ReceivedMeta {
    /// Reads those of a request.
    pub(super) fn of(request: &Request, http: Option<&HttpInfo>) -> Self {
        let meta = request.params.as_ref().and_then(|params| params.meta());
        let own = meta.as_ref().and_then(TraceContext::from_meta);
        #[cfg(feature = "http")]
        let of_http = http.and_then(HttpInfo::trace_context);
        #[cfg(not(feature = "http"))]
        let of_http: Option<TraceContext> = {
            let _ = http;
            None
        };
        let revision = meta.as_ref().and_then(|meta| {
            let version = meta.borrowed().member(PROTOCOL_VERSION)?;
            version.string_value()?.parse().ok()
        });
        let (parent, http) = match own {
            Some(own) => (Some(own), of_http),
            None => (of_http, None),
        };
        Self {
            revision,
            parent,
            http,
        }
    }

    /// Returns the id of the trace that the request belongs to.
    pub(super) fn trace_id(&self) -> Option<&str> {
        self.parent.as_ref()?.trace_id()
    }
}

impl RequestSpan {
    /// Begins the span of a request, if a subscriber or another language wants it.
    pub(super) fn begin(
        connection: &Connection,
        request: &Request,
        http: Option<&HttpInfo>,
        meta: ReceivedMeta,
    ) -> Option<Arc<Self>> {
        let listener = connection.server().tracing.listener();
        let is_wanted = span::is_wanted();
        if listener.is_none() && !is_wanted {
            return None;
        }
        #[cfg(feature = "opentelemetry")]
        let (is_wanted, decision, unsampled) = {
            // A request without a context of its own may have the parent that is current.
            let sampling = match is_wanted {
                true => {
                    let (method, parent) = (request.method.as_str(), meta.parent.as_ref());
                    Sampling::of(method, &SpanKind::Server, parent)
                }
                false => Sampling::Later,
            };
            match sampling {
                Sampling::Later => (is_wanted, None, None),
                Sampling::Sampled(decision) => (true, Some(decision), None),
                Sampling::Dropped(context) => (span::is_unsampled_wanted(), None, Some(context)),
            }
        };
        #[cfg(feature = "opentelemetry")]
        if unsampled.is_some() && !is_wanted && listener.is_none() {
            return Some(Arc::new(Self {
                scope: SpanScope::new(Span::none(), unsampled),
                has_contents: false,
                traced: None,
                pending: OnceLock::new(),
            }));
        }
        let traced = TracedRequest {
            number: next_number(),
            method: request.method.clone(),
            target: SpanTarget::of(&request.method, |member| {
                let params = request.params.as_ref()?;
                params.get_str(member).map(|name| shown(&name))
            }),
            request_id: span::shown_id(request.id.raw()),
            session: connection.session_id().map(|id| shortened(id).to_owned()),
            network: network_of(connection.transport_kind(), http),
            client: client_of(http),
            named_revision: meta.revision,
            peer: OnceLock::new(),
            started: SystemTime::now(),
            context: meta.parent,
            http_context: meta.http,
            error: Mutex::new(None),
            arguments: OnceLock::new(),
            result: OnceLock::new(),
            state: AtomicU8::new(WAITING),
            listener,
        };
        #[cfg(feature = "opentelemetry")]
        let span = match (is_wanted, &unsampled) {
            (false, _) => Span::none(),
            (true, Some(_)) => traced.start(|start| start.unsampled_span()),
            (true, None) => traced.exported_span(decision),
        };
        #[cfg(not(feature = "opentelemetry"))]
        let span = match is_wanted {
            true => traced.start(|start| start.span()),
            false => Span::none(),
        };
        let server = connection.server();
        let is_recorded = traced.listener.is_some() || !span.is_disabled();
        Some(Arc::new(Self {
            scope: SpanScope::new(
                span,
                #[cfg(feature = "opentelemetry")]
                unsampled,
            ),
            has_contents: server.settings.span_contents
                && is_recorded
                && traced.method == Method::ToolsCall,
            traced: traced.listener.is_some().then(|| Arc::new(traced)),
            pending: OnceLock::new(),
        }))
    }

    /// Returns what the code of the request runs in.
    pub(super) fn scope(&self) -> &SpanScope {
        &self.scope
    }

    /// Sets the client, once it is known.
    pub(super) fn set_client(&self, peer: &Arc<ClientProfile>) {
        let span = self.scope.span();
        span.record("mcp.protocol.version", peer.revision.as_str());
        if let Some(traced) = &self.traced {
            // A request has one client.
            let _ = traced.peer.set(peer.clone());
        }
    }

    /// Sets the error that the request ends with.
    pub(super) fn set_error(&self, error: &RpcError) {
        span::describe_failure(self.scope.span(), &error.message);
        if let Some(traced) = &self.traced {
            *traced.error.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(span::shown_failure(&error.message));
        }
    }

    /// Sets the arguments of a tool's call, without the lock of the session: redaction takes time.
    #[cold]
    pub(super) fn set_arguments(&self, server: &Inner, params: Option<&Params>) {
        let arguments = params.and_then(|params| params.get("arguments"));
        let Some(shown) = arguments.and_then(|arguments| shown_content(server, arguments)) else {
            return;
        };
        self.scope.span().record(span::ARGUMENTS, &*shown);
        if let Some(traced) = &self.traced {
            // A request has one value of each.
            let _ = traced.arguments.set(shown);
        }
    }

    /// Whether the span gets the arguments and the result of the request.
    #[inline]
    pub(super) fn has_contents(&self) -> bool {
        self.has_contents
    }

    /// Sets the result that the client gets.
    #[cold]
    pub(super) fn set_result(&self, server: &Inner, result: Raw) {
        let Some(shown) = shown_content(server, result) else {
            return;
        };
        self.scope.span().record(span::RESULT, &*shown);
        if let Some(traced) = &self.traced {
            let _ = traced.result.set(shown);
        }
    }

    /// Keeps `pending` until the span has ended.
    pub(super) fn await_end(&self, pending: PendingRecord) {
        // Another language ends its own span when the request is recorded.
        if !self.scope.span().is_disabled() {
            // A request is answered once.
            let _ = self.pending.set(pending);
        }
    }

    /// Ends the span.
    pub(super) fn end(&self, outcome: RequestOutcome, duration: Duration) {
        if let Some(error) = error_type(outcome) {
            let code = match outcome {
                RequestOutcome::Error(code) => Some(code.0),
                _ => None,
            };
            span::fail(self.scope.span(), &error, code);
        }
        if let Some(traced) = &self.traced {
            let was_handled = traced.state.swap(ENDED, Ordering::AcqRel) == HANDLED;
            let end = RequestEnd {
                outcome,
                was_handled,
                duration,
            };
            if let Some(listener) = &traced.listener {
                listener(traced, end);
            }
        }
    }

    /// Returns the id of the span's trace; `None` if the program does not export it. A request that another language traces has
    /// no span here.
    pub(super) fn trace_id(&self) -> Option<String> {
        #[cfg(feature = "opentelemetry")]
        return open_telemetry::trace_id(&self.scope);
        #[cfg(not(feature = "opentelemetry"))]
        None
    }

    /// Returns the request as another language traces it, if one does.
    pub(super) fn traced(&self) -> Option<&Arc<TracedRequest>> {
        self.traced.as_ref()
    }
}

impl TracedRequest {
    /// Begins a span with the attributes of the request.
    fn start(&self, begin: impl FnOnce(&SpanStart<'_>) -> Span) -> Span {
        let method = shown(self.method.as_str());
        begin(&SpanStart {
            kind: "server",
            method: &method,
            target: self.target.as_ref(),
            session: self.session.as_deref(),
            revision: self.named_revision.map(Revision::as_str),
            request_id: Some(&self.request_id),
            network: self.network,
            client: self.client.as_ref(),
            server: None,
        })
    }

    /// Begins a span that is exported, with its parent and link.
    #[cfg(feature = "opentelemetry")]
    fn exported_span(&self, decision: Option<Decision>) -> Span {
        let begin = || {
            let span = self.start(|start| start.span());
            let (parent, link) = (self.context.as_ref(), self.http_context.as_ref());
            open_telemetry::set_parent(&span, parent, link);
            span
        };
        match decision {
            None => begin(),
            Some(decision) => open_telemetry::with_sampling_decision(decision, begin),
        }
    }

    /// Returns the number of the request, which identifies it in this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Reports that a handler begins, which creates the span. Returns `false` if that has happened already, or if the request
    /// has ended: then its span exists.
    pub(crate) fn begin_handler(&self) -> bool {
        self.state
            .compare_exchange(WAITING, HANDLED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Returns what the span begins with: its name, start (in nanoseconds since 1970), attributes, and the trace contexts of
    /// its parent and of a link.
    pub(crate) fn description(&self) -> Value {
        let mut attributes = Map::new();
        let mut set = |name: &str, value: &str| {
            attributes.insert(name.to_owned(), value.into());
        };
        set("mcp.method.name", &shown(self.method.as_str()));
        set("jsonrpc.request.id", &self.request_id);
        if let Some(target) = &self.target {
            set(target.attribute, &target.name);
            if target.attribute == TOOL {
                set("gen_ai.operation.name", EXECUTE_TOOL);
            }
        }
        if let Some(session) = &self.session {
            set("mcp.session.id", session);
        }
        if let Some(revision) = self.revision() {
            set("mcp.protocol.version", revision.as_str());
        }
        for (name, value) in self.network.fields() {
            set(name, value);
        }
        if let Some(client) = &self.client {
            set("client.address", &client.address);
            if let Some(port) = client.port {
                attributes.insert("client.port".to_owned(), port.into());
            }
        }
        let context = |context: &Option<TraceContext>| {
            let fields = context.iter().flat_map(TraceContext::fields);
            let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
            Value::Object(fields.collect())
        };
        serde_json::json!({
            "name": span::span_name(&shown(self.method.as_str()), self.target.as_ref()),
            "start": nanoseconds(self.started),
            "attributes": attributes,
            "parent": context(&self.context),
            "link": context(&self.http_context),
        })
    }

    /// Returns what the span ends with: the number of the request, its end (in nanoseconds since 1970), further attributes, and
    /// a text for an error; and the [description](Self::description) if no handler had begun.
    pub(crate) fn ending(&self, end: RequestEnd) -> Value {
        let mut attributes = Map::new();
        let error = error_type(end.outcome);
        if let Some(error) = &error {
            attributes.insert("error.type".to_owned(), (&**error).into());
        }
        if let RequestOutcome::Error(code) = end.outcome {
            let code = code.0.to_string();
            attributes.insert("rpc.response.status_code".to_owned(), code.into());
        }
        for (name, value) in [
            (span::ARGUMENTS, &self.arguments),
            (span::RESULT, &self.result),
        ] {
            if let Some(value) = value.get() {
                attributes.insert(name.to_owned(), (&**value).into());
            }
        }
        let text = self
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut ending = serde_json::json!({
            "number": self.number,
            "end": nanoseconds(self.started + end.duration),
            "attributes": attributes,
            "error": error.map(|_| text.unwrap_or_default()),
        });
        if !end.was_handled {
            ending["description"] = self.description();
        }
        ending
    }

    fn revision(&self) -> Option<Revision> {
        let of_client = self.peer.get().map(|peer| peer.revision);
        of_client.or(self.named_revision)
    }
}

/// Returns arguments or a result for a span; `None` if redacting them takes too long.
fn shown_content(server: &Inner, value: Raw) -> Option<String> {
    let redacted = server.redacted(value)?;
    Some(span::shown_content(redacted.as_bytes()))
}

fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Returns the value of `error.type`; `None` if the request did not fail.
fn error_type(outcome: RequestOutcome) -> Option<Cow<'static, str>> {
    match outcome {
        RequestOutcome::Ok | RequestOutcome::InputRequired => None,
        RequestOutcome::ToolError => Some("tool_error".into()),
        RequestOutcome::Cancelled => Some("cancelled".into()),
        RequestOutcome::Error(code) => Some(code.0.to_string().into()),
    }
}

/// Returns the value of `network.transport`; `None` for clients in this process and streams of an unknown kind.
pub(super) fn network_transport(transport: TransportKind) -> Option<&'static str> {
    match transport {
        TransportKind::Stdio => Some("pipe"),
        TransportKind::Unix => Some("unix"),
        TransportKind::Http | TransportKind::HttpSse => Some("tcp"),
        TransportKind::Memory | TransportKind::Lines => None,
    }
}

/// Returns how a request has arrived.
pub(super) fn network_of(transport: TransportKind, http: Option<&HttpInfo>) -> NetworkAttributes {
    #[cfg(feature = "http")]
    let protocol_version = http
        .and_then(HttpInfo::network)
        .and_then(|http| http.version);
    #[cfg(not(feature = "http"))]
    let protocol_version = {
        let _ = http;
        None
    };
    NetworkAttributes {
        protocol_version,
        ..NetworkAttributes::of(network_transport(transport))
    }
}

/// Returns the address of the client, over HTTP.
fn client_of(http: Option<&HttpInfo>) -> Option<NetworkAddress> {
    #[cfg(feature = "http")]
    return http?.network()?.client.clone();
    #[cfg(not(feature = "http"))]
    {
        let _ = http;
        None
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    // Until the year 2554.
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
