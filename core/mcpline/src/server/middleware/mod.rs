//! The middlewares of a server: their registration, and the chain that runs them around its requests.
//!
//! `dispatch` starts a [`chain`](run) in place of the handler if the server, or one that is mounted in it, has middleware. The
//! handler then answers the chain ([`AwaitedOutcome`]), and the chain answers the client. A server without middleware pays for
//! one flag.

mod awaited_outcome;
mod drive;
mod handler_call;
mod message_chain;
mod message_queue;
mod middleware_scope;
mod request_chain;
mod result_form;
mod targets;
mod tool_rules;

use std::time::Duration;

use mcpline_protocol::session::Change;
use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;

use crate::error::Error;
use crate::middleware::{MAX_RECORD_REDACTION_TIME, Middleware, ProvidedResources};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, PoisonError, RwLock};

use super::Server;
use super::call::Call;
use super::handler::{Handler, handler};
use super::inner::Inner;
use super::reply::{HandlerError, Reply, ResourceReply};

pub(super) use awaited_outcome::AwaitedOutcome;
pub(super) use drive::{drive, outcome_until};
pub(crate) use handler_call::MiddlewareCall;
pub(crate) use handler_call::NextCallback;
pub(super) use handler_call::handled;
pub(super) use message_chain::{Message, MessageMiddlewares};
pub(super) use message_queue::{LatestReport, MessageQueue, WaitingMessage};
pub use middleware_scope::MiddlewareScope;
pub(super) use request_chain::run;
pub(super) use targets::servers_of;

/// Maximum number of middlewares of a server: a bit of a number says which have run for a request.
const MAX_MIDDLEWARES: usize = u64::BITS as usize;

/// The middlewares of a server, in their order.
#[derive(Default)]
pub(super) struct Middlewares {
    list: RwLock<Arc<[RegisteredMiddleware]>>,
    /// Whether this server, or one that is mounted in it, has or had any.
    is_used: AtomicBool,
    /// Whether one of these may see other messages than requests of clients.
    has_message_middleware: AtomicBool,
    /// Whether one of these decides which tools clients list and call.
    has_tool_policy: AtomicBool,
}

/// What middlewares of a server do beside handling requests.
#[derive(Clone, Copy)]
pub(super) struct MiddlewareUse {
    /// See other messages than requests of clients.
    messages: bool,
    /// Decide which tools clients list and call.
    tools: bool,
}

/// A middleware with the requests that it sees.
#[derive(Clone)]
struct RegisteredMiddleware {
    scope: MiddlewareScope,
    middleware: MiddlewareImpl,
}

/// The implementation of a middleware.
#[derive(Clone)]
enum MiddlewareImpl {
    Rust(Arc<dyn Middleware>),
    /// Of another language.
    Foreign(Arc<dyn Handler>),
}

impl RegisteredMiddleware {
    /// Whether it replaces confidential values in what is sent to the client.
    fn redacts(&self) -> bool {
        match &self.middleware {
            MiddlewareImpl::Rust(middleware) => middleware.redacts_results(),
            MiddlewareImpl::Foreign(_) => false,
        }
    }

    /// Whether it does so in all messages.
    fn redacts_everything(&self) -> bool {
        self.scope.is_all() && self.redacts()
    }

    /// Whether it decides which tools clients list and call.
    fn is_tool_policy(&self) -> bool {
        match &self.middleware {
            MiddlewareImpl::Rust(middleware) => middleware.tool_policy().is_some(),
            MiddlewareImpl::Foreign(_) => false,
        }
    }
}

impl Middlewares {
    /// Whether requests of the server may meet middleware.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Whether other messages than requests of clients may meet middleware.
    #[inline]
    pub(super) fn has_message_middleware(&self) -> bool {
        self.has_message_middleware.load(Ordering::Acquire)
    }

    /// Whether a tool policy may have a rule for a tool.
    #[inline]
    fn has_tool_policy(&self) -> bool {
        self.has_tool_policy.load(Ordering::Acquire)
    }

    /// Returns what they do.
    pub(super) fn usage(&self) -> MiddlewareUse {
        MiddlewareUse {
            messages: self.has_message_middleware(),
            tools: self.has_tool_policy(),
        }
    }

    fn list(&self) -> Arc<[RegisteredMiddleware]> {
        self.list
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reports a change of the server's features or of a resource.
    pub(super) fn changed(&self, change: &Change) {
        if !self.is_used() {
            return;
        }
        for registered in self.list().iter() {
            if let MiddlewareImpl::Rust(middleware) = &registered.middleware {
                middleware.on_features_changed(change);
            }
        }
    }

    /// Whether one of them replaces confidential values in results.
    fn redact_results(&self) -> bool {
        let list = self.list();
        list.iter().any(RegisteredMiddleware::redacts)
    }

    fn add(&self, added: RegisteredMiddleware) -> Result<(), Error> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.len() == MAX_MIDDLEWARES {
            return Err(Error::usage(format!(
                "a server has {MAX_MIDDLEWARES} middlewares at most"
            )));
        }
        let before = std::mem::take(&mut *list);
        *list = before.iter().cloned().chain([added]).collect();
        Ok(())
    }
}

