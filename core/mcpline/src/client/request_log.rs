//! Records of a client's requests: those that it sends and the server's that it answers; for listeners and for `tracing`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use mcpline_protocol::wire::{Method, Raw};
use mcpline_protocol::{ErrorCode, Quoted, RpcError};
use mcpline_runtime::clock;

use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;
use crate::span::{self, SpanTarget, shown, shown_address};
use crate::sync::Weak;
use crate::trace_context::TraceContext;

use super::builder::ClientBuilder;
use super::inner::Inner;
use super::input_request_span::InputRequestOrigin;
use super::session::Session;
use super::settings::RequestOptions;

/// One request of a client that has ended. See [`ClientBuilder::on_request_end`].
///
/// Texts that the server or a model has chosen contain nothing that could control a terminal or forge lines of a log: escape
/// sequences are left out, line breaks are spaces, and other control characters are U+FFFD.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientRequestRecord<'a> {
    /// Whether the client has sent the request or received it.
    pub direction: RequestDirection,
    /// The method, such as `tools/call`; at most 200 characters.
    pub method: &'a str,
    /// Name of the tool or prompt, or URI of the resource; at most 200 characters. `""` for other methods.
    pub name: &'a str,
    /// How it ended.
    pub outcome: ClientRequestOutcome,
    /// Time from the beginning of the request to its outcome, with middleware, input requests and repetitions.
    pub duration: Duration,
    /// Name of the server, if the client was connected and the server has identified itself; at most 200 characters.
    pub server: Option<&'a str>,
    /// Address of the server: host and port of its URL, or the path of its socket; at most 200 characters.
    pub address: Option<&'a str>,
    /// The first eight characters of the session's id, over HTTP on handshake revisions.
    pub session: Option<&'a str>,
    /// Id of the trace that the request belongs to, as 32 hexadecimal digits: the one that its `_meta` names.
    pub trace_id: Option<&'a str>,
}

/// Who has sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestDirection {
    /// The client has sent it to the server.
    Sent,
    /// The server has sent it to the client: an input request (sampling, elicitation, roots) or a custom one.
    Received,
}

impl RequestDirection {
    /// Returns the name: `sent` or `received`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// How a request of a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientRequestOutcome {
    /// With a result.
    Ok,
    /// With the result of a tool that reports an error (`isError`).
    ToolError,
    /// With input requests that the program answers by itself (2026-07-28).
    InputRequired,
    /// With an error.
    Error {
        /// Its kind; [`ErrorKind::Rpc`] for a request that the client has received.
        kind: ErrorKind,
        /// The code of the JSON-RPC error, if there was one.
        code: Option<ErrorCode>,
    },
    /// Without an outcome: the program has given the request up, or the server has cancelled it or is gone.
    Cancelled,
}

