//! Records and spans of the input requests that a client answers.

use mcpline_protocol::wire::{Raw, RequestId};
use tracing::Instrument as _;

use crate::span::{self, NetworkAddress, NetworkAttributes, SpanStart};
use crate::trace_context::TraceContext;

use super::handlers::{Handlers, HostRequest, HostResponseFuture};
use super::request_log::RunningRequest;
use super::session::Session;

/// Where an input request comes from.
pub(super) struct InputRequestOrigin<'a> {
    /// The session with the server, while it is open.
    pub(super) session: Option<&'a Session>,
    /// The address of the server.
    pub(super) server: Option<&'a NetworkAddress>,
    /// `None` on 2026-07-28, where it is part of a result.
    pub(super) request_id: Option<&'a RequestId>,
}

impl Handlers {
    /// Answers one input request, and records it if a log wants it.
    pub(super) fn answer_recorded(
        &self,
        method: &str,
        params: Option<Raw>,
        origin: &InputRequestOrigin<'_>,
    ) -> HostResponseFuture {
        if !self.request_log.is_wanted() {
            return self.answer_in_span(method, params, origin);
        }
        let log = &self.request_log;
        let running = RunningRequest::of_received(log, method, params.as_ref(), origin);
        let answer = self.answer_in_span(method, params, origin);
        Box::pin(async move {
            let outcome = answer.await;
            running.end_received(&outcome);
            outcome
        })
    }

    /// Answers one input request, in a span if a subscriber wants it: the child of the span that `_meta` of the request names.
    fn answer_in_span(
        &self,
        method: &str,
        params: Option<Raw>,
        origin: &InputRequestOrigin<'_>,
    ) -> HostResponseFuture {
        let InputRequestOrigin {
            session, server, ..
        } = *origin;
        let meta = params.as_ref().and_then(|params| params.member("_meta"));
        let request = HostRequest {
            trace_context: meta.as_ref().and_then(TraceContext::from_meta),
            params,
            session: session.and_then(Session::shown_id),
            request_id: origin.request_id.map(|id| span::shown_id(id.raw())),
        };
        if !span::is_wanted() {
            return self.answer(method, request);
        }
        let transport = session.and_then(|session| session.link.network_transport());
        let start = SpanStart {
            kind: "server",
            method: &span::shown_failure(method),
            target: None,
            session: request.session.as_deref(),
            revision: session.map(|session| session.revision().as_str()),
            request_id: request.request_id.as_deref(),
            network: NetworkAttributes::of(transport),
            client: None,
            server,
        };
        let span = start.span();
        #[cfg(feature = "opentelemetry")]
        crate::open_telemetry::set_parent(&span, request.trace_context.as_ref(), None);
        let answer = span.in_scope(|| self.answer(method, request));
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
