//! Graceful shutdown of a server, over real sockets, pipes and in memory: calls in flight are finished, everything else
//! is closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::{Connection, TEST_TIMEOUT};
use crate::support::requests::{body, call, initialize, request};
use http::Method;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::{Stop, lines};
use mcpline::{Context, Error, Server, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const STREAMS: usize = 100;

/// Counts the running handlers: a cancelled one is dropped.
#[derive(Clone, Default)]
struct Handlers(Arc<AtomicUsize>);

impl Handlers {
    fn running(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until no handler runs. A cancelled one is dropped by the thread that polls it.
    async fn ended(&self) {
        while self.running() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn enter(&self) -> Self {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }
}

/// A running handler; counted until it is dropped.
struct Run(Handlers);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Running {
    address: SocketAddr,
    stop: Stop,
    go_on: Arc<Notify>,
    handlers: Handlers,
    served: JoinHandle<Result<(), Error>>,
}

/// A server with tools that wait for `go_on`: `waits` reports progress first, `is_silent` does not.
fn server(grace: Duration, go_on: &Arc<Notify>, handlers: &Handlers) -> Server {
    let mut settings = Settings::default();
    settings.shutdown_timeout = grace;
    let server = Server::builder("ending", "1")
        .settings(settings)
        .build()
        .expect("a server");
    ["waits", "is_silent"]
        .into_iter()
        .fold(server, |server, name| {
            let (go_on, handlers) = (go_on.clone(), handlers.clone());
            server.tool(name, "Waits", move |_: Nothing, ctx: Context| {
                let go_on = go_on.clone();
                let run = Run(handlers.enter());
                async move {
                    let _run = run;
                    if name == "waits" {
                        ctx.progress(1.0, None, None);
                    }
                    go_on.notified().await;
                    "finished"
                }
            })
        })
}

async fn start(grace: Duration, options: HttpOptions) -> Running {
    let (go_on, handlers) = (Arc::new(Notify::new()), Handlers::default());
    let server = server(grace, &go_on, &handlers);
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let address = http.address();
    let stop = Stop::new();
    let signal = stop.clone();
    let served = tokio::spawn(async move { server.serve_until(http, signal).await });
    Running {
        address,
        stop,
        go_on,
        handlers,
        served,
    }
}

/// The response to the call with this id when the server ends before it.
fn shutting_down(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {
        "code": -31002, "message": "the server is shutting down", "data": {"retryable": true}}})
}

/// Builds a request of a 2026-07-28 client.
fn modern(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": id,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn modern_call(id: i64, tool: &str) -> Value {
    modern(id, "tools/call", json!({"name": tool, "arguments": {}}))
}

async fn send_modern(connection: &mut Connection, message: &Value) {
    let method = message["method"].as_str().expect("a method");
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    if let Some(name) = message["params"]["name"].as_str() {
        headers.push(("mcp-name", name));
    }
    connection.send("POST", "/mcp", &headers, message).await;
}

/// Returns the last message that a connection received; checks that the response ended as HTTP requires.
fn last_message(seen: &str) -> Value {
    let (head, body) = seen
        .rsplit_once("HTTP/1.1 ")
        .expect("a response")
        .1
        .split_once("\r\n\r\n")
        .expect("a head");
    if head.contains("text/event-stream") {
        assert!(body.ends_with("\r\n0\r\n\r\n"), "cut: {seen}");
    }
    let (start, end) = (body.rfind("{\"jsonrpc\""), body.rfind('}'));
    let message = start.zip(end).map(|(start, end)| &body[start..=end]);
    serde_json::from_str(message.expect("a message")).expect("JSON")
}

/// Starts a session and opens its stream.
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
    let ended = tokio::time::timeout(TEST_TIMEOUT, running.served).await;
    ended
        .expect("it ends")
        .expect("without a panic")
        .expect("in good order");
}

