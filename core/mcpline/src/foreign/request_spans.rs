//! Spans of requests for the OpenTelemetry of another language.

use mcpline_protocol::wire::Raw;
use serde_json::Value;

use crate::server::{Call, Context, RequestRecord, Server};
#[cfg(feature = "otlp")]
use crate::span::SpanScope;

/// Traces the requests of a server: when one has ended, `listener` gets its end as JSON, on the thread that writes the response:
///
/// ```json
/// {"number": 1, "end": 1790000000000000000, "attributes": {"error.type": "-32602"}, "error": "Unknown tool: x"}
/// ```
///
/// `end` is in nanoseconds since 1970; `error` is `null` if the request succeeded. If [`begin_span`] has not returned the number
/// before, the member `description` has what it would have returned.
pub fn trace_requests(server: &Server, listener: impl Fn(String) + Send + Sync + 'static) {
    server.trace_requests(move |request, end| listener(request.ending(end).to_string()));
}

/// Begins the span of a handler's request, if the request is traced and no other handler has begun it. Returns the number of the
/// request, and what the span begins with as JSON:
///
/// ```json
/// {"name": "tools/call add", "start": 1790000000000000000, "attributes": {"mcp.method.name": "tools/call"},
///  "parent": {"traceparent": "00-…"}, "link": {}}
/// ```
pub fn begin_span(context: &Context) -> Option<(u64, String)> {
    let traced = context.traced()?;
    traced
        .begin_handler()
        .then(|| (traced.number(), traced.description().to_string()))
}

/// Returns the number of a handler's request, if it is traced.
pub fn span_number(context: &Context) -> Option<u64> {
    context.traced().map(|traced| traced.number())
}

/// Returns the number of the request of a call, if it is traced; without a context, which calls rarely need.
pub fn span_number_of_call(call: &Call) -> Option<u64> {
    call.span_number()
}

/// Returns the attributes of the spans of a handler's input requests: the revision, and how the client is reached.
pub fn span_attributes(context: &Context) -> Vec<(&'static str, String)> {
    context.span_attributes()
}

/// Returns the number of a request that has ended, if it is traced.
pub fn span_number_of_record(record: &RequestRecord<'_>) -> Option<u64> {
    record.number
}

/// Returns the number in what [`trace_requests`] reports, if the language has begun a span for it.
pub fn number_of_span(ended: &str) -> Option<u64> {
    let ended: Value = serde_json::from_str(ended).ok()?;
    match ended.get("description") {
        None => ended.get("number")?.as_u64(),
        Some(_) => None,
    }
}

/// What the handler of a request runs in: its span, or the trace context of a request that is not sampled.
#[cfg(feature = "otlp")]
#[derive(Debug)]
pub struct HandlerScope(SpanScope);

#[cfg(feature = "otlp")]
impl HandlerScope {
    /// Lets the code of this thread run in it until the result is dropped.
    pub fn enter(&self) -> impl Sized + '_ {
        self.0.enter()
    }
}

/// Returns the span of a handler's request, to enter it while the handler runs. It does nothing if spans are not exported.
#[cfg(feature = "otlp")]
pub fn span(context: &Context) -> HandlerScope {
    let scope = context.scope();
    HandlerScope(scope.unwrap_or_else(|| SpanScope::new(tracing::Span::none(), None)))
}

/// Returns the trace context of a handler's request as a JSON object with `traceparent`, `tracestate` and `baggage`: that of its
/// span if the core exports spans, or else what the client has sent.
pub fn trace_context(context: &Context) -> Option<Raw> {
    #[cfg(feature = "otlp")]
    let exported = context.exported_context();
    #[cfg(not(feature = "otlp"))]
    let exported = None;
    let context = exported.or_else(|| context.trace_context())?;
    let fields = context
        .fields()
        .map(|(name, value)| (name.to_owned(), value.into()));
    let fields: serde_json::Map<_, _> = fields.collect();
    Raw::from_serialize(&fields).ok()
}
