//! Functions of another language that an imported HTTP API uses: its HTTP client, and those that return credentials.
//!
//! They are called on behalf of a handler, as handlers are: by the executors of the server that serves the request. A call of
//! one is cancelled when its caller no longer waits.

use std::fmt;

use bytes::Bytes;
use http::Request;
use mcpline_protocol::wire::Raw;
use tokio::sync::oneshot;

use crate::sync::{Arc, Mutex, PoisonError};

use super::call::{CallState, Target};
use super::call_kind::CallKind;
use super::context::Context;
use super::handler::Handler;
use super::input_requests::InputRecord;
use super::reply::{HandlerError, Reply};

/// What a function is called for.
pub(crate) enum ApiFunction {
    /// Sends a request. Its reply is [`Reply::Http`].
    HttpClient(Box<ApiRequest>),
    /// Returns the credential for this security scheme, as JSON: [`Reply::Result`].
    Credential(String),
}

/// A request to an API.
pub(crate) struct ApiRequest {
    pub(crate) request: Request<Bytes>,
    /// The part of the body that is of use, in bytes, of a response that succeeds.
    pub(crate) max_body_bytes: usize,
    /// The same of one that does not.
    pub(crate) max_error_body_bytes: usize,
}

/// The call of a function.
pub(crate) struct ApiFunctionCall {
    pub(super) handler: Arc<dyn Handler>,
    function: ApiFunction,
    outcome: Mutex<Option<oneshot::Sender<Result<Reply, HandlerError>>>>,
}

impl ApiFunctionCall {
    pub(super) fn kind(&self) -> CallKind {
        match self.function {
            ApiFunction::HttpClient(_) => CallKind::HttpClient,
            ApiFunction::Credential(_) => CallKind::Credential,
        }
    }

    /// Returns the method and the path of the request, or the name of the security scheme.
    pub(super) fn name(&self) -> String {
        match &self.function {
            ApiFunction::HttpClient(request) => {
                let request = &request.request;
                format!("{} {}", request.method(), request.uri().path())
            }
            ApiFunction::Credential(scheme) => scheme.clone(),
        }
    }

    pub(super) fn request(&self) -> Option<&ApiRequest> {
        match &self.function {
            ApiFunction::HttpClient(request) => Some(request),
            ApiFunction::Credential(_) => None,
        }
    }

    /// Passes the outcome to the caller.
    pub(super) fn end(&self, outcome: Result<Reply, HandlerError>) {
        let sender = {
            let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.take()
        };
        if let Some(sender) = sender {
            // The caller may no longer wait.
            let _ = sender.send(outcome);
        }
    }
}

/// Calls a function on behalf of the handler that has this context.
///
/// # Errors
///
/// That of the function.
pub(crate) async fn call_api_function(
    context: &Context,
    handler: Arc<dyn Handler>,
    function: ApiFunction,
) -> Result<Reply, HandlerError> {
    let (sender, outcome) = oneshot::channel();
    let caller = context.call_state();
    let call = CallState::new(
        Target::ApiFunction(Arc::new(ApiFunctionCall {
            handler,
            function,
            outcome: Mutex::new(Some(sender)),
        })),
        caller.method.clone(),
        None,
        Raw::EMPTY_OBJECT,
        None,
        InputRecord::default(),
        Arc::new(caller.current_request().with_separate_outcome()),
    );
    let call = CancelOnDrop(call);
    call.0.start();
    outcome
        .await
        .unwrap_or_else(|_| Err(HandlerError::Internal("the request has ended".into())))
}

/// Cancels the call when its caller no longer waits. Without effect once it has ended.
struct CancelOnDrop(Arc<CallState>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Omits the request, which may contain secrets.
impl fmt::Debug for ApiFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HttpClient(_) => "HttpClient(…)",
            Self::Credential(_) => "Credential(…)",
        })
    }
}
