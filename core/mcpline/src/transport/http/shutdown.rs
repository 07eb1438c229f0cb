//! Shutdown of the HTTP service: graceful, at once, and together with the HTTP server that it is mounted in.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpline_runtime::clock;

use crate::background;

use super::first_requests::FIRST_REQUEST_TIMEOUT;
use super::service::{HttpService, Shared};

/// How long a shutdown waits at least until the event log is written: calls may have used up the grace period.
const MIN_FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// How often a shutdown checks whether calls have ended.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl HttpService {
    /// Waits for calls in flight, at most for `grace`, then [closes](Self::close) the service. Waits for the
    /// [event log](crate::sharing::EventLog) in the rest of `grace`, at least for half a second.
    ///
    /// The caller must stop accepting connections and continue to write responses. Streams that belong to no call end
    /// at once, and input requests fail, because clients can no longer answer them. The readiness check
    /// ([`HttpOptions::ready_path`](super::HttpOptions::ready_path)) is answered with 503 from now on.
    pub async fn shut_down(&self, grace: Duration) {
        self.end_calls(grace).await;
        self.shared.server.inner().wait_for_records().await;
    }

    /// Like [`shut_down`](Self::shut_down), but the last requests may not be recorded yet. Waits also for the first requests of the
    /// standalone server's connections, which may still come.
    pub(super) async fn end_calls(&self, grace: Duration) {
        self.begin_stopping();
        let Shared {
            server,
            sessions,
            in_flight,
            first_requests,
            ..
        } = &*self.shared;
        let began = clock::now();
        in_flight.end_listening();
        for session in sessions.all() {
            session.end_all_but_calls();
        }
        let settled = async {
            let has_new_connections = || {
                !first_requests.is_empty()
                    && clock::now().saturating_sub(began) < FIRST_REQUEST_TIMEOUT
            };
            while has_new_connections() || !sessions.all().is_empty() || !in_flight.is_empty() {
                tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
                for session in sessions.all() {
                    session.leave_if_idle();
                }
            }
        };
        // After the grace period, remaining calls are cancelled.
        let _ = tokio::time::timeout(grace, settled).await;
        self.close();
        if let Some(sharing) = &server.inner().settings.sharing {
            let rest = grace.saturating_sub(clock::now().saturating_sub(began));
            let flushed = tokio::time::timeout(rest.max(MIN_FLUSH_TIMEOUT), sharing.events.flush());
            match flushed.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the event log failed"),
                Err(_) => {
                    tracing::warn!(
                        "the last events were not written to the event log before the shutdown: clients that resume elsewhere miss them"
                    );
                }
            }
        }
    }

    /// Lets the readiness check fail from now on.
    pub(super) fn begin_stopping(&self) {
        self.shared.is_stopping.store(true, Ordering::Release);
    }

    /// Ends all sessions and streams of this process.
    ///
    /// Calls in flight are cancelled and answered with [`ErrorCode::SHUTTING_DOWN`](mcpline_protocol::ErrorCode::SHUTTING_DOWN); later requests are answered with
    /// that error and status 503, except the health check. Sessions that are shared with other processes
    /// ([`sharing`](crate::sharing)) continue there.
    pub fn close(&self) {
        self.begin_stopping();
        self.shared.closed.store(true, Ordering::Release);
        let Shared {
            server,
            sessions,
            in_flight,
            transport,
            ..
        } = &*self.shared;
        in_flight.end_with_shutdown_error();
        for session in sessions.all() {
            session.end_with_shutdown_error();
        }
        server.inner().cancel_suspended_over(*transport);
    }

    /// Returns a future that completes with `signal`, and then shuts the service down in the background. For the graceful
    /// shutdown of the HTTP server that the service is mounted in.
    ///
    /// HTTP servers wait for responses, and the event streams of clients never end by themselves: without this, a
    /// graceful shutdown does not end while a client listens. Streams that belong to no call end at once. Calls in flight
    /// may finish within [`Settings::shutdown_timeout`](crate::Settings::shutdown_timeout); then they are answered with
    /// [`ErrorCode::SHUTTING_DOWN`](crate::protocol::ErrorCode::SHUTTING_DOWN).
    ///
    /// A program that exports spans or flushes a log of requests when the HTTP server has ended calls
    /// [`shut_down`](Self::shut_down) before, which waits until the last requests are recorded.
    ///
    /// ```no_run
    /// use axum::Router;
    /// use mcpline::Server;
    /// use mcpline::transport::http::HttpOptions;
    ///
    /// async fn serve(server: &Server, listener: tokio::net::TcpListener) -> std::io::Result<()> {
    ///     let service = server.http_service(HttpOptions::default());
    ///     let shutdown = service.shut_down_after(std::future::pending()); // or `tokio::signal::ctrl_c()`
    ///     let router = Router::new().route_service("/mcp", service);
    ///     axum::serve(listener, router).with_graceful_shutdown(shutdown).await
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// The future, if it is polled outside a tokio runtime.
    pub fn shut_down_after<S>(&self, signal: S) -> impl Future<Output = ()> + Send + use<S>
    where
        S: Future<Output = ()> + Send,
    {
        let service = self.clone();
        async move {
            signal.await;
            // Before the task below runs.
            service.begin_stopping();
            let grace = service.shared.server.settings().shutdown_timeout;
            // Not awaited: the HTTP server must stop accepting connections now, and go on writing responses.
            background::spawn_here(async move { service.shut_down(grace).await });
        }
    }
}
