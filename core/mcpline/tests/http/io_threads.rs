//! Servers whose connections are served by threads of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::{Connection, TEST_TIMEOUT};
use mcpline::server::Settings;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, Error, ErrorKind, Server};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;

/// A server with I/O threads.
struct Serving {
    address: SocketAddr,
    stop: Stop,
    ended: JoinHandle<Result<(), Error>>,
}

async fn start(server: Server, io_threads: usize) -> Serving {
    let mut options = HttpOptions::default();
    options.io_threads = io_threads;
    start_with(server, options).await
}

async fn start_with(server: Server, options: HttpOptions) -> Serving {
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let (address, stop) = (http.address(), Stop::new());
    let signal = stop.clone();
    let ended = tokio::spawn(async move { server.serve_until(http, signal).await });
    Serving {
        address,
        stop,
        ended,
    }
}

/// A server that cancels calls as soon as it is stopped.
fn server() -> Server {
    let mut settings = Settings::default();
    settings.shutdown_timeout = Duration::ZERO;
    Server::builder("threads", "1")
        .settings(settings)
        .build()
        .expect("valid")
}

/// Calls a tool without a handshake.
async fn call(connection: &mut Connection, tool: &str) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    connection.send("POST", "/mcp", &headers, &body).await;
}

/// Reports its end when a thread ends.
struct ThreadEnd(Sender<()>);

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send(());
    }
}

thread_local! {
    static THREAD_END: RefCell<Option<ThreadEnd>> = const { RefCell::new(None) };
}

#[tokio::test]
async fn connections_are_spread_over_the_io_threads() {
    let calls = Arc::new(Mutex::new(HashMap::new()));
    let counted = calls.clone();
    let server = server().tool("counts", "Counts", move |_: Nothing, _: Context| {
        let thread = std::thread::current();
        assert_eq!(thread.name(), Some("mcpline-io"));
        let mut calls = counted.lock().expect("not poisoned");
        *calls.entry(thread.id()).or_insert(0) += 1;
        std::future::ready("counted")
    });
    let serving = start(server, 2).await;
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(serving.address).await;
        call(&mut connection, "counts").await;
        connection.until(Some("counted")).await;
        connections.push(connection);
    }
    // All are open, so each thread has two of them.
    let mut counts: Vec<u32> = calls
        .lock()
        .expect("not poisoned")
        .values()
        .copied()
        .collect();
    assert_eq!(counts, [2, 2]);
    // A connection stays where it is.
    connections[0].seen.clear();
    call(&mut connections[0], "counts").await;
    connections[0].until(Some("counted")).await;
    counts = calls
        .lock()
        .expect("not poisoned")
        .values()
        .copied()
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 3]);
}

#[tokio::test]
async fn a_shutdown_answers_calls_and_ends_the_io_threads() {
    let (begin, mut begun) = unbounded_channel();
    let (end, thread_ended) = channel();
    let server = server().tool("waits", "Never answers", move |_: Nothing, _: Context| {
        THREAD_END.set(Some(ThreadEnd(end.clone())));
        let _ = begin.send(());
        std::future::pending::<String>()
    });
    let serving = start(server, 2).await;
    let mut connections = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(serving.address).await;
        call(&mut connection, "waits").await;
        begun.recv().await.expect("a call");
        connections.push(connection);
    }
    serving.stop.stop();
    for connection in &mut connections {
        connection.until(Some("the server is shutting down")).await;
    }
    serving.ended.await.expect("no panic").expect("served");
    // A thread ends right after its last task.
    for _ in 0..2 {
        let ended = thread_ended.recv_timeout(TEST_TIMEOUT);
        assert_eq!(ended, Ok(()));
    }
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_does_not_delay_the_end_for_ever() {
    let (began, mut has_begun) = unbounded_channel();
    let (go_on, blocked) = channel::<()>();
    let blocked = Mutex::new(blocked);
    let server = server().tool("blocks", "Blocks", move |_: Nothing, _: Context| {
        began.send(()).expect("the test waits");
        // Ends with the test.
        let _ = blocked.lock().expect("not poisoned").recv();
        std::future::ready("late")
    });
    let serving = start(server, 1).await;
    let mut connection = Connection::open(serving.address).await;
    call(&mut connection, "blocks").await;
    has_begun.recv().await.expect("a call");
    serving.stop.stop();
    serving.ended.await.expect("no panic").expect("served");
    drop(go_on);
}

#[tokio::test]
async fn a_blocked_thread_does_not_delay_the_timers_of_the_service() {
    let (began, mut has_begun) = unbounded_channel();
    let (go_on, blocked) = channel::<()>();
    let blocked = Mutex::new(blocked);
    let server = server().tool("waits", "Never answers", |_: Nothing, _: Context| {
        std::future::pending::<String>()
    });
    let server = server.tool("blocks", "Blocks", move |_: Nothing, _: Context| {
        began.send(()).expect("the test waits");
        // Ends with the test.
        let _ = blocked.lock().expect("not poisoned").recv();
        std::future::ready("late")
    });
    let mut options = HttpOptions::default();
    options.io_threads = 2;
    options.stream_upgrade_delay = Duration::from_millis(500);
    let serving = start_with(server, options).await;
    // The first call that waits is on the thread that is blocked afterwards.
    let mut first = Connection::open(serving.address).await;
    call(&mut first, "waits").await;
    let mut second = Connection::open(serving.address).await;
    second.send("GET", "/health", &[], &Value::Null).await;
    second.until(Some("\r\n\r\nok")).await;
    let mut third = Connection::open(serving.address).await;
    call(&mut third, "blocks").await;
    has_begun.recv().await.expect("a call");
    second.seen.clear();
    call(&mut second, "waits").await;
    second.until(Some("text/event-stream")).await;
    drop(go_on);
}

#[tokio::test]
async fn the_number_of_io_threads_has_a_limit() {
    let mut options = HttpOptions::default();
    options.io_threads = 1_025;
    let error = http(("127.0.0.1", 0), options).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("`io_threads`"), "{error}");
}
