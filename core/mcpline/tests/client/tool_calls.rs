//! A host's tool call hooks: consent before a call is sent, and the outcome of each call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcpline::ErrorKind;
use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions, ToolCall};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Tool, ToolAnnotations};
use mcpline::server::ToolOptions;
use mcpline::{Context, Revision, Server};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// A server with a tool that counts its calls, and one that never ends.
fn server(calls: &Arc<AtomicUsize>, started: &Arc<Notify>) -> Server {
    let (calls, started) = (calls.clone(), started.clone());
    let mut echo = Tool::new("echo", json!({"type": "object"}));
    echo.annotations = Some(ToolAnnotations::default().with_read_only_hint(true));
    let server = Server::new("test", "1");
    server
        .add_tool_fn(
            echo,
            ToolOptions::default(),
            move |args: Text, _: Context| {
                calls.fetch_add(1, Ordering::Relaxed);
                async move { args.text }
            },
        )
        .expect("a tool");
    server.tool("wait", "Wait for ever", move |_: Text, _: Context| {
        let started = started.clone();
        async move {
            started.notify_one();
            std::future::pending::<()>().await;
            "never"
        }
    })
}

fn host(revision: Revision) -> ClientBuilder {
    Client::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

#[runtimes::test]
async fn hooks_run_before_each_call_and_with_its_outcome() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let calls = Arc::new(AtomicUsize::new(0));
        let server = server(&calls, &Arc::default());
        let log = Arc::new(Mutex::new(Vec::<Value>::new()));
        let (before, after, sent) = (log.clone(), log.clone(), calls.clone());
        let client = host(revision)
            .on_tool_call(move |call: ToolCall| {
                let (log, sent) = (before.clone(), sent.load(Ordering::Relaxed));
                async move {
                    let read_only = call.annotations.as_ref().and_then(|of| of.read_only_hint);
                    let seen = json!([call.id, call.name, call.arguments, read_only, sent]);
                    log.lock().expect("not poisoned").push(seen);
                    match call.arguments["text"] == "no" {
                        true => Err("the user declined".to_owned()),
                        false => Ok(()),
                    }
                }
            })
            .on_tool_outcome(move |outcome| {
                let log = after.clone();
                async move {
                    let text = outcome
                        .result
                        .map(|result| result["content"][0]["text"].clone());
                    let error = outcome
                        .error
                        .map(|error| format!("{}: {}", error.kind, error.message));
                    let seen = json!([outcome.call.id, text, error]);
                    log.lock().expect("not poisoned").push(seen);
                }
            })
            .connect(&server)
            .await
            .expect("connects");
        client
            .list_resources()
            .await
            .expect_err("none of its business");
        let result = client
            .call_tool("echo", json!({"text": "a"}))
            .await
            .expect("it passes");
        assert_eq!(
            serde_json::to_value(&result.content).expect("JSON")[0]["text"],
            "a"
        );
        client.list_tools().await.expect("a list");
        let raw = Raw::from_trusted(r#"{"name":"echo","arguments":{"text":"b"}}"#.to_owned());
        let options = RequestOptions::new();
        client
            .request("tools/call", Some(&raw), &options)
            .await
            .expect("it passes");
        let refused = client.call_tool("echo", json!({"text": "no"})).await;
        assert_eq!(
            refused.expect_err("refused"),
            ClientError::ToolCallRefused {
                reason: "the user declined".to_owned()
            }
        );
        assert_eq!(
            calls.load(Ordering::Relaxed),
            2,
            "what is refused is not sent"
        );
        let log = std::mem::take(&mut *log.lock().expect("not poisoned"));
        let first = log[0][0].as_u64().expect("a number");
        // Other tests in this process make calls, too.
        let [second, third] = [&log[2][0], &log[4][0]];
        assert!(second.as_u64() > Some(first) && third.as_u64() > second.as_u64());
        let text = |text| json!({"text": text});
        assert_eq!(
            log,
            [
                // Annotations are unknown before the tool is listed.
                json!([first, "echo", text("a"), null, 0]),
                json!([first, "a", null]),
                json!([second, "echo", text("b"), true, 1]),
                json!([second, "b", null]),
                json!([third, "echo", text("no"), true, 2]),
                json!([
                    third,
                    null,
                    "tool_call_refused: tool call refused: the user declined"
                ]),
            ]
        );
        client.close().await;
    }
}