impl ClientRequestOutcome {
    /// Returns the name: `ok`, `tool_error`, `input_required`, `error` or `cancelled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::InputRequired => "input_required",
            Self::Error { .. } => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the kind of the error.
    pub fn error_kind(self) -> Option<ErrorKind> {
        match self {
            Self::Error { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Returns the code of the JSON-RPC error.
    pub fn code(self) -> Option<ErrorCode> {
        match self {
            Self::Error { code, .. } => code,
            _ => None,
        }
    }

    /// Returns the outcome of a request that was sent.
    pub(super) fn of_sent(method: &Method, outcome: &Result<Raw, ClientError>) -> Self {
        match outcome {
            Err(error) => Self::Error {
                kind: error.kind(),
                code: error.rpc().map(|rpc| rpc.code),
            },
            Ok(result) if span::is_tool_error(method, result) => Self::ToolError,
            Ok(result) if is_input_required(result) => Self::InputRequired,
            Ok(_) => Self::Ok,
        }
    }

    fn of_received(outcome: &Result<Raw, RpcError>) -> Self {
        match outcome {
            Err(error) => Self::Error {
                kind: ErrorKind::Rpc,
                code: Some(error.code),
            },
            Ok(_) => Self::Ok,
        }
    }
}

fn is_input_required(result: &Raw) -> bool {
    let kind = result.member("resultType");
    kind.is_some_and(|kind| kind.as_bytes() == b"\"input_required\"")
}

/// The name, and the kind of an error with its code: `error request_timed_out`, `error rpc_error -32602`.
impl fmt::Display for ClientRequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(kind) = self.error_kind() {
            write!(f, " {}", kind.as_str())?;
        }
        match self.code() {
            Some(code) => write!(f, " {}", code.0),
            None => Ok(()),
        }
    }
}

/// A line for a log: `sent tools/call "search": ok in 12.3 ms, server "weather", address "weather.example:443"`.
impl fmt::Display for ClientRequestRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.direction.name(), self.method)?;
        if !self.name.is_empty() {
            write!(f, " {}", Quoted(self.name))?;
        }
        let millis = self.duration.as_secs_f64() * 1e3;
        write!(f, ": {} in {millis:.1} ms", self.outcome)?;
        for (name, value) in [("server", self.server), ("address", self.address)] {
            if let Some(value) = value {
                write!(f, ", {name} {}", Quoted(value))?;
            }
        }
        for (name, value) in [("session", self.session), ("trace", self.trace_id)] {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        Ok(())
    }
}

