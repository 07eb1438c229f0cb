//! Rust aborts when an allocation fails, so no peer may choose the size of one. However large a length, a count or a
//! limit in a message is, the size of each allocation depends only on the bytes that were sent.

mod support;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use allocations::RecordingAllocator;
use bytes::Bytes;
use mcpline::client::{
    Address, Channel, Client, ClientSettings, ClientTransport, HttpSettings, Proxy, Reconnect,
    RequestOptions,
};
use mcpline::jose::{Algorithm, JwkSet, verify};
use mcpline::protocol::Raw;
use mcpline::protocol::limits::MAX_PATTERN_OPERATIONS;
use mcpline::protocol::schema::CompiledSchema;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, Revision, Server};
use serde_json::{Value, json};
use support::connection::TEST_TIMEOUT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator::new();

/// Runs one test at a time: all tests share the allocator.
static TURN: Mutex<()> = Mutex::new(());

/// The largest allocation that does not depend on what is sent: connection buffers, task stacks, tables.
const BASE: usize = 128 * 1024;

/// The bytes in one allocation for each byte that was sent: buffers double, and an object member is larger in memory
/// than in JSON.
const PER_BYTE: usize = 16;

/// The bytes of a compiled pattern per operation, including a vector's spare capacity.
const OPERATION_BYTES: usize = 64;

/// Runs `work` on what a peer sent, and checks its largest allocation.
fn measure<T>(what: &str, sent: usize, work: impl FnOnce() -> T) -> T {
    measure_from(BASE, what, sent, work)
}

fn measure_from<T>(base: usize, what: &str, sent: usize, work: impl FnOnce() -> T) -> T {
    ALLOCATOR.reset();
    let outcome = work();
    let largest = ALLOCATOR.largest();
    let most = base + PER_BYTE * sent;
    assert!(
        largest <= most,
        "{what}: {largest} bytes at once for {sent} that were sent"
    );
    outcome
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

/// Measures each message that peers may send, one after the other.
fn measure_each<T: AsRef<[u8]>>(
    all: impl IntoIterator<Item = T>,
    mut work: impl AsyncFnMut(&tokio::runtime::Handle, T),
) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = runtime();
    for sent in all {
        let bytes = sent.as_ref();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        let length = bytes.len();
        measure(&shown, length, || {
            runtime.block_on(async {
                let work = tokio::time::timeout(TEST_TIMEOUT, work(runtime.handle(), sent));
                work.await.unwrap_or_else(|_| panic!("{shown}: it hangs"));
            });
        });
    }
}

#[test]
fn a_server_allocates_for_received_bytes_of_a_body_not_announced_ones() {
    let limit = HttpOptions::default().max_body_bytes;
    let lengths = [limit, limit + 1, usize::MAX / 2, usize::MAX];
    let announced = lengths.map(|length| format!("Content-Length: {length}\r\n\r\n{{\"jsonrpc\""));
    let chunks = ["1000000", "7FFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFF"];
    let chunked =
        chunks.map(|length| format!("Transfer-Encoding: chunked\r\n\r\n{length}\r\n{{\"jsonrpc\""));
    let requests = announced.into_iter().chain(chunked).map(|rest| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{rest}"
        )
    });
    measure_each(requests, async |handle, request| {
        let http = http(("127.0.0.1", 0), HttpOptions::default()).await;
        let (http, stop) = (http.expect("a free port"), Stop::new());
        let (address, signal) = (http.address(), stop.clone());
        handle.spawn(async move { Server::new("test", "1").serve_until(http, signal).await });
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it reads");
        stream.shutdown().await.expect("a socket");
        // The server has read everything once it ends the connection in any way.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        stop.stop();
    });
}

