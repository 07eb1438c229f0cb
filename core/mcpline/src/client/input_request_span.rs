//! Spans of the input requests that a client answers, for subscribers of `tracing`.

use mcpline_protocol::Revision;
use mcpline_protocol::wire::Raw;
use tracing::Instrument as _;

use crate::span::{self, SpanStart};

use super::handlers::{Answer, Handlers};

impl Handlers {
    /// Answers one input request, in a span if a subscriber wants it: the child of the span that `_meta` of the request names.
    pub(super) fn answer_in_span(
        &self,
        method: &str,
        params: Option<Raw>,
        revision: Option<Revision>,
        transport: Option<&'static str>,
    ) -> Answer {
        if !span::is_wanted() {
            return self.answer(method, params);
        }
        let start = SpanStart {
            kind: "server",
            method: &span::shown_failure(method),
            target: None,
            session: None,
            revision: revision.map(Revision::as_str),
            request_id: None,
            transport,
            protocol: transport
                .filter(|transport| *transport == "tcp")
                .map(|_| "http"),
        };
        let span = start.span();
        #[cfg(feature = "opentelemetry")]
        {
            use crate::trace_context::TraceContext;

            let meta = params.as_ref().and_then(|params| params.member("_meta"));
            let parent = meta.as_ref().and_then(TraceContext::from_meta);
            crate::open_telemetry::set_parent(&span, parent.as_ref(), None);
        }
        let answer = span.in_scope(|| self.answer(method, params));
        Box::pin(async move {
            let outcome = answer.instrument(span.clone()).await;
            if let Err(error) = &outcome {
                span::describe_failure(&span, &error.message);
                span::fail(&span, &error.code.0.to_string(), Some(error.code.0));
            }
            outcome
        })
    }
}