#[runtimes::test]
async fn finishes_a_call_in_flight_and_closes_a_hundred_open_streams() {
    let running = start(TEST_TIMEOUT, HttpOptions::default()).await;
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

const GRACE: Duration = Duration::from_millis(10);

#[runtimes::test]
async fn answers_handshake_calls_that_outlive_the_grace_period() {
    let running = start(GRACE, HttpOptions::default()).await;
    let handlers = running.handlers.clone();
    let (id, _stream) = listening(running.address).await;
    let session = [("mcp-session-id", id.as_str())];
    let mut calls = Vec::new();
    for (id, tool) in [(1, "waits"), (2, "is_silent")] {
        let mut calling = Connection::open(running.address).await;
        calling
            .send("POST", "/mcp", &session, &call(id, tool))
            .await;
        calls.push(calling);
    }
    while handlers.running() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.stop.stop();
    for (id, calling) in (1..).zip(&mut calls) {
        calling.until(None).await;
        assert_eq!(last_message(&calling.seen), shutting_down(id));
    }
    ended(running).await;
    handlers.ended().await;
}

#[runtimes::test]
async fn answers_2026_07_28_calls_that_outlive_the_grace_period() {
    let running = start(GRACE, HttpOptions::default()).await;
    let handlers = running.handlers.clone();
    let mut streaming = Connection::open(running.address).await;
    send_modern(&mut streaming, &modern_call(1, "waits")).await;
    streaming.until(Some("notifications/progress")).await;
    let mut silent = Connection::open(running.address).await;
    send_modern(&mut silent, &modern_call(2, "is_silent")).await;
    let mut listening = Connection::open(running.address).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    send_modern(&mut listening, &modern(3, "subscriptions/listen", wanted)).await;
    listening.until(Some("acknowledged")).await;
    while handlers.running() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.stop.stop();
    for connection in [&mut streaming, &mut silent, &mut listening] {
        connection.until(None).await;
    }
    assert_eq!(last_message(&streaming.seen), shutting_down(1));
    assert!(silent.seen.starts_with("HTTP/1.1 503 "), "{}", silent.seen);
    assert_eq!(last_message(&silent.seen), shutting_down(2));
    assert_eq!(
        last_message(&listening.seen)["result"]["resultType"],
        "complete"
    );
    ended(running).await;
    handlers.ended().await;
}

#[runtimes::test]
async fn waits_for_2026_07_28_calls_within_the_grace_period() {
    let running = start(TEST_TIMEOUT, HttpOptions::default()).await;
    let mut calling = Connection::open(running.address).await;
    send_modern(&mut calling, &modern_call(1, "waits")).await;
    calling.until(Some("notifications/progress")).await;
    running.stop.stop();
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    running.go_on.notify_one();
    calling.until(Some("finished")).await;
    ended(running).await;
}

#[runtimes::test]
async fn answers_http_sse_calls_that_outlive_the_grace_period() {
    let running = start(GRACE, HttpOptions::default()).await;
    let mut stream = Connection::open(running.address).await;
    stream.send("GET", "/sse", &[], &Value::Null).await;
    stream.until(Some("sessionId=")).await;
    let (_, rest) = stream.seen.split_once("data: ").expect("an event");
    let path = rest.lines().next().expect("a line").trim().to_owned();
    let mut posting = Connection::open(running.address).await;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [initialize("2024-11-05"), ready, call(1, "waits")] {
        posting.seen.clear();
        posting.send("POST", &path, &[], &message).await;
        posting.until(Some("202 Accepted")).await;
    }
    stream.until(Some("notifications/progress")).await;
    running.stop.stop();
    stream.until(None).await;
    assert_eq!(last_message(&stream.seen), shutting_down(1));
    let handlers = running.handlers.clone();
    ended(running).await;
    handlers.ended().await;
}

#[runtimes::test]
async fn answers_calls_on_a_pipe_that_outlive_the_grace_period() {
    let (go_on, handlers, stop) = (Arc::new(Notify::new()), Handlers::default(), Stop::new());
    let server = server(GRACE, &go_on, &handlers);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let signal = stop.clone();
    let served =
        tokio::spawn(async move { server.serve_until(lines(reader, writer), signal).await });
    let (reader, mut writer) = tokio::io::split(ours);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let messages = [
        initialize("2025-11-25"),
        ready,
        call(1, "waits"),
        modern_call(2, "is_silent"),
    ];
    for message in messages {
        let line = format!("{message}\n");
        writer.write_all(line.as_bytes()).await.expect("it reads");
    }
    while handlers.running() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.stop();
    let mut answers = Vec::new();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message.get("error").is_some() {
            answers.push(message);
        }
    }
    assert_eq!(answers, [shutting_down(1), shutting_down(2)]);
    served.await.expect("no panic").expect("in good order");
    handlers.ended().await;
}

