//! The server as a tower service within a hyper server of the program.

use std::io;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcpline::Server;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, RemoteAddress};
use tokio::net::TcpListener;

/// How long calls may take after the server is stopped.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until `stop`.
///
/// # Errors
///
/// The port is not free, or connections cannot be accepted.
pub async fn serve(
    server: &Server,
    options: HttpOptions,
    port: u16,
    stop: &Stop,
) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let service = server.http_service(options);
    loop {
        let (stream, address) = tokio::select! {
            () = stop.stopped() => break,
            accepted = listener.accept() => accepted?,
        };
        let mounted = TowerToHyperService::new(service.clone());
        // Without the address, all clients would share the limits of one client.
        let mounted = service_fn(move |mut request: hyper::Request<_>| {
            let address = RemoteAddress(address.ip());
            request.extensions_mut().insert(address);
            mounted.call(request)
        });
        tokio::spawn(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), mounted),
        );
    }
    service.shut_down(GRACE).await;
    Ok(())
}
