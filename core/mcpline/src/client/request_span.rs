//! Spans of a client's requests, for subscribers of `tracing`.

use std::borrow::Cow;

use mcpline_protocol::wire::{Method, Raw};
use tracing::{Instrument as _, Span};

use crate::client_error::ClientError;
use crate::span::{self, SpanStart, SpanTarget};

use super::inner::Inner;
use super::settings::RequestOptions;

impl Inner {
    /// Sends a request of the host in a span, which the server gets as the parent if the program exports its spans.
    pub(super) async fn request_in_span(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: RequestOptions,
    ) -> Result<Raw, ClientError> {
        let span = self.new_span(method, params);
        #[cfg(feature = "opentelemetry")]
        let options = RequestOptions {
            // It is an object, as has been checked.
            meta: crate::open_telemetry::meta_with_context(&span, options.meta),
            ..options
        };
        let outcome = self
            .request_through_middleware(method, params, &options)
            .instrument(span.clone())
            .await;
        record(&span, method, &outcome);
        outcome
    }

    fn new_span(&self, method: &str, params: Option<&Raw>) -> Span {
        let target = SpanTarget::of(&Method::parse(method), |member| {
            let member = params?.member(member)?;
            member.string_value().map(Cow::into_owned)
        });
        let session = self.open_session().ok().flatten();
        let transport = session
            .as_ref()
            .and_then(|session| session.link.network_transport());
        let start = SpanStart {
            kind: "client",
            method,
            target: target.as_ref(),
            session: None,
            revision: session.as_ref().map(|session| session.revision().as_str()),
            request_id: None,
            transport,
            protocol: transport
                .filter(|transport| *transport == "tcp")
                .map(|_| "http"),
        };
        start.span()
    }
}

/// Records how the request ended.
fn record(span: &Span, method: &str, outcome: &Result<Raw, ClientError>) {
    match outcome {
        Ok(result) => {
            if span::is_tool_error(&Method::parse(method), result) {
                span::fail(span, "tool_error", None);
            }
        }
        Err(error) => {
            span::describe_failure(span, &error.to_string());
            match error.rpc() {
                Some(rpc) => span::fail(span, &rpc.code.0.to_string(), Some(rpc.code.0)),
                None => span::fail(span, error.kind().as_str(), None),
            }
        }
    }
}