impl Server {
    /// Puts code around each request of a client: lists, calls of tools, reads of resources, requests for prompts, completions
    /// and custom requests. See [`Middleware`].
    ///
    /// The first that was added is the outermost. Requests that begin later meet it, also those of connected clients.
    ///
    /// # Panics
    ///
    /// If the server has 64 middlewares. [`add_middleware`](Self::add_middleware) returns the error instead.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware) -> Self {
        match self.add_middleware(MiddlewareScope::all(), Arc::new(middleware)) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Puts code around the requests of a scope.
    ///
    /// A middleware of a mounted server sees requests for that server's features, after the middlewares of the server that it is
    /// mounted in, and the input requests and notifications of its handlers, before them; lists and notifications of the client
    /// are those of the server that is served. The initial handshake, subscriptions, pings, cancellations and what the server
    /// itself announces meet no middleware.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the scope has a method that no middleware sees, the server has 64
    /// middlewares, or the middleware is a [`ResponseSizeLimit`](crate::middleware::ResponseSizeLimit) and the server has a
    /// `Redaction`, which would get cut results.
    pub fn add_middleware(
        &self,
        scope: MiddlewareScope,
        middleware: Arc<dyn Middleware>,
    ) -> Result<(), Error> {
        self.check_scope(&scope)?;
        if middleware.cuts_results() && self.inner().middlewares.redact_results() {
            return Err(Error::usage(
                "a `ResponseSizeLimit` that is added after a `Redaction` cuts results before they are redacted: add it first",
            ));
        }
        if let Some(provided) = middleware.provided_resources() {
            self.provide_resources(provided)?;
        }
        self.register_middleware(scope, MiddlewareImpl::Rust(middleware))
    }

    /// Adds the resources of a middleware.
    fn provide_resources(&self, provided: ProvidedResources) -> Result<(), Error> {
        let ProvidedResources { template, read } = provided;
        let reading = handler(move |call: &Call| {
            let uri = call.name();
            let contents = read(&uri, call.context().connection().principal());
            async move {
                match contents {
                    Some(contents) => Ok(Reply::Resource(ResourceReply {
                        contents,
                        cache: None,
                        meta: None,
                    })),
                    None => Err(HandlerError::ResourceNotFound(Some(uri))),
                }
            }
        });
        self.add_resource_template(template, reading)
    }

    /// Puts a handler of another language around the requests of a scope. Its calls have the kind
    /// [`CallKind::Middleware`](super::CallKind::Middleware), the request as arguments, and an action that passes it on.
    pub(crate) fn add_middleware_handler(
        &self,
        scope: MiddlewareScope,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        self.register_middleware(scope, MiddlewareImpl::Foreign(handler))
    }

    fn check_scope(&self, scope: &MiddlewareScope) -> Result<(), Error> {
        let registry = self.inner().registry();
        scope.check(|method| registry.has_custom_method(method))
    }

    fn register_middleware(
        &self,
        scope: MiddlewareScope,
        middleware: MiddlewareImpl,
    ) -> Result<(), Error> {
        self.check_scope(&scope)?;
        let registered = RegisteredMiddleware { scope, middleware };
        let usage = MiddlewareUse {
            messages: registered.scope.has_messages() || registered.redacts_everything(),
            tools: registered.is_tool_policy(),
        };
        self.inner().middlewares.add(registered)?;
        self.inner().use_middleware(usage);
        if usage.tools {
            self.notify_changed(&Change::Tools);
        }
        Ok(())
    }
}

impl Inner {
    /// Returns a value without what the redactions of this server and of those that are mounted in it replace, whatever their
    /// scopes; `None` if that takes too long.
    pub(super) fn redacted(&self, value: Raw) -> Option<Raw> {
        if !self.middlewares.is_used() {
            return Some(value);
        }
        let until = clock::now().saturating_add(MAX_RECORD_REDACTION_TIME);
        self.redacted_until(value, until)
    }

    pub(super) fn redacted_until(&self, mut value: Raw, until: Duration) -> Option<Raw> {
        if !self.middlewares.is_used() {
            return Some(value);
        }
        for registered in self.middlewares.list().iter() {
            if let MiddlewareImpl::Rust(middleware) = &registered.middleware {
                value = middleware.redact_recorded(value, until)?;
            }
        }
        self.mounts.redacted(value, until)
    }

    /// Lets requests of this server, and of those that it is mounted in, look for middleware; other messages and tools too if
    /// they may meet some.
    pub(super) fn use_middleware(&self, usage: MiddlewareUse) {
        // First, so that a server that is mounted meanwhile sees it.
        self.middlewares.is_used.store(true, Ordering::Release);
        if usage.messages {
            self.middlewares
                .has_message_middleware
                .store(true, Ordering::Release);
        }
        if usage.tools {
            self.middlewares
                .has_tool_policy
                .store(true, Ordering::Release);
        }
        for parent in self.mounts.parents() {
            parent.use_middleware(usage);
        }
    }

    /// Does so for the middleware of a server that is mounted in this one.
    pub(super) fn use_middleware_of(&self, mounted: &Self) {
        let middlewares = &mounted.middlewares;
        if middlewares.is_used() {
            self.use_middleware(middlewares.usage());
        }
    }
}
