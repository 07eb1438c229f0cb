//! Graceful shutdown of a mounted service together with the HTTP server that it is mounted in.

use std::future::Future;

use crate::background;

use super::service::HttpService;

impl HttpService {
    /// Returns a future that completes with `signal`, and then shuts the service down in the background. For the graceful
    /// shutdown of the HTTP server that the service is mounted in.
    ///
    /// HTTP servers wait for responses, and the event streams of clients never end by themselves: without this, a
    /// graceful shutdown does not end while a client listens. Streams that belong to no call end at once. Calls in flight
    /// may finish within [`Settings::shutdown_grace`](crate::Settings::shutdown_grace); then they are answered with
    /// [`ErrorCode::SHUTTING_DOWN`](crate::protocol::ErrorCode::SHUTTING_DOWN).
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
            let grace = service.shared.server.settings().shutdown_grace;
            // Not awaited: the HTTP server must stop accepting connections now, and go on writing responses.
            background::spawn_here(async move { service.shut_down(grace).await });
        }
    }
}
