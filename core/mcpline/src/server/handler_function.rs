//! Functions and closures as handlers: with or without arguments, with or without the context, blocking or not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::span::SpanScope;

use super::Context;

/// Functions and closures that can handle a tool, a resource or a prompt.
///
/// It is implemented for async functions and for closures that return a future, with any of these parameters:
///
/// | Parameters | Handler |
/// | --- | --- |
/// | `()` | `async fn now() -> String` |
/// | `(Context)` | `async fn caller(ctx: Context) -> String` |
/// | `(A)` | `async fn add(sum: Sum) -> i64` |
/// | `(A, Context)` | `async fn import(file: File, ctx: Context) -> Result<String, ToolError>` |
///
/// `A` is decoded from the arguments of the call. State is captured by the closure, or kept in the server
/// ([`Server::with_state`](super::Server::with_state)). The parameters of a closure need types: `|sum: Sum|`. For
/// functions that block, see [`Blocking`]. `Marker` says which parameters there are; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a handler is an async function, or a closure that returns a future, with these parameters: none, the \
            arguments, the `Context`, or the arguments and then the `Context`",
    note = "the parameters of closures need types (`|sum: Sum, ctx: Context|`); the arguments must implement \
            `DeserializeOwned`"
)]
pub trait HandlerFunction<Marker>: Send + Sync + 'static {
    /// The arguments; [`NoArguments`] if the function takes none.
    type Arguments: DeserializeOwned;
    /// What the function returns.
    type Output;
    /// The running function.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Starts the function.
    fn start(self: &Arc<Self>, arguments: Self::Arguments, context: Context) -> Self::Future;
}

/// The arguments of a handler that takes none. Decodes from any object; its JSON Schema is that of objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NoArguments {}

impl<'de> Deserialize<'de> for NoArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Ok(Self {})
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for NoArguments {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }
}

impl<F, Fut> HandlerFunction<(fn(), fn())> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = NoArguments;
    type Output = Fut::Output;
    type Future = Fut;

    fn start(self: &Arc<Self>, _: NoArguments, _: Context) -> Fut {
        self()
    }
}

impl<F, Fut> HandlerFunction<(fn(), fn(Context))> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = NoArguments;
    type Output = Fut::Output;
    type Future = Fut;

    fn start(self: &Arc<Self>, _: NoArguments, context: Context) -> Fut {
        self(context)
    }
}

impl<F, A, Fut> HandlerFunction<(fn(A), fn())> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned,
    Fut: Future + Send + 'static,
{
    type Arguments = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn start(self: &Arc<Self>, arguments: A, _: Context) -> Fut {
        self(arguments)
    }
}

impl<F, A, Fut> HandlerFunction<(fn(A), fn(Context))> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned,
    Fut: Future + Send + 'static,
{
    type Arguments = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn start(self: &Arc<Self>, arguments: A, context: Context) -> Fut {
        self(arguments, context)
    }
}

/// A handler that blocks or computes for long: an ordinary function, run on tokio's threads for blocking work.
///
/// Async handlers run on the thread that reads the client's messages until they wait for the first time. A function that
/// blocks there for more than a millisecond keeps a thread of the runtime that other clients need. On a runtime with one
/// thread, and over connections in memory, it delays every other request of the client, its pings and its cancellations
/// included; over a pipe another thread of the runtime reads on after 10 ms. The parameters are those of other handlers: none, the arguments, the [`Context`], or both.
///
/// If the client cancels the request, the function goes on, because threads can't be stopped, and its result is dropped:
/// check [`Context::is_cancelled`] in loops. As many functions run at the same time as the runtime has threads for
/// blocking work (`max_blocking_threads`, 512 by default); a client's share of the server's calls
/// ([`Settings::max_calls`](super::Settings::max_calls)) bounds what it can occupy.
///
/// ```
/// use mcpline::server::Blocking;
/// use mcpline::{Server, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {
///     path: String,
/// }
///
/// fn count(count: Count) -> Result<usize, ToolError> {
///     Ok(std::fs::read_to_string(count.path)?.lines().count())
/// }
///
/// let server =
///     Server::new("files", "1.0.0").tool("count", "Count the lines of a file", Blocking(count));
/// # drop(server);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Blocking<F>(pub F);

/// The running function of a [`Blocking`] handler.
pub struct BlockingCall<T> {
    call: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T: Send + 'static> BlockingCall<T> {
    fn start(run: impl FnOnce() -> T + Send + 'static) -> Self {
        let scope = SpanScope::current();
        let call = async move {
            let running = tokio::task::spawn_blocking(move || scope.in_scope(run));
            match running.await {
                Ok(output) => output,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down, and with it the task that waits here.
                    Err(_) => std::future::pending().await,
                },
            }
        };
        Self {
            call: Box::pin(call),
        }
    }
}

impl<T> Future for BlockingCall<T> {
    type Output = T;

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        self.call.as_mut().poll(cx)
    }
}

impl<T> std::fmt::Debug for BlockingCall<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingCall").finish_non_exhaustive()
    }
}

impl<F, T> HandlerFunction<(Blocking<()>, fn(), fn())> for Blocking<F>
where
    F: Fn() -> T + Send + Sync + 'static,
    T: Send + 'static,
{
    type Arguments = NoArguments;
    type Output = T;
    type Future = BlockingCall<T>;

    fn start(self: &Arc<Self>, _: NoArguments, _: Context) -> BlockingCall<T> {
        let function = self.clone();
        BlockingCall::start(move || (function.0)())
    }
}

impl<F, T> HandlerFunction<(Blocking<()>, fn(), fn(Context))> for Blocking<F>
where
    F: Fn(Context) -> T + Send + Sync + 'static,
    T: Send + 'static,
{
    type Arguments = NoArguments;
    type Output = T;
    type Future = BlockingCall<T>;

    fn start(self: &Arc<Self>, _: NoArguments, context: Context) -> BlockingCall<T> {
        let function = self.clone();
        BlockingCall::start(move || (function.0)(context))
    }
}

impl<F, A, T> HandlerFunction<(Blocking<()>, fn(A), fn())> for Blocking<F>
where
    F: Fn(A) -> T + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    T: Send + 'static,
{
    type Arguments = A;
    type Output = T;
    type Future = BlockingCall<T>;

    fn start(self: &Arc<Self>, arguments: A, _: Context) -> BlockingCall<T> {
        let function = self.clone();
        BlockingCall::start(move || (function.0)(arguments))
    }
}

impl<F, A, T> HandlerFunction<(Blocking<()>, fn(A), fn(Context))> for Blocking<F>
where
    F: Fn(A, Context) -> T + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    T: Send + 'static,
{
    type Arguments = A;
    type Output = T;
    type Future = BlockingCall<T>;

    fn start(self: &Arc<Self>, arguments: A, context: Context) -> BlockingCall<T> {
        let function = self.clone();
        BlockingCall::start(move || (function.0)(arguments, context))
    }
}
