//! Spans of a client's requests, for subscribers of `tracing` and for the OpenTelemetry of other languages.

use std::borrow::Cow;

use mcpline_protocol::Revision;
use mcpline_protocol::client::is_input_required;
use mcpline_protocol::wire::{Method, Raw};
#[cfg(feature = "opentelemetry")]
use opentelemetry::trace::SpanKind;
#[cfg(feature = "opentelemetry")]
use tracing::Span;

use crate::client_error::ClientError;
#[cfg(feature = "opentelemetry")]
use crate::open_telemetry::{self, Sampling};
use crate::span::{self, NetworkAttributes, SpanScope, SpanStart, SpanTarget};
use crate::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::inner::Inner;
use super::request_log::RunningRequest;
use super::session::Session;
use super::settings::RequestOptions;

/// What is known of a request once it was sent, for its span. If it was sent several times, because it was repeated or continued
/// with input, this is about the last time.
#[derive(Debug, Default)]
pub(crate) struct SentRequest {
    facts: Mutex<Option<SentFacts>>,
    /// Of a tool's call, if they are recorded.
    arguments: OnceLock<String>,
    result: OnceLock<String>,
}

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

    /// Returns what is known as attributes of a span. None but arguments if the request was not sent, because its result is
    /// cached or because it was refused.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = Vec::new();
        if let Some(sent) = self.facts() {
            attributes.push(("jsonrpc.request.id", sent.number.to_string()));
            attributes.push(("mcp.protocol.version", sent.revision.as_str().to_owned()));
            attributes.extend(sent.session.map(|session| ("mcp.session.id", session)));
        }
        for (name, value) in self.contents() {
            attributes.push((name, value.to_owned()));
        }
        attributes
    }

    /// Returns the JSON-RPC id, if the request was sent.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(self.facts()?.number)
    }

    /// Returns the revision of the connection that it was sent over.
    pub(crate) fn revision(&self) -> Option<Revision> {
        Some(self.facts()?.revision)
    }

    /// Returns how messages were exchanged over this connection, as the attribute `network.transport`.
    pub(crate) fn network_transport(&self) -> Option<&'static str> {
        self.facts()?.transport
    }

    /// Returns the arguments and the result as attributes of a span.
    fn contents(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let contents = [
            (span::ARGUMENTS, &self.arguments),
            (span::RESULT, &self.result),
        ];
        contents
            .into_iter()
            .filter_map(|(name, value)| Some((name, &**value.get()?)))
    }

    /// Records the arguments of a tool's call.
    #[cold]
    fn set_arguments(&self, client: &Inner, params: Option<&Raw>) {
        let arguments = params.and_then(|params| params.member("arguments"));
        if let Some(arguments) = arguments.and_then(|given| client.redacted_record(&given)) {
            // Only the first call, if a program uses its options for several.
            let _ = self
                .arguments
                .set(span::shown_content(arguments.as_bytes()));
        }
    }

    /// Records the result of a tool's call that succeeded. A request for input, which a program may answer by itself, is none.
    #[cold]
    fn set_result(&self, client: &Inner, outcome: &Result<Raw, ClientError>) {
        if let Ok(result) = outcome
            && !span::is_tool_error(&Method::ToolsCall, result)
            && is_input_required(result) == Ok(false)
            && let Some(result) = client.redacted_record(result)
        {
            let _ = self.result.set(span::shown_content(result.as_bytes()));
        }
    }

    pub(super) fn set(&self, session: &Session, number: u64) {
        let facts = SentFacts {
            number,
            session: session.shown_id(),
            revision: session.revision(),
            transport: session.link.network_transport(),
        };
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    fn facts(&self) -> Option<SentFacts> {
        self.facts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The span of a request. One that is dropped before its end was cancelled.
struct RequestSpan {
    scope: SpanScope,
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
        #[cfg(feature = "opentelemetry")]
        let sampling = Sampling::of(method, &SpanKind::Client, None);
        #[cfg(feature = "opentelemetry")]
        if let Sampling::Dropped(context) = &sampling
            && !span::is_unsampled_wanted()
        {
            let scope = SpanScope::new(Span::none(), Some(context.clone()));
            options.meta = open_telemetry::meta_with_context(&scope, options.meta.take());
            return scope
                .run(self.recorded_request(method, params, &options))
                .await;
        }
        let sent = SentRequest::track(&mut options);
        let span = self.begin_span(method, params, sent, |start| {
            #[cfg(feature = "opentelemetry")]
            return match sampling {
                Sampling::Later => SpanScope::new(start.span(), None),
                Sampling::Sampled(decision) => {
                    let span = open_telemetry::with_sampling_decision(decision, || start.span());
                    SpanScope::new(span, None)
                }
                Sampling::Dropped(context) => SpanScope::new(start.unsampled_span(), Some(context)),
            };
            #[cfg(not(feature = "opentelemetry"))]
            SpanScope::new(start.span())
        });
        #[cfg(feature = "opentelemetry")]
        let options = RequestOptions {
            // It is an object, as has been checked.
            meta: open_telemetry::meta_with_context(&span.scope, options.meta),
            ..options
        };
        let scope = span.scope.clone();
        let outcome = scope
            .run(self.recorded_request(method, params, &options))
            .await;
        span.end(method, &outcome);
        outcome
    }

    /// Sends a request of the host, and records it for the log, and the contents of a tool's call for its span, if they are wanted.
    pub(super) async fn recorded_request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        let running = RunningRequest::of_sent(self, method, params, options);
        let is_recorded = self.settings.span_contents && method == Method::ToolsCall.as_str();
        let recorded = options.sent.as_ref().filter(|_| is_recorded);
        if let Some(recorded) = recorded {
            recorded.set_arguments(self, params);
        }
        let outcome = self
            .request_through_middleware(method, params, options)
            .await;
        if let Some(recorded) = recorded {
            recorded.set_result(self, &outcome);
        }
        if let Some(running) = running {
            running.end_sent(&outcome);
        }
        outcome
    }

    fn begin_span(
        &self,
        method: &str,
        params: Option<&Raw>,
        sent: Arc<SentRequest>,
        begin: impl FnOnce(&SpanStart<'_>) -> SpanScope,
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
            scope: begin(&start),
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
        let span = self.scope.span();
        match outcome {
            Ok(result) => {
                if span::is_tool_error(&Method::parse(method), result) {
                    span::fail(span, "tool_error", None);
                }
            }
            Err(error) => {
                match error.rpc() {
                    // Its message alone, as in the span of the server.
                    Some(rpc) => {
                        span::describe_failure(span, &rpc.message);
                        span::fail(span, &rpc.code.0.to_string(), Some(rpc.code.0));
                    }
                    None => {
                        span::describe_failure(span, &error.to_string());
                        span::fail(span, error.kind().as_str(), None);
                    }
                }
            }
        }
    }

    fn record_sent(&self, sent: &SentFacts) {
        let span = self.scope.span();
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
        let span = self.scope.span();
        if span.is_disabled() {
            return;
        }
        if let Some(sent) = self.sent.facts() {
            self.record_sent(&sent);
        }
        for (name, value) in self.sent.contents() {
            span.record(name, value);
        }
        if !self.has_ended {
            span::fail(span, "cancelled", None);
        }
    }
}