/// A server that serves one client over a pipe of this many bytes, and the client's end.
fn on_a_pipe(
    server: Server,
    stop: &Stop,
    bytes: usize,
) -> (DuplexStream, JoinHandle<Result<(), Error>>) {
    let (ours, theirs) = tokio::io::duplex(bytes);
    let (reader, writer) = tokio::io::split(theirs);
    let stop = stop.clone();
    let served = async move { server.serve_until(lines(reader, writer), stop).await };
    (ours, tokio::spawn(served))
}

#[runtimes::test]
async fn cancels_calls_and_refuses_others_on_a_pipe_within_the_grace_period() {
    let (go_on, handlers, stop) = (Arc::new(Notify::new()), Handlers::default(), Stop::new());
    let (client, served) = on_a_pipe(server(TEST_TIMEOUT, &go_on, &handlers), &stop, 1 << 16);
    let (reader, mut writer) = tokio::io::split(client);
    let mut answers = BufReader::new(reader).lines();
    // The last line begins before the stop and ends after it.
    let late = format!("{}\n", modern_call(3, "is_silent"));
    let (begun, rest) = late.split_at(20);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let calls = format!(
        "{}\n{}\n{}\n{begun}",
        modern(4, "subscriptions/listen", wanted),
        modern_call(1, "is_silent"),
        modern_call(2, "is_silent")
    );
    writer
        .write_all(calls.as_bytes())
        .await
        .expect("it is read");
    while handlers.running() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.stop();
    // The server has noticed the stop once it ends the stream.
    loop {
        let message = answers.next_line().await.expect("a pipe").expect("a line");
        let message: Value = serde_json::from_str(&message).expect("JSON");
        if message["id"] == 4 {
            break;
        }
    }
    writer.write_all(rest.as_bytes()).await.expect("it is read");
    let refused = answers.next_line().await.expect("a pipe").expect("a line");
    let refused: Value = serde_json::from_str(&refused).expect("JSON");
    assert_eq!(refused, shutting_down(3));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let cancel = format!("{cancel}\n");
    writer
        .write_all(cancel.as_bytes())
        .await
        .expect("it is read");
    while handlers.running() > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    go_on.notify_one();
    let answer = answers.next_line().await.expect("a pipe").expect("a line");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["id"], 2);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(answers.next_line().await.expect("a pipe"), None);
    served.await.expect("no panic").expect("in good order");
}

#[runtimes::test]
async fn ends_on_a_pipe_whose_client_floods_it() {
    let (go_on, handlers, stop) = (Arc::new(Notify::new()), Handlers::default(), Stop::new());
    let server = server(Duration::ZERO, &go_on, &handlers);
    let (client, served) = on_a_pipe(server, &stop, 1 << 20);
    let (mut reader, mut writer) = tokio::io::split(client);
    let flooding = tokio::spawn(async move {
        let lines = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}\n".repeat(1_000);
        let mut written = 0_usize;
        while writer.write_all(lines.as_bytes()).await.is_ok() {
            written += 1;
            if written == 100 {
                stop.stop();
            }
        }
    });
    let reading = tokio::spawn(async move {
        let mut read = Vec::new();
        let _ = reader.read_to_end(&mut read).await;
    });
    served.await.expect("no panic").expect("in good order");
    flooding.await.expect("no panic");
    reading.await.expect("no panic");
}

/// The process must end within a second after the grace period.
#[tokio::test(start_paused = true)]
async fn ends_within_a_second_of_the_grace_period_though_the_client_reads_nothing() {
    let grace = Duration::from_secs(5);
    let (go_on, handlers, stop) = (Arc::new(Notify::new()), Handlers::default(), Stop::new());
    let (mut client, served) = on_a_pipe(server(grace, &go_on, &handlers), &stop, 256);
    for id in 1..=10 {
        let line = format!("{}\n", modern_call(id, "is_silent"));
        client.write_all(line.as_bytes()).await.expect("it is read");
    }
    while handlers.running() < 10 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stopped = tokio::time::Instant::now();
    stop.stop();
    served.await.expect("no panic").expect("in good order");
    let took = stopped.elapsed();
    assert!(took >= grace, "{took:?}");
    assert!(took < grace + Duration::from_secs(1), "{took:?}");
    assert_eq!(handlers.running(), 0);
}

