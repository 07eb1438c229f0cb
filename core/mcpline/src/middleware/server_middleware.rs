//! The middleware of servers: the trait, and what answers a request after it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::session::Change;
use mcpline_protocol::vocabulary::ResourceTemplate;
use mcpline_protocol::wire::Raw;

use super::request::MiddlewareRequest;
use super::tool_policy::ToolPolicy;

/// The outcome of a request: its result as JSON, or a JSON-RPC error.
///
/// The result has the form of the client's revision. That of a tool that failed has `"isError": true`, and one that asks the
/// client for input (2026-07-28) has `"resultType": "input_required"`: the client sends the request again with the answers, and
/// the middleware sees that as another request.
pub type MiddlewareOutcome = Result<Raw, RpcError>;

/// A future of a [`MiddlewareOutcome`].
pub type MiddlewareFuture = Pin<Box<dyn Future<Output = MiddlewareOutcome> + Send>>;

/// Code around the requests that a server answers, and around the input requests and notifications whose methods its scope
/// names.
///
/// Async closures over a request and [`Next`] implement it:
///
/// ```
/// use std::time::Instant;
///
/// use mcpline::Server;
/// use mcpline::middleware::{MiddlewareRequest, Next};
///
/// let server = Server::new("files", "1.0.0").middleware(|request: MiddlewareRequest, next: Next| async move {
///     let started = Instant::now();
///     let method = request.method().to_owned();
///     let outcome = next.run(request).await;
///     println!("{method}: {} in {:?}", outcome.is_ok(), started.elapsed());
///     outcome
/// });
/// # let _ = server;
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request. The future is polled first on the thread that reads the client's messages, then in a task. It is
    /// dropped when the request has ended: the client cancelled it, or its connection or the server is closed.
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture;

    /// Called when features of the server have changed, or a resource (`notify_resource_updated`): results that the middleware has
    /// kept may be outdated. Must not block. Does nothing by default.
    fn on_features_changed(&self, change: &Change) {
        let _ = change;
    }

    /// Returns resources that the server has because of this middleware. For those of the library.
    #[doc(hidden)]
    fn provided_resources(&self) -> Option<ProvidedResources> {
        None
    }

    /// Whether it cuts results. For those of the library.
    #[doc(hidden)]
    fn cuts_results(&self) -> bool {
        false
    }

    /// Whether it replaces confidential values in what is sent to the client. For those of the library.
    #[doc(hidden)]
    fn redacts_results(&self) -> bool {
        false
    }

    /// Returns itself, if it decides which tools clients list and call. For those of the library.
    #[doc(hidden)]
    fn tool_policy(&self) -> Option<&ToolPolicy> {
        None
    }

    /// Returns a value that is recorded, such as in a span, without confidential values; `None` if that takes until after
    /// this time on the monotonic clock, or too long for the thread that serves the connection. For those of the library.
    #[doc(hidden)]
    fn redact_recorded(&self, value: Raw, until: Duration) -> Option<Raw> {
        let _ = until;
        Some(value)
    }
}

/// Resources that a server has because of a [`Middleware`].
#[doc(hidden)]
pub struct ProvidedResources {
    pub(crate) template: ResourceTemplate,
    pub(crate) read: ResourceReader,
}

/// Returns the contents of a resource by its URI and the principal of the caller, if there is one.
pub(crate) type ResourceReader = Arc<dyn Fn(&str, &str) -> Option<Raw> + Send + Sync>;

impl<F, Fut> Middleware for F
where
    F: Fn(MiddlewareRequest, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = MiddlewareOutcome> + Send + 'static,
{
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        Box::pin(self(request, next))
    }
}

/// What answers a request after a [`Middleware`]. Cheap to clone.
#[derive(Clone)]
pub struct Next(Arc<dyn NextStep>);

/// The rest of a chain.
pub(crate) trait NextStep: Send + Sync + 'static {
    fn run(&self, request: MiddlewareRequest) -> MiddlewareFuture;
}

impl Next {
    pub(crate) fn new(step: impl NextStep) -> Self {
        Self(Arc::new(step))
    }

    /// Passes the request on, and returns its outcome. May be called several times, to try again: each time the handler runs.
    ///
    /// Dropping the future cancels the handler, as if the client had cancelled the request.
    pub async fn run(&self, request: MiddlewareRequest) -> MiddlewareOutcome {
        self.0.run(request).await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
