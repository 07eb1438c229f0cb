//! Records of requests: what was asked, by whom, how it ended and how long it took; for listeners, `tracing` and metrics.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mcpline_protocol::session::ClientProfile;
use mcpline_protocol::wire::{Message, Method, Raw, Request};
use mcpline_protocol::{ErrorCode, Quoted, Revision};
use mcpline_runtime::clock;

use crate::caller::Caller;
use crate::span::{self, shortened, shown};

use super::Server;
use super::connection::Connection;
use super::inner::Inner;
use super::metrics::OperationNames;
use super::pending_records::{PendingRecord, PendingRecords};
use super::request_info::HttpInfo;
use super::request_span::{ReceivedMeta, RequestSpan};
use super::traffic::TransportKind;

/// One request that has ended. See [`Server::on_request_end`].
///
/// Texts that the client has chosen contain nothing that could control a terminal or forge lines of a log: escape sequences
/// are left out, line breaks are spaces, and other control characters are U+FFFD.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestRecord<'a> {
    /// The method, such as `tools/call`; at most 200 characters.
    pub method: &'a str,
    /// Name of the tool or prompt, or URI of the resource; at most 200 characters. `""` for other methods.
    pub name: &'a str,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// Time from the arrival of the request to its response.
    pub duration: Duration,
    /// Name of the client, if it has identified itself; at most 200 characters.
    pub client: Option<&'a str>,
    /// The first eight characters of the session's id, over HTTP on handshake revisions: enough to tell sessions apart, and
    /// too few to use one.
    pub session: Option<&'a str>,
    /// Issuer of the authenticated caller's token, as in the audit log; at most 200 characters.
    pub issuer: Option<&'a str>,
    /// Subject of the authenticated caller's token; at most 200 characters.
    pub subject: Option<&'a str>,
    /// Client that acts for the subject, as the token says; at most 200 characters.
    pub client_id: Option<&'a str>,
    /// Id of the trace that the request belongs to, as 32 hexadecimal digits: that of its span, or else the one that the message
    /// or the headers of its HTTP request name.
    pub trace_id: Option<&'a str>,
    /// Number of the request for another language that traces it.
    pub(crate) number: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// With a result.
    Ok,
    /// With the result of a tool that reports an error (`isError`).
    ToolError,
    /// With input requests to the client, whose next request continues it (2026-07-28).
    InputRequired,
    /// With this JSON-RPC error.
    Error(ErrorCode),
    /// Without a response: the client cancelled it or is gone.
    Cancelled,
}

impl RequestOutcome {
    /// Returns the name: `ok`, `tool_error`, `input_required`, `error` or `cancelled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::InputRequired => "input_required",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The name, and the code of an error: `error -32602`.
impl fmt::Display for RequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Error(code) => write!(f, " {}", code.0),
            _ => Ok(()),
        }
    }
}

/// A line for a log: `tools/call "search": ok in 12.3 ms, client "inspector", subject "alice"`.
impl fmt::Display for RequestRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.method)?;
        if !self.name.is_empty() {
            write!(f, " {}", Quoted(self.name))?;
        }
        let millis = self.duration.as_secs_f64() * 1e3;
        write!(f, ": {} in {millis:.1} ms", self.outcome)?;
        if let Some(client) = self.client {
            write!(f, ", client {}", Quoted(client))?;
        }
        if let Some(session) = self.session {
            write!(f, ", session {session}")?;
        }
        for (name, value) in [
            ("issuer", self.issuer),
            ("subject", self.subject),
            ("client id", self.client_id),
        ] {
            if let Some(value) = value {
                write!(f, ", {name} {}", Quoted(value))?;
            }
        }
        if let Some(trace_id) = self.trace_id {
            write!(f, ", trace {trace_id}")?;
        }
        Ok(())
    }
}

