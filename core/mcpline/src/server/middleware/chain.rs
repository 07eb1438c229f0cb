//! Runs the middlewares around one request: those of the server, then those of the mounted server that the feature comes from,
//! then the server's own answer.
//!
//! A request that middleware passes to another feature meets each middleware whose scope has that feature, unless it has run
//! already. So a middleware that guards a tool cannot be avoided by a name that another one translates.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use mcpline_protocol::session::RequestKey;
use mcpline_protocol::wire::{Method, Params, Raw};
use mcpline_protocol::{ErrorCode, Revision, RpcError};
use tokio::sync::oneshot;
use tracing::Span;

use crate::background;
use crate::caller::Caller;
use crate::message_sink::ResponseStatus;
use crate::middleware::{
    MiddlewareFuture, MiddlewareOrigin, MiddlewareOutcome, MiddlewareRequest, Next, NextStep,
};
use crate::sync::{Arc, Mutex, PoisonError};

use super::super::call::CurrentRequest;
use super::super::dispatch;
use super::super::finish_call::{respond, respond_error, status_of};
use super::super::inner::Inner;
use super::super::reply::{ResultEnvelope, ToolReply, write_tool};
use super::super::request_log::RequestOutcome;
use super::awaited_outcome::{AwaitedOutcome, CancelOnDrop};
use super::targets::{self, Target};
use super::{Code, Registered, handler_call, result_form};

/// A request that middleware handles.
struct Chain {
    request: Arc<CurrentRequest>,
    method: Method,
    /// The latest error of the server itself, with its status: an error that middleware passes on keeps its status.
    last_error: Mutex<Option<(ErrorCode, ResponseStatus)>>,
    /// The latest result of the server itself. One that middleware passes on needs no check.
    last_result: Mutex<Option<(Raw, RequestOutcome)>>,
}

/// The position in a chain: at one server, with the middlewares that have run.
struct Step {
    chain: Arc<Chain>,
    server: Arc<Inner>,
    middlewares: Arc<[Registered]>,
    /// The middlewares of this server that have run, as bits.
    ran: u64,
    /// The target as the parameters name it, if this is a mounted server: its middlewares cannot change it.
    fixed_target: Option<Arc<str>>,
    is_mounted: bool,
}

/// Handles a request with the middlewares of its server.
pub(in super::super) fn run(request: CurrentRequest, method: Method, params: Option<Params>) {
    let Some(key) = request.key else {
        return;
    };
    let server = request.connection.server().clone();
    let middlewares = server.middlewares.list();
    if !server.mounts.is_used() && !may_be_seen(&server, &middlewares, &method, params.as_ref()) {
        return dispatch::answer(request, method, params);
    }
    let request = Arc::new(request);
    let chain = Arc::new(Chain {
        request: request.clone(),
        method: method.clone(),
        last_error: Mutex::new(None),
        last_result: Mutex::new(None),
    });
    let first = Step {
        chain: chain.clone(),
        middlewares,
        server,
        ran: 0,
        fixed_target: None,
        is_mounted: false,
    };
    let seen = MiddlewareRequest::new(method, params, request.clone());
    start(chain, key, first.run(seen));
}

/// Whether a middleware of the server may see a request. Requests that none sees need no chain.
fn may_be_seen(
    server: &Inner,
    middlewares: &[Registered],
    method: &Method,
    params: Option<&Params>,
) -> bool {
    let mut registered = middlewares
        .iter()
        .filter(|registered| registered.scope.has_method(method.as_str()))
        .peekable();
    if registered.peek().is_none() {
        return false;
    }
    let Some(target) = targets::find_at_once(&server.registry(), method, params) else {
        return true;
    };
    registered.any(|registered| match (registered.scope.features(), &target) {
        (None, _) => true,
        (Some(features), Some((kind, key, tags))) => features.matches(*kind, key, tags),
        (Some(_), None) => false,
    })
}

