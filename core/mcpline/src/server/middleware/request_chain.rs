//! Runs the middlewares around one request: those of the server, then those of the mounted server that the feature comes from,
//! then the server's own answer.
//!
//! A request that middleware passes to another feature meets each middleware whose scope has that feature, unless it has run
//! already. So a middleware that guards a tool cannot be avoided by a name that another one translates.

use mcpline_protocol::session::RequestKey;
use mcpline_protocol::wire::{Method, Params, Raw};
use mcpline_protocol::{ErrorCode, Revision, RpcError, Scopes};
use tokio::runtime::Handle;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::fair_queue::PeerId;
use crate::message_sink::ResponseStatus;
use crate::middleware::{
    MessageKind, Middleware, MiddlewareFuture, MiddlewareOrigin, MiddlewareOutcome,
    MiddlewareRequest, Next, NextStep,
};
use crate::sharing::SharedBuckets;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex, PoisonError};

use super::super::call::CurrentRequest;
use super::super::dispatch;
use super::super::finish_call::{respond, respond_error, status_of};
use super::super::inner::Inner;
use super::super::permission;
use super::super::reply::{ResultEnvelope, ToolReply, write_tool};
use super::super::request_log::RequestOutcome;
use super::awaited_outcome::{AwaitedOutcome, CancelOnDrop, EndedRequest};
use super::drive::drive;
use super::targets::{self, Feature, TargetSource};
use super::{MiddlewareImpl, RegisteredMiddleware, handler_call, result_form};

/// A request that middleware handles.
struct RequestChain {
    request: Arc<CurrentRequest>,
    method: Method,
    key: RequestKey,
    /// The latest error of the server itself, with its status: an error that middleware passes on keeps its status.
    last_error: Mutex<Option<(ErrorCode, ResponseStatus)>>,
    /// The latest result of the server itself. One that middleware passes on needs no check.
    last_result: Mutex<Option<(Raw, RequestOutcome)>>,
}

/// The position in a chain: at one server, with the middlewares that have run.
struct RequestStep {
    chain: Arc<RequestChain>,
    server: Arc<Inner>,
    middlewares: Arc<[RegisteredMiddleware]>,
    /// The middlewares of this server that have run, as bits.
    ran: u64,
    /// The target as the parameters name it, if this is a mounted server: its middlewares cannot change it.
    fixed_target: Option<Arc<str>>,
    is_mounted: bool,
    /// The target of the request by this name, once a scope has needed it.
    found: Option<Arc<FoundTarget>>,
}

/// What was found for a name at the server of a step.
struct FoundTarget {
    name: Option<Arc<str>>,
    feature: Option<Feature>,
    /// The mounted server that it comes from; `None` if that is not known yet.
    source: Option<Option<TargetSource>>,
}

/// Handles a request with the middlewares of its server.
pub(in super::super) fn run(request: Arc<CurrentRequest>, method: Method, params: Option<Params>) {
    let Some(key) = request.key else {
        return;
    };
    let server = request.connection.server().clone();
    let middlewares = server.middlewares.list();
    if !server.mounts.is_used() && !may_be_seen(&server, &middlewares, &method, params.as_ref()) {
        return dispatch::answer(request, method, params);
    }
    if let Err(error) = dispatch::check_param_headers(&request, &method, params.as_ref()) {
        let status = ResponseStatus::Refused(error.code.0);
        return respond_error(&request, status, &error);
    }
    let chain = Arc::new(RequestChain {
        request: request.clone(),
        method: method.clone(),
        key,
        last_error: Mutex::new(None),
        last_result: Mutex::new(None),
    });
    let first = RequestStep {
        chain: chain.clone(),
        middlewares,
        server,
        ran: 0,
        fixed_target: None,
        is_mounted: false,
        found: None,
    };
    let seen = MiddlewareRequest::new(MessageKind::Request, method, params, request.clone());
    start(chain, move || first.run(seen));
}

