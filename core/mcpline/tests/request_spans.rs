//! Spans of requests for other languages: what they begin and end with, by the OpenTelemetry semantic conventions for MCP.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::middleware::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::Resource;
use mcpline::server::MountOptions;
use mcpline::{Context, Server, Settings, ToolError, foreign};
use serde_json::{Value, json};
use support::{Client, Nothing};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

type Endings = Arc<Mutex<Vec<Value>>>;

/// A server whose requests are traced.
fn server() -> (Server, Endings, Endings) {
    let begun = Endings::default();
    let kept = begun.clone();
    let server = Server::new("traced", "1")
        .tool("ok", "Works", move |_: Nothing, ctx: Context| {
            let kept = kept.clone();
            async move {
                let first = foreign::begin_span(&ctx);
                assert_eq!(foreign::begin_span(&ctx), None, "it has begun");
                let number = foreign::span_number(&ctx);
                let (begun, text) = first.expect("the request is traced");
                assert_eq!(Some(begun), number);
                let description: Value = serde_json::from_str(&text).expect("JSON");
                kept.lock().expect("not poisoned").push(description);
                "fine"
            }
        })
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        })
        .resource(Resource::new("a://b", "b"), async || "b");
    let ended = Endings::default();
    let kept = ended.clone();
    foreign::trace_requests(&server, move |text| {
        let ending = serde_json::from_str(&text).expect("JSON");
        kept.lock().expect("not poisoned").push(ending);
    });
    (server, begun, ended)
}

fn taken(records: &Endings) -> Vec<Value> {
    std::mem::take(&mut records.lock().expect("not poisoned"))
}

