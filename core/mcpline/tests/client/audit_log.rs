//! The audit log of clients: what it records of requests that are sent, refused, answered elsewhere and given up.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpline::client::middleware::{
    ClientMiddleware, ClientNext, ClientOutcome, ClientRequest, ToolPolicy,
};
use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::middleware::AuditLog;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{MiddlewareScope, ToolOptions};
use mcpline::{Context, HandlerError, RpcError, Server, ToolError};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpline-client-audit-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn log(&self) -> AuditLog {
        AuditLog::open(self.path()).expect("opens")
    }

    fn path(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    /// Returns the records without their times and durations. Each line must be whole.
    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path()).expect("a file");
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let record = |line: &str| {
            let record = serde_json::from_str(line);
            let mut record: Value = record.unwrap_or_else(|_| panic!("a record: {line}"));
            let members = record.as_object_mut().expect("an object");
            let time = members.shift_remove("time").expect("a time");
            assert!(time.as_str().is_some_and(|time| time.ends_with('Z')));
            let duration = members.shift_remove("duration_ms").expect("a duration");
            assert!(duration.as_f64().is_some_and(|duration| duration >= 0.0));
            record
        };
        text.lines().map(record).collect()
    }

    /// Waits until there are this many records.
    async fn until(&self, count: usize) -> Vec<Value> {
        loop {
            let records = self.records();
            if records.len() >= count {
                return records;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn server() -> Server {
    let server = Server::new("customers", "1")
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        });
    let tool = Tool::new("echo", json!({"type": "object"}));
    let echo = |args: Value, _: Context| async move { Ok::<_, HandlerError>(args.to_string()) };
    let added = server.add_tool_fn(tool, ToolOptions::default(), echo);
    added.expect("a tool");
    server
}

fn builder(revision: &str, log: impl ClientMiddleware) -> ClientBuilder {
    Client::builder("test", "1")
        .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
        .middleware(log)
}

fn sent(revision: &str, name: &str, id: Option<u64>, outcome: &str) -> Value {
    let mut record = json!({"kind": "sent_request", "method": "tools/call", "name": name, "server": "customers",
                            "outcome": outcome});
    if let Some(id) = id {
        record["request_id"] = id.into();
        record["revision"] = revision.into();
    }
    record
}

#[runtimes::test]
async fn a_record_says_what_was_sent_to_whom_and_how_it_ended() {
    for revision in [LEGACY, MODERN] {
        let folder = Folder::new();
        let client = builder(revision, folder.log()).connect(server()).await;
        let client = client.expect("connects");
        client.call_tool("echo", json!({})).await.expect("a result");
        client.call_tool("fails", json!({})).await.expect("one");
        let unknown = client.call_tool("unknown", json!({})).await;
        unknown.expect_err("unknown");
        let options = RequestOptions::new().timeout(Duration::from_millis(10));
        let late = client.call_tool_with("hangs", json!({}), &options).await;
        late.expect_err("a timeout");
        let records = folder.records();
        let first = records[0]["request_id"].as_u64().expect("an id");
        let mut failed = sent(revision, "unknown", Some(first + 2), "error");
        (failed["error_kind"], failed["code"]) = ("rpc_error".into(), (-32_602).into());
        let mut timed_out = sent(revision, "hangs", Some(first + 3), "error");
        timed_out["error_kind"] = "request_timed_out".into();
        let expected = [
            sent(revision, "echo", Some(first), "ok"),
            sent(revision, "fails", Some(first + 1), "tool_error"),
            failed,
            timed_out,
        ];
        assert_eq!(records, expected);
    }
}

#[runtimes::test]
async fn refused_calls_and_calls_that_other_middleware_answers_are_recorded() {
    async fn answers(request: ClientRequest, next: ClientNext) -> ClientOutcome {
        match request.name().as_deref() {
            Some("answered") => Ok(Raw::from_trusted(r#"{"content":[]}"#)),
            _ => next.run(request).await,
        }
    }
    let folder = Folder::new();
    let client = builder(MODERN, folder.log())
        .middleware(answers)
        .middleware(ToolPolicy::new().with_denied(["delete"]))
        .on_tool_call(|call| async move {
            match call.name == "echo" {
                true => Err("the user does not want it".to_owned()),
                false => Ok(()),
            }
        })
        .connect(server())
        .await
        .expect("connects");
    client.call_tool("answered", json!({})).await.expect("one");
    for name in ["delete", "echo"] {
        let refused = client.call_tool(name, json!({})).await;
        assert!(matches!(refused, Err(ClientError::ToolCallRefused { .. })));
    }
    let refused = |name: &str| {
        let mut record = sent(MODERN, name, None, "error");
        record["error_kind"] = "tool_call_refused".into();
        record
    };
    let answered = sent(MODERN, "answered", None, "ok");
    // None has reached the server, so none has an id.
    assert_eq!(
        folder.records(),
        [answered, refused("delete"), refused("echo")]
    );
    // What is behind another middleware is not recorded.
    let folder = Folder::new();
    let client = Client::builder("test", "1")
        .middleware(ToolPolicy::new().with_denied(["delete"]))
        .middleware(folder.log());
    let client = client.connect(server()).await.expect("connects");
    let refused = client.call_tool("delete", json!({})).await;
    refused.expect_err("refused");
    assert_eq!(folder.records(), [] as [Value; 0]);
}

#[runtimes::test]
async fn requests_that_are_given_up_are_recorded_as_cancelled() {
    for revision in [LEGACY, MODERN] {
        let folder = Folder::new();
        let client = builder(revision, folder.log()).connect(server()).await;
        let client = client.expect("connects");
        let call = client.call_tool("hangs", json!({}));
        let given_up = tokio::time::timeout(Duration::from_millis(20), call).await;
        given_up.expect_err("it hangs");
        let records = folder.until(1).await;
        let id = records[0]["request_id"].as_u64();
        assert_eq!(records, [sent(revision, "hangs", id, "cancelled")]);
        // The client is closed while a call runs.
        let calling = {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("hangs", json!({})).await })
        };
        while client.stats().requests_in_flight == 0 {
            tokio::task::yield_now().await;
        }
        client.close().await;
        let closed = calling.await.expect("no panic");
        assert_eq!(closed.expect_err("closed"), ClientError::Closed);
        let records = folder.records();
        assert_eq!(records[1]["error_kind"], "closed", "{records:?}");
    }
}

#[runtimes::test]
async fn the_start_of_a_task_is_recorded_and_so_are_later_requests_for_its_state() {
    // Of a server with tasks, which those of this library are not on this revision.
    async fn tasks(request: ClientRequest, _: ClientNext) -> ClientOutcome {
        match request.method() {
            "tools/call" => Ok(Raw::from_trusted(
                r#"{"task":{"taskId":"7","status":"working"}}"#,
            )),
            "tasks/get" => Ok(Raw::from_trusted(r#"{"taskId":"7","status":"working"}"#)),
            _ => Err(ClientError::Rpc(RpcError::invalid_params("unknown task"))),
        }
    }
    let folder = Folder::new();
    let log = folder.log().with_arguments(true).with_results(true);
    let builder = builder(LEGACY, log).middleware(tasks);
    let client = builder.connect(server()).await.expect("connects");
    let options = RequestOptions::new();
    let ask = async |method: &str, params: Value| {
        let params = Raw::from_serialize(&params).expect("JSON");
        client.request(method, Some(&params), &options).await
    };
    let call = json!({"name": "echo", "arguments": {"a": 1}, "task": {"ttl": 1000}});
    ask("tools/call", call).await.expect("a task");
    let asked = ask("tasks/get", json!({"taskId": "7"})).await;
    asked.expect("its state");
    let unknown = ask("tasks/result", json!({"taskId": "8"})).await;
    unknown.expect_err("unknown");
    let other =
        |method: &str| json!({"kind": "sent_request", "method": method, "server": "customers"});
    let mut begun = sent(LEGACY, "echo", None, "ok");
    begun["arguments"] = json!({"a": 1});
    begun["result"] = json!({"task": {"taskId": "7", "status": "working"}});
    let mut state = other("tasks/get");
    state["outcome"] = "ok".into();
    state["result"] = json!({"taskId": "7", "status": "working"});
    let mut failed = other("tasks/result");
    (failed["outcome"], failed["error_kind"]) = ("error".into(), "rpc_error".into());
    failed["code"] = (-32_602).into();
    assert_eq!(folder.records(), [begun, state, failed]);
}

#[runtimes::test]
async fn a_server_and_its_client_may_share_a_log_without_secrets() {
    let folder = Folder::new();
    let log = folder
        .log()
        .with_arguments(true)
        .with_results(true)
        .with_redacted(["iban"]);
    let log = Arc::new(log);
    let server = server();
    let scope = MiddlewareScope::all().with_methods(["tools/call"]);
    server.add_middleware(scope, log.clone()).expect("added");
    let client = Client::builder("test", "1").shared_middleware(log);
    let client = client.connect(server).await.expect("connects");
    let arguments = json!({"a": 1, "password": "p", "IBAN": "DE1"});
    let called = client.call_tool("echo", arguments).await;
    called.expect("a result");
    let records = folder.records();
    assert_eq!(records.len(), 2, "{records:?}");
    let kinds = (&records[0]["kind"], &records[1]["kind"]);
    assert_eq!(kinds, (&Value::Null, &"sent_request".into()));
    let redacted = json!({"a": 1, "password": "[redacted]", "IBAN": "[redacted]"});
    for record in &records {
        assert_eq!(record["arguments"], redacted);
        let text = record["result"]["content"][0]["text"].as_str();
        let text: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
        assert_eq!(text, redacted);
    }
    assert_eq!(records[0]["request_id"], records[1]["request_id"]);
}

#[cfg(target_os = "linux")]
#[runtimes::test]
async fn a_full_disk_fails_requests_unless_the_log_is_not_required() {
    for is_required in [true, false] {
        let log = AuditLog::open("/dev/full").expect("opens");
        let builder = builder(MODERN, log.with_required(is_required));
        let client = builder.connect(server()).await.expect("connects");
        let outcome = client.call_tool("echo", json!({})).await;
        if !is_required {
            outcome.expect("a result");
            continue;
        }
        let error = outcome.expect_err("it fails");
        assert_eq!(error.kind(), mcpline::ErrorKind::Transport);
        assert!(error.is_outcome_unknown() && !error.is_retry_safe());
        assert_eq!(
            error.to_string(),
            "request not recorded: the audit log cannot be written; the server may have performed the request"
        );
    }
}
