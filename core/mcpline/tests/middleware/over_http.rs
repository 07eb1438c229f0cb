//! Middleware over HTTP: headers, statuses, sessions, tokens, disconnects and shutdown.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::authorized::Rig;
use crate::support::requests::{body, initialize, request};
use crate::support::{self, Nothing};
use http::Method;
use mcpline::middleware::*;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::*;
use mcpline::server::*;
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};

fn add(server: &Server, scope: MiddlewareScope, m: impl Middleware) {
    server
        .add_middleware(scope, Arc::new(m))
        .expect("a middleware");
}

async fn session(service: &HttpService) -> String {
    let response = service
        .handle(request(Method::POST, &[], initialize("2025-11-25")))
        .await;
    response.headers()["mcp-session-id"]
        .to_str()
        .expect("ASCII")
        .to_owned()
}

/// Two sessions without authentication: a mount without addresses, or clients behind one proxy or NAT.
#[runtimes::test]
async fn a_cache_keeps_private_results_of_a_session_for_it() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = Server::new("s", "1").tool("whoami", "Who", move |_: Nothing, _: Context| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("the secret of session {run}") }
    });
    add(
        &server,
        MiddlewareScope::all(),
        ResponseCache::new(Duration::from_secs(60)).with_tools(["whoami"]),
    );
    let service = server.http_service(HttpOptions::default());
    let (one, two) = (session(&service).await, session(&service).await);
    let mut texts = Vec::new();
    for id in [&one, &two] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}});
        let response = service
            .handle(request(Method::POST, &[("mcp-session-id", id)], message))
            .await;
        texts.push(body(response).await["result"]["content"][0]["text"].clone());
    }
    assert_ne!(texts[0], texts[1]);
}

fn region() -> Server {
    let server = Server::new("s", "1");
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    server
        .add_tool_fn(
            Tool::new("query", schema),
            ToolOptions::default(),
            |a: Value, _: Context| async move { Ok::<_, HandlerError>(a.to_string()) },
        )
        .expect("a tool");
    server
}

async fn query(server: &Server, header: &str, region: &str) -> (u16, Value) {
    let service = server.http_service(HttpOptions::default());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": {"region": region},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "query"),
        ("mcp-param-region", header),
    ];
    let response = service
        .handle(request(Method::POST, &headers, message))
        .await;
    let status = response.status().as_u16();
    (status, body(response).await)
}

/// A gateway routes by `Mcp-Param-Region`, so a client must not send other arguments.
#[runtimes::test]
async fn headers_are_checked_against_what_the_client_sent() {
    let plain = region();
    assert_eq!(query(&plain, "us", "eu").await.0, 400);
    let changing = region();
    add(
        &changing,
        MiddlewareScope::all(),
        |mut r: MiddlewareRequest, n: Next| async move {
            // An argument that has no header.
            let mut arguments: Value = r.arguments().expect("some").decode().expect("JSON");
            arguments["trace"] = json!(1);
            r.set_arguments(Raw::from_serialize(&arguments).expect("JSON"))
                .expect("an object");
            n.run(r).await
        },
    );
    let (status, answer) = query(&changing, "us", "eu").await;
    assert_eq!(status, 400, "{answer}");
}

#[runtimes::test]
async fn a_middleware_sees_only_requests_that_match_their_headers() {
    let server = region();
    let seen = Arc::new(AtomicU32::new(0));
    let counted = seen.clone();
    add(
        &server,
        MiddlewareScope::all(),
        move |r: MiddlewareRequest, n: Next| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { n.run(r).await }
        },
    );
    assert_eq!(
        query(&server, "us", "eu").await.0,
        400,
        "a passed-on error keeps its status"
    );
}

fn scoped() -> Server {
    let server = Server::new("s", "1");
    server
        .add_tool_fn(
            Tool::new("a", json!({"type": "object"})),
            ToolOptions::default().with_scopes(["secret"]),
            |_: Value, _: Context| async { Ok::<_, HandlerError>("done") },
        )
        .expect("a tool");
    server
}

#[tokio::test]
async fn a_passed_on_refusal_has_its_challenge() {
    let server = scoped();
    add(
        &server,
        MiddlewareScope::all(),
        |r: MiddlewareRequest, n: Next| async move { n.run(r).await },
    );
    let rig = Rig::start(server, |b, i| b.issuer(i.issuer())).await;
    let token = rig.token("mcp");
    let answer = rig
        .modern(&token, "tools/call", json!({"name": "a", "arguments": {}}))
        .await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.header("www-authenticate").is_some());
}