#[runtimes::test]
async fn writes_the_rest_of_an_answer_that_was_begun_before_the_stop() {
    let (go_on, handlers, stop) = (Arc::new(Notify::new()), Handlers::default(), Stop::new());
    let server = server(TEST_TIMEOUT, &go_on, &handlers).tool(
        "is_long",
        "Is long",
        |_: Nothing, _: Context| async { "x".repeat(1 << 20) },
    );
    // Takes no more than this until the client reads.
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (reader, writer) = tokio::io::split(theirs);
    let signal = stop.clone();
    let served =
        tokio::spawn(async move { server.serve_until(lines(reader, writer), signal).await });
    let (reader, mut writer) = tokio::io::split(ours);
    let line = format!("{}\n", modern_call(1, "is_long"));
    writer.write_all(line.as_bytes()).await.expect("it reads");
    let mut reader = BufReader::with_capacity(1, reader);
    assert!(!reader.fill_buf().await.expect("an answer").is_empty());
    stop.stop();
    let mut answer = String::new();
    reader.read_line(&mut answer).await.expect("an answer");
    let answer: Value = serde_json::from_str(&answer).expect("all of it");
    assert_eq!(answer["id"], 1);
    served.await.expect("no panic").expect("in good order");
}

/// Returns the bytes of a 2026-07-28 client's request.
fn list_tools() -> Vec<u8> {
    let body = modern(1, "tools/list", json!({})).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/list\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Load balancers open a connection for each request, and may not send a POST again.
#[tokio::test(start_paused = true)]
async fn answers_the_first_requests_of_connections_that_are_open_at_the_stop() {
    let running = start(TEST_TIMEOUT, HttpOptions::default()).await;
    let accepted = Connection::open(running.address).await;
    // The server accepts in order.
    let mut used = Connection::open(running.address).await;
    used.stream
        .write_all(&list_tools())
        .await
        .expect("it reads");
    used.until(Some("\"result\"")).await;
    let mut connections = vec![accepted];
    for _ in 0..3 {
        // Accepted by the system only: nothing else runs in between.
        let stream = std::net::TcpStream::connect(running.address).expect("it listens");
        stream.set_nonblocking(true).expect("a socket");
        let stream = TcpStream::from_std(stream).expect("a socket");
        let seen = String::new();
        connections.push(Connection { stream, seen });
    }
    running.stop.stop();
    let request = list_tools();
    for connection in &connections {
        let socket = socket2::SockRef::from(&connection.stream);
        assert_eq!(socket.send(&request).expect("it is open"), request.len());
    }
    for connection in &mut connections {
        connection.until(Some("\"result\"")).await;
    }
    ended(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_delays_the_end_by_half_a_second() {
    let running = start(TEST_TIMEOUT, HttpOptions::default()).await;
    let mut unused = Connection::open(running.address).await;
    let mut used = Connection::open(running.address).await;
    used.stream
        .write_all(&list_tools())
        .await
        .expect("it reads");
    used.until(Some("\"result\"")).await;
    let begun = tokio::time::Instant::now();
    running.stop.stop();
    used.until(None).await;
    assert!(begun.elapsed() < Duration::from_millis(400));
    unused.until(None).await;
    ended(running).await;
    assert!(begun.elapsed() < Duration::from_millis(700));
}

#[runtimes::test]
async fn closes_connections_whose_headers_never_end() {
    let mut options = HttpOptions::default();
    options.read_timeout = Duration::from_millis(10);
    let running = start(TEST_TIMEOUT, options).await;
    let mut slow = Connection::open(running.address).await;
    let begun = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    slow.stream.write_all(begun).await.expect("it reads");
    slow.until(None).await;
    running.stop.stop();
    ended(running).await;
}

#[runtimes::test]
async fn answers_408_to_requests_whose_body_never_ends() {
    let mut options = HttpOptions::default();
    options.read_timeout = Duration::from_millis(100);
    let running = start(TEST_TIMEOUT, options).await;
    let head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{";
    let answered = async {
        loop {
            let mut slow = Connection::open(running.address).await;
            // The headers must arrive within the same timeout. On a busy machine they may be late; then the connection
            // is closed without a response.
            let _ = slow.stream.write_all(head).await;
            slow.until(None).await;
            if !slow.seen.is_empty() {
                break slow.seen;
            }
        }
    };
    let answer = tokio::time::timeout(TEST_TIMEOUT, answered).await;
    let answer = answer.expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 408 Request Timeout"),
        "{answer}"
    );
    running.stop.stop();
    ended(running).await;
}

#[runtimes::test]
async fn a_closed_service_refuses_requests() {
    let (go_on, handlers) = (Arc::new(Notify::new()), Handlers::default());
    let server = server(TEST_TIMEOUT, &go_on, &handlers);
    let service = server.http_service(HttpOptions::default());
    service.close();
    let request = request(Method::POST, &[], initialize("2025-11-25"));
    let response = service.handle(request).await;
    assert_eq!(response.status(), 503);
    assert_eq!(body(response).await["error"]["code"], -31002);
}

#[runtimes::test]
async fn answers_calls_in_memory_that_outlive_the_grace_period() {
    let (go_on, handlers) = (Arc::new(Notify::new()), Handlers::default());
    let server = server(TEST_TIMEOUT, &go_on, &handlers);
    let memory = server.connect();
    memory.send(modern_call(1, "is_silent").to_string());
    memory.wind_down();
    assert!(!memory.is_idle());
    memory.shut_down();
    memory.send(modern_call(2, "is_silent").to_string());
    for id in [1, 2] {
        let answer = memory.try_receive().expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer, shutting_down(id));
    }
    assert!(memory.is_idle());
}

#[runtimes::test]
async fn new_listen_streams_do_not_delay_the_shutdown_of_a_mounted_server() {
    let (go_on, handlers) = (Arc::new(Notify::new()), Handlers::default());
    let server = server(TEST_TIMEOUT, &go_on, &handlers);
    let service = server.http_service(HttpOptions::default());
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let listen = |id| {
        let message = modern(id, "subscriptions/listen", wanted.clone());
        service.handle(request(Method::POST, &headers, message))
    };
    let listening = listen(1).await;
    // A call that uses the grace period.
    let headers_of_call = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "is_silent"),
    ];
    let message = modern_call(3, "is_silent");
    let calling = service.handle(request(Method::POST, &headers_of_call, message));
    let mut calling = std::pin::pin!(calling);
    assert!(polled_once(calling.as_mut()).is_none());
    let ending = tokio::spawn({
        let service = service.clone();
        async move { service.shut_down(TEST_TIMEOUT).await }
    });
    let ended = events(listening).await;
    assert_eq!(
        ended.last().expect("a result")["result"]["resultType"],
        "complete"
    );
    let again = events(listen(2).await).await;
    assert_eq!(again.last().expect("a result")["id"], 2);
    assert_eq!(
        again.last().expect("a result")["result"]["resultType"],
        "complete"
    );
    while handlers.running() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    go_on.notify_one();
    assert_eq!(body(calling.await).await["id"], 3);
    ending.await.expect("no panic");
}

/// Polls a future once; returns its output if it is ready.
fn polled_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut cx) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// Returns the messages of an event stream, once it has ended.
async fn events(response: http::Response<mcpline::transport::http::Body>) -> Vec<Value> {
    use http_body_util::BodyExt;

    let text = response.into_body().collect().await.expect("infallible");
    let text = String::from_utf8(text.to_bytes().to_vec()).expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

#[runtimes::test]
async fn refuses_new_listen_streams_while_a_connection_winds_down() {
    let (go_on, handlers) = (Arc::new(Notify::new()), Handlers::default());
    let memory = server(TEST_TIMEOUT, &go_on, &handlers).connect();
    memory.send(modern_call(1, "is_silent").to_string());
    memory.wind_down();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    memory.send(modern(2, "subscriptions/listen", wanted).to_string());
    let refused = memory.try_receive().expect("a message");
    let refused: Value = serde_json::from_slice(&refused).expect("JSON");
    assert_eq!(refused, shutting_down(2));
    assert!(!memory.is_idle(), "the call goes on");
    go_on.notify_waiters();
    memory.shut_down();
}
