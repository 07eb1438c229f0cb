//! Middleware of clients: code of a program around the requests that a client sends.
//!
//! A [`ClientMiddleware`] receives each [`ClientRequest`] and what sends it, [`ClientNext`]: the next middleware, and at the end
//! the client itself. It may answer instead, change the parameters or the result, wait, send again, or only observe.
//!
//! Ready-made are [`Retry`], [`CircuitBreaker`] and [`ToolPolicy`], and [`AuditLog`](crate::middleware::AuditLog) and
//! [`Redaction`](crate::middleware::Redaction), which servers use as well.

mod audit_log;
mod circuit_breaker;
#[cfg(feature = "redaction")]
mod redaction;
mod request;
mod retry;
mod tool_policy;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::Raw;
use mcpline_runtime::clock;

use crate::client_error::ClientError;
use crate::middleware::MAX_RECORD_REDACTION_TIME;

use super::inner::Inner;
use super::settings::RequestOptions;

pub use circuit_breaker::{CircuitBreaker, CircuitOpen};
pub use mcpline_protocol::client::ToolAdmission;
pub use request::ClientRequest;
pub use retry::Retry;
pub use tool_policy::ToolPolicy;

/// The outcome of a request: its result as JSON, or an error.
pub type ClientOutcome = Result<Raw, ClientError>;

/// A future of a [`ClientOutcome`].
pub type ClientMiddlewareFuture = Pin<Box<dyn Future<Output = ClientOutcome> + Send>>;

/// Code around the requests that a client sends.
///
/// It sees the requests of the host: calls of tools, lists (each page), reads, prompts, completions, pings, custom requests, and
/// subscriptions on revisions up to 2025-11-25; also those that a cached result answers. It does not see the handshake,
/// notifications, the requests that the client sends by itself, and those of the server. The hooks for tool calls come after
/// it.
///
/// Async closures over a request and [`ClientNext`] implement it:
///
/// ```
/// use std::time::Instant;
///
/// use mcpline::client::Client;
/// use mcpline::client::middleware::{ClientNext, ClientRequest};
///
/// let builder = Client::builder("host", "1.0.0").middleware(|request: ClientRequest, next: ClientNext| async move {
///     let started = Instant::now();
///     let method = request.method().to_owned();
///     let outcome = next.run(request).await;
///     println!("{method}: {} in {:?}", outcome.is_ok(), started.elapsed());
///     outcome
/// });
/// # let _ = builder;
/// ```
pub trait ClientMiddleware: Send + Sync + 'static {
    /// Handles a request. The future is dropped if the caller gives the request up.
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture;

    /// Decides whether the client may know a tool that the server lists. Called for each tool of each list before the client
    /// learns it, also when the client lists the tools by itself, and not for lists from the cache. Must not block.
    fn admits_tool(&self, name: &str, definition: &Raw) -> ToolAdmission {
        let _ = (name, definition);
        ToolAdmission::Admitted
    }

    /// Decides whether a call may be sent again after the client has listed the tools by itself, because the server refused the
    /// headers of the call (2026-07-28). `Err` has the reason.
    fn admits_call(&self, name: &str) -> Result<(), String> {
        let _ = name;
        Ok(())
    }

    /// Records a request that a program of another language has given up before it began, so that [`handle`](Self::handle) was not
    /// called. For those of the library.
    #[doc(hidden)]
    fn record_cancelled_before_start(&self, request: &ClientRequest) {
        let _ = request;
    }

    /// Returns a value that is recorded in a span, without confidential values; `None` if that takes until after this time on the
    /// monotonic clock, or too long for the thread that serves the connection. For those of the library.
    #[doc(hidden)]
    fn redact_recorded(&self, value: Raw, until: Duration) -> Option<Raw> {
        let _ = until;
        Some(value)
    }
}

impl<F, Fut> ClientMiddleware for F
where
    F: Fn(ClientRequest, ClientNext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ClientOutcome> + Send + 'static,
{
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        Box::pin(self(request, next))
    }
}

/// The middlewares of a client, the outermost first.
pub(super) type ClientMiddlewares = Arc<[Arc<dyn ClientMiddleware>]>;

/// What sends a request after a [`ClientMiddleware`]. Cheap to clone.
#[derive(Clone)]
pub struct ClientNext {
    middlewares: ClientMiddlewares,
    /// Index of the next middleware.
    index: usize,
}

impl ClientNext {
    /// Passes the request on, and returns its outcome. May be called several times, to try again: each time the request is
    /// sent, and the hooks for tool calls run.
    ///
    /// Dropping the future cancels the request.
    pub async fn run(&self, request: ClientRequest) -> ClientOutcome {
        match self.middlewares.get(self.index) {
            Some(middleware) => {
                let next = Self {
                    middlewares: self.middlewares.clone(),
                    index: self.index + 1,
                };
                middleware.handle(request, next).await
            }
            None => request.send().await,
        }
    }
}

impl fmt::Debug for ClientNext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientNext").finish_non_exhaustive()
    }
}

/// Returns what the middlewares say about a tool.
pub(super) fn admission(
    middlewares: &[Arc<dyn ClientMiddleware>],
    name: &str,
    definition: &Raw,
) -> ToolAdmission {
    let mut admissions = middlewares
        .iter()
        .map(|middleware| middleware.admits_tool(name, definition));
    let refusal = admissions.find(|admission| *admission != ToolAdmission::Admitted);
    refusal.unwrap_or(ToolAdmission::Admitted)
}

impl Inner {
    /// Asks the middlewares whether a call may be sent again.
    pub(super) fn admit_call(&self, name: &str) -> Result<(), ClientError> {
        let mut middlewares = self.handlers.middlewares.iter();
        middlewares
            .try_for_each(|middleware| middleware.admits_call(name))
            .map_err(|reason| ClientError::ToolCallRefused { reason })
    }

    /// Returns a value that is recorded, without what the middlewares replace; `None` if that takes too long.
    pub(super) fn redacted_record(&self, value: &Raw) -> Option<Raw> {
        let until = clock::now().saturating_add(MAX_RECORD_REDACTION_TIME);
        let mut middlewares = self.handlers.middlewares.iter();
        middlewares.try_fold(value.clone(), |value, middleware| {
            middleware.redact_recorded(value, until)
        })
    }

    /// Sends a request through the middleware of the host.
    pub(super) async fn request_through_middleware(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> ClientOutcome {
        let middlewares = &self.handlers.middlewares;
        if middlewares.is_empty() {
            return self.hooked_request(method, params, options).await;
        }
        // Every caller holds the client.
        let client = self.this.upgrade().ok_or(ClientError::Closed)?;
        let next = ClientNext {
            middlewares: middlewares.clone(),
            index: 0,
        };
        let request = ClientRequest::new(client, method, params, options);
        Box::pin(async move { next.run(request).await }).await
    }
}
