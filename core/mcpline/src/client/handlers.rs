//! Handlers of the host for requests and notifications of servers.
//!
//! The same handler answers requests on handshake revisions and input requests in results of 2026-07-28.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::checks;
use mcpline_protocol::client::{
    check_input_request, check_input_request_content, prepare_input_response,
};
use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::methods::{check_custom_request, check_custom_result_type};
use mcpline_protocol::vocabulary::{ClientCapabilities, ListRootsResult, LogMessage, Root};
use mcpline_protocol::wire::{JsonKind, Method, Notification, Raw};
use mcpline_protocol::{
    ErrorCode, InputMethod, Printable, Revision, RpcError, adapt, fitted_roots,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::background;
use crate::background_tasks::BackgroundTasks;
use crate::client_error::ClientError;
use crate::fair_queue::PeerId;
use crate::offload;
use crate::span::SpanScope;
use crate::trace_context::TraceContext;

use super::connection_events::ConnectionListener;
use super::extension::Resolver;
use super::middleware::ClientMiddlewares;
use super::offloaded_decoding::decode_offloaded;
use super::request_log::RequestLog;
use super::tool_call_hooks::ToolCallHooks;

/// A pending answer. Dropped when the server cancels the request or the caller cancels its own.
pub type HostResponseFuture = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Answers requests of one kind with raw JSON. For bindings.
pub type HostRequestHandler = Arc<dyn Fn(HostRequest) -> HostResponseFuture + Send + Sync>;

/// A request of a server or of the library to the host.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HostRequest {
    /// Its parameters.
    pub params: Option<Raw>,
    /// The beginning of the id of the session that it arrived in, as spans show it.
    pub session: Option<String>,
    /// Its id, as spans show it. `None` on 2026-07-28, where it is part of a result, and for requests of the library.
    pub request_id: Option<String>,
    /// The trace context in its `_meta`, which custom requests have lost when they reach their handler.
    pub trace_context: Option<TraceContext>,
}

impl From<Raw> for HostRequest {
    /// Returns a request of the library itself.
    fn from(params: Raw) -> Self {
        Self {
            params: Some(params),
            ..Self::default()
        }
    }
}

/// Receives notifications in the order of arrival. Runs on an I/O thread and must not block.
pub type Listener = Arc<dyn Fn(&Notification) + Send + Sync>;

/// The handlers of a host.
#[derive(Clone, Default)]
pub struct Handlers {
    pub(super) capabilities: ClientCapabilities,
    pub(super) sample: Option<HostRequestHandler>,
    pub(super) elicit: Option<HostRequestHandler>,
    pub(super) list_roots: Option<HostRequestHandler>,
    /// Custom requests, by method.
    pub(super) requests: BTreeMap<Box<str>, HostRequestHandler>,
    /// Resolvers of extension results, by `resultType`.
    pub(super) result_types: BTreeMap<Box<str>, Resolver>,
    /// The first error in the registration of an extension or a custom request.
    pub(super) unusable: Option<String>,
    pub(super) middlewares: ClientMiddlewares,
    pub(super) tool_calls: ToolCallHooks,
    pub(super) request_log: RequestLog,
    pub(super) listeners: Vec<Listener>,
    /// Whether a listener subscribes to changes, beyond log messages.
    pub(super) wants_changes: bool,
    /// Listeners for changes of the connection.
    pub(super) connection_listeners: Vec<ConnectionListener>,
    /// The peer that answers are computed for.
    pub(super) peer: PeerId,
    /// The tasks of the handlers, and all others of the client.
    pub(super) tasks: BackgroundTasks,
}

impl Handlers {
    /// Rejects `notifications/roots/list_changed` of a client that has not declared it (`client/roots`).
    pub(super) fn check_roots_change(&self) -> Result<(), ClientError> {
        let roots = self.capabilities.roots.as_ref();
        match roots.and_then(|roots| roots.list_changed) {
            Some(true) => Ok(()),
            _ => Err(ClientError::NotSupported(
                "notifications/roots/list_changed was not sent: the client does not declare the capability \
                 `roots.listChanged`"
                    .to_owned(),
            )),
        }
    }

