//! The tower service, mounted in an axum application, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::Nothing;
use crate::support::connection::{Connection, TEST_TIMEOUT};
use crate::support::requests::{call, initialize};
use axum::Router;
use axum::routing::get;
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// An application with its own page and a server below `/tools`.
struct Application {
    address: SocketAddr,
    /// Notified when the tool `waits` has started.
    started: Arc<Notify>,
    /// Notified when the call of `waits` is cancelled.
    cancelled: Arc<Notify>,
}

async fn application() -> Application {
    let started = Arc::new(Notify::new());
    let cancelled = Arc::new(Notify::new());
    let (on_start, on_cancel) = (started.clone(), cancelled.clone());
    let server = Server::new("mounted", "1")
        .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
            "done"
        })
        .tool("waits", "Never answers", move |_: Nothing, ctx: Context| {
            let on_cancel = on_cancel.clone();
            ctx.on_cancel(move || on_cancel.notify_one());
            on_start.notify_one();
            std::future::pending::<String>()
        });
    let mut options = HttpOptions::default();
    options.proxy_prefix = "/tools".into();
    let router = Router::new()
        .route("/", get(async || "a page of mine"))
        .nest_service("/tools", server.http_service(options));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    Application {
        address,
        started,
        cancelled,
    }
}

fn modern(tool: &str) -> (Vec<(&'static str, String)>, Value) {
    let mut body = call(1, tool);
    let meta = &mut body["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers = vec![
        ("mcp-protocol-version", "2026-07-28".to_owned()),
        ("mcp-method", "tools/call".to_owned()),
        ("mcp-name", tool.to_owned()),
    ];
    (headers, body)
}

async fn send(connection: &mut Connection, headers: &[(&str, String)], body: &Value) {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    connection.send("POST", "/tools/mcp", &headers, body).await;
}

#[runtimes::test]
async fn both_eras_and_the_applications_own_pages_share_a_port() {
    let Application { address, .. } = application().await;
    let mut connection = Connection::open(address).await;
    connection.send("GET", "/", &[], &Value::Null).await;
    connection.until(Some("a page of mine")).await;
    let (headers, body) = modern("plain");
    send(&mut connection, &headers, &body).await;
    connection.until(Some("\"done\"")).await;
    send(&mut connection, &[], &initialize("2025-11-25")).await;
    connection.until(Some("mcp-session-id: ")).await;
    connection
        .send("GET", "/tools/health", &[], &Value::Null)
        .await;
    connection.until(Some("\r\n\r\nok")).await;
}

#[runtimes::test]
async fn http_sse_announces_an_endpoint_below_the_mount() {
    let Application { address, .. } = application().await;
    let mut connection = Connection::open(address).await;
    connection
        .send("GET", "/tools/sse", &[], &Value::Null)
        .await;
    connection
        .until(Some("data: /tools/messages?sessionId="))
        .await;
}

#[runtimes::test]
async fn disconnecting_cancels_a_modern_call_of_a_mounted_service() {
    let Application {
        address,
        started,
        cancelled,
    } = application().await;
    let mut connection = Connection::open(address).await;
    let (headers, mut body) = modern("waits");
    if let Some(meta) = body["params"]["_meta"].as_object_mut() {
        meta.remove("progressToken");
    }
    send(&mut connection, &headers, &body).await;
    // A request that is dropped before its handler starts has nothing to cancel.
    tokio::time::timeout(TEST_TIMEOUT, started.notified())
        .await
        .expect("the call has started");
    let mut other = Connection::open(address).await;
    let (headers, body) = modern("plain");
    send(&mut other, &headers, &body).await;
    other.until(Some("\"done\"")).await;
    drop(connection);
    tokio::time::timeout(TEST_TIMEOUT, cancelled.notified())
        .await
        .expect("the call is cancelled");
}