#[test]
fn a_client_allocates_for_received_bytes_of_a_response_not_announced_ones() {
    let limit = HttpSettings::default().max_body_bytes;
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let answers = [
        format!("{json}Content-Length: {limit}\r\n\r\n{{"),
        format!("{json}Content-Length: {}\r\n\r\n{{", u64::MAX / 2),
        format!("{json}Content-Length: {}\r\n\r\n{{", u64::MAX),
        format!("{json}Transfer-Encoding: chunked\r\n\r\n1000000\r\n{{"),
        format!("{json}Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\n{{"),
        format!("{stream}Content-Length: {}\r\n\r\ndata: {{", u64::MAX / 2),
        format!("{stream}\r\nretry: {}\n\ndata: {{\n\n", u64::MAX),
    ];
    measure_each(answers, async |handle, answer| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = handle.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 16 * 1024]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let mut settings = HttpSettings::default();
        settings.proxy = Proxy::Direct;
        let connecting = Client::builder("host", "1")
            .configure(unforgiving)
            .connect(Address::Url(format!("http://{address}/mcp"), settings));
        connecting.await.expect_err("no answer was whole");
        serving.abort();
    });
}

fn unforgiving(settings: &mut ClientSettings) {
    settings.reconnect = Reconnect::never();
    settings.open_timeouts.probe = Duration::from_secs(1);
}

/// Very large, very small and very long JSON numbers.
const NUMBERS: [&str; 8] = [
    "18446744073709551615",
    "-9223372036854775808",
    "1e308",
    "5e-324",
    "1e999999999",
    "1e-999999999",
    "0.1000000000000000055511151231257827",
    "100000000000000000000000000000000000000000000000000",
];