    /// Registers the handler of a custom request.
    pub(super) fn register_request_handler(
        &mut self,
        method: &str,
        request_handler: HostRequestHandler,
    ) {
        let outcome = match check_custom_request(method) {
            Ok(()) if self.requests.contains_key(method) => Err("it has one already"),
            checked => checked,
        };
        match outcome {
            Ok(()) => {
                self.requests.insert(method.into(), request_handler);
            }
            Err(reason) => {
                self.unusable.get_or_insert_with(|| {
                    format!("method {method:?} can't have a handler: {reason}")
                });
            }
        }
    }

    /// Registers the resolver of a result type.
    pub(super) fn register_resolver(&mut self, name: String, resolver: Resolver) {
        let outcome = match check_custom_result_type(&name) {
            Ok(()) if self.result_types.contains_key(&*name) => {
                Err("the client already has a handler of this result type")
            }
            checked => checked,
        };
        match outcome {
            Ok(()) => {
                self.result_types.insert(name.into(), resolver);
            }
            Err(reason) => {
                self.unusable
                    .get_or_insert_with(|| format!("result type {name:?}: {reason}"));
            }
        }
    }

    /// Answers one input request. A handler that panics becomes an internal error.
    pub(super) fn answer(&self, method: &str, mut request: HostRequest) -> HostResponseFuture {
        let params = &mut request.params;
        let request_handler = match InputMethod::parse(method) {
            Some(InputMethod::Sample) => self.sample.as_ref(),
            Some(InputMethod::Elicit) => self.elicit.as_ref(),
            Some(InputMethod::ListRoots) => self.list_roots.as_ref(),
            None => {
                params.take_if(|params| params.is_null());
                if params
                    .as_ref()
                    .is_some_and(|params| params.kind() != JsonKind::Object)
                {
                    let error = RpcError::invalid_params("params must be an object");
                    let error = refused(method, error);
                    return Box::pin(async move { Err(error) });
                }
                *params = params.take().map(|params| match params.member("_meta") {
                    Some(_) => params.without("_meta"),
                    None => params,
                });
                self.requests.get(method)
            }
        };
        let Some(request_handler) = request_handler.cloned() else {
            let error = RpcError::method_not_found(method);
            return Box::pin(async move { Err(error) });
        };
        if let Err(error) = check_input_request(method, params.as_ref(), &self.capabilities) {
            let error = refused(method, error);
            return Box::pin(async move { Err(error) });
        }
        let (peer, alive, method) = (self.peer, self.tasks.begin(), method.to_owned());
        let params = params.clone();
        Box::pin(async move {
            let (asked_for, asked_with) = (method.clone(), params.clone());
            let check = move |interrupt: Option<&AtomicBool>| {
                check_input_request_content(&asked_for, asked_with.as_ref(), interrupt)
            };
            let checked = compute_or_offload(peer, check).await?;
            checked.map_err(|error| refused(&method, error))?;
            let answer = call_host(request_handler, request, alive).await?;
            if answer.kind() != JsonKind::Object {
                return Err(invalid(&method, "it must be an object"));
            }
            match answer.member("_meta").map(|given| checks::meta(&given)) {
                None | Some(Ok(None)) => {}
                Some(Ok(Some(warning))) => {
                    tracing::warn!("response of the client's handler: {warning}")
                }
                Some(Err(reason)) => {
                    tracing::error!("invalid response of the client's handler, not sent: {reason}");
                    return Err(RpcError::internal_error(
                        "the client's handler returned an invalid response; the reason is in its log",
                    ));
                }
            }
            if InputMethod::parse(&method) == Some(InputMethod::ListRoots) {
                return fitted_roots(answer).map_err(|error| {
                    tracing::warn!("the answer to {method} was not sent: {error}");
                    RpcError::internal_error(
                        "the client's roots are invalid; the reason is in its log",
                    )
                });
            }
            let asked_for = method.clone();
            let fit = move |interrupt: Option<&AtomicBool>| {
                prepare_input_response(&asked_for, params.as_ref(), &answer, interrupt)
            };
            let fitted = compute_or_offload(peer, fit).await?;
            fitted.map_err(|reason| invalid(&method, &reason))
        })
    }
}

