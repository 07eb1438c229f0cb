//! Spans of the input requests that handlers send, for subscribers of `tracing`.

use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::wire::Raw;
use tracing::Instrument as _;

use crate::error_kind::ErrorKind;
use crate::span::{self, SpanStart};

use super::asking::Ask;
use super::context::Context;

impl Context {
    /// Sends an input request in a span, a child of the handler's, which the client gets as the parent if the program exports its
    /// spans.
    pub(super) async fn ask_in_span(&self, ask: Ask) -> Result<Raw, InputRequestError> {
        let start = SpanStart {
            kind: "client",
            method: ask.method.as_str(),
            target: None,
            session: None,
            revision: Some(self.peer().revision.as_str()),
            request_id: None,
            transport: None,
            protocol: None,
        };
        let span = start.span();
        #[cfg(feature = "opentelemetry")]
        let ask = with_context(&span, ask);
        let outcome = self.ask_at_once(ask).instrument(span.clone()).await;
        if let Err(error) = &outcome {
            span::describe_failure(&span, &error.to_string());
            match error {
                InputRequestError::Rpc { error, .. } => {
                    span::fail(&span, &error.code.0.to_string(), Some(error.code.0));
                }
                InputRequestError::Cancelled => span::fail(&span, "cancelled", None),
                other => span::fail(&span, ErrorKind::from(other).as_str(), None),
            }
        }
        outcome
    }
}

#[cfg(feature = "opentelemetry")]
fn with_context(span: &tracing::Span, mut ask: Ask) -> Ask {
    let params = ask.params.clone().unwrap_or(Raw::EMPTY_OBJECT);
    let given = params.member("_meta");
    if let Some(meta) = crate::open_telemetry::meta_with_context(span, given) {
        ask.params = Some(params.with("_meta", &meta));
    }
    ask
}
