//! Traffic in debug mode: each message in both directions, over each transport.

use std::sync::{Arc, Mutex};

use crate::support::connection::Connection;
use crate::support::requests::{body, initialize, request};
use crate::support::{Client, Nothing};
use http::Method;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, HttpService, http};
use mcpline::{Context, Server, Settings, transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Lines of a log.
type Lines = Arc<Mutex<Vec<String>>>;

/// A server that reports its traffic: what differs between runs is left out.
fn server(debug: Option<bool>) -> (Server, Lines) {
    let mut settings = Settings::default();
    settings.debug = debug;
    settings.wire.max_line_bytes = 100_000;
    let server = Server::builder("observed", "1")
        .settings(settings)
        .build()
        .expect("valid settings")
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .tool("logs", "Logs", |_: Nothing, ctx: Context| async move {
            ctx.progress(1.0, None, None);
            "done"
        });
    let lines = Lines::default();
    let kept = lines.clone();
    server.on_traffic(move |record| {
        assert!(record.time.elapsed().is_ok_and(|age| age.as_secs() < 600));
        let kind = serde_json::from_str(record.text)
            .map_or_else(|_| "invalid".to_owned(), |message| kind(&message));
        let session = record.session.map(str::len);
        let line = format!(
            "{} {} {:?} {session:?} {}: {kind}",
            record.direction.name(),
            record.transport.name(),
            record.connection.is_some(),
            record.revision.map_or("-", |revision| revision.as_str()),
        );
        kept.lock().expect("not poisoned").push(line);
    });
    (server, lines)
}

fn taken(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut lines.lock().expect("not poisoned"))
}

/// A method, the kind of a response, or those of a batch.
fn kind(message: &Value) -> String {
    if let Value::Array(entries) = message {
        let kinds: Vec<_> = entries.iter().map(kind).collect();
        return format!("[{}]", kinds.join(", "));
    }
    if let Value::String(method) = &message["method"] {
        return method.clone();
    }
    match &message["error"]["code"] {
        Value::Null => "result".into(),
        code => format!("error {code}"),
    }
}

#[runtimes::test]
async fn messages_of_both_directions_are_recorded_in_memory() {
    let (server, lines) = server(Some(true));
    let mut client = Client::legacy(&server, "2025-03-26").await;
    let id = client.begin(
        "tools/call",
        json!({"name": "logs", "_meta": {"progressToken": 1}}),
    );
    client.response(&id).await.expect("a result");
    client.send(json!([
        {"jsonrpc": "2.0", "id": 8, "method": "ping"},
        {"jsonrpc": "2.0", "id": 9, "method": "nothing"},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
    ]));
    client.next().await;
    let expected = [
        "received memory true None -: initialize",
        "sent memory true None 2025-03-26: result",
        "received memory true None 2025-03-26: notifications/initialized",
        "received memory true None 2025-03-26: tools/call",
        "sent memory true None 2025-03-26: notifications/progress",
        "sent memory true None 2025-03-26: result",
        "received memory true None 2025-03-26: [ping, nothing, notifications/roots/list_changed]",
        "sent memory true None 2025-03-26: [result, error -32601]",
    ];
    assert_eq!(taken(&lines), expected);
}

#[runtimes::test]
async fn messages_that_belong_to_no_request_are_recorded() {
    let (server, lines) = server(Some(true));
    let client = Client::legacy(&server, "2025-11-25").await;
    taken(&lines);
    server.remove_tool("plain");
    client.next().await;
    assert_eq!(
        taken(&lines),
        ["sent memory true None 2025-11-25: notifications/tools/list_changed"]
    );
}

#[runtimes::test]
async fn nothing_is_recorded_unless_debug_mode_is_on() {
    for debug in [None, Some(false)] {
        let (server, lines) = server(debug);
        let mut client = Client::modern(&server);
        client
            .call_modern("plain", json!({}))
            .await
            .expect("a result");
        assert_eq!(taken(&lines), [""; 0]);
    }
}

#[runtimes::test]
async fn invalid_messages_are_recorded_over_a_byte_stream() {
    let (server, lines) = server(Some(true));
    let (client, ours) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    tokio::spawn(async move { server.serve(transport::lines(reader, writer)).await });
    let (reader, mut writer) = tokio::io::split(client);
    let mut answers = BufReader::new(reader).lines();
    let too_long = "x".repeat(100_001);
    for line in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "Hello",
        &too_long,
    ] {
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("written");
        answers.next_line().await.expect("read").expect("a line");
    }
    let expected = [
        "received lines true None -: invalid",
        "sent lines true None -: error -32700",
        "received lines true None -: invalid",
        "sent lines true None -: error -32700",
        "received lines true None -: invalid",
        "sent lines true None -: error -32600",
    ];
    assert_eq!(taken(&lines), expected);
}

