//! Redaction at clients: arguments before they leave the host, and results before the caller gets them.

use std::sync::{Arc, Mutex};

use mcpline::client::middleware::{ClientNext, ClientOutcome, ClientRequest};
use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::middleware::Redaction;
use mcpline::protocol::ErrorCode;
use mcpline::protocol::vocabulary::{Prompt, Resource, Tool};
use mcpline::server::ToolOptions;
use mcpline::{Context, ErrorKind, HandlerError, Json, RpcError, Server};
use serde_json::{Value, json};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The arguments that a server has received.
type Received = Arc<Mutex<Vec<Value>>>;

/// A server that returns the arguments of its tool `echo`, as text and as structured content.
fn server() -> (Server, Received) {
    let received = Received::default();
    let kept = received.clone();
    let server = Server::new("customers", "1")
        .resource(Resource::new("a://b", "b"), async || "call 123-45-6789")
        .prompt(Prompt::new("greet"), async || "greet 123-45-6789");
    let server = server.on_request("acme/find", async |_: Value, _: Context| {
        Ok::<_, RpcError>(json!({"hits": ["call 123-45-6789"], "iban": "DE1"}))
    });
    let tool = Tool::new("echo", json!({"type": "object"}));
    let echo = move |args: Value, _: Context| {
        kept.lock().expect("not poisoned").push(args.clone());
        async move {
            match args.get("fails") {
                Some(_) => Err(HandlerError::from(RpcError::new(
                    ErrorCode(-1),
                    "no customer 123-45-6789",
                ))),
                None => Ok(Json(args)),
            }
        }
    };
    let added = server.add_tool_fn(tool, ToolOptions::default(), echo);
    added.expect("a tool");
    (server, received)
}

fn redaction() -> Redaction {
    let redaction = Redaction::new().with_members(["IBAN"]);
    redaction
        .with_patterns([r"\b\d{3}-\d{2}-\d{4}\b"])
        .expect("a pattern")
}

fn builder(revision: &str) -> ClientBuilder {
    Client::builder("test", "1")
        .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
}

#[runtimes::test]
async fn results_and_errors_are_redacted_before_the_caller_gets_them() {
    for revision in REVISIONS {
        let (server, received) = server();
        let builder = builder(revision).middleware(redaction());
        let client = builder.connect(server).await.expect("connects");
        let arguments = json!({"iban": "DE1", "text": "call 123-45-6789", "n": 1});
        let result = client.call_tool("echo", arguments.clone()).await;
        let result = serde_json::to_string(&result.expect("a result")).expect("JSON");
        assert!(!result.contains("123-45"), "{result}");
        assert!(!result.contains("DE1"), "{result}");
        assert!(result.contains("[redacted]"), "{result}");
        // The server gets arguments as they are by default.
        assert_eq!(*received.lock().expect("not poisoned"), [arguments]);
        let read = client.read_resource("a://b").await.expect("contents");
        let read = serde_json::to_value(read).expect("JSON");
        assert_eq!(read["contents"][0]["text"], "call [redacted]");
        let prompt = client.get_prompt("greet", &Default::default()).await;
        let prompt = serde_json::to_value(prompt.expect("a prompt")).expect("JSON");
        assert_eq!(prompt["messages"][0]["content"]["text"], "greet [redacted]");
        let failed = client.call_tool("echo", json!({"fails": true})).await;
        let error = failed.expect_err("an error");
        let rpc = error.rpc().expect("an error of the server");
        assert_eq!(&*rpc.message, "no customer [redacted]");
        let options = RequestOptions::new();
        let found = client.request("acme/find", None, &options).await;
        let found: Value = found.expect("a result").decode().expect("JSON");
        assert_eq!(found["hits"][0], "call [redacted]");
        assert_eq!(found["iban"], "[redacted]");
        // Lists stay as they are.
        let tools = client.list_tools().await.expect("tools");
        assert_eq!(tools[0].name, "echo");
    }
}

#[runtimes::test]
async fn arguments_are_redacted_before_they_leave_the_host_on_request() {
    for revision in REVISIONS {
        let (server, received) = server();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let client = builder(revision)
            .middleware(redaction().with_arguments(true))
            .on_tool_call(move |call| {
                let arguments = call.arguments.clone();
                kept.lock().expect("not poisoned").push(arguments);
                async { Ok(()) }
            })
            .connect(server)
            .await
            .expect("connects");
        let arguments = json!({"in": {"Iban": {"a": 1}}, "text": "call 123-45-6789", "n": 1});
        let called = client.call_tool("echo", arguments).await;
        called.expect("a result");
        let redacted = json!({"in": {"Iban": "[redacted]"}, "text": "call [redacted]", "n": 1});
        assert_eq!(*received.lock().expect("not poisoned"), [redacted]);
        // The hooks come after middleware.
        let seen = serde_json::to_value(&*seen.lock().expect("not poisoned")).expect("JSON");
        assert_eq!(seen[0]["text"], "call [redacted]");
    }
}

#[runtimes::test]
async fn large_values_are_redacted_too() {
    let (server, received) = server();
    let builder = builder("2026-07-28").middleware(redaction().with_arguments(true));
    let client = builder.connect(server).await.expect("connects");
    let text = format!("{}123-45-6789", "x ".repeat(100_000));
    let called = client.call_tool("echo", json!({"text": text})).await;
    let result = serde_json::to_string(&called.expect("a result")).expect("JSON");
    assert!(result.contains("x [redacted]"));
    let received = received.lock().expect("not poisoned");
    let text = received[0]["text"].as_str().expect("a text");
    assert!(text.ends_with("x [redacted]"));
}

#[runtimes::test]
async fn bodies_of_http_errors_are_redacted() {
    async fn fails(_: ClientRequest, _: ClientNext) -> ClientOutcome {
        let error = RpcError::internal_error("no customer 123-45-6789");
        Err(ClientError::Http {
            status: 500,
            body: "customer 123-45-6789 failed".to_owned(),
            challenge: None,
            error: Some(Box::new(error)),
        })
    }
    let (server, _) = server();
    let builder = builder("2026-07-28").middleware(redaction());
    let client = builder.middleware(fails).connect(server).await;
    let client = client.expect("connects");
    let failed = client.call_tool("echo", json!({})).await;
    let error = failed.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Http);
    let ClientError::Http { body, error, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(body, "customer [redacted] failed");
    let message = error.map(|error| error.message.to_string());
    assert_eq!(message.as_deref(), Some("no customer [redacted]"));
}
