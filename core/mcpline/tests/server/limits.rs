//! Limits and checks that a server applies on its own.

use std::sync::Arc;
use std::time::Duration;

use crate::support::log::Log;
use crate::support::{Client, Nothing};
use mcpline::protocol::session::Rate;
use mcpline::protocol::vocabulary::{Prompt, PromptArgument, ResourceTemplate, Tool};
use mcpline::server::{Completer, MethodOptions, ToolOptions};
use mcpline::transport::lines;
use mcpline::{Context, Json, Server, Settings};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// How many requests to send at once: too many for even the slowest machine to spread out until the rate allows all of
/// them.
const AT_ONCE: usize = 100;

/// Sends `AT_ONCE` requests; returns the results, and the errors of the refused ones.
async fn answers_at_once(
    client: &mut Client,
    method: &str,
    params: &Value,
) -> (Vec<Value>, Vec<Value>) {
    let mut awaited: Vec<Value> = (0..AT_ONCE)
        .map(|_| client.begin_modern(method, params.clone()))
        .collect();
    let (mut results, mut errors) = (Vec::new(), Vec::new());
    while !awaited.is_empty() {
        let message = client.next().await;
        awaited.retain(|id| *id != message["id"]);
        match message.get("error") {
            Some(error) => errors.push(error.clone()),
            None => results.push(message["result"].clone()),
        }
    }
    (results, errors)
}

#[runtimes::test]
async fn a_rate_limited_tool_is_busy_and_the_session_continues() {
    let mut options = ToolOptions::default();
    options.rate = Some(Rate {
        burst: 2,
        per_second: 0,
    });
    let server = Server::new("limits", "1");
    let limited = Tool::new("limited", json!({"type": "object"}));
    server
        .add_tool_fn(limited, options, |_: Nothing, _: Context| async { "done" })
        .expect("a tool");
    let server = server.tool("free", "Not limited", |_: Nothing, _: Context| async {
        "done"
    });
    let mut client = Client::modern(&server);
    let call = json!({"name": "limited", "arguments": {}});
    let (results, errors) = answers_at_once(&mut client, "tools/call", &call).await;
    assert!(results.len() >= 2, "{} results", results.len());
    assert!(results.iter().all(|result| text(result) == "done"));
    let error = errors.first().expect("too often");
    assert_eq!(error["code"], -31000);
    let message = error["message"].as_str().expect("words");
    assert!(message.contains("limited"), "{message}");
    let result = client.call_modern("free", json!({})).await;
    assert_eq!(text(&result.expect("a result")), "done");
}

#[runtimes::test]
async fn rate_limited_completions_are_busy_and_the_session_continues() {
    let mut settings = Settings::default();
    settings.completion_rate = Some(Rate {
        burst: 2,
        per_second: 0,
    });
    let server = Server::builder("limits", "1").settings(settings);
    let server = server.build().expect("a server").prompt(
        Prompt::new("greet").with_arguments(vec![PromptArgument::new("name")]),
        |_: Nothing, _: Context| async { "hello" },
    );
    server
        .add_completer("greet", "name", Completer::Candidates(vec!["Ada".into()]))
        .expect("it has the argument");
    let mut client = Client::modern(&server);
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"},
                       "argument": {"name": "name", "value": "A"}});
    let (results, errors) = answers_at_once(&mut client, "completion/complete", &params).await;
    assert!(results.len() >= 2, "{} results", results.len());
    let values = |result: &Value| result["completion"]["values"].clone();
    assert!(
        results
            .iter()
            .all(|result| values(result) == json!(["Ada"]))
    );
    let error = errors.first().expect("too often");
    assert_eq!(error["code"], -31000);
    let message = error["message"].as_str().expect("words");
    assert!(message.contains("completion_rate"), "{message}");
    let id = client.begin_modern("prompts/get", json!({"name": "greet"}));
    client.response(&id).await.expect("a prompt");
}

