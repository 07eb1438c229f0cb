//! Spans of `tracing` for requests, by the OpenTelemetry semantic conventions for MCP (`docs/gen-ai/mcp.md` of
//! `open-telemetry/semantic-conventions-genai`): what those of clients and of servers have in common.

use mcpline_protocol::Printable;
use mcpline_protocol::wire::{Method, Raw};
use tracing::Span;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;

use crate::traffic::excerpt;

/// The name of the operation of a tool's call in the conventions.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

/// Attributes with the contents of a tool's call.
pub(crate) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const RESULT: &str = "gen_ai.tool.call.result";

/// Maximum length of arguments and of a result in a span, in bytes. Exporters keep some thousand spans until they have sent them.
const MAX_CONTENT_BYTES: usize = 8 * 1024;

/// The target of spans of requests.
#[cfg(feature = "opentelemetry")]
pub(crate) const TARGET: &str = "mcpline::spans";

/// The field that only spans of requests have which are not sampled.
#[cfg(feature = "opentelemetry")]
pub(crate) const SAMPLED: &str = "sampled";

/// What a span begins with.
pub(crate) struct SpanStart<'a> {
    /// `client` or `server`.
    pub(crate) kind: &'static str,
    pub(crate) method: &'a str,
    pub(crate) target: Option<&'a SpanTarget>,
    pub(crate) session: Option<&'a str>,
    pub(crate) revision: Option<&'a str>,
    pub(crate) request_id: Option<&'a str>,
    /// How messages are exchanged.
    pub(crate) network: NetworkAttributes,
    /// The address of the client, at a server.
    pub(crate) client: Option<&'a NetworkAddress>,
    /// The address of the server, at a client.
    pub(crate) server: Option<&'a NetworkAddress>,
}

/// Attributes of the network in spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NetworkAttributes {
    /// `network.transport`.
    pub(crate) transport: Option<&'static str>,
    /// `network.protocol.name`.
    pub(crate) protocol: Option<&'static str>,
    /// `network.protocol.version`.
    pub(crate) protocol_version: Option<&'static str>,
}

impl NetworkAttributes {
    /// Returns those of a value of `network.transport`: of MCP's transports only HTTP uses TCP.
    pub(crate) fn of(transport: Option<&'static str>) -> Self {
        Self {
            transport,
            protocol: transport
                .filter(|transport| *transport == "tcp")
                .map(|_| "http"),
            protocol_version: None,
        }
    }

