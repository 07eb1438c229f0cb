//! Redaction of results and arguments on the wire.

use std::sync::Arc;

use mcpline::middleware::{Redaction, ResponseSizeLimit};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Prompt, Resource, Tool};
use mcpline::server::{MiddlewareScope, MountOptions, ToolOptions};
use mcpline::{Context, HandlerError, Server, ToolReply};
use serde_json::{Value, json};

use super::{ask, call, with};
use crate::support::Client;

fn redaction() -> Redaction {
    Redaction::new()
        .with_members(["iban"])
        .with_patterns([r"\b\d{3}-\d{2}-\d{4}\b"])
        .expect("a pattern")
}

/// A server whose tool returns its arguments, as text and as structured content.
fn echoing(output_schema: Option<Value>) -> Server {
    let server = Server::new("echoing", "1");
    let mut tool = Tool::new(
        "a",
        json!({"type": "object", "properties": {"id": {"type": "string", "maxLength": 12}}}),
    );
    tool.output_schema = output_schema;
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            |args: Value, _: Context| async move {
                Ok::<_, HandlerError>(ToolReply {
                    structured: Some(Raw::from_serialize(&args).expect("JSON")),
                    ..Default::default()
                })
            },
        )
        .expect("a tool");
    server
}

async fn echoed(server: &Server, arguments: Value) -> Value {
    let mut client = Client::legacy(server, "2025-11-25").await;
    let params = json!({"name": "a", "arguments": arguments});
    ask(&mut client, "tools/call", params)
        .await
        .expect("a result")
}

/// Asserts that structured content and the text of it are the same value.
fn assert_content(result: &Value, expected: &Value) {
    assert_eq!(&result["structuredContent"], expected);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_eq!(
        &serde_json::from_str::<Value>(text).expect("JSON"),
        expected
    );
}

#[runtimes::test]
async fn clients_get_redacted_results_and_handlers_the_arguments() {
    let server = with(echoing(None), redaction());
    let arguments = json!({"id": "123-45-6789", "IBAN": {"a": 1}, "n": 1.50});
    let expected = json!({"id": "[redacted]", "IBAN": "[redacted]", "n": 1.50});
    assert_content(&echoed(&server, arguments).await, &expected);
}

#[runtimes::test]
async fn arguments_are_redacted_before_they_are_checked() {
    let server = with(
        echoing(None),
        redaction().with_arguments(true).with_replacement("gone"),
    );
    let result = echoed(&server, json!({"id": "123-45-6789", "iban": 1})).await;
    assert_content(&result, &json!({"id": "gone", "iban": "gone"}));
    let server = with(
        echoing(None),
        redaction()
            .with_arguments(true)
            .with_replacement("longer than allowed"),
    );
    let result = echoed(&server, json!({"id": "123-45-6789"})).await;
    assert_eq!(result["isError"], true);
}

#[runtimes::test]
async fn a_large_result_is_redacted_as_a_small_one_is() {
    let server = with(echoing(None), redaction());
    let list: Vec<Value> = (0..20_000)
        .map(|n| json!({"iban": n, "text": "a 123-45-6789 b"}))
        .collect();
    let result = echoed(&server, json!({"list": list})).await;
    let expected = json!({"iban": "[redacted]", "text": "a [redacted] b"});
    assert_content(&result, &json!({"list": vec![expected; 20_000]}));
}

#[runtimes::test]
async fn a_redacted_result_is_not_checked_against_the_output_schema() {
    let schema = json!({"type": "object", "properties": {"iban": {"type": "integer"}}});
    let server = with(echoing(Some(schema)), redaction());
    let result = echoed(&server, json!({"iban": 5})).await;
    assert_content(&result, &json!({"iban": "[redacted]"}));
    assert_eq!(result.get("isError"), None);
}

#[runtimes::test]
async fn resources_prompts_and_errors_are_redacted() {
    let server = Server::new("s", "1")
        .resource(
            Resource::new("a://123-45-6789", "a"),
            async || "of 123-45-6789",
        )
        .prompt(Prompt::new("p"), |_: Value, _: Context| async {
            "of 123-45-6789"
        });
    let tool = Tool::new("fails", json!({"type": "object"}));
    server
        .add_tool_fn(tool, ToolOptions::default(), |_: Value, _: Context| async {
            let error = mcpline::protocol::RpcError::internal_error("for 123-45-6789");
            Err::<String, _>(HandlerError::Rpc(error))
        })
        .expect("a tool");
    let server = with(server, redaction());
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let read = ask(
        &mut client,
        "resources/read",
        json!({"uri": "a://123-45-6789"}),
    )
    .await;
    let contents = read.expect("contents")["contents"][0].clone();
    assert_eq!(
        (&contents["uri"], &contents["text"]),
        (&json!("a://123-45-6789"), &json!("of [redacted]"))
    );
    let prompt = ask(&mut client, "prompts/get", json!({"name": "p"}))
        .await
        .expect("a prompt");
    assert_eq!(prompt["messages"][0]["content"]["text"], "of [redacted]");
    let error = call(&mut client, "fails").await.expect_err("it fails");
    assert_eq!(error["message"], "for [redacted]");
}

#[runtimes::test]
async fn redactions_of_mounted_servers_and_other_middleware_follow_their_order() {
    let inner = with(echoing(None), redaction());
    let outer = Server::new("outer", "1");
    // Cuts what the redaction has made short.
    outer
        .add_middleware(
            MiddlewareScope::all(),
            Arc::new(ResponseSizeLimit::new(600)),
        )
        .expect("a middleware");
    outer
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    let result = echoed(&outer, json!({"iban": "x".repeat(1_000)})).await;
    assert_content(&result, &json!({"iban": "[redacted]"}));
}

#[runtimes::test]
async fn results_are_redacted_before_they_are_cut() {
    let rows = vec![json!({"iban": "NO93"}); 100];
    let text = serde_json::to_string(&rows).expect("JSON");
    let server = || {
        let text = text.clone();
        Server::new("rows", "1").tool("rows", "Rows", move || std::future::ready(text.clone()))
    };
    let redaction = || Redaction::new().with_members(["iban"]);
    let limit = || ResponseSizeLimit::new(1_000);
    let cut = with(with(server(), limit()), redaction());
    let mut client = Client::legacy(&cut, "2025-11-25").await;
    let text = call(&mut client, "rows").await.expect("a result");
    assert!(text.contains("are left out"), "{text}");
    assert!(!text.contains("NO93"), "{text}");
    let error = with(server(), redaction())
        .add_middleware(MiddlewareScope::all(), Arc::new(limit()))
        .expect_err("it would cut first");
    assert!(error.to_string().contains("add it first"), "{error}");
}

#[runtimes::test]
async fn a_text_that_takes_long_is_redacted_on_another_thread() {
    let text = "key: 1 ".repeat(1_000);
    let server =
        Server::new("keys", "1").tool("keys", "Keys", move || std::future::ready(text.clone()));
    let redaction = Redaction::new().with_patterns([r"key: \d+(.*END)?"]);
    let server = with(server, redaction.expect("a pattern"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let text = call(&mut client, "keys").await.expect("a result");
    assert_eq!(text, "[redacted] ".repeat(1_000));
}
