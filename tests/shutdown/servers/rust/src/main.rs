//! A server whose calls never end by themselves, over stdio, a Unix socket, HTTP, or mounted in axum.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::{Stop, UnixOptions, stdio, unix};
use mcpline::{Context, Server, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const GRACE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
struct Label {
    label: String,
}

/// Prints that its call was cancelled, when the handler is dropped.
struct Run(String);

impl Drop for Run {
    fn drop(&mut self) {
        eprintln!("cancelled {}", self.0);
    }
}

fn server() -> Result<Server, mcpline::Error> {
    let mut settings = Settings::default();
    settings.shutdown_timeout = GRACE;
    let server = Server::builder("shutdown", "1")
        .settings(settings)
        .build()?;
    let waits = |args: Label, ctx: Context| async move {
        ctx.progress(0.0, Some(1.0), None);
        eprintln!("waiting {}", args.label);
        let _run = Run(args.label);
        std::future::pending::<String>().await
    };
    Ok(server.tool("waits", "Waits until it is cancelled", waits))
}

async fn mounted(server: &Server, port: u16) -> Result<(), Box<dyn Error>> {
    let service = server.http_service(HttpOptions::default());
    let router = Router::new().fallback_service(service.clone());
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    let ending = async move {
        terminated.recv().await;
        // Runs beside axum's own shutdown, which waits for the requests that this ends.
        tokio::spawn(async move { service.shut_down(GRACE).await });
    };
    axum::serve(listener, router)
        .with_graceful_shutdown(ending)
        .await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server()?;
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next();
    let place = arguments.next().unwrap_or_default();
    let port = place.parse().unwrap_or(0);
    if way.as_deref() == Some("mount") {
        return mounted(&server, port).await;
    }
    let stop = Stop::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stopping.stop();
    });
    match way.as_deref() {
        Some("unix") => {
            let unix = unix(place, UnixOptions::default()).await?;
            server.serve_until(unix, stop).await?;
        }
        Some(_) => {
            let http = http(("127.0.0.1", port), HttpOptions::default()).await?;
            server.serve_until(http, stop).await?;
        }
        None => server.serve_until(stdio(), stop).await?,
    }
    Ok(())
}
