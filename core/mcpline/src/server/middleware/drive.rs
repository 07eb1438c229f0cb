//! Runs the future of a chain of middleware.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::task::{Context as TaskContext, Poll, Waker};

use mcpline_protocol::RpcError;
use tokio::sync::watch;

use crate::background;
use crate::line_io::pipe_handoff::while_lent;
use crate::middleware::{MiddlewareFuture, MiddlewareOutcome};
use crate::span::SpanScope;

/// Begins a chain; a panic of its first middleware is the outcome.
fn begin(chain: impl FnOnce() -> MiddlewareFuture) -> MiddlewareFuture {
    match std::panic::catch_unwind(AssertUnwindSafe(chain)) {
        Ok(chain) => chain,
        Err(_) => Box::pin(std::future::ready(Err(panicked()))),
    }
}

/// Begins a chain on this thread, because most need no task, and continues in a task, until what `end` returns is closed. `finish`
/// gets `None` if that happens before the outcome, or `end` returns `None`: it has happened already.
pub(in super::super) fn drive(
    runtime: &tokio::runtime::Handle,
    end: impl FnOnce() -> Option<watch::Receiver<()>>,
    chain: impl FnOnce() -> MiddlewareFuture,
    finish: impl FnOnce(Option<MiddlewareOutcome>) + Send + 'static,
) {
    let mut now = TaskContext::from_waker(Waker::noop());
    let (mut chain, polled) = while_lent(|| {
        let mut chain = begin(chain);
        let polled = poll_caught(&mut chain, &mut now);
        (chain, polled)
    });
    if let Poll::Ready(outcome) = polled {
        return finish(Some(outcome));
    }
    let Some(end) = end() else {
        drop(chain);
        return finish(None);
    };
    let scope = SpanScope::current();
    background::spawn_unboxed(runtime, async move {
        let outcome = std::future::poll_fn(|cx| scope.in_scope(|| poll_caught(&mut chain, cx)));
        finish(until(end, outcome).await);
    });
}

/// Begins a chain, and waits for its outcome; `None` if `end` is closed before.
pub(in super::super) async fn outcome_until(
    end: watch::Receiver<()>,
    chain: impl FnOnce() -> MiddlewareFuture,
) -> Option<MiddlewareOutcome> {
    let mut chain = begin(chain);
    until(end, std::future::poll_fn(|cx| poll_caught(&mut chain, cx))).await
}

async fn until<T>(mut end: watch::Receiver<()>, outcome: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        _ = end.changed() => None,
        outcome = outcome => Some(outcome),
    }
}

/// Polls a chain; a panic of a middleware is an error.
fn poll_caught(chain: &mut MiddlewareFuture, cx: &mut TaskContext<'_>) -> Poll<MiddlewareOutcome> {
    let poll = AssertUnwindSafe(|| chain.as_mut().poll(cx));
    match std::panic::catch_unwind(poll) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(Err(panicked())),
    }
}

/// Logs that a middleware panicked, and returns the error to send. The panic hook has printed why.
fn panicked() -> RpcError {
    tracing::error!("a middleware panicked");
    RpcError::internal_error("the request failed")
}