/// Logs why an answer is not sent, and returns the error to send.
fn invalid(method: &str, reason: &str) -> RpcError {
    let reason = format!("the client's handler returned an invalid response: {reason}");
    tracing::warn!(
        "the answer to {method} was not sent: {}",
        Printable(&reason)
    );
    RpcError::internal_error(reason)
}

/// Logs why the handler was not called, and returns the error to send.
fn refused(method: &str, error: RpcError) -> RpcError {
    tracing::warn!("refused {method} of the server: {}", Printable(&error));
    error
}

/// Computes something inline if it is quick, otherwise on another thread.
async fn compute_or_offload<T: Send + 'static>(
    peer: PeerId,
    work: impl Fn(Option<&AtomicBool>) -> Option<T> + Send + 'static,
) -> Result<T, RpcError> {
    if let Some(done) = work(None) {
        return Ok(done);
    }
    let flag = Arc::new(AtomicBool::new(false));
    let computing = offload::compute(peer, flag, move |interrupt| work(Some(interrupt)));
    computing.await.flatten().ok_or_else(closing_error)
}

/// Runs a handler in a task of its own, so that a panic ends only that task and becomes an internal error. The task
/// holds `held` until it ends, and runs in the current span.
pub(super) async fn call_host(
    request_handler: HostRequestHandler,
    request: HostRequest,
    held: impl Send + 'static,
) -> Result<Raw, RpcError> {
    let answering = async move {
        let _held = held;
        request_handler(request).await
    };
    let scope = SpanScope::current();
    let mut running = AbortOnDropHandle(background::spawn_here(scope.run(answering)));
    match (&mut running.0).await {
        Ok(answer) => answer,
        Err(_) => Err(RpcError::internal_error("the client's handler failed")),
    }
}

/// Converts an answer to the server's `revision`. If the revision cannot express it, logs a warning and returns an
/// internal error.
pub(super) fn adapt_answer(
    peer: PeerId,
    method: &str,
    answer: HostResponseFuture,
    revision: Revision,
) -> HostResponseFuture {
    if !adapt::needs_adapting(method, revision) {
        return answer;
    }
    let method = method.to_owned();
    Box::pin(async move {
        let answer = answer.await?;
        let fitted = match answer.as_bytes().len() <= MAX_INLINE_DECODED_BYTES {
            true => adapt::input_response(&method, answer, revision),
            false => {
                let (never, answered_method) = (Arc::new(AtomicBool::new(false)), method.clone());
                let fitting = offload::compute(peer, never, move |_| {
                    adapt::input_response(&answered_method, answer, revision)
                });
                fitting.await.ok_or_else(closing_error)?
            }
        };
        fitted.map_err(|error| {
            tracing::warn!("the answer to {method} was not sent: {error}");
            RpcError::internal_error(error.to_string())
        })
    })
}

/// Aborts its task on drop: the answer is no longer needed.
struct AbortOnDropHandle(background::JoinHandle<Result<Raw, RpcError>>);

impl Drop for AbortOnDropHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers")
            .field("capabilities", &self.capabilities)
            .field("listeners", &self.listeners.len())
            .finish_non_exhaustive()
    }
}

