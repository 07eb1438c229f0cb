//! Spans of a client's requests, for subscribers of `tracing` and for the OpenTelemetry of other languages.

use std::borrow::Cow;

use mcpline_protocol::Revision;
use mcpline_protocol::wire::{Method, Raw};
use tracing::{Instrument as _, Span};

use crate::client_error::ClientError;
use crate::span::{self, NetworkAttributes, SpanStart, SpanTarget};
use crate::sync::{Arc, Mutex, PoisonError};

use super::inner::Inner;
use super::session::Session;
use super::settings::RequestOptions;

/// What is known of a request once it was sent, for its span. If it was sent several times, because it was repeated or continued
/// with input, this is about the last time.
#[derive(Debug, Default)]
pub(crate) struct SentRequest(Mutex<Option<SentFacts>>);

#[derive(Debug, Clone)]
struct SentFacts {
    /// The JSON-RPC id.
    number: u64,
    /// The first eight characters of the session's id.
    session: Option<String>,
    revision: Revision,
    transport: Option<&'static str>,
}

impl SentRequest {
    /// Adds it to the options of a request.
    pub(crate) fn track(options: &mut RequestOptions) -> Arc<Self> {
        options.sent.get_or_insert_with(Arc::default).clone()
    }

    /// Returns what is known as attributes of a span. None if the request was not sent, because its result is cached or because
    /// it was refused.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let Some(sent) = self.facts() else {
            return Vec::new();
        };
        let revision = sent.revision.as_str().to_owned();
        let mut attributes = vec![
            ("jsonrpc.request.id", sent.number.to_string()),
            ("mcp.protocol.version", revision),
        ];
        attributes.extend(sent.session.map(|session| ("mcp.session.id", session)));
        attributes
    }

    pub(super) fn set(&self, session: &Session, number: u64) {
        let facts = SentFacts {
            number,
            session: session.shown_id(),
            revision: session.revision(),
            transport: session.link.network_transport(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    fn facts(&self) -> Option<SentFacts> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The span of a request. One that is dropped before its end was cancelled.
struct RequestSpan {
    span: Span,
    sent: Arc<SentRequest>,
    /// Whether the client was connected at the beginning, so that the span began with what is known of the connection.
    was_connected: bool,
    has_ended: bool,
}

impl Inner {
    /// Sends a request of the host in a span, which the server gets as the parent if the program exports its spans.
    pub(super) async fn request_in_span(
        &self,
        method: &str,
        params: Option<&Raw>,
        mut options: RequestOptions,
    ) -> Result<Raw, ClientError> {
        let sent = SentRequest::track(&mut options);
        let span = self.begin_span(method, params, sent);
        #[cfg(feature = "opentelemetry")]
        let options = RequestOptions {
            // It is an object, as has been checked.
            meta: crate::open_telemetry::meta_with_context(&span.span, options.meta),
            ..options
        };
        let outcome = self
            .request_through_middleware(method, params, &options)
            .instrument(span.span.clone())
            .await;
        span.end(method, &outcome);
        outcome
    }

    fn begin_span(
        &self,
        method: &str,
        params: Option<&Raw>,
        sent: Arc<SentRequest>,
    ) -> RequestSpan {
        let target = SpanTarget::of(&Method::parse(method), |member| {
            let member = params?.member(member)?;
            member.string_value().map(Cow::into_owned)
        });
        let session = self.open_session().ok().flatten();
        let session_id = session.as_ref().and_then(|session| session.shown_id());
        let transport = session
            .as_ref()
            .and_then(|session| session.link.network_transport());
        let start = SpanStart {
            kind: "client",
            method,
            target: target.as_ref(),
            session: session_id.as_deref(),
            revision: session.as_ref().map(|session| session.revision().as_str()),
            request_id: None,
            network: NetworkAttributes::of(transport),
            client: None,
            server: self.dialler.server_address(),
        };
        RequestSpan {
            span: start.span(),
            sent,
            was_connected: session.is_some(),
            has_ended: false,
        }
    }
}

impl RequestSpan {
    /// Records how the request ended.
    fn end(mut self, method: &str, outcome: &Result<Raw, ClientError>) {
        self.has_ended = true;
        let span = &self.span;
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

    fn record_sent(&self, sent: &SentFacts) {
        let span = &self.span;
        span.record("jsonrpc.request.id", sent.number.to_string());
        if self.was_connected {
            return;
        }
        span.record("mcp.protocol.version", sent.revision.as_str());
        let network = NetworkAttributes::of(sent.transport);
        for (name, value) in [
            ("mcp.session.id", sent.session.as_deref()),
            ("network.transport", network.transport),
            ("network.protocol.name", network.protocol),
        ] {
            if let Some(value) = value {
                span.record(name, value);
            }
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        if self.span.is_disabled() {
            return;
        }
        if let Some(sent) = self.sent.facts() {
            self.record_sent(&sent);
        }
        if !self.has_ended {
            span::fail(&self.span, "cancelled", None);
        }
    }
}
