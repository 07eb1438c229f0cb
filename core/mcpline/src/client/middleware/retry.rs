//! Sends failed requests again.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpline_protocol::ErrorCode;

use crate::client::inner::jitter;
use crate::client::settings::{Reconnect, Reissue};
use crate::client_error::ClientError;

use super::circuit_breaker::is_circuit_open;
use super::request::is_busy;
use super::{ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientRequest};

/// A [`ClientMiddleware`] that sends failed requests again, after a delay that doubles.
///
/// A request that the server has not performed is sent again in any case: the server was busy (-31000, HTTP 429 and 503) or
/// could not be reached. If the server may have performed it (the connection was lost, a timeout elapsed, the server shut down, an
/// internal error, another HTTP status from 500), only what may be performed twice is: lists, reads, prompts, completions, calls of the [tools that are
/// named](Self::with_tools), and calls of tools that a
/// [trusted](crate::client::ClientSettings::trust_tool_annotations) server annotates as read-only or idempotent. Other errors are returned, and so is a result with `isError`. -31000 is the code with which servers of
/// this library refuse a request before a handler runs; use this for other servers only if they mean the same.
///
/// Each attempt has the timeouts of the request, and calls the hooks for tool calls. A request with
/// [`Reissue::Never`] is sent again only if it was not performed. The error of an open
/// [`CircuitBreaker`](super::CircuitBreaker) is returned at once.
///
/// This comes after what the client does by itself when a connection is lost
/// ([`Reconnect`](crate::client::Reconnect), [`Reissue`](crate::client::Reissue)).
///
/// ```
/// use mcpline::client::Client;
/// use mcpline::client::middleware::Retry;
///
/// let builder = Client::builder("host", "1.0.0").middleware(Retry::new(4).with_tools(["forecast"]));
/// # let _ = builder;
/// ```
#[derive(Debug, Clone)]
pub struct Retry {
    attempts: u32,
    delays: Reconnect,
    tools: BTreeSet<String>,
}

impl Retry {
    /// Creates one that sends a request `attempts` times at most, with delays from 200 milliseconds to 10 seconds.
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts,
            delays: Reconnect::default(),
            tools: BTreeSet::new(),
        }
    }

    /// Sets the delay before the second attempt, which doubles before each further one, and the maximum. The actual delay is
    /// between half and all of it, by chance. If the server names a delay (`retryAfter`), this is used if it is longer; an
    /// error with one beyond the maximum is returned.
    #[must_use]
    pub fn with_delays(mut self, first: Duration, max: Duration) -> Self {
        (self.delays.first_delay, self.delays.max_delay) = (first, max);
        self
    }

    /// Sets tools that may run twice for one call, whatever their annotations say.
    #[must_use]
    pub fn with_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    fn may_repeat(&self, request: &ClientRequest) -> bool {
        let is_named = || {
            let is_allowed = request.options().reissue != Reissue::Never;
            let tool = request.name().filter(|_| is_allowed);
            tool.is_some_and(|tool| self.tools.contains(&tool))
        };
        request.is_repeatable() || (request.method() == "tools/call" && is_named())
    }

    /// Returns the delay after the failed attempt of this number, counted from 1. `None`: the error is returned.
    fn delay(&self, attempt: u32, error: &ClientError, may_repeat: bool) -> Option<Duration> {
        let is_tried_again = attempt < self.attempts
            && (is_unperformed(error) || (may_repeat && may_be_performed(error)));
        if !is_tried_again {
            return None;
        }
        // A delay of its own has the attempt after two losses.
        let delay = self.delays.delay(attempt.saturating_add(1), jitter());
        let asked = retry_after(error);
        (asked <= self.delays.max_delay).then(|| delay.max(asked))
    }
}

/// Whether the server has not performed the request, and may perform the same one later.
fn is_unperformed(error: &ClientError) -> bool {
    !is_circuit_open(error)
        && (is_busy(error)
            || matches!(
                error.cause(),
                ClientError::SessionExpired
                    | ClientError::ServerUnreachable { .. }
                    | ClientError::TooMuchUnsent { .. }
                    | ClientError::ServerExited { unsent: true, .. }
            ))
}

/// Whether the request may have been performed, or has failed for a reason that may pass.
fn may_be_performed(error: &ClientError) -> bool {
    error.is_outcome_unknown()
        || matches!(error.cause(), ClientError::Http { status: 500.., .. })
        || error.rpc().is_some_and(|error| {
            [ErrorCode::INTERNAL_ERROR, ErrorCode::SHUTTING_DOWN].contains(&error.code)
        })
}

/// Returns how long the server asks to wait.
fn retry_after(error: &ClientError) -> Duration {
    let data = error.rpc().and_then(|error| error.data.as_ref());
    let seconds = data.and_then(|data| data.member("retryAfter"));
    let seconds = seconds.and_then(|seconds| seconds.decode::<f64>().ok());
    let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    delay.unwrap_or_default()
}

impl ClientMiddleware for Retry {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        let this = self.clone();
        Box::pin(async move {
            let mut attempt = 0;
            loop {
                attempt += 1;
                let error = match next.run(request.clone()).await {
                    Ok(result) => return Ok(result),
                    Err(error) => error,
                };
                // Asked after the attempt, which may have connected.
                let Some(delay) = this.delay(attempt, &error, this.may_repeat(&request)) else {
                    return Err(error);
                };
                tracing::debug!(
                    method = request.method(),
                    attempt,
                    delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    "a request failed, and is sent again: {error}"
                );
                request.wait(delay).await?;
            }
        })
    }
}
