//! Spans of the input requests that handlers send, for subscribers of `tracing`.

use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::wire::Raw;
use tracing::Instrument as _;

use crate::error_kind::ErrorKind;
#[cfg(feature = "opentelemetry")]
use crate::span::SpanScope;
use crate::span::{self, SpanStart, shortened};

use super::context::Context;
use super::input_requests::InputRequest;
use super::request_span::network_of;

impl Context {
    /// Sends an input request in a span, a child of the handler's, which the client gets as the parent if the program exports its
    /// spans.
    pub(super) async fn request_input_in_span(
        &self,
        input_request: InputRequest,
    ) -> Result<Raw, InputRequestError> {
        let origin = self.current_request();
        let connection = &origin.connection;
        let start = SpanStart {
            kind: "client",
            method: input_request.method.as_str(),
            target: None,
            session: connection.session_id().map(shortened),
            revision: Some(self.peer().revision.as_str()),
            request_id: None,
            network: network_of(connection.transport_kind(), origin.http.as_deref()),
            client: None,
            server: None,
        };
        let span = start.span();
        #[cfg(feature = "opentelemetry")]
        let input_request = with_context(&SpanScope::new(span.clone(), None), input_request);
        let outcome = self
            .request_input_without_span(input_request)
            .instrument(span.clone())
            .await;
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

impl Context {
    /// Returns the attributes of the spans of input requests in other languages.
    pub(crate) fn span_attributes(&self) -> Vec<(&'static str, String)> {
        let origin = self.current_request();
        let mut attributes = vec![(
            "mcp.protocol.version",
            origin.peer.revision.as_str().to_owned(),
        )];
        let session = origin.connection.session_id();
        attributes.extend(session.map(|id| ("mcp.session.id", shortened(id).to_owned())));
        let network = network_of(origin.connection.transport_kind(), origin.http.as_deref());
        let network = network.fields();
        attributes.extend(network.map(|(name, value)| (name, value.to_owned())));
        attributes
    }
}

#[cfg(feature = "opentelemetry")]
fn with_context(scope: &SpanScope, mut input_request: InputRequest) -> InputRequest {
    let params = input_request.params.clone().unwrap_or(Raw::EMPTY_OBJECT);
    let given = params.member("_meta");
    if let Some(meta) = crate::open_telemetry::meta_with_context(scope, given) {
        input_request.params = Some(params.with("_meta", &meta));
    }
    input_request
}