    /// Returns the attributes that have a value, with their names.
    #[cfg(feature = "server")]
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [
            ("network.transport", self.transport),
            ("network.protocol.name", self.protocol),
            ("network.protocol.version", self.protocol_version),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The address of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkAddress {
    /// An IP address, a host name, or the path of a socket.
    pub(crate) address: String,
    /// `None` if it is not known, or if there is none.
    pub(crate) port: Option<u16>,
}

/// What a request names.
pub(crate) struct SpanTarget {
    /// The attribute that has the name.
    pub(crate) attribute: &'static str,
    pub(crate) name: String,
}

/// Attributes with what a request names.
pub(crate) const TOOL: &str = "gen_ai.tool.name";
const PROMPT: &str = "gen_ai.prompt.name";
const RESOURCE: &str = "mcp.resource.uri";

/// Whether a subscriber wants spans. Cached by `tracing` for each place in the code.
#[inline]
pub(crate) fn is_wanted() -> bool {
    cfg!(feature = "spans")
        && tracing::span_enabled!(target: "mcpline::spans", tracing::Level::INFO)
}

/// Like [`is_wanted`], about spans of requests that are not sampled: a layer that exports spans does not want them.
#[cfg(feature = "opentelemetry")]
#[inline]
pub(crate) fn is_unsampled_wanted() -> bool {
    tracing::span_enabled!(target: "mcpline::spans", tracing::Level::INFO, sampled)
}

/// Returns the name of the span of a request. URIs are not part of it, because there are too many.
pub(crate) fn span_name(method: &str, target: Option<&SpanTarget>) -> String {
    match target {
        Some(target) if target.attribute != RESOURCE => format!("{method} {}", target.name),
        _ => method.to_owned(),
    }
}

impl SpanTarget {
    /// Returns what a request names; `member` reads a member of its parameters.
    pub(crate) fn of(
        method: &Method,
        member: impl FnOnce(&'static str) -> Option<String>,
    ) -> Option<Self> {
        let (attribute, name) = match method {
            Method::ToolsCall => (TOOL, "name"),
            Method::PromptsGet => (PROMPT, "name"),
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                (RESOURCE, "uri")
            }
            _ => return None,
        };
        Some(Self {
            attribute,
            name: member(name)?,
        })
    }
}

/// A span with the attributes of a [`SpanStart`], and further fields.
macro_rules! request_span {
    ($start:expr, $name:expr, $tool:expr, $prompt:expr, $resource:expr $(, $field:ident = $value:expr)?) => {
        tracing::info_span!(
            target: "mcpline::spans",
            "mcp_request",
            otel.name = $name,
            otel.kind = $start.kind,
            mcp.method.name = $start.method,
            gen_ai.tool.name = $tool,
            gen_ai.operation.name = $tool.map(|_| EXECUTE_TOOL),
            gen_ai.prompt.name = $prompt,
            mcp.resource.uri = $resource,
            mcp.session.id = $start.session,
            mcp.protocol.version = $start.revision,
            jsonrpc.request.id = $start.request_id,
            network.transport = $start.network.transport,
            network.protocol.name = $start.network.protocol,
            network.protocol.version = $start.network.protocol_version,
            client.address = $start.client.map(|client| &*client.address),
            client.port = $start.client.and_then(|client| client.port),
            server.address = $start.server.map(|server| &*server.address),
            server.port = $start.server.and_then(|server| server.port),
            rpc.response.status_code = Empty,
            error.type = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            $($field = $value,)?
        )
    };
}

impl SpanStart<'_> {
    pub(crate) fn span(&self) -> Span {
        let (tool, prompt, resource) = self.names();
        let name = &*span_name(self.method, self.target);
        request_span!(self, name, tool, prompt, resource)
    }

    /// Returns the span of a request that is not sampled. Layers that export spans do not see it.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn unsampled_span(&self) -> Span {
        let (tool, prompt, resource) = self.names();
        let name = &*span_name(self.method, self.target);
        request_span!(self, name, tool, prompt, resource, sampled = false)
    }

    /// Returns the tool, the prompt or the resource that the request names.
    fn names(&self) -> (Option<&str>, Option<&str>, Option<&str>) {
        let named = |attribute| {
            self.target
                .filter(|target| target.attribute == attribute)
                .map(|target| &*target.name)
        };
        (named(TOOL), named(PROMPT), named(RESOURCE))
    }
}

/// The span that code runs in, and the trace context of a request that is not sampled.
#[derive(Debug, Clone)]
pub(crate) struct SpanScope {
    span: Span,
    /// Of OpenTelemetry. Entering a span makes its context the current one.
    #[cfg(feature = "opentelemetry")]
    context: Option<opentelemetry::Context>,
}

/// Code runs in a [`SpanScope`] until this is dropped.
#[derive(Debug)]
pub(crate) struct EnteredScope<'a> {
    // Ends before the span, which began first.
    #[cfg(feature = "opentelemetry")]
    _context: Option<opentelemetry::ContextGuard>,
    _span: tracing::span::Entered<'a>,
}

impl SpanScope {
    pub(crate) fn new(
        span: Span,
        #[cfg(feature = "opentelemetry")] context: Option<opentelemetry::Context>,
    ) -> Self {
        Self {
            span,
            #[cfg(feature = "opentelemetry")]
            context,
        }
    }

    /// Returns the scope of this thread, to continue in it elsewhere.
    pub(crate) fn current() -> Self {
        Self {
            span: Span::current(),
            #[cfg(feature = "opentelemetry")]
            context: has_context().then(opentelemetry::Context::current),
        }
    }

    /// Returns the scope with the span of this thread only, which is current here anyway.
    pub(crate) fn of_current_span() -> Self {
        // Without a subscriber, to ask for the span takes longer than to learn that there is none.
        let span = match LevelFilter::current() {
            LevelFilter::OFF => Span::none(),
            _ => Span::current(),
        };
        Self::new(
            span,
            #[cfg(feature = "opentelemetry")]
            None,
        )
    }