#[runtimes::test]
async fn a_panicking_hook_refuses_the_call() {
    let calls = Arc::new(AtomicUsize::new(0));
    let client = host(Revision::V2026_07_28)
        .on_tool_call(|_| async { panic!("a defect of the host") })
        .connect(&server(&calls, &Arc::default()))
        .await
        .expect("connects");
    let refused = client.call_tool("echo", json!({"text": "a"})).await;
    assert_eq!(
        refused.expect_err("refused").kind(),
        ErrorKind::ToolCallRefused
    );
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    client.close().await;
}

#[runtimes::test]
async fn null_arguments_are_empty_for_hooks() {
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let client = host(Revision::V2026_07_28)
        .on_tool_call(|call: ToolCall| async move {
            match call.arguments.is_empty() {
                true => Ok(()),
                false => Err("there are some".to_owned()),
            }
        })
        .on_tool_outcome(move |outcome| {
            let sender = sender.clone();
            async move { sender.send(outcome).expect("somebody listens") }
        })
        .connect(Server::new("test", "1").tool(
            "none",
            "Takes nothing",
            |_: Value, _: Context| async { "done" },
        ))
        .await
        .expect("connects");
    let call = Raw::from_trusted(r#"{"name":"none","arguments":null}"#.to_owned());
    let options = RequestOptions::new();
    let outcome = client.request("tools/call", Some(&call), &options).await;
    // The server decides what the call returns.
    let refused = outcome.as_ref().err().map(ClientError::kind);
    assert_ne!(refused, Some(ErrorKind::ToolCallRefused));
    let reported = outcomes.recv().await.expect("an outcome");
    assert_eq!(reported.call.name, "none");
    assert!(reported.call.arguments.is_empty());
    assert_eq!(outcome.is_ok(), reported.result.is_some(), "{outcome:?}");
    client.close().await;
}

#[runtimes::test]
async fn reports_an_aborted_call_as_cancelled() {
    let started = Arc::new(Notify::new());
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let client = host(Revision::V2026_07_28)
        .on_tool_outcome(move |outcome| {
            let sender = sender.clone();
            async move { sender.send(outcome).expect("somebody listens") }
        })
        .connect(&server(&Arc::default(), &started))
        .await
        .expect("connects");
    let giving_up = {
        let client = client.clone();
        tokio::spawn(async move { client.call_tool("wait", json!({"text": ""})).await })
    };
    started.notified().await;
    giving_up.abort();
    let outcome = outcomes.recv().await.expect("an outcome");
    assert_eq!(outcome.call.name, "wait");
    assert_eq!(outcome.error.expect("cancelled").kind, "request_cancelled");
    client.close().await;
}

#[runtimes::test]
async fn closing_waits_for_the_outcome_hooks_of_open_calls() {
    for has_call_hook in [false, true] {
        let started = Arc::new(Notify::new());
        let (sender, mut outcomes) = mpsc::unbounded_channel();
        let hook_started = started.clone();
        let mut host = host(Revision::V2026_07_28).on_tool_outcome(move |outcome| {
            let sender = sender.clone();
            async move {
                // Yields, as a hook that writes to a file would.
                tokio::task::yield_now().await;
                sender.send(outcome).expect("somebody listens");
            }
        });
        if has_call_hook {
            host = host.on_tool_call(move |_| {
                hook_started.notify_one();
                std::future::pending()
            });
        }
        let client = host
            .connect(&server(&Arc::default(), &started))
            .await
            .expect("connects");
        let calling = {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("wait", json!({"text": ""})).await })
        };
        started.notified().await;
        client.close().await;
        let outcome = outcomes.try_recv().expect("told");
        assert_eq!(outcome.error.expect("closed").kind, "closed");
        let ended = calling.await.expect("no panic");
        assert_eq!(ended.expect_err("closed"), ClientError::Closed);
    }
}
