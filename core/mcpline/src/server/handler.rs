//! Handlers: how the code of a feature is called, from Rust and from bindings.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::background;
use crate::line_io::pipe_handoff::while_lent;
use crate::span::SpanScope;
use crate::warning_limit::warn_limited;

use super::call::Call;
use super::reply::{HandlerError, Reply};
use super::request_span::RequestSpan;

/// Code behind a tool, resource, prompt, completion or custom method.
///
/// Bindings implement it and queue the call for their event loop. In Rust use closures instead (see
/// [`Server`](super::Server)).
pub trait Handler: Send + Sync + 'static {
    /// Starts one call. Runs on an I/O thread and must not block; the call may be answered later, from any thread.
    fn call(&self, call: Call);
}

type HandlerFuture = Pin<Box<dyn Future<Output = Result<Reply, HandlerError>> + Send>>;

/// A handler made of an async closure over the raw call.
struct AsyncHandler<F> {
    function: F,
    /// Counts calls, of which every [`TIMED_CALLS`]th is timed.
    calls: AtomicU32,
}

impl<F> Handler for AsyncHandler<F>
where
    F: Fn(&Call) -> HandlerFuture + Send + Sync + 'static,
{
    fn call(&self, call: Call) {
        // Dropped after the scope: the end of serving waits for it.
        let span = call.span();
        let scope = scope_of(span.as_deref());
        let _entered = scope.enter();
        let is_timed = self
            .calls
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(TIMED_CALLS);
        let started = is_timed.then(Instant::now);
        // Most handlers finish without waiting and need no task.
        let begun = while_lent(|| begin(&self.function, &call));
        if let Some(started) = started {
            warn_if_slow(&call, started.elapsed());
        }
        match begun {
            Ok(outcome) => call.reply(outcome),
            Err(answer) => spawn(call, answer, scope.clone()),
        }
    }
}

/// Runs a handler until it ends or waits. In the second case its future is returned.
fn begin(
    function: impl Fn(&Call) -> HandlerFuture,
    call: &Call,
) -> Result<Result<Reply, HandlerError>, HandlerFuture> {
    let mut answer = match std::panic::catch_unwind(AssertUnwindSafe(|| function(call))) {
        Ok(answer) => answer,
        Err(panic) => return Ok(Err(panicked(&*panic))),
    };
    let mut now = std::task::Context::from_waker(Waker::noop());
    match poll_caught(&mut answer, &mut now) {
        Poll::Ready(outcome) => Ok(outcome),
        Poll::Pending => Err(answer),
    }
}

/// How long a handler may run before it waits for the first time. Longer ones are felt where the runtime has one thread
/// only: until then the client's other messages are not read.
const MAX_FIRST_POLL: Duration = Duration::from_millis(50);

/// One call in this many is timed, the first included: reading the clock takes longer than a handler that returns at once.
/// A handler that blocks does so in most calls.
const TIMED_CALLS: u32 = 16;

/// Logs that a handler kept a thread of the runtime.
fn warn_if_slow(call: &Call, took: Duration) {
    if took < MAX_FIRST_POLL {
        return;
    }
    warn_limited!(
        name = call.name(),
        "a handler ran for {} ms before it waited for the first time, and kept a thread of the runtime: if it blocks or \
         computes, wrap it in `mcpline::server::Blocking` or use `tokio::task::spawn_blocking`",
        took.as_millis()
    );
}

/// Returns the scope of a request. If the request has no span, that of the transport stays the handler's.
fn scope_of(span: Option<&RequestSpan>) -> SpanScope {
    match span {
        Some(span) => span.scope().or_current(),
        None => SpanScope::of_current_span(),
    }
}

/// Runs a handler that waits in a task, until it ends or is cancelled.
fn spawn(call: Call, mut answer: HandlerFuture, scope: SpanScope) {
    let (cancel, cancelled) = tokio::sync::oneshot::channel::<()>();
    call.context().on_cancel(move || {
        // The handler may have ended already.
        let _ = cancel.send(());
    });
    background::spawn_unboxed(&Handle::current(), async move {
        let outcome = tokio::select! {
            biased;
            Ok(()) = cancelled => return,
            outcome = std::future::poll_fn(|cx| scope.in_scope(|| poll_caught(&mut answer, cx))) => outcome,
        };
        // Before the response, because the span of the request ends with them, and the client may end the connection as soon as it
        // has the response. A destructor that panics does not change the outcome.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop((answer, scope))));
        call.reply(outcome);
    });
}

fn poll_caught(
    answer: &mut HandlerFuture,
    cx: &mut std::task::Context<'_>,
) -> Poll<Result<Reply, HandlerError>> {
    match std::panic::catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(panicked(&*panic))),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> HandlerError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    HandlerError::Internal(format!("the handler panicked: {text}"))
}

/// Wraps an async closure over the raw arguments.
pub(crate) fn handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(&Call) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Reply, HandlerError>> + Send + 'static,
{
    Arc::new(AsyncHandler {
        function: move |call: &Call| Box::pin(run(call)) as HandlerFuture,
        calls: AtomicU32::new(0),
    })
}
