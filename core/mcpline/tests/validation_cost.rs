//! Schemas and values that take long to validate delay only the call they belong to.

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpline::client::{Client as Host, ClientError, RequestOptions};
use mcpline::protocol::client::RequestTimeouts;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::{Context, Json, Server, Settings};
use serde_json::{Map, Value, json};
use support::computations::HeldComputations;
use support::{Client, Nothing};
use tokio::sync::Notify;

/// A schema that reads a text 2^18 times, which exceeds every budget.
fn expensive() -> Value {
    let mut defs = Map::new();
    defs.insert("0".to_owned(), json!({"maxLength": 1_000_000}));
    for level in 1..=18 {
        let lower = json!({"$ref": format!("#/$defs/{}", level - 1)});
        let twice = json!({"anyOf": [{"allOf": [lower]}, {"allOf": [lower]}]});
        defs.insert(level.to_string(), twice);
    }
    json!({"type": "object", "properties": {"text": {"$ref": "#/$defs/18"}}, "$defs": defs})
}

fn long_text() -> Value {
    json!({"text": "x".repeat(2_000_000)})
}

/// A server that does not check its own output. Notifies `called` when its tool is called.
fn hostile(called: &Arc<Notify>) -> Server {
    let mut settings = Settings::default();
    settings.check_output = false;
    let server = Server::builder("hostile", "1")
        .settings(settings)
        .build()
        .expect("a server");
    let tool = Tool::new("stall", json!({"type": "object"})).with_output_schema(expensive());
    let called = called.clone();
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            move |_: Nothing, _: Context| {
                called.notify_one();
                async { Json(long_text()) }
            },
        )
        .expect("a tool");
    server
}

fn honest() -> Server {
    Server::new("honest", "1").tool("hello", "Greets", |_: Nothing, _: Context| async {
        "hello"
    })
}

async fn host(server: &Server) -> Host {
    let host = Host::connect(server).await.expect("connects");
    host.list_tools().await.expect("a list");
    host
}

#[runtimes::test(one_blocking_thread)]
async fn other_servers_are_served_while_a_result_is_validated() {
    let (called, calls) = (Arc::new(Notify::new()), honest());
    let (misled, other) = (host(&hostile(&called)).await, host(&calls).await);
    let held = HeldComputations::hold().await;
    let mut stalled = pin!(misled.call_tool("stall", json!({})));
    let answered = async {
        called.notified().await;
        // The ping is answered after it.
        misled.ping().await.expect("an answer");
        for _ in 0..20 {
            other
                .call_tool("hello", json!({}))
                .await
                .expect("an answer");
        }
    };
    tokio::select! {
        biased;
        outcome = stalled.as_mut() => panic!("it held up the other: {outcome:?}"),
        () = answered => {}
    }
    drop(held);
    let outcome = stalled.await;
    assert!(
        matches!(outcome, Err(ClientError::InvalidResponse { .. })),
        "{outcome:?}"
    );
}

#[runtimes::test(one_blocking_thread)]
async fn a_call_times_out_while_its_result_is_validated() {
    let called = Arc::new(Notify::new());
    let misled = host(&hostile(&called)).await;
    let _held = HeldComputations::hold().await;
    let mut options = RequestOptions::default();
    options.timeouts = Some(RequestTimeouts {
        idle: Duration::from_millis(50),
        ..RequestTimeouts::default()
    });
    let outcome = misled.call_tool_with("stall", json!({}), &options).await;
    assert!(
        matches!(
            outcome,
            Err(ClientError::RequestTimedOut { in_all: false, .. })
        ),
        "{outcome:?}"
    );
}

#[runtimes::test(one_blocking_thread)]
async fn other_calls_are_served_while_arguments_are_validated() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = honest();
    let tool = Tool::new("stall", expensive());
    server
        .add_tool_fn(tool, ToolOptions::default(), move |_: Value, _: Context| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { "done" }
        })
        .expect("a tool");
    let mut attacker = Client::modern(&server);
    let mut neighbour = Client::modern(&server);
    let params = json!({"name": "stall", "arguments": long_text()});
    let held = HeldComputations::hold().await;
    let stalled = attacker.begin_modern("tools/call", params);
    for _ in 0..20 {
        let result = neighbour.call_modern("hello", json!({})).await;
        assert_eq!(result.expect("a result")["content"][0]["text"], "hello");
        // Lets the call do whatever it does on this thread.
        tokio::task::yield_now().await;
        assert_eq!(attacker.try_next(), None, "it held up the other");
    }
    drop(held);
    let result = attacker.response(&stalled).await.expect("a result");
    let words = result["content"][0]["text"].as_str().expect("words");
    assert!(
        words.contains("the validation limit was reached"),
        "{words}"
    );
    assert_eq!(result["isError"], true);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[runtimes::test]
async fn large_arguments_that_match_reach_their_handler() {
    let server = honest();
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string", "pattern": "^x*$"}}});
    server
        .add_tool_fn(
            Tool::new("length", schema),
            ToolOptions::default(),
            |arguments: Value, _: Context| async move {
                arguments["text"].as_str().map_or(0, str::len).to_string()
            },
        )
        .expect("a tool");
    let mut client = Client::modern(&server);
    let result = client.call_modern("length", json!({"arguments": long_text()}));
    assert_eq!(
        result.await.expect("a result")["content"][0]["text"],
        "2000000"
    );
    let wrong = json!({"arguments": {"text": "y".repeat(2_000_000)}});
    let result = client.call_modern("length", wrong).await.expect("a result");
    assert_eq!(result["isError"], true);
}

#[runtimes::test(one_blocking_thread)]
async fn cancelling_a_call_interrupts_the_validation_of_its_arguments() {
    let server = honest();
    server
        .add_tool_fn(
            Tool::new("stall", expensive()),
            ToolOptions::default(),
            |_: Value, _: Context| async { "done" },
        )
        .expect("a tool");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let held = HeldComputations::hold().await;
    let id = client.begin(
        "tools/call",
        json!({"name": "stall", "arguments": long_text()}),
    );
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    let ping = client.begin("ping", json!({}));
    assert_eq!(client.next().await["id"], ping);
    drop(held);
    // The thread is free for this once the validation has ended.
    let freed = tokio::task::spawn_blocking(|| {});
    freed.await.expect("no panic");
    let ping = client.begin("ping", json!({}));
    assert_eq!(client.next().await["id"], ping, "the call was answered");
}

#[runtimes::test(one_blocking_thread)]
async fn other_calls_are_served_while_a_result_is_validated() {
    let server = honest();
    let tool = Tool::new("stall", json!({"type": "object"})).with_output_schema(expensive());
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            |_: Nothing, _: Context| async { Json(long_text()) },
        )
        .expect("a tool");
    let mut attacker = Client::modern(&server);
    let mut neighbour = Client::modern(&server);
    let held = HeldComputations::hold().await;
    let stalled = attacker.begin_modern("tools/call", json!({"name": "stall", "arguments": {}}));
    for _ in 0..20 {
        let result = neighbour.call_modern("hello", json!({})).await;
        assert_eq!(result.expect("a result")["content"][0]["text"], "hello");
        // Lets the call do whatever it does on this thread.
        tokio::task::yield_now().await;
        assert_eq!(attacker.try_next(), None, "it held up the other");
    }
    drop(held);
    let result = attacker.response(&stalled).await.expect("a result");
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "Error executing tool stall");
}
