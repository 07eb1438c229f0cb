//! For programs that export spans with `tracing-opentelemetry`: a sampler that is asked before the span of a request is made.

// Also connects the spans of `tracing` with the trace contexts of messages. The program's propagators are used as in all of its
// protocols. Without one, the formats of the W3C are used all the same: their names are the ones that the protocol reserves
// (2026-07-28, "Base protocol", `_meta`).

mod request_sampler;

use std::str::FromStr as _;

use mcpline_protocol::vocabulary::meta::{BAGGAGE, TRACEPARENT, TRACESTATE};
use mcpline_protocol::wire::{Raw, json_string};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, global};
use serde_json::{Map, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::span::SpanScope;
use crate::trace_context::TraceContext;

pub use request_sampler::RequestSampler;
pub(crate) use request_sampler::{Decision, Sampling};

/// Makes a span the child of the one that the peer's message names, and links another one. Without a trace context it stays the
/// child of the span that was current.
pub(crate) fn set_parent(span: &Span, parent: Option<&TraceContext>, link: Option<&TraceContext>) {
    if let Some(parent) = parent {
        // An error: the subscriber does not export the span.
        let _ = span.set_parent(context_of(parent));
    }
    if let Some(link) = link {
        let linked = context_of(link).span().span_context().clone();
        if linked.is_valid() {
            span.add_link(linked);
        }
    }
}

/// Makes a span that is sampled as decided.
pub(crate) fn with_sampling_decision(decision: Decision, make: impl FnOnce() -> Span) -> Span {
    decision.apply(|| {
        let span = make();
        // Starts the span of OpenTelemetry, which asks the sampler.
        let _ = span.context();
        span
    })
}

/// Returns `_meta` with the trace context of a span or of a request that is not sampled, for the peer to continue the trace. It
/// stays as it is if the span is not exported, if it has a trace context, or if it is not an object.
pub(crate) fn meta_with_context(scope: &SpanScope, meta: Option<Raw>) -> Option<Raw> {
    let Some(context) = context_of_scope(scope) else {
        return meta;
    };
    let Some(given) = &meta else {
        return Some(json_of(&context));
    };
    let Ok(given) = serde_json::from_str::<Map<String, Value>>(given.as_str()) else {
        return meta;
    };
    if given.contains_key(TRACEPARENT) {
        return meta;
    }
    let mut all: Map<String, Value> = context
        .fields()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    all.extend(given);
    Raw::from_serialize(&all).ok().or(meta)
}

/// Returns a trace context as a JSON object.
fn json_of(context: &TraceContext) -> Raw {
    let mut out = Vec::with_capacity(96);
    for (name, value) in context.fields() {
        out.push(if out.is_empty() { b'{' } else { b',' });
        json_string(&mut out, name);
        out.push(b':');
        json_string(&mut out, value);
    }
    out.push(b'}');
    Raw::from_trusted(out)
}

/// Returns the id of the trace that a scope belongs to, as 32 hexadecimal digits; `None` if its span is not exported.
#[cfg(feature = "server")]
pub(crate) fn trace_id(scope: &SpanScope) -> Option<String> {
    let own = match scope.context() {
        Some(context) => context.span().span_context().trace_id(),
        None if scope.span().is_disabled() => return None,
        None => scope.span().context().span().span_context().trace_id(),
    };
    (own != TraceId::INVALID).then(|| own.to_string())
}

/// Returns the trace context that a message of this span carries; `None` if the span is not exported.
pub(crate) fn context_of_span(span: &Span) -> Option<TraceContext> {
    trace_context_of(&span.context())
}

/// Returns the trace context of messages that are sent within a scope; `None` if its span is not exported.
pub(crate) fn context_of_scope(scope: &SpanScope) -> Option<TraceContext> {
    match scope.context() {
        Some(context) => trace_context_of(context),
        None => context_of_span(scope.span()),
    }
}

/// Returns the trace context of messages that are sent within a context of OpenTelemetry, if it has a span or baggage.
pub(crate) fn trace_context_of(context: &Context) -> Option<TraceContext> {
    let mut fields = Fields::default();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(context, &mut fields);
    });
    let span = context.span();
    let own = span.span_context();
    if fields.traceparent.is_none() && own.is_valid() {
        fields.traceparent = Some(format!(
            "00-{}-{}-{:02x}",
            own.trace_id(),
            own.span_id(),
            own.trace_flags().to_u8()
        ));
        let state = own.trace_state().header();
        fields.tracestate = (!state.is_empty()).then_some(state);
    }
    TraceContext::new(
        fields.traceparent.as_deref(),
        fields.tracestate.as_deref(),
        fields.baggage.as_deref(),
    )
}

fn context_of(received: &TraceContext) -> Context {
    let extracted = global::get_text_map_propagator(|propagator| {
        propagator.extract_with_context(&Context::new(), received)
    });
    if extracted.span().span_context().is_remote() {
        return extracted;
    }
    // The default propagator returns the current context instead of the given one.
    let extracted = match extracted.has_active_span() {
        true => Context::new(),
        false => extracted,
    };
    match span_context_of(received) {
        Some(parent) => extracted.with_remote_span_context(parent),
        None => extracted,
    }
}

fn span_context_of(received: &TraceContext) -> Option<SpanContext> {
    let trace = TraceId::from_hex(received.trace_id()?).ok()?;
    let span = SpanId::from_hex(received.span_id()?).ok()?;
    let flags = match received.is_sampled() {
        true => TraceFlags::SAMPLED,
        false => TraceFlags::default(),
    };
    let state = received
        .tracestate()
        .and_then(|state| TraceState::from_str(state).ok())
        .unwrap_or_default();
    Some(SpanContext::new(trace, span, flags, true, state))
}

impl Extractor for TraceContext {
    fn get(&self, key: &str) -> Option<&str> {
        self.fields()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    fn keys(&self) -> Vec<&str> {
        self.fields().map(|(name, _)| name).collect()
    }
}

/// The keys that the protocol reserves: others of a propagator are not sent.
#[derive(Default)]
struct Fields {
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
}

impl Injector for Fields {
    fn set(&mut self, key: &str, value: String) {
        let field = match key {
            TRACEPARENT => &mut self.traceparent,
            TRACESTATE => &mut self.tracestate,
            BAGGAGE => &mut self.baggage,
            _ => return,
        };
        *field = Some(value).filter(|value| !value.is_empty());
    }
}