/// Polls the chain on this thread, because most need no task, and continues in a task. The request's end drops it.
fn start(chain: Arc<Chain>, key: RequestKey, mut outcome: MiddlewareFuture) {
    let (guard, mut ended) = oneshot::channel::<()>();
    let connection = chain.request.connection.clone();
    if !connection.drop_at_end(key, guard) {
        return;
    }
    let mut now = TaskContext::from_waker(Waker::noop());
    if let Poll::Ready(outcome) = poll_caught(&mut outcome, &mut now) {
        chain.answer(outcome);
        return;
    }
    let span = Span::current();
    background::spawn_unboxed(connection.runtime(), async move {
        let outcome = tokio::select! {
            biased;
            _ = &mut ended => return,
            outcome = std::future::poll_fn(|cx| span.in_scope(|| poll_caught(&mut outcome, cx))) => outcome,
        };
        chain.answer(outcome);
    });
}

fn poll_caught(
    outcome: &mut MiddlewareFuture,
    cx: &mut TaskContext<'_>,
) -> Poll<MiddlewareOutcome> {
    let poll = AssertUnwindSafe(|| Pin::new(outcome).poll(cx));
    match std::panic::catch_unwind(poll) {
        Ok(poll) => poll,
        // The panic hook has printed why.
        Err(_) => {
            tracing::error!("a middleware panicked");
            Poll::Ready(Err(RpcError::internal_error("the request failed")))
        }
    }
}

impl Chain {
    /// Answers the client.
    fn answer(&self, outcome: MiddlewareOutcome) {
        let completed = outcome.and_then(|result| match self.outcome_if_own(&result) {
            Some(outcome) => Ok((result, outcome)),
            None => {
                let result = result_form::completed(&self.request, &self.method, result)?;
                let outcome = result_form::outcome_of(&self.method, &result);
                Ok((result, outcome))
            }
        });
        match completed {
            Ok((result, outcome)) => {
                let write =
                    |out: &mut Vec<u8>, _: Revision| out.extend_from_slice(result.as_bytes());
                respond(&self.request, outcome, result.as_bytes().len(), write);
            }
            Err(error) => {
                let last = *self.lock_last_error();
                let status = match last {
                    Some((code, status)) if code == error.code => status,
                    _ => status_of(&self.request, &error),
                };
                respond_error(&self.request, status, &error);
            }
        }
    }

    /// Returns how the request ended, if this is the server's own latest result.
    fn outcome_if_own(&self, result: &Raw) -> Option<RequestOutcome> {
        let last = self
            .last_result
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (own, outcome) = last.as_ref()?;
        // The same bytes in memory, which `own` keeps from being used again.
        std::ptr::eq(own.as_bytes(), result.as_bytes()).then_some(*outcome)
    }

    fn lock_last_error(&self) -> crate::sync::MutexGuard<'_, Option<(ErrorCode, ResponseStatus)>> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the server itself answer.
    async fn answer_by_server(self: Arc<Self>, request: MiddlewareRequest) -> MiddlewareOutcome {
        let (method, params, is_changed) = request.into_parts();
        let (awaited, outcome) = AwaitedOutcome::new(is_changed);
        let _cancel = CancelOnDrop(awaited.clone());
        let meta = params.as_ref().and_then(Params::meta);
        let inner = self.request.with_middleware(awaited, meta);
        dispatch::answer(inner, method, params);
        // Nothing is sent if the request has ended; then the chain is dropped.
        let Ok(ended) = outcome.await else {
            return Err(RpcError::internal_error("the request has ended"));
        };
        match &ended.outcome {
            Ok(result) => {
                let mut last = self
                    .last_result
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last = Some((result.clone(), ended.logged));
            }
            Err(error) => *self.lock_last_error() = Some((error.code, ended.status)),
        }
        ended.outcome
    }
}

impl NextStep for Step {
    fn run(&self, request: MiddlewareRequest) -> MiddlewareFuture {
        let step = self.clone();
        Box::pin(step.run_next(request))
    }
}

impl Clone for Step {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            server: self.server.clone(),
            middlewares: self.middlewares.clone(),
            ran: self.ran,
            fixed_target: self.fixed_target.clone(),
            is_mounted: self.is_mounted,
        }
    }
}

