//! Spans of `tracing` for requests, by the OpenTelemetry semantic conventions for MCP (`docs/gen-ai/mcp.md` of
//! `open-telemetry/semantic-conventions-genai`): what those of clients and of servers have in common.

use mcpline_protocol::Printable;
use mcpline_protocol::wire::{Method, Raw};
use tracing::Span;
use tracing::field::Empty;

/// The name of the operation of a tool's call in the conventions.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

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

impl SpanStart<'_> {
    pub(crate) fn span(&self) -> Span {
        let named = |attribute| {
            self.target
                .filter(|target| target.attribute == attribute)
                .map(|target| &*target.name)
        };
        let tool = named(TOOL);
        tracing::info_span!(
            target: "mcpline::spans",
            "mcp_request",
            otel.name = &*span_name(self.method, self.target),
            otel.kind = self.kind,
            mcp.method.name = self.method,
            gen_ai.tool.name = tool,
            gen_ai.operation.name = tool.map(|_| EXECUTE_TOOL),
            gen_ai.prompt.name = named(PROMPT),
            mcp.resource.uri = named(RESOURCE),
            mcp.session.id = self.session,
            mcp.protocol.version = self.revision,
            jsonrpc.request.id = self.request_id,
            network.transport = self.network.transport,
            network.protocol.name = self.network.protocol,
            network.protocol.version = self.network.protocol_version,
            client.address = self.client.map(|client| &*client.address),
            client.port = self.client.and_then(|client| client.port),
            server.address = self.server.map(|server| &*server.address),
            server.port = self.server.and_then(|server| server.port),
            rpc.response.status_code = Empty,
            error.type = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
        )
    }
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

/// Returns the beginning of a session id, which tells sessions apart in a log. Whoever knows the whole id can use the
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