/// Whether a middleware of the server may see a request. A request that no middleware sees needs no chain.
fn may_be_seen(
    server: &Inner,
    middlewares: &[RegisteredMiddleware],
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
    let registry = server.registry();
    let Some(target) = targets::find_at_once(&registry, method, params) else {
        return true;
    };
    registered.any(|registered| match (registered.scope.features(), &target) {
        (None, _) => true,
        (Some(selection), Some(feature)) => feature.is_selected_by(selection),
        (Some(_), None) => false,
    })
}

/// Begins the chain, and answers with its outcome.
fn start(chain: Arc<RequestChain>, outcome: impl FnOnce() -> MiddlewareFuture) {
    let runtime = chain.request.connection.runtime().clone();
    let ending = chain.clone();
    drive(
        &runtime,
        move || ending.end(),
        outcome,
        move |outcome| {
            if let Some(outcome) = outcome {
                chain.answer(outcome);
            }
        },
    );
}

impl RequestChain {
    /// Returns a channel that is closed when the request ends; `None` if that has happened already. Made only for what waits,
    /// because it costs more than a middleware that finishes at once.
    fn end(&self) -> Option<watch::Receiver<()>> {
        self.request.connection.end_of_request(self.key)
    }

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
        if !self.request.connection.is_in_flight(self.key) {
            return Err(ended_request());
        }
        let (method, params, is_changed) = request.into_parts();
        let (awaited, mut outcome) = AwaitedOutcome::new(is_changed);
        let _cancel = CancelOnDrop(awaited.clone());
        let run = awaited.clone();
        let meta = params.as_ref().and_then(Params::meta);
        let inner = self.request.with_middleware(awaited, meta);
        dispatch::answer(Arc::new(inner), method, params);
        let ended = match outcome.try_recv() {
            Ok(ended) => ended,
            Err(TryRecvError::Closed) => return Err(ended_request()),
            Err(TryRecvError::Empty) => wait_for_outcome(self.end(), outcome).await?,
        };
        let was_approved = &self.request.was_approved;
        was_approved.store(run.needs_approval(), Ordering::Release);
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

/// Waits for the outcome of the server itself. A middleware may do so in a task of its own, which goes on when the request ends.
async fn wait_for_outcome(
    end: Option<watch::Receiver<()>>,
    outcome: oneshot::Receiver<EndedRequest>,
) -> Result<EndedRequest, RpcError> {
    let mut end = end.ok_or_else(ended_request)?;
    tokio::select! {
        biased;
        outcome = outcome => outcome.map_err(|_| ended_request()),
        _ = end.changed() => Err(ended_request()),
    }
}

fn ended_request() -> RpcError {
    RpcError::internal_error("the request has ended")
}

impl NextStep for RequestStep {
    fn run(&self, request: MiddlewareRequest) -> MiddlewareFuture {
        let mut step = self.clone();
        match step.next_at_once(&request) {
            NextAtOnce::Middleware(middleware) => middleware.handle(request, Next::new(step)),
            NextAtOnce::Server => Box::pin(step.chain.answer_by_server(request)),
            NextAtOnce::Unknown => Box::pin(step.run_next(request)),
        }
    }
}

impl Clone for RequestStep {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            server: self.server.clone(),
            middlewares: self.middlewares.clone(),
            ran: self.ran,
            fixed_target: self.fixed_target.clone(),
            is_mounted: self.is_mounted,
            found: self.found.clone(),
        }
    }
}

/// What comes next in a chain, as far as that is known without a search for the feature of the request.
enum NextAtOnce {
    /// It counts as run.
    Middleware(Arc<dyn Middleware>),
    Server,
    Unknown,
}

impl RequestStep {
    /// Returns what comes next. Most chains need no more than this, and then no future of their own.
    fn next_at_once(&mut self, request: &MiddlewareRequest) -> NextAtOnce {
        if self.is_mounted {
            return NextAtOnce::Unknown;
        }
        let mut all = self.middlewares.iter().enumerate();
        let Some((index, registered)) = all.find(|(index, _)| self.may_run(*index, request)) else {
            return match self.server.mounts.is_used() {
                true => NextAtOnce::Unknown,
                false => NextAtOnce::Server,
            };
        };
        match &registered.middleware {
            MiddlewareImpl::Rust(middleware) if registered.scope.features().is_none() => {
                let middleware = middleware.clone();
                self.ran |= 1 << index;
                NextAtOnce::Middleware(middleware)
            }
            _ => NextAtOnce::Unknown,
        }
    }