impl Step {
    async fn run_next(mut self, mut request: MiddlewareRequest) -> MiddlewareOutcome {
        loop {
            if self.is_mounted && request.target().as_deref() != self.fixed_target.as_deref() {
                tracing::error!(
                    method = request.method(),
                    "a middleware of a mounted server changed the name of a feature"
                );
                return Err(RpcError::internal_error(format!(
                    "{} failed",
                    request.method()
                )));
            }
            let mut target = None;
            if self.needs_target(&request) {
                target = Some(self.target_of(&request).await?);
            }
            if let Some(index) = self.next_index(&request, target.as_ref().and_then(Option::as_ref))
            {
                let code = self.middlewares[index].code.clone();
                self.ran |= 1 << index;
                let current = self.chain.request.clone();
                return match code {
                    Code::Middleware(middleware) => {
                        middleware.handle(request, Next::new(self)).await
                    }
                    Code::Handler(handler) => {
                        handler_call::call(handler, &current, request, Next::new(self)).await
                    }
                };
            }
            if !self.server.mounts.is_used() {
                return self.chain.answer_by_server(request).await;
            }
            let target = match target {
                Some(target) => target,
                None => self.target_of(&request).await?,
            };
            let Some(source) = target.and_then(|target| target.source) else {
                return self.chain.answer_by_server(request).await;
            };
            if !self.is_mounted {
                self.fixed_target = request.target().map(Arc::from);
                self.is_mounted = true;
            }
            self.middlewares = source.server.middlewares.list();
            self.server = source.server;
            self.ran = 0;
            if let Some(name) = source.name {
                request.set_name(name);
            }
        }
    }

    /// Whether a middleware that has not run may see the request because of its feature.
    fn needs_target(&self, request: &MiddlewareRequest) -> bool {
        let mut left = self.left();
        left.any(|(_, registered)| {
            registered.scope.features().is_some() && registered.scope.has_method(request.method())
        })
    }

    async fn target_of(&self, request: &MiddlewareRequest) -> Result<Option<Target>, RpcError> {
        let peer = self.chain.request.connection.client().peer;
        targets::find(&self.server, request, peer).await
    }

    /// Returns the first middleware that has not run and sees the request.
    fn next_index(&self, request: &MiddlewareRequest, target: Option<&Target>) -> Option<usize> {
        let sees = |registered: &Registered| {
            registered.scope.has_method(request.method())
                && match (registered.scope.features(), target) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(features), Some(target)) => {
                        features.matches(target.kind, &target.key, &target.tags)
                    }
                }
        };
        let mut left = self.left();
        left.find(|(_, registered)| sees(registered))
            .map(|(index, _)| index)
    }

    fn left(&self) -> impl Iterator<Item = (usize, &Registered)> {
        let all = self.middlewares.iter().enumerate();
        all.filter(|(index, _)| self.ran & (1 << index) == 0)
    }
}

impl MiddlewareOrigin for CurrentRequest {
    fn auth(&self) -> Option<&Caller> {
        match &self.http {
            Some(http) => http.auth.as_ref(),
            None => self.connection.auth(),
        }
    }

    fn principal(&self) -> &str {
        self.connection.principal()
    }

    fn client(&self) -> &str {
        self.connection.client().name()
    }

    fn session_id(&self) -> Option<&str> {
        self.connection.session_id()
    }

    fn revision(&self) -> Revision {
        self.peer.revision
    }

    fn transport(&self) -> &'static str {
        self.connection.transport_kind().name()
    }

    fn client_info(&self) -> Option<Raw> {
        self.peer.info.clone()
    }

    fn header(&self, name: &str) -> Option<&str> {
        #[cfg(feature = "http")]
        return self.http.as_ref()?.header(name);
        #[cfg(not(feature = "http"))]
        {
            let _ = name;
            None
        }
    }

    fn request_id(&self) -> &str {
        // An id is JSON, so it is UTF-8.
        std::str::from_utf8(self.id.raw()).unwrap_or_default()
    }

    fn tool_error(&self, text: &str) -> Raw {
        let envelope = ResultEnvelope {
            revision: self.peer.revision,
            server_info: self.connection.server().info_json(),
        };
        let mut result = Vec::with_capacity(text.len() + 256);
        write_tool(&mut result, &ToolReply::error(text), false, &envelope);
        Raw::from_trusted(result)
    }
}
