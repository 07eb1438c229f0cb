//! The end of an HTTP server, over real sockets: what is in flight is finished, everything else is let go.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, Error, Server, Settings};
use serde_json::{Value, json};
use support::Nothing;
use support::connection::{Connection, PATIENCE};
use support::requests::{call, initialize};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const STREAMS: usize = 100;

struct Running {
    address: SocketAddr,
    stop: Stop,
    go_on: Arc<Notify>,
    served: JoinHandle<Result<(), Error>>,
}

async fn start(grace: Duration, options: HttpOptions) -> Running {
    let go_on = Arc::new(Notify::new());
    let wait = go_on.clone();
    let mut settings = Settings::default();
    settings.shutdown_grace = grace;
    let server = Server::builder("ending", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .tool("waits", "Waits", move |_: Nothing, ctx: Context| {
            let wait = wait.clone();
            async move {
                ctx.progress(1.0, None, None);
                wait.notified().await;
                "finished"
            }
        });
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let address = http.address();
    let stop = Stop::new();
    let signal = stop.clone();
    let served = tokio::spawn(async move { server.serve_until(http, signal).await });
    Running {
        address,
        stop,
        go_on,
        served,
    }
}

/// A session with its stream open.
async fn listening(address: SocketAddr) -> (String, Connection) {
    let mut connection = Connection::open(address).await;
    connection
        .send("POST", "/mcp", &[], &initialize("2025-11-25"))
        .await;
    connection.until(Some("protocolVersion")).await;
    let (_, rest) = connection
        .seen
        .split_once("mcp-session-id: ")
        .expect("a session");
    let id = rest.split("\r\n").next().expect("a line").to_owned();
    let session = [("mcp-session-id", id.as_str())];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    connection.send("POST", "/mcp", &session, &ready).await;
    connection.until(Some("202 Accepted")).await;
    connection.send("GET", "/mcp", &session, &Value::Null).await;
    connection.until(Some("text/event-stream")).await;
    (id, connection)
}

async fn ended(running: Running) {
    let ended = tokio::time::timeout(PATIENCE, running.served).await;
    ended
        .expect("it ends")
        .expect("without a panic")
        .expect("in good order");
}

#[tokio::test]
async fn a_server_with_a_hundred_open_streams_finishes_the_call_in_flight_and_ends() {
    let running = start(PATIENCE, HttpOptions::default()).await;
    let mut streams = Vec::new();
    let mut sessions = Vec::new();
    for _ in 0..STREAMS {
        let (id, stream) = listening(running.address).await;
        sessions.push(id);
        streams.push(stream);
    }
    let mut calling = Connection::open(running.address).await;
    let session = [("mcp-session-id", sessions[0].as_str())];
    calling
        .send("POST", "/mcp", &session, &call(1, "waits"))
        .await;
    calling.until(Some("notifications/progress")).await;
    running.stop.stop();
    // The streams end at once, while the call still runs.
    for stream in &mut streams[1..] {
        stream.until(None).await;
    }
    assert!(!running.served.is_finished());
    running.go_on.notify_one();
    calling.until(Some("finished")).await;
    let address = running.address;
    ended(running).await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_call_that_does_not_end_is_given_up_after_the_grace_period() {
    let running = start(Duration::from_millis(10), HttpOptions::default()).await;
    let (id, _stream) = listening(running.address).await;
    let mut calling = Connection::open(running.address).await;
    let session = [("mcp-session-id", id.as_str())];
    calling
        .send("POST", "/mcp", &session, &call(1, "waits"))
        .await;
    calling.until(Some("notifications/progress")).await;
    running.stop.stop();
    ended(running).await;
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_let_go() {
    let mut options = HttpOptions::default();
    options.read_timeout = Duration::from_millis(10);
    let running = start(PATIENCE, options).await;
    let mut slow = Connection::open(running.address).await;
    let begun = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    slow.stream.write_all(begun).await.expect("it reads");
    slow.until(None).await;
    let mut slower = Connection::open(running.address).await;
    let headers = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{";
    slower.stream.write_all(headers).await.expect("it reads");
    slower.until(Some("408 Request Timeout")).await;
    running.stop.stop();
    ended(running).await;
}