#[tokio::test]
async fn logs_the_reason_of_a_cancellation() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let log = Log::new(tracing::Level::DEBUG);
        let _guard = tracing::subscriber::set_default(log.clone());
        let server = Server::new("limits", "1");
        let server = server.tool(
            "waits",
            "Never ends",
            |_: Nothing, ctx: Context| async move {
                ctx.progress(1.0, None, None);
                std::future::pending::<&str>().await
            },
        );
        let params = json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": "p"}});
        let mut client = Client::modern(&server);
        let id = if revision == "2026-07-28" {
            client.begin_modern("tools/call", params)
        } else {
            client = client.shake_hands(revision).await;
            client.begin("tools/call", params)
        };
        assert_eq!(client.next().await["method"], "notifications/progress");
        client.send(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                           "params": {"requestId": id, "reason": "the user left"}}),
        );
        let mut turns = 0;
        while !log.has("the user left") {
            tokio::task::yield_now().await;
            turns += 1;
            assert!(turns < 1_000, "{revision}: nothing of it in the log");
        }
    }
}

#[runtimes::test]
async fn a_listen_stream_honours_only_what_the_server_supports() {
    let server = Server::new("limits", "1");
    let server = server.tool("plain", "Answers", |_: Nothing, _: Context| async {
        "done"
    });
    let mut client = Client::modern(&server);
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true,
                        "resourcesListChanged": true, "resourceSubscriptions": ["test://a"]});
    client.begin_modern("subscriptions/listen", json!({"notifications": wanted}));
    let acknowledged = client.next().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let honoured = &acknowledged["params"]["notifications"];
    assert_eq!(*honoured, json!({"toolsListChanged": true}));
}

#[runtimes::test]
async fn counts_completion_candidates_beyond_the_limit() {
    let server = Server::new("limits", "1").prompt(
        Prompt::new("greet").with_arguments(vec![PromptArgument::new("name")]),
        |_: Nothing, _: Context| async { "hello" },
    );
    let names = (0..150).map(|number| format!("name{number}")).collect();
    server
        .add_completer("greet", "name", Completer::Candidates(names))
        .expect("it has the argument");
    let mut client = Client::modern(&server);
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"},
                       "argument": {"name": "name", "value": "name"}});
    let id = client.begin_modern("completion/complete", params);
    let completion = client.response(&id).await.expect("candidates")["completion"].clone();
    assert_eq!(completion["values"].as_array().expect("values").len(), 100);
    assert_eq!(completion["total"], 150);
    assert_eq!(completion["hasMore"], true);
}

#[runtimes::test]
async fn does_not_send_results_that_do_not_match_the_output_schema() {
    let server = |check: bool| {
        let mut settings = Settings::default();
        settings.check_output = check;
        let tool = Tool::new("weather", json!({"type": "object"}))
            .with_output_schema(json!({"type": "object", "required": ["degrees"]}));
        let server = Server::builder("limits", "1")
            .settings(settings)
            .build()
            .expect("a server");
        server
            .add_tool_fn(
                tool,
                ToolOptions::default(),
                |_: Nothing, _: Context| async { Json(json!({"secret": 1})) },
            )
            .expect("a tool");
        server
    };
    let mut client = Client::modern(&server(true));
    let result = client.call_modern("weather", json!({})).await;
    let result = result.expect("a result");
    assert_eq!(result["isError"], true);
    assert!(!result.to_string().contains("secret"), "{result}");
    let mut client = Client::modern(&server(false));
    let result = client.call_modern("weather", json!({})).await;
    assert_eq!(result.expect("a result")["structuredContent"]["secret"], 1);
}

