//! Graceful shutdown of an axum application with a mounted server, with clients that keep event streams open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::TEST_TIMEOUT;
use axum::Router;
use mcpline::client::{Client, ClientError};
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Revision, Server, Settings};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// An axum application whose graceful shutdown begins with `signal`.
struct Application {
    address: SocketAddr,
    signal: Arc<Notify>,
    /// Notified when the tool `waits` has started.
    started: Arc<Notify>,
    /// Lets the tool `waits` finish.
    go_on: Arc<Notify>,
    served: JoinHandle<std::io::Result<()>>,
}

fn server(grace: Duration, started: &Arc<Notify>, go_on: &Arc<Notify>) -> Server {
    let mut settings = Settings::default();
    settings.shutdown_timeout = grace;
    let server = Server::builder("mounted", "1").settings(settings).build();
    let (started, go_on) = (started.clone(), go_on.clone());
    server
        .expect("a server")
        .tool("waits", "Waits", move |_: Nothing, _: Context| {
            let (started, go_on) = (started.clone(), go_on.clone());
            async move {
                started.notify_one();
                go_on.notified().await;
                "done"
            }
        })
}

async fn application(grace: Duration) -> Application {
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let service = server(grace, &started, &go_on).http_service(HttpOptions::default());
    let router = Router::new().fallback_service(service.clone());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let signal = Arc::new(Notify::new());
    let given = signal.clone();
    let shutdown = service.shut_down_after(async move { given.notified().await });
    let served = tokio::spawn(async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(shutdown)
            .await
    });
    Application {
        address,
        signal,
        started,
        go_on,
        served,
    }
}

impl Application {
    /// Connects a client that listens to changes, which keeps an event stream open.
    async fn client(&self, revision: Revision) -> Client {
        let endpoint = match revision {
            Revision::V2024_11_05 => "sse",
            _ => "mcp",
        };
        Client::builder("host", "1")
            .configure(|settings| settings.revisions = vec![revision])
            .on_notification(|_| {})
            .connect(format!("http://{}/{endpoint}", self.address))
            .await
            .expect("the application is listening")
    }

    async fn ends(self) {
        tokio::time::timeout(TEST_TIMEOUT, self.served)
            .await
            .expect("axum's shutdown ends")
            .expect("no panic")
            .expect("no error");
    }
}

#[runtimes::test]
async fn ends_while_clients_of_every_revision_keep_their_streams_open() {
    for revision in Revision::ALL {
        let application = application(TEST_TIMEOUT).await;
        let client = application.client(*revision).await;
        client.list_tools().await.expect("tools");
        application.signal.notify_one();
        application.ends().await;
        client.close().await;
    }
}

#[runtimes::test]
async fn lets_calls_in_flight_finish() {
    let application = application(TEST_TIMEOUT).await;
    let client = application.client(Revision::V2025_11_25).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call_tool("waits", json!({})).await });
    application.started.notified().await;
    application.signal.notify_one();
    // The application closes its listener when the shutdown has begun.
    while TcpStream::connect(application.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    application.go_on.notify_one();
    let result = call.await.expect("no panic").expect("a result");
    assert_ne!(result.is_error, Some(true));
    application.ends().await;
    client.close().await;
}

#[runtimes::test]
async fn ends_calls_that_outlast_the_grace_period() {
    let application = application(Duration::from_millis(20)).await;
    let client = application.client(Revision::V2025_11_25).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call_tool("waits", json!({})).await });
    application.started.notified().await;
    application.signal.notify_one();
    let error = call.await.expect("no panic").expect_err("it was ended");
    assert!(matches!(error, ClientError::Rpc(_)), "{error:?}");
    application.ends().await;
    client.close().await;
}

#[tokio::test]
async fn the_signal_completes_without_waiting_for_calls() {
    // axum stops accepting connections when the future completes, and waits for the responses itself.
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let service: HttpService =
        server(TEST_TIMEOUT, &started, &go_on).http_service(HttpOptions::default());
    let server_of_calls = service.clone();
    tokio::time::timeout(TEST_TIMEOUT, service.shut_down_after(async {}))
        .await
        .expect("it does not wait");
    drop(server_of_calls);
}

/// Returns the status of a GET.
async fn status(service: &HttpService, path: &str) -> u16 {
    let request = http::Request::get(path).body(http_body_util::Empty::<bytes::Bytes>::new());
    let response = service.handle(request.expect("a request")).await;
    response.status().as_u16()
}

#[tokio::test]
async fn the_readiness_check_fails_at_once_and_the_health_check_does_not() {
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let server = server(TEST_TIMEOUT, &started, &go_on);
    let service = server.http_service(HttpOptions::default());
    assert_eq!(status(&service, "/ready").await, 200);
    let calling = service.clone();
    let call = tokio::spawn(async move {
        let headers = [("mcp-protocol-version", "2026-07-28")];
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "waits", "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}}}});
        let names = [("mcp-method", "tools/call"), ("mcp-name", "waits")];
        let headers: Vec<_> = headers.into_iter().chain(names).collect();
        let request = crate::support::requests::request(http::Method::POST, &headers, call);
        crate::support::requests::body(calling.handle(request).await).await
    });
    started.notified().await;
    service.shut_down_after(async {}).await;
    assert_eq!(status(&service, "/ready").await, 503);
    assert_eq!(status(&service, "/health").await, 200);
    go_on.notify_one();
    let result = call.await.expect("no panic");
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    service.close();
    assert_eq!(status(&service, "/ready").await, 503);
    assert_eq!(status(&service, "/health").await, 200);
    assert_eq!(status(&service, "/mcp").await, 503);
}