    /// Whether a middleware has not run and sees the request, as far as its method decides that.
    fn may_run(&self, index: usize, request: &MiddlewareRequest) -> bool {
        let scope = &self.middlewares[index].scope;
        self.ran & (1 << index) == 0 && scope.has_method(request.method())
    }

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
            if let Some(index) = self.next_index(&request).await? {
                let middleware = self.middlewares[index].middleware.clone();
                self.ran |= 1 << index;
                let current = self.chain.request.clone();
                return match middleware {
                    MiddlewareImpl::Rust(middleware) => {
                        middleware.handle(request, Next::new(self)).await
                    }
                    MiddlewareImpl::Foreign(handler) => {
                        let end = self.chain.end().ok_or_else(ended_request)?;
                        let called =
                            handler_call::call(handler, &current, request, Next::new(self), end);
                        Box::pin(called).await
                    }
                };
            }
            let source = match self.server.mounts.is_used() {
                true => self.source(&request).await?,
                false => None,
            };
            let Some(source) = source else {
                return Box::pin(self.chain.answer_by_server(request)).await;
            };
            if !self.is_mounted {
                self.fixed_target = request.target().map(Arc::from);
                self.is_mounted = true;
            }
            self.middlewares = source.server().middlewares.list();
            self.server = source.server().clone();
            self.ran = 0;
            if let Some(name) = &source.name {
                request.set_name(name.clone());
            }
            self.found = Some(Arc::new(FoundTarget {
                name: request.shared_name().cloned(),
                feature: Some(source.feature()),
                source: Some(source.next()),
            }));
        }
    }

    /// Returns the first middleware that has not run and sees the request. Looks for the feature of the request only if a
    /// scope needs it: what an earlier middleware refuses costs nothing.
    async fn next_index(&mut self, request: &MiddlewareRequest) -> Result<Option<usize>, RpcError> {
        let middlewares = self.middlewares.clone();
        for (index, registered) in middlewares.iter().enumerate() {
            if !self.may_run(index, request) {
                continue;
            }
            let Some(features) = registered.scope.features() else {
                return Ok(Some(index));
            };
            let found = self.find(request, false).await?;
            if let Some(feature) = &found.feature
                && feature.is_selected_by(features)
            {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    async fn source(
        &mut self,
        request: &MiddlewareRequest,
    ) -> Result<Option<TargetSource>, RpcError> {
        Ok(self.find(request, true).await?.source.clone().flatten())
    }

    /// Returns what is known of the request's target, with its source if that is needed.
    async fn find(
        &mut self,
        request: &MiddlewareRequest,
        with_source: bool,
    ) -> Result<&Arc<FoundTarget>, RpcError> {
        let name = request.shared_name();
        let known = self.found.take().filter(|found| {
            found.name.as_ref() == name && (!with_source || found.source.is_some())
        });
        let found = match known {
            Some(known) => known,
            None => {
                let peer = self.chain.request.connection.client().peer;
                let target = targets::find(&self.server, request, self.is_mounted, peer).await?;
                let (feature, source) = match target {
                    Some(target) => (Some(target.feature), target.source),
                    None => (None, None),
                };
                Arc::new(FoundTarget {
                    name: name.cloned(),
                    feature,
                    source: Some(source),
                })
            }
        };
        Ok(self.found.insert(found))
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

    fn peer(&self) -> PeerId {
        self.connection.client().peer
    }

    fn has_scopes(&self, scopes: &Scopes) -> bool {
        permission::has_scopes(&self.connection, self.http.as_deref(), scopes)
    }

    fn was_approved(&self) -> bool {
        self.was_approved.load(Ordering::Acquire)
    }

    fn is_client_a_connection(&self) -> bool {
        self.connection.client().is_connection()
    }

    fn shared_buckets(&self) -> Option<&Arc<dyn SharedBuckets>> {
        let settings = &self.connection.server().settings;
        settings.sharing.as_ref()?.buckets.as_ref()
    }

    fn runtime(&self) -> &Handle {
        self.connection.runtime()
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