fn only(records: &Endings) -> Value {
    let mut all = taken(records);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_handler_begins_with_it_and_ends_after_the_response() {
    let (server, begun, ended) = server();
    let mut client = Client::modern(&server);
    let meta = json!({"traceparent": PARENT, "tracestate": "a=b", "baggage": "c=d"});
    let params = json!({"name": "ok", "arguments": {}, "_meta": meta});
    let id = client.begin_modern("tools/call", params);
    client.response(&id).await.expect("a result");
    let (begun, ended) = (only(&begun), only(&ended));
    assert_eq!(begun["name"], "tools/call ok");
    assert_eq!(
        begun["attributes"],
        json!({
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "ok",
            "gen_ai.operation.name": "execute_tool",
            "jsonrpc.request.id": id.to_string(),
            "mcp.protocol.version": "2026-07-28",
        })
    );
    assert_eq!(
        begun["parent"],
        json!({"traceparent": PARENT, "tracestate": "a=b", "baggage": "c=d"})
    );
    assert_eq!(begun["link"], json!({}));
    assert_eq!(ended["attributes"], json!({}));
    assert_eq!(ended["error"], Value::Null);
    assert_eq!(ended.get("description"), None);
    assert!(ended["end"].as_u64() >= begun["start"].as_u64());
}

#[tokio::test(start_paused = true)]
async fn requests_that_reach_no_handler_of_the_language_have_spans() {
    let (server, _, ended) = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let initialized = only(&ended);
    assert_eq!(initialized["description"]["name"], "initialize");
    for (method, params, name, attribute, target) in [
        ("tools/list", json!({}), "tools/list", "", Value::Null),
        ("ping", json!({}), "ping", "", Value::Null),
        (
            "resources/read",
            json!({"uri": "a://b"}),
            "resources/read",
            "mcp.resource.uri",
            json!("a://b"),
        ),
    ] {
        let id = client.begin(method, params);
        client.response(&id).await.expect("a result");
        let ended = only(&ended);
        assert_eq!(ended["error"], Value::Null);
        let description = &ended["description"];
        assert_eq!(description["name"], name);
        let attributes = &description["attributes"];
        assert_eq!(attributes["mcp.method.name"], method);
        assert_eq!(attributes["mcp.protocol.version"], "2025-11-25");
        if !attribute.is_empty() {
            assert_eq!(attributes[attribute], target);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_have_their_type_and_text() {
    let (server, _, ended) = server();
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/call", json!({"name": "fails"}));
    client.response(&id).await.expect("a result");
    let failed = only(&ended);
    assert_eq!(failed["attributes"], json!({"error.type": "tool_error"}));
    assert_eq!(failed["error"], "");

    let id = client.begin_modern("tools/call", json!({"name": "other"}));
    client.response(&id).await.expect_err("no such tool");
    let failed = only(&ended);
    assert_eq!(
        failed["attributes"],
        json!({"error.type": "-32602", "rpc.response.status_code": "-32602"})
    );
    assert_eq!(failed["error"], "Unknown tool: other");

    let name = "x\n".repeat(10_000);
    let id = client.begin_modern("tools/call", json!({"name": name}));
    client.response(&id).await.expect_err("no such tool");
    let text = only(&ended)["error"].as_str().expect("text").to_owned();
    assert!(text.starts_with("Unknown tool: x x"), "{text}");
    assert_eq!(text.chars().count(), 1_000);

    let id = client.begin_modern("no/method", json!({}));
    client.response(&id).await.expect_err("no such method");
    let failed = only(&ended);
    assert_eq!(failed["attributes"]["error.type"], "-32601");
    assert_ne!(failed["error"], "");
    assert_eq!(failed["description"]["name"], "no/method");
    let attributes = &failed["description"]["attributes"];
    assert_eq!(attributes["mcp.protocol.version"], "2026-07-28");

    let id = client.begin_modern("server/discover", json!({}));
    client.response(&id).await.expect("a result");
    let discovered = only(&ended);
    let attributes = &discovered["description"]["attributes"];
    assert_eq!(attributes["mcp.protocol.version"], "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_span_has_arguments_and_result_on_request() {
    let mut settings = Settings::default();
    settings.span_contents = true;
    let server = Server::builder("traced", "1").settings(settings);
    let server = server.build().expect("valid settings");
    let server = server.tool("ok", "Works", async |_: Value| "fine");
    let ended = Endings::default();
    let kept = ended.clone();
    foreign::trace_requests(&server, move |text| {
        let ending = serde_json::from_str(&text).expect("JSON");
        kept.lock().expect("not poisoned").push(ending);
    });
    let mut client = Client::modern(&server);
    let params = json!({"name": "ok", "arguments": {"city": "Oslo", "token": "x"}});
    let id = client.begin_modern("tools/call", params);
    let result = client.response(&id).await.expect("a result");
    let ended = only(&ended);
    let content = |name: &str| -> Value {
        let content = ended["attributes"][name].as_str();
        serde_json::from_str(content.expect("recorded")).expect("JSON")
    };
    assert_eq!(
        content("gen_ai.tool.call.arguments"),
        json!({"city": "Oslo", "token": "[redacted]"})
    );
    assert_eq!(content("gen_ai.tool.call.result"), result);
}

/// Records until when it may redact values for spans.
struct Deadlines(Arc<Mutex<Vec<Duration>>>);

impl Middleware for Deadlines {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        Box::pin(async move { next.run(request).await })
    }

    fn redact_recorded(&self, value: Raw, until: Duration) -> Option<Raw> {
        self.0.lock().expect("not poisoned").push(until);
        Some(value)
    }
}

#[tokio::test(start_paused = true)]
async fn all_redactions_of_a_span_have_the_same_deadline() {
    let deadlines = Arc::default();
    let mut settings = Settings::default();
    settings.span_contents = true;
    let server = Server::builder("traced", "1").settings(settings);
    let server = server.build().expect("valid settings");
    let mounted = Server::new("mounted", "1").tool("ok", "Works", async |_: Value| "fine");
    let mounted = mounted.middleware(Deadlines(Arc::clone(&deadlines)));
    server
        .mount(&mounted, MountOptions::default())
        .expect("mounts");
    let server = server
        .middleware(Deadlines(Arc::clone(&deadlines)))
        .middleware(Deadlines(Arc::clone(&deadlines)));
    foreign::trace_requests(&server, |_| {});
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/call", json!({"name": "ok", "arguments": {}}));
    client.response(&id).await.expect("a result");
    let mut deadlines = deadlines.lock().expect("not poisoned").clone();
    assert_eq!(deadlines.len(), 6, "of the arguments and the result");
    deadlines.dedup();
    assert!(deadlines.len() <= 2, "{deadlines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_ends_its_span_once() {
    let (server, _, ended) = server();
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/call", json!({"name": "hangs"}));
    tokio::task::yield_now().await;
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}}),
    );
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let cancelled = only(&ended);
    assert_eq!(cancelled["attributes"], json!({"error.type": "cancelled"}));
}

#[tokio::test(start_paused = true)]
async fn handlers_can_read_the_trace_context() {
    let server = Server::new("traced", "1").tool("context", "", async |ctx: Context| {
        let context = foreign::trace_context(&ctx);
        assert_eq!(foreign::span_number(&ctx), None, "nothing traces it");
        context.map_or_else(|| "none".to_owned(), |context| context.as_str().to_owned())
    });
    let mut client = Client::modern(&server);
    for (meta, expected) in [
        (json!({}), "none".to_owned()),
        (json!({"traceparent": "x"}), "none".to_owned()),
        (
            json!({"traceparent": PARENT}),
            format!(r#"{{"traceparent":"{PARENT}"}}"#),
        ),
    ] {
        let id = client.begin_modern("tools/call", json!({"name": "context", "_meta": meta}));
        let result = client.response(&id).await.expect("a result");
        assert_eq!(result["content"][0]["text"], expected);
    }
}
