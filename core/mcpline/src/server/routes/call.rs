//! The call of a route: one HTTP request, passed to the handler outside of any session.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use mcpline_protocol::session::{ClientProfile, SessionScope};
use mcpline_protocol::wire::{Method, Raw};
use mcpline_protocol::{ErrorCode, RequestId, Revision, Scopes};
use tokio::sync::oneshot;

use crate::message_sink::{Encode, MessageKind, MessageSink};
use crate::quota::{Charge, ClientQuota};
use crate::server::Inner;
use crate::server::call::{CallState, CurrentRequest, Target};
use crate::server::connection::{Connection, ConnectionOptions, TransportId};
use crate::server::input_requests::InputRecord;
use crate::server::reply::{HandlerError, Reply};
use crate::server::request_info::HttpInfo;
use crate::server::traffic::TransportKind;
use crate::sync::{Arc, Mutex, PoisonError};

use super::RouteEntry;

/// The request of a route's call, and where its outcome goes.
pub(crate) struct RouteCall {
    pub(crate) entry: Arc<RouteEntry>,
    pub(crate) request: Request<Bytes>,
    answer: Mutex<Option<oneshot::Sender<RouteOutcome>>>,
}

/// How the call of a route ended.
pub(crate) enum RouteOutcome {
    Response(Box<Response<Bytes>>),
    /// The caller lacks these scopes.
    LacksScopes(Scopes),
    /// The reason was logged.
    Failed,
    /// The server ends.
    Cancelled,
}

/// A started call. Cancelled when it is dropped before its end.
pub(crate) struct StartedRoute {
    call: Arc<CallState>,
    answer: oneshot::Receiver<RouteOutcome>,
}

impl RouteCall {
    /// Starts a call of a route over HTTP. The connection belongs to this request alone.
    pub(crate) fn start(
        server: &Arc<Inner>,
        entry: Arc<RouteEntry>,
        request: Request<Bytes>,
        http: HttpInfo,
        transport: TransportId,
        client: Arc<ClientQuota>,
        in_flight: Charge,
    ) -> (Arc<Connection>, StartedRoute) {
        let sink: Arc<dyn MessageSink> = Arc::new(NoClient);
        let connection = Connection::for_one_exchange(
            server,
            ConnectionOptions {
                scope: SessionScope::Exchange,
                limits: server.settings.session,
                general: sink.clone(),
                session_id: None,
                auth: None,
                principal: http.principal.clone(),
                transport,
                transport_kind: TransportKind::Http,
                traffic: None,
                client,
            },
        );
        let (sender, answer) = oneshot::channel();
        let method = Method::from(&*entry.name());
        let route = Self {
            entry,
            request,
            answer: Mutex::new(Some(sender)),
        };
        let current_request = CurrentRequest {
            connection: connection.clone(),
            sink,
            key: None,
            id: RequestId::string(""),
            peer: Arc::new(ClientProfile {
                revision: Revision::V2026_07_28,
                info: None,
                capabilities: Raw::EMPTY_OBJECT,
            }),
            http: Some(Arc::new(http)),
            meta: None,
            in_flight: Some(in_flight),
            span: None,
            middleware: None,
            was_approved: Default::default(),
        };
        let call = CallState::new(
            Target::Route(Arc::new(route)),
            method,
            None,
            Raw::EMPTY_OBJECT,
            None,
            InputRecord::default(),
            Arc::new(current_request),
        );
        // A new connection has room for its only call.
        connection.events().begin_notified(&call, 1);
        let cancelled = Arc::downgrade(&call);
        call.on_cancel(Box::new(move || {
            if let Some(call) = cancelled.upgrade() {
                answer_call(&call, RouteOutcome::Cancelled);
            }
        }));
        let started = StartedRoute {
            call: call.clone(),
            answer,
        };
        call.start();
        (connection, started)
    }

    fn answer(&self, outcome: RouteOutcome) {
        let sender = {
            let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.take()
        };
        if let Some(sender) = sender {
            // The client may have left.
            let _ = sender.send(outcome);
        }
    }
}

impl StartedRoute {
    /// Waits for the end of the call.
    pub(crate) async fn outcome(mut self) -> RouteOutcome {
        let outcome = (&mut self.answer).await;
        outcome.unwrap_or(RouteOutcome::Failed)
    }
}

impl Drop for StartedRoute {
    fn drop(&mut self) {
        self.call.cancel();
    }
}

/// Ends the call of a route with the handler's outcome.
pub(in crate::server) fn ended(call: &CallState, outcome: Result<Reply, HandlerError>) {
    let outcome = match outcome {
        Ok(Reply::Http(response)) => checked(call, response),
        Ok(_) => failed(call, &"it did not return a response"),
        Err(_) if call.is_cancelled() => RouteOutcome::Cancelled,
        Err(HandlerError::Rpc(error)) => match error.required_scopes() {
            Some(needed) => RouteOutcome::LacksScopes(needed),
            // Bindings have logged the exception, which has more than this text.
            None if error.code == ErrorCode::INTERNAL_ERROR => {
                tracing::debug!(route = call.name(), %error, "the handler of a route failed");
                RouteOutcome::Failed
            }
            None => failed(call, &error),
        },
        Err(error) => failed(call, &error),
    };
    answer_call(call, outcome);
    let current_request = call.current_request();
    current_request.connection.events().end_notified(call);
}

/// Checks that a response ends the request.
fn checked(call: &CallState, response: Box<Response<Bytes>>) -> RouteOutcome {
    let status = response.status();
    match status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
        true => failed(
            call,
            &format_args!("status {status} is not the end of a response"),
        ),
        false => RouteOutcome::Response(response),
    }
}

fn failed(call: &CallState, error: &dyn std::fmt::Display) -> RouteOutcome {
    tracing::error!(route = call.name(), %error, "the handler of a route failed");
    RouteOutcome::Failed
}

fn answer_call(call: &CallState, outcome: RouteOutcome) {
    if let Target::Route(route) = &call.target {
        route.answer(outcome);
    }
}

/// Sink for messages to an MCP client, which a route does not have.
struct NoClient;

impl MessageSink for NoClient {
    fn write(&self, _: MessageKind, _: usize, _: Encode<'_>) {}
}