#[runtimes::test]
async fn enforces_the_configured_wire_limits() {
    let mut settings = Settings::default();
    settings.wire.max_line_bytes = 400;
    settings.wire.max_json_depth = 4;
    settings.wire.max_batch_messages = 1;
    let server = Server::builder("limits", "1")
        .settings(settings)
        .build()
        .expect("a server");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let with =
        |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params});
    let mut input = Vec::new();
    for message in [
        with(json!({"text": "x".repeat(400)})),
        with(json!({"deep": [[[]]]})),
        json!([ping, ping]),
        ping,
    ] {
        input.extend_from_slice(message.to_string().as_bytes());
        input.push(b'\n');
    }
    let (reader, mut output) = tokio::io::duplex(1 << 16);
    server
        .serve(lines(std::io::Cursor::new(input), reader))
        .await
        .expect("its input has ended");
    let mut text = String::new();
    output.read_to_string(&mut text).await.expect("read");
    let codes: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|message| message["error"]["code"].clone())
        .collect();
    assert_eq!(
        codes,
        // Each request of the batch is refused.
        [
            json!(-32600),
            json!(-32700),
            json!(-32600),
            json!(-32600),
            Value::Null
        ]
    );
}

#[runtimes::test]
async fn a_modern_only_server_names_its_revision_in_handshake_errors() {
    let mut settings = Settings::default();
    settings.revisions = vec![mcpline::Revision::V2026_07_28];
    let builder = Server::builder("limits", "1").settings(settings);
    let server = builder.build().expect("a server");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let input = format!("{hello}\n");
    let (reader, mut output) = tokio::io::duplex(1 << 16);
    let served = server
        .serve(lines(std::io::Cursor::new(input), reader))
        .await;
    served.expect("its input has ended");
    let mut text = String::new();
    output.read_to_string(&mut text).await.expect("read");
    let answer: Value = serde_json::from_str(&text).expect("one message");
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[tokio::test(start_paused = true)]
async fn limits_warnings_of_dropped_notifications() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let warnings = || {
        let lines = log.lines();
        let is_drop = |line: &&String| line.contains("a notification was dropped");
        lines.iter().filter(is_drop).count()
    };
    let options = MethodOptions::default()
        .with_params_schema(json!({"type": "object", "required": ["number"]}));
    struct Never;
    impl mcpline::Handler for Never {
        fn call(&self, _: mcpline::Call) {
            unreachable!("no notification matches the schema");
        }
    }
    let server = Server::new("limits", "1");
    server
        .add_notification_handler("acme/note", options, Arc::new(Never))
        .expect("a custom method");
    // The server's clock starts at the real time, which is later than the time at which the test paused it.
    tokio::time::advance(Duration::from_secs(3_600)).await;
    // The limit applies to the whole server: more clients do not raise it.
    for revision in ["2024-11-05", "2025-11-25"] {
        let client = Client::legacy(&server, revision).await;
        for _ in 0..AT_ONCE {
            client.send(json!({"jsonrpc": "2.0", "method": "acme/note"}));
        }
        assert_eq!(warnings(), 16, "{revision}");
    }
    tokio::time::advance(Duration::from_secs(3)).await;
    let client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..AT_ONCE {
        client.send(json!({"jsonrpc": "2.0", "method": "acme/note"}));
    }
    assert_eq!(warnings(), 16 + 3, "one more with each second");
}

#[tokio::test]
async fn logs_the_uri_of_a_failed_read_quoted_and_truncated() {
    let log = Log::new(tracing::Level::ERROR);
    let _guard = tracing::subscriber::set_default(log.clone());
    struct DropsItsCall;
    impl mcpline::Handler for DropsItsCall {
        fn call(&self, _: mcpline::Call) {}
    }
    let server = Server::new("limits", "1");
    let template = ResourceTemplate::new("note://{+text}", "note");
    server
        .add_resource_template(template, Arc::new(DropsItsCall))
        .expect("a template");
    let uri = format!("note://{}", "c".repeat(2_000));
    let mut client = Client::modern(&server);
    let id = client.begin_modern("resources/read", json!({"uri": uri}));
    let error = client.response(&id).await.expect_err("no answer");
    assert_eq!(error["code"], -32603, "{error}");
    let logged = log.lines().concat();
    assert!(logged.contains("\"note://ccc"), "{logged}");
    assert!(logged.contains('…') && logged.len() < 1_000, "{logged}");
}