type Listener = Arc<dyn Fn(&RequestRecord<'_>) + Send + Sync>;

/// The listener of a server's requests.
#[derive(Default)]
pub(super) struct RequestLog {
    listener: RwLock<Option<Listener>>,
    /// Whether there is one.
    is_set: AtomicBool,
    /// Whether another language traces the requests.
    has_spans: AtomicBool,
    pending: PendingRecords,
}

impl Server {
    /// Calls `listener` at the end of each request, except notifications, with what a log of requests contains. Replaces an
    /// earlier one.
    ///
    /// It runs on the thread that writes the response, and must not block. Requests that the HTTP server refuses by their
    /// headers are not among them: they reach no server. Each record is a `tracing` event as well, of level INFO and with
    /// the target `mcpline::requests`, if a subscriber wants it. Without either, and without
    /// [metrics](super::Settings::metrics), requests cost nothing more.
    pub fn on_request_end(&self, listener: impl Fn(&RequestRecord<'_>) + Send + Sync + 'static) {
        let log = &self.inner().request_log;
        let listener: Listener = Arc::new(listener);
        let before = log
            .listener
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(listener);
        log.is_set.store(true, Ordering::Release);
        drop(before);
    }
}

impl RequestLog {
    /// Lets requests have spans, for another language.
    pub(super) fn enable_spans(&self) {
        self.has_spans.store(true, Ordering::Release);
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        self.is_set.load(Ordering::Acquire) || is_traced()
    }

    fn listener(&self) -> Option<Listener> {
        self.listener
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Whether requests are recorded.
#[inline]
fn is_wanted(server: &Inner) -> bool {
    server.request_log.is_wanted() || server.metrics.is_some() || server.has_spans()
}

impl Inner {
    /// Whether requests have spans.
    #[inline]
    pub(crate) fn has_spans(&self) -> bool {
        self.request_log.has_spans.load(Ordering::Acquire) || span::is_wanted()
    }

    /// Waits until the requests that are answered are recorded and their spans have ended, for a bounded time.
    pub(crate) async fn wait_for_records(&self) {
        self.request_log.pending.wait().await;
    }
}

/// Whether a subscriber wants the records. Cached by `tracing` for each place in the code.
#[inline]
fn is_traced() -> bool {
    tracing::enabled!(target: "mcpline::requests", tracing::Level::INFO)
}

/// A request that will be recorded when it ends; as cancelled if it is dropped.
pub(super) struct RunningRequest(Option<Box<RequestFacts>>);

struct RequestFacts {
    server: Arc<Inner>,
    /// Whether a record is wanted. Texts that only records need are empty otherwise.
    is_logged: bool,
    method: Method,
    name: String,
    started: Duration,
    client: Option<Arc<ClientProfile>>,
    session: Option<String>,
    /// The authenticated caller.
    caller: Option<Caller>,
    /// The trace that the message names.
    trace_id: Option<String>,
    /// The revision that the message names.
    named_revision: Option<Revision>,
    transport: TransportKind,
    /// `None` if metrics are off.
    metric_names: Option<OperationNames>,
    span: Option<Arc<RequestSpan>>,
    /// From the response on. After the span, as fields are dropped in this order.
    pending: Option<PendingRecord>,
}

impl RunningRequest {
    /// Begins a record, if anyone wants it.
    #[inline]
    pub(super) fn begin(
        connection: &Connection,
        message: &Message,
        http: Option<&HttpInfo>,
    ) -> Option<Self> {
        match message {
            Message::Request(request) if is_wanted(connection.server()) => {
                Self::begin_wanted(connection, request, http)
            }
            _ => None,
        }
    }

    #[cold]
    fn begin_wanted(
        connection: &Connection,
        request: &Request,
        http: Option<&HttpInfo>,
    ) -> Option<Self> {
        let params = request.params.as_ref();
        let name = match request.method {
            Method::ToolsCall | Method::PromptsGet => "name",
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                "uri"
            }
            _ => "",
        };
        let server = connection.server();
        let is_logged = server.request_log.is_wanted();
        let name = params
            .filter(|_| is_logged || server.metrics.is_some())
            .and_then(|params| params.get_str(name));
        let name = name.unwrap_or_default();
        let caller = match http {
            Some(http) => http.auth.as_ref(),
            None => connection.auth(),
        };
        let meta = ReceivedMeta::of(request, http);
        let session = connection.session_id().filter(|_| is_logged);
        Some(Self(Some(Box::new(RequestFacts {
            server: server.clone(),
            is_logged,
            method: request.method.clone(),
            metric_names: OperationNames::of(connection.server(), &request.method, &name),
            name: match is_logged {
                true => shown(&name),
                false => String::new(),
            },
            started: clock::now(),
            client: None,
            session: session.map(|id| shortened(id).to_owned()),
            transport: connection.transport_kind(),
            caller: caller.filter(|_| is_logged).cloned(),
            named_revision: meta.revision,
            trace_id: meta.trace_id().filter(|_| is_logged).map(str::to_owned),
            span: RequestSpan::begin(connection, request, http, meta),
            pending: None,
        }))))
    }

    /// Sets the client, once it is known.
    pub(super) fn set_client(&mut self, client: Arc<ClientProfile>) {
        if let Some(facts) = &mut self.0 {
            if let Some(span) = &facts.span {
                span.set_client(&client);
            }
            facts.client = Some(client);
        }
    }

    /// Returns the span of the request, if it has one.
    pub(super) fn span(&self) -> Option<Arc<RequestSpan>> {
        self.0.as_ref()?.span.clone()
    }

    /// Lets the end of serving wait for the record and the end of the span. Called before the response is written.
    pub(super) fn await_record(&mut self) {
        if let Some(facts) = &mut self.0 {
            let pending = facts.server.request_log.pending.begin();
            if let Some(span) = &facts.span {
                span.await_end(pending.clone());
            }
            facts.pending = Some(pending);
        }
    }

    /// Records how the request ended. The session must not be locked, because listeners may use the server.
    pub(super) fn end(mut self, outcome: RequestOutcome) {
        if let Some(facts) = self.0.take() {
            facts.record(outcome);
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        if let Some(facts) = self.0.take() {
            facts.record(RequestOutcome::Cancelled);
        }
    }
}

impl RequestFacts {
    fn record(&self, outcome: RequestOutcome) {
        let duration = clock::now().saturating_sub(self.started);
        if let (Some(metrics), Some(names)) = (&self.server.metrics, &self.metric_names) {
            let of_client = self.client.as_ref().map(|client| client.revision);
            let revision = of_client.or(self.named_revision);
            metrics.record_operation(names, outcome, revision, self.transport, duration);
        }
        if let Some(span) = &self.span {
            span.end(outcome, duration);
        }
        if !self.is_logged {
            return;
        }
        let client = self.client.as_ref().and_then(|client| client.info.as_ref());
        let client = client.and_then(|info| info.member("name"));
        let client = client.as_ref().and_then(Raw::string_value);
        let client = client.map(|name| shown(&name));
        let method = shown(self.method.as_str());
        let caller = self.caller.as_ref();
        let issuer = caller.and_then(Caller::issuer).map(shown);
        let subject = caller.and_then(Caller::subject).map(shown);
        let client_id = caller.and_then(Caller::client_id).map(shown);
        let span = self.span.as_deref();
        let own_trace_id = span.and_then(RequestSpan::trace_id);
        let record = RequestRecord {
            method: &method,
            name: &self.name,
            outcome,
            duration,
            client: client.as_deref(),
            session: self.session.as_deref(),
            issuer: issuer.as_deref(),
            subject: subject.as_deref(),
            client_id: client_id.as_deref(),
            trace_id: own_trace_id.as_deref().or(self.trace_id.as_deref()),
            number: span
                .and_then(RequestSpan::traced)
                .map(|traced| traced.number()),
        };
        if is_traced() {
            tracing::info!(
                target: "mcpline::requests",
                method = record.method,
                name = record.name,
                outcome = %record.outcome,
                duration_ms = duration.as_secs_f64() * 1e3,
                client = record.client,
                session = record.session,
                issuer = record.issuer,
                subject = record.subject,
                client_id = record.client_id,
                trace_id = record.trace_id,
                "request"
            );
        }
        if let Some(listener) = self.server.request_log.listener() {
            listener(&record);
        }
    }
}