/// The cache over HTTP: a token with fewer scopes of the same user.
#[tokio::test]
async fn a_cache_does_not_answer_tokens_without_the_scope() {
    let server = scoped();
    add(
        &server,
        MiddlewareScope::all(),
        ResponseCache::new(Duration::from_secs(60)).with_tools(["a"]),
    );
    let rig = Rig::start(server, |b, i| b.issuer(i.issuer())).await;
    let call = json!({"name": "a", "arguments": {}});
    let answer = rig
        .modern(&rig.token("mcp secret"), "tools/call", call.clone())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = rig.modern(&rig.token("mcp"), "tools/call", call).await;
    assert_eq!(answer.status, 403, "{answer:?}");
}

struct Flag(Arc<AtomicU32>);
impl Drop for Flag {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// 2026-07-28: closing the connection cancels, wherever the middleware waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_drops_middleware_before_and_after_next() {
    for before in [true, false] {
        let dropped = Arc::new(AtomicU32::new(0));
        let server = scoped();
        let flag = dropped.clone();
        add(
            &server,
            MiddlewareScope::all(),
            move |r: MiddlewareRequest, n: Next| {
                let guard = Flag(flag.clone());
                async move {
                    let _guard = guard;
                    if before {
                        std::future::pending::<()>().await;
                    }
                    let outcome = n.run(r).await;
                    std::future::pending::<()>().await;
                    outcome
                }
            },
        );
        let kept = server.clone();
        let rig = Rig::start(server, |b, i| b.issuer(i.issuer())).await;
        let token = rig.token("mcp secret");
        let (name, message) =
            support::authorized::modern("tools/call", json!({"name": "a", "arguments": {}}));
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name.as_str()),
        ];
        let connection = rig.open("POST", "/mcp", &token, &headers, &message).await;
        while kept.stats().requests_in_flight == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(connection);
        let gone = async {
            while dropped.load(Ordering::SeqCst) == 0 || kept.stats().requests_in_flight > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), gone)
            .await
            .unwrap_or_else(|_| panic!("before: {before}"));
    }
}

/// The grace of a shutdown ends while a middleware waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_shutdown_answers_waiting_middleware() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    for before in [true, false] {
        let dropped = Arc::new(AtomicU32::new(0));
        let mut settings = mcpline::Settings::default();
        settings.shutdown_timeout = Duration::from_millis(200);
        let server = Server::builder("s", "1")
            .settings(settings)
            .build()
            .expect("builds")
            .tool("a", "A", |_: Nothing, _: Context| async { "done" });
        let flag = dropped.clone();
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let pushed = outcomes.clone();
        server.on_request_end(move |r| {
            if r.method == "tools/call" {
                pushed.lock().expect("ok").push(r.outcome.name())
            }
        });
        add(
            &server,
            MiddlewareScope::all(),
            move |r: MiddlewareRequest, n: Next| {
                let guard = Flag(flag.clone());
                async move {
                    let _guard = guard;
                    if before {
                        std::future::pending::<()>().await;
                    }
                    let outcome = n.run(r).await;
                    std::future::pending::<()>().await;
                    outcome
                }
            },
        );
        let (client, ours) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let stop = mcpline::transport::Stop::new();
        let signal = stop.clone();
        let kept = server.clone();
        let serving = tokio::spawn(async move {
            server
                .serve_until(mcpline::transport::lines(reader, writer), signal)
                .await
        });
        let (reader, mut writer) = tokio::io::split(client);
        let mut lines = BufReader::new(reader).lines();
        writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n").await.expect("written");
        while kept.stats().requests_in_flight == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.stop();
        let line = tokio::time::timeout(Duration::from_secs(5), lines.next_line())
            .await
            .expect("in time")
            .expect("read")
            .expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], 1);
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        assert!(
            lines.next_line().await.expect("read").is_none(),
            "one response"
        );
        let _ = tokio::time::timeout(Duration::from_secs(5), serving)
            .await
            .expect("ends");
        while outcomes.lock().expect("ok").is_empty() || kept.stats().requests_in_flight > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "before: {before}");
        assert_eq!(kept.stats().requests_in_flight, 0);
        assert_eq!(outcomes.lock().expect("ok").len(), 1);
    }
}