async fn post(service: &HttpService, headers: &[(&str, &str)], message: Value) -> http::HeaderMap {
    let response = service
        .handle(request(Method::POST, headers, message))
        .await;
    let headers = response.headers().clone();
    body(response).await;
    headers
}

#[runtimes::test]
async fn sessions_over_http_are_recorded_by_the_beginning_of_their_ids() {
    let (server, lines) = server(Some(true));
    let service = server.http_service(HttpOptions::default());
    let headers = post(&service, &[], initialize("2025-11-25")).await;
    let session = headers["mcp-session-id"].to_str().expect("text").to_owned();
    let named = [
        ("mcp-session-id", &*session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(&service, &named, initialized).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "plain"}});
    post(&service, &named[..1], call.clone()).await;
    let unknown = [("mcp-session-id", "another session")];
    post(&service, &unknown, call).await;
    let expected = [
        "received http true None -: initialize",
        "sent http false Some(8) 2025-11-25: result",
        "received http false Some(8) 2025-11-25: notifications/initialized",
        "received http false Some(8) 2025-11-25: tools/call",
        "sent http false Some(8) 2025-11-25: result",
        "received http false Some(8) -: tools/call",
        "sent http false Some(8) -: error -32600",
    ];
    assert_eq!(taken(&lines), expected);
}

#[runtimes::test]
async fn requests_of_2026_07_28_and_refusals_are_recorded_over_http() {
    let (server, lines) = server(Some(true));
    let service = server.http_service(HttpOptions::default());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let version = ("mcp-protocol-version", "2026-07-28");
    post(
        &service,
        &[version, ("mcp-method", "tools/list")],
        list.clone(),
    )
    .await;
    post(&service, &[version, ("mcp-method", "tools/call")], list).await;
    post(&service, &[version], json!("Hello")).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    post(&service, &[], ping).await;
    let expected = [
        "received http true None 2026-07-28: tools/list",
        "sent http true None 2026-07-28: result",
        "received http true None 2026-07-28: tools/list",
        "sent http true None 2026-07-28: error -32020",
        "received http true None 2026-07-28: result",
        "sent http true None 2026-07-28: error -32600",
        "received http true None -: ping",
        "sent http true None 2026-07-28: error -32020",
    ];
    assert_eq!(taken(&lines), expected);
}

#[runtimes::test]
async fn requests_without_a_session_are_numbered_over_http() {
    let (server, _) = server(Some(true));
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let kept = numbers.clone();
    server.on_traffic(move |record| kept.lock().expect("not poisoned").push(record.connection));
    let service = server.http_service(HttpOptions::default());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    post(&service, &headers, list.clone()).await;
    post(&service, &headers, list).await;
    let numbers = numbers.lock().expect("not poisoned").clone();
    let [Some(first), Some(_), Some(second), Some(_)] = numbers[..] else {
        panic!("{numbers:?}");
    };
    assert_eq!(numbers, [first, first, second, second].map(Some));
    assert_ne!(first, second);
}

#[runtimes::test]
async fn messages_over_http_sse_are_recorded() {
    let (server, lines) = server(Some(true));
    let http = http(("127.0.0.1", 0), HttpOptions::default());
    let http = http.await.expect("a free port");
    let (address, stop) = (http.address(), Stop::new());
    let signal = stop.clone();
    tokio::spawn(async move { server.serve_until(http, signal).await });
    let mut stream = Connection::open(address).await;
    let accepts = [("accept", "text/event-stream")];
    stream.send("GET", "/sse", &accepts, &Value::Null).await;
    stream.until(Some("sessionId=")).await;
    stream.until(Some("\n\n")).await;
    let (_, path) = stream.seen.split_once("data: ").expect("an endpoint");
    let path = path.lines().next().expect("a line").to_owned();
    let mut posts = Connection::open(address).await;
    posts
        .send("POST", &path, &[], &initialize("2024-11-05"))
        .await;
    stream.until(Some("protocolVersion")).await;
    let expected = [
        "received http+sse false Some(8) -: initialize",
        "sent http+sse false Some(8) 2024-11-05: result",
    ];
    assert_eq!(taken(&lines), expected);
    stop.stop();
}