/// Gets the record of each request that has ended.
pub type RequestListener = std::sync::Arc<dyn Fn(&ClientRequestRecord<'_>) + Send + Sync>;

/// The listener of a client's requests.
#[derive(Clone, Default)]
pub(super) struct RequestLog(Option<RequestListener>);

impl ClientBuilder {
    /// Calls `listener` at the end of each request of the client, with what a log of requests contains: requests of the
    /// program, also those that a cached result or middleware answers, and requests of the server to the client (sampling,
    /// elicitation, roots, custom ones). Replaces an earlier one. The requests that the client sends by itself are not among
    /// them: the handshake, pings at an interval, `subscriptions/listen`.
    ///
    /// It runs on the thread that ends the request, and must not block. Each record is a `tracing` event as well, of level INFO
    /// and with the target `mcpline::requests::client`, if a subscriber wants it. Without either, requests cost nothing more.
    #[must_use]
    pub fn on_request_end(
        self,
        listener: impl Fn(&ClientRequestRecord<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.shared_request_listener(std::sync::Arc::new(listener))
    }

    /// Like [`on_request_end`](Self::on_request_end), with a listener that is kept elsewhere, too. For bindings.
    #[must_use]
    pub fn shared_request_listener(mut self, listener: RequestListener) -> Self {
        self.handlers.request_log = RequestLog(Some(listener));
        self
    }
}

impl RequestLog {
    /// Whether requests are recorded.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.0.is_some() || is_traced()
    }
}

/// Whether a subscriber wants the records. Cached by `tracing` for each place in the code.
#[inline]
fn is_traced() -> bool {
    tracing::enabled!(target: "mcpline::requests::client", tracing::Level::INFO)
}

/// A request that will be recorded when it ends; as cancelled if it is dropped.
pub(super) struct RunningRequest(Option<Box<RequestFacts>>);

struct RequestFacts {
    log: RequestLog,
    direction: RequestDirection,
    method: Method,
    name: String,
    started: Duration,
    /// The client, whose connection may open while the request runs. Dangling for a request that was received.
    client: Weak<Inner>,
    server: ServerFacts,
    address: Option<String>,
    trace_id: Option<String>,
}

/// What is known of a server while the client is connected to it.
#[derive(Default)]
struct ServerFacts {
    name: Option<String>,
    session: Option<String>,
}

impl ServerFacts {
    fn of(session: Option<&Session>) -> Self {
        let info = session.and_then(|session| session.opened.info.as_ref());
        Self {
            name: info.map(|info| shown(&info.name)),
            session: session.and_then(Session::shown_id),
        }
    }
}

impl RunningRequest {
    /// Begins the record of a request that the program sends, if one is wanted.
    #[inline]
    pub(super) fn of_sent(
        client: &Inner,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Option<Self> {
        let is_wanted = client.handlers.request_log.is_wanted();
        is_wanted.then(|| Self::begin_sent(client, method, params, options))
    }

    #[cold]
    fn begin_sent(
        client: &Inner,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Self {
        let method = Method::parse(method);
        let target = SpanTarget::of(&method, |member| {
            let member = params?.member(member)?;
            member.string_value().map(Cow::into_owned)
        });
        let session = client.open_session().ok().flatten();
        let address = client.dialler.server_address();
        Self::begin(RequestFacts {
            log: client.handlers.request_log.clone(),
            direction: RequestDirection::Sent,
            method,
            name: target.map(|target| shown(&target.name)).unwrap_or_default(),
            started: clock::now(),
            client: client.this.clone(),
            server: ServerFacts::of(session.as_deref()),
            address: address.map(shown_address),
            trace_id: options.meta.as_ref().and_then(trace_id),
        })
    }

    /// Begins the record of a request of the server.
    #[cold]
    pub(super) fn of_received(
        log: &RequestLog,
        method: &str,
        params: Option<&Raw>,
        origin: &InputRequestOrigin<'_>,
    ) -> Self {
        let meta = params.and_then(|params| params.member("_meta"));
        Self::begin(RequestFacts {
            log: log.clone(),
            direction: RequestDirection::Received,
            method: Method::parse(method),
            name: String::new(),
            started: clock::now(),
            client: Weak::new(),
            server: ServerFacts::of(origin.session),
            address: origin.server.map(shown_address),
            trace_id: meta.as_ref().and_then(trace_id),
        })
    }

    fn begin(facts: RequestFacts) -> Self {
        Self(Some(Box::new(facts)))
    }

    /// Records how a request ended that the program has sent.
    pub(super) fn end_sent(mut self, outcome: &Result<Raw, ClientError>) {
        if let Some(facts) = self.0.take() {
            facts.record(ClientRequestOutcome::of_sent(&facts.method, outcome));
        }
    }

    /// Records how a request of the server ended.
    pub(super) fn end_received(mut self, outcome: &Result<Raw, RpcError>) {
        if let Some(facts) = self.0.take() {
            facts.record(ClientRequestOutcome::of_received(outcome));
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        if let Some(facts) = self.0.take() {
            facts.record(ClientRequestOutcome::Cancelled);
        }
    }
}

impl RequestFacts {
    fn record(&self, outcome: ClientRequestOutcome) {
        let duration = clock::now().saturating_sub(self.started);
        let client = self.client.upgrade();
        // The connection that was opened meanwhile.
        let session = client.and_then(|client| client.open_session().ok().flatten());
        let later = session.map(|session| ServerFacts::of(Some(&session)));
        let server = later.as_ref().unwrap_or(&self.server);
        let method = shown(self.method.as_str());
        let record = ClientRequestRecord {
            direction: self.direction,
            method: &method,
            name: &self.name,
            outcome,
            duration,
            server: server.name.as_deref(),
            address: self.address.as_deref(),
            session: server.session.as_deref(),
            trace_id: self.trace_id.as_deref(),
        };
        if is_traced() {
            tracing::info!(
                target: "mcpline::requests::client",
                direction = record.direction.name(),
                method = record.method,
                name = record.name,
                outcome = %record.outcome,
                duration_ms = duration.as_secs_f64() * 1e3,
                server = record.server,
                address = record.address,
                session = record.session,
                trace_id = record.trace_id,
                "request"
            );
        }
        if let Some(listener) = &self.log.0 {
            listener(&record);
        }
    }
}

/// Returns the id of the trace that `_meta` names.
fn trace_id(meta: &Raw) -> Option<String> {
    let context = TraceContext::from_meta(meta)?;
    context.trace_id().map(str::to_owned)
}