    /// Returns the same scope, with the span of this thread if it has none of its own.
    pub(crate) fn or_current(&self) -> Self {
        Self {
            span: self.span.clone().or_current(),
            #[cfg(feature = "opentelemetry")]
            context: self.context.clone(),
        }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Returns the context of OpenTelemetry, if it is not that of the span.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn context(&self) -> Option<&opentelemetry::Context> {
        self.context.as_ref()
    }

    /// Lets code run in it until the result is dropped.
    pub(crate) fn enter(&self) -> EnteredScope<'_> {
        let span = self.span.enter();
        #[cfg(feature = "opentelemetry")]
        let context = self.context.as_ref().filter(|_| has_context());
        EnteredScope {
            #[cfg(feature = "opentelemetry")]
            _context: context.cloned().map(opentelemetry::Context::attach),
            _span: span,
        }
    }

    pub(crate) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        let _entered = self.enter();
        run()
    }

    /// Lets a future run in it.
    #[cfg(any(feature = "otlp", feature = "client"))]
    pub(crate) async fn run<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| self.in_scope(|| work.as_mut().poll(cx))).await
    }
}

/// Whether this thread still has a context of OpenTelemetry. While a thread or the program ends, destructors may run that use a
/// client, and OpenTelemetry panics then.
#[cfg(feature = "opentelemetry")]
fn has_context() -> bool {
    struct Alive;

    impl Drop for Alive {
        fn drop(&mut self) {
            // Only so that it is destroyed.
        }
    }

    std::thread_local! {
        // The context is made first, so it is destroyed last.
        static ALIVE: Alive = {
            drop(opentelemetry::Context::current());
            Alive
        };
    }
    ALIVE.try_with(|_| ()).is_ok()
}

/// Records that a request has failed.
pub(crate) fn fail(span: &Span, error_type: &str, code: Option<i64>) {
    span.record("error.type", error_type);
    span.record("otel.status_code", "ERROR");
    if let Some(code) = code {
        span.record("rpc.response.status_code", code.to_string());
    }
}

/// Records the text of an error; see [`shown_failure`].
pub(crate) fn describe_failure(span: &Span, text: &str) {
    if !span.is_disabled() {
        span.record("otel.status_description", &*shown_failure(text));
    }
}

/// Returns arguments or a result for a span: JSON on one line, without what is obviously secret. What exceeds the limit is
/// replaced by the length.
pub(crate) fn shown_content(json: &[u8]) -> String {
    excerpt(json, MAX_CONTENT_BYTES).text
}

/// Returns the beginning of a session id, which distinguishes sessions in a log. The whole id gives access to the
/// session.
pub(crate) fn shortened(session: &str) -> &str {
    const SHOWN: usize = 8;
    session.get(..SHOWN).unwrap_or_default()
}

/// Maximum number of characters of methods, names and ids in spans and records, because peers choose them.
const MAX_NAME_CHARS: usize = 200;

/// Returns the beginning of a peer's text, as [`Printable`].
pub(crate) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(MAX_NAME_CHARS);
    let beginning = end.map_or(text, |(end, _)| &text[..end]);
    Printable(beginning).to_string()
}

/// Returns an address as text, as [`Printable`]: `weather.example:443`, `[::1]:8000`, `/run/weather.sock`.
#[cfg(feature = "client")]
pub(crate) fn shown_address(address: &NetworkAddress) -> String {
    let host = shown(&address.address);
    match address.port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// Returns a request's id, which is JSON, as text: a string without its quotation marks.
pub(crate) fn shown_id(id: &[u8]) -> String {
    let id = Raw::from_trusted(id.to_vec());
    match id.string_value() {
        Some(text) => shown(&text),
        None => shown(id.as_str()),
    }
}

/// Maximum number of characters of an error's text in a span: it may quote what a peer has sent, and exporters keep many spans.
const MAX_FAILURE_CHARS: usize = 1_000;

/// Returns the beginning of the text of an error, without control characters.
pub(crate) fn shown_failure(text: &str) -> String {
    let end = text.char_indices().nth(MAX_FAILURE_CHARS);
    let beginning = end.map_or(text, |(end, _)| &text[..end]);
    Printable(beginning).to_string()
}

/// Whether the result of a tool reports an error.
pub(crate) fn is_tool_error(method: &Method, result: &Raw) -> bool {
    *method == Method::ToolsCall
        && result
            .member("isError")
            .is_some_and(|member| member.as_str() == "true")
}