/// Wraps a typed handler in an [`HostRequestHandler`].
pub(super) fn typed<P, R, F, Fut>(handler: F) -> HostRequestHandler
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let (handler, peer) = (Arc::new(handler), PeerId::new());
    Arc::new(move |request: HostRequest| {
        let handler = handler.clone();
        Box::pin(async move {
            let params = request.params.unwrap_or_else(|| Raw::from_trusted("{}"));
            let params = match params.as_bytes().len() <= MAX_INLINE_DECODED_BYTES {
                true => params.decode(),
                false => decode_offloaded(peer, params)
                    .await
                    .ok_or_else(closing_error)?,
            };
            let params = params.map_err(|error| RpcError::invalid_params(error.to_string()))?;
            let result = handler(params).await?;
            Raw::from_serialize(&result)
                .map_err(|error| RpcError::internal_error(error.to_string()))
        })
    })
}

fn closing_error() -> RpcError {
    RpcError::internal_error("the client is closing")
}

/// Returns an request_handler with fixed roots.
pub(super) fn fixed_roots(roots: Vec<Root>) -> HostRequestHandler {
    let result = ListRootsResult::new(roots);
    typed(move |_: serde_json::Value| {
        let result = result.clone();
        async move { Ok(result) }
    })
}

/// Returns a listener that receives log messages only.
pub(super) fn log_listener(listener: impl Fn(LogMessage) + Send + Sync + 'static) -> Listener {
    Arc::new(move |notification| {
        if notification.method == Method::NotificationsMessage
            && let Some(params) = &notification.params
            && let Ok(message) = params.raw().decode()
        {
            listener(message);
        }
    })
}

/// Returns the error for a sampling request that the user rejected (`client/sampling`, error handling).
pub fn sampling_refused(message: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode(-1), message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[runtimes::test]
    async fn handlers_may_use_any_error_code_but_no_reserved_meta_key() {
        let answered = |outcome: Result<&'static str, i64>| {
            let handlers = Handlers {
                elicit: Some(Arc::new(move |_| {
                    Box::pin(async move {
                        outcome
                            .map(Raw::from_trusted)
                            .map_err(|code| RpcError::new(ErrorCode(code), "a detail"))
                    })
                })),
                ..Handlers::default()
            };
            let mut handlers = handlers;
            handlers.capabilities.elicitation = Some(Default::default());
            handlers.answer("elicitation/create", Raw::from_trusted("{}").into())
        };
        // Clients have errors only on revisions before 2026-07-28, which reserves codes.
        for code in [-1, -32_000, -32_021, -32_050, -31_050] {
            let error = answered(Err(code)).await.expect_err("an error");
            assert_eq!((error.code.0, &*error.message), (code, "a detail"));
        }
        for fine in [
            r#"{"action":"decline","_meta":{"example.com/a":1}}"#,
            r#"{"action":"decline","_meta":{"a b":1}}"#,
        ] {
            assert_eq!(answered(Ok(fine)).await.expect(fine).as_str(), fine);
        }
        let bad = r#"{"action":"decline","_meta":{"dev.mcp/a":1}}"#;
        let error = answered(Ok(bad)).await.expect_err(bad);
        assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
    }

    #[runtimes::test]
    async fn roots_of_any_handler_are_checked_before_they_are_sent() {
        let answered = |roots: &'static str| {
            let handlers = Handlers {
                list_roots: Some(Arc::new(move |_| {
                    Box::pin(async move { Ok(Raw::from_trusted(roots)) })
                })),
                ..Handlers::default()
            };
            handlers.answer("roots/list", HostRequest::default())
        };
        let fitted = answered(r#"{"roots":[{"uri":"/a b"}]}"#).await;
        let fitted = fitted.expect("roots");
        assert_eq!(fitted.as_str(), r#"{"roots":[{"uri":"file:///a%20b"}]}"#);
        let refused = answered(r#"{"roots":[{"uri":"http://evil"}]}"#).await;
        let refused = refused.expect_err("no root");
        assert_eq!(refused.code, ErrorCode::INTERNAL_ERROR);
        assert!(!refused.message.contains("evil"), "{refused}");
    }
}