#[test]
fn a_server_allocates_for_the_bytes_of_a_message_whatever_its_numbers() {
    let request = |method: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{
                "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientInfo":{{"name":"peer","version":"1"}},
                "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    };
    let mut messages = Vec::new();
    for number in NUMBERS {
        messages.push(request("tools/list", &format!(r#""cursor":{number}"#)));
        messages.push(request("tools/list", &format!(r#""pageSize":{number}"#)));
        for value in [
            format!(r#"{{"number":{number}}}"#),
            format!(r#"{{"items":[{number},{number}]}}"#),
        ] {
            messages.push(request(
                "tools/call",
                &format!(r#""name":"bounded","arguments":{value}"#),
            ));
        }
        messages.push(format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"x"}}"#));
    }
    // A cursor in the server's own format with the largest number, and forged request states.
    messages.push(request(
        "tools/list",
        r#""cursor":"dDE4NDQ2NzQ0MDczNzA5NTUxNjE1""#,
    ));
    for state in ["_____w", "AQAAAAAAAAD_____fw", "AAAA"] {
        messages.push(request(
            "tools/call",
            &format!(r#""name":"bounded","arguments":{{}},"requestState":"{state}""#),
        ));
    }
    let schema = json!({"type": "object", "properties": {
        "number": {"multipleOf": 0.001, "maximum": 1e308},
        "items": {"uniqueItems": true, "maxItems": 1_000_000_000_000_u64}}});
    let server = Server::new("test", "1");
    server
        .add_tool_fn(
            Tool::new("bounded", schema),
            ToolOptions::default(),
            |_: Value, _: Context| async { "done" },
        )
        .expect("a tool");
    measure_each(messages, async |_, message| {
        let memory = server.connect();
        memory.send(message);
        memory.receive().await.expect("an answer");
    });
}

#[test]
fn schemas_allocate_for_their_bytes_whatever_their_limits_and_counts() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut schemas: Vec<String> = [
        "a{1000000000}",
        "a{0,4294967295}",
        "a{0,18446744073709551615}",
        "(?:a{60000}){60000}",
        "(?:a{0,100000}){0,100000}",
        "(?:[ab]{1000}){1000}",
        r"\\u{10FFFFFF}",
        r"(a)\\999999999",
    ]
    .map(|pattern| format!(r#"{{"pattern":"{pattern}"}}"#))
    .into();
    let keywords = [
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "minProperties",
        "maxContains",
        "multipleOf",
        "maximum",
        "const",
    ];
    for keyword in keywords {
        schemas.extend(NUMBERS.map(|number| format!(r#"{{"{keyword}":{number}}}"#)));
    }
    let text = format!("\"{}\"", "a".repeat(2_000));
    let values = NUMBERS.into_iter().chain([text.as_str(), "[1,2,3]", "{}"]);
    let values: Vec<Raw> = values
        .map(|value| Raw::from_trusted(value.to_owned()))
        .collect();
    for schema in schemas {
        // Repetitions are expanded, up to the largest program of a pattern.
        let program = MAX_PATTERN_OPERATIONS * OPERATION_BYTES;
        measure_from(program, &schema, schema.len() + text.len(), || {
            let Ok(decoded) = serde_json::from_str(&schema) else {
                return;
            };
            let Ok(compiled) = CompiledSchema::compile(&decoded) else {
                return;
            };
            for value in &values {
                let _ = compiled.validate(value);
            }
        });
    }
}

#[test]
fn tokens_and_keys_allocate_for_their_bytes() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let long = "A".repeat(300_000);
    for key in [
        json!({"kty": "RSA", "n": long, "e": "AQAB"}),
        json!({"kty": "RSA", "n": "AQAB", "e": long}),
        json!({"kty": "RSA", "n": "_____w", "e": "_____w"}),
        json!({"kty": "EC", "crv": "P-256", "x": long, "y": "A"}),
        json!({"kty": "oct", "k": long}),
    ] {
        let set = json!({"keys": [key]}).to_string();
        let parsed = measure("a key", set.len(), || JwkSet::parse(set.clone()));
        for token in [
            "eyJhbGciOiJSUzI1NiJ9.e30.AA".to_owned(),
            format!("eyJhbGciOiJSUzI1NiJ9.e30.{}", &long[..10_000]),
            format!("{long}.{long}.{long}"),
        ] {
            let keys = parsed.as_ref().ok();
            measure("a token", set.len() + token.len(), || {
                keys.map(|keys| verify(&token, keys, &Algorithm::ALL).is_ok())
            });
        }
    }
}

/// A server that completes the handshake and answers everything else with this result.
struct Answers(String);

impl ClientTransport for Answers {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(10);
        let result = self.0.clone();
        tokio::spawn(async move {
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let Some(id) = message.get("id") else {
                    continue;
                };
                let shaken = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                                    "serverInfo": {"name": "peer", "version": "1"}});
                let result = match message["method"].as_str() {
                    Some("initialize") => shaken.to_string(),
                    _ => result.clone(),
                };
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                if answers.send(Ok(answer.into())).await.is_err() {
                    return;
                }
            }
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

#[test]
fn a_client_allocates_for_the_bytes_of_a_list_whatever_its_numbers() {
    let mut pages = Vec::new();
    for number in NUMBERS {
        pages.push(format!(
            r#"{{"tools":[],"ttlMs":{number},"total":{number}}}"#
        ));
        pages.push(format!(
            r#"{{"tools":[{{"name":"x","inputSchema":{{"type":"object","properties":{{
                "a":{{"type":"string","maxLength":{number},"x-mcp-header":"A"}}}}}},
                "outputSchema":{{"type":"object","minProperties":{number}}},
                "annotations":{{"readOnlyHint":{number}}}}}]}}"#
        ));
    }
    measure_each(pages, async |_, page| {
        let client = Client::builder("host", "1")
            .configure(|settings| settings.revisions = vec![Revision::V2025_11_25])
            .connect(Address::Custom(Arc::new(Answers(page))))
            .await
            .expect("connects");
        let options = RequestOptions::default();
        let _ = client.request("tools/list", None, &options).await;
        let _ = client.call_tool("x", json!({})).await;
        client.close().await;
    });
}
