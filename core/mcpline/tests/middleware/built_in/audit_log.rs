//! The audit log: its records, its files, and what happens if it cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpline::middleware::{AuditLog, Redaction};
use mcpline::protocol::vocabulary::{Resource, Tool};
use mcpline::server::{Caller, MiddlewareScope, MountOptions, ToolOptions};
use mcpline::{Context, ErrorKind, HandlerError, Server, ToolError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{ask, call, with};
use crate::support::Client;

/// A folder that is removed in the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpline-audit-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the records of a file. Each line must be whole.
pub(super) fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file");
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let record =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("a record: {line}"));
    text.lines().map(record).collect()
}

fn server() -> Server {
    let server = Server::new("audited", "1")
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("waits", "Waits", async || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "done"
        })
        .resource(Resource::new("a://b", "b"), async || "b");
    let tool = Tool::new("echo", json!({"type": "object"}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            |args: Value, _: Context| async move { Ok::<_, HandlerError>(args.to_string()) },
        )
        .expect("a tool");
    server
}

#[tokio::test(start_paused = true)]
async fn a_record_says_who_asked_for_what_and_how_it_ended() {
    let folder = Folder::new();
    let server = with(server(), AuditLog::open(folder.log()).expect("opens"));
    let caller = Caller::new()
        .with_issuer("https://as.example")
        .with_subject("ann")
        .with_client_id("app");
    let mut ann = Client::over(server.connect_as(caller))
        .shake_hands("2025-11-25")
        .await;
    let mut other = Client::modern(&server);
    call(&mut ann, "echo").await.expect("a result");
    call(&mut ann, "fails").await.expect("a result");
    call(&mut ann, "unknown").await.expect_err("unknown");
    call(&mut ann, "waits").await.expect("a result");
    let id = other.begin_modern("resources/read", json!({"uri": "a://b"}));
    other.response(&id).await.expect("contents");
    ask(&mut ann, "tools/list", json!({}))
        .await
        .expect("a list");
    let mut seen = records(&folder.log());
    for record in &mut seen {
        let record = record.as_object_mut().expect("an object");
        let time = record.shift_remove("time").expect("a time");
        let time = time.as_str().expect("a text");
        assert!(
            time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T',
            "{time}"
        );
        let duration = record.shift_remove("duration_ms").expect("a duration");
        let duration = duration.as_f64().expect("a number");
        match record.get("name") == Some(&json!("waits")) {
            true => assert!((2_000.0..2_100.0).contains(&duration), "{duration}"),
            false => assert!((0.0..2_000.0).contains(&duration), "{duration}"),
        }
    }
    let of_ann = |method: &str, name: &str, id: u32, outcome: &str| {
        json!({"method": method, "name": name, "request_id": id, "issuer": "https://as.example", "subject": "ann",
               "client_id": "app", "transport": "memory", "revision": "2025-11-25", "outcome": outcome})
    };
    let mut unknown = of_ann("tools/call", "unknown", 4, "error");
    unknown["code"] = (-32_602).into();
    let mut list = of_ann("tools/list", "", 6, "ok");
    list.as_object_mut()
        .expect("an object")
        .shift_remove("name");
    let client = seen[4]["client"].clone();
    assert!(
        client.as_str().expect("a text").starts_with("connection "),
        "{client}"
    );
    let read = json!({"method": "resources/read", "name": "a://b", "request_id": 1, "client": client,
                      "transport": "memory", "revision": "2026-07-28", "outcome": "ok"});
    assert_eq!(
        seen,
        [
            of_ann("tools/call", "echo", 2, "ok"),
            of_ann("tools/call", "fails", 3, "tool_error"),
            unknown,
            of_ann("tools/call", "waits", 5, "ok"),
            read,
            list,
        ]
    );
}

#[runtimes::test]
async fn arguments_and_results_are_recorded_without_secrets_and_with_a_limit() {
    let folder = Folder::new();
    let log = AuditLog::open(folder.log()).expect("opens");
    let log = log
        .with_arguments(true)
        .with_results(true)
        .with_redacted(["IBAN"]);
    let server = with(server(), log);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let arguments = json!({"a": 1, "api_key": "k", "in": {"iban": [1, 2], "max_tokens": 5}});
    let params = json!({"name": "echo", "arguments": arguments});
    ask(&mut client, "tools/call", params)
        .await
        .expect("a result");
    let large = json!({"name": "echo", "arguments": {"a": "x".repeat(20_000)}});
    ask(&mut client, "tools/call", large)
        .await
        .expect("a result");
    let seen = records(&folder.log());
    let redacted =
        json!({"a": 1, "api_key": "[redacted]", "in": {"iban": "[redacted]", "max_tokens": 5}});
    assert_eq!(seen[0]["arguments"], redacted);
    let text = seen[0]["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), redacted);
    assert_eq!(seen[1]["arguments_bytes"], 20_008);
    assert!(seen[1]["result_bytes"].as_u64().expect("a size") > 20_000);
    assert_eq!(
        (seen[1].get("arguments"), seen[1].get("result")),
        (None, None)
    );
}

#[runtimes::test]
async fn what_a_client_writes_breaks_no_line() {
    let folder = Folder::new();
    let log = AuditLog::open(folder.log())
        .expect("opens")
        .with_arguments(true);
    let server = with(server(), log);
    let memory = server.connect();
    let name = format!("\\n{}é", "x".repeat(2_000));
    memory.send(format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": \"\\r\\n\\u2028\", \"method\": \"tools/call\", \"params\": {{\"name\": \"{name}\",\n \"arguments\":\r\n{{\n\"a\\n\": 1}}, \"_meta\": {{\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\", \"io.modelcontextprotocol/clientCapabilities\": {{}}}}}}}}"
    ));
    memory.receive().await.expect("an answer");
    let seen = records(&folder.log());
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["request_id"], "\r\n\u{2028}");
    assert_eq!(seen[0]["arguments"], json!({"a\n": 1}));
    let name = seen[0]["name"].as_str().expect("a text");
    assert_eq!(name, format!("\n{}…", "x".repeat(1_023)));
}

#[test]
fn a_request_without_an_outcome_is_recorded_before_the_log_is_dropped() {
    let folder = Folder::new();
    // On one thread, so that nothing runs while the runtime ends: elsewhere a middleware may still see that its handler is gone,
    // and records that error.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let begun = Arc::new(Notify::new());
        let notify = begun.clone();
        let server = Server::new("hangs", "1").tool("hangs", "Never ends", move || {
            notify.notify_one();
            std::future::pending::<String>()
        });
        let server = with(server, AuditLog::open(folder.log()).expect("opens"));
        let mut client = Client::legacy(&server, "2025-11-25").await;
        // One is cancelled by the client, the other by the end of the runtime.
        let cancelled = client.begin("tools/call", json!({"name": "hangs", "arguments": {}}));
        begun.notified().await;
        client.begin("tools/call", json!({"name": "hangs", "arguments": {}}));
        begun.notified().await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}}));
        while records(&folder.log()).is_empty() {
            tokio::task::yield_now().await;
        }
    });
    drop(runtime);
    let seen = records(&folder.log());
    let mut ids: Vec<_> = seen
        .iter()
        .map(|record| record["request_id"].as_u64())
        .collect();
    ids.sort();
    assert_eq!(ids, [Some(2), Some(3)]);
    assert!(
        seen.iter().all(|record| record["outcome"] == "cancelled"),
        "{seen:?}"
    );
}

#[runtimes::test]
async fn files_are_rotated_without_losing_a_record() {
    const MAX_BYTES: u64 = 1_000;
    let folder = Folder::new();
    let log = AuditLog::open(folder.log()).expect("opens");
    let server = with(server(), log.with_max_bytes(MAX_BYTES).with_max_files(3));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..30 {
        call(&mut client, "echo").await.expect("a result");
    }
    let file = |number: u32| folder.0.join(format!("audit.jsonl.{number}"));
    let mut ids = Vec::new();
    for path in [file(3), file(2), file(1), folder.log()] {
        let size = fs::metadata(&path).expect("a file").len();
        assert!(size <= MAX_BYTES, "{size}");
        ids.extend(
            records(&path)
                .iter()
                .map(|record| record["request_id"].as_u64()),
        );
    }
    assert!(!file(4).exists());
    // The oldest were deleted, and the rest are there.
    let expected: Vec<_> = (32 - ids.len() as u64..32).map(Some).collect();
    assert!(ids.len() >= 12, "{}", ids.len());
    assert_eq!(ids, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn records_of_concurrent_requests_are_neither_lost_nor_torn() {
    let folder = Folder::new();
    let log = AuditLog::open(folder.log()).expect("opens");
    let log = log
        .with_arguments(true)
        .with_max_bytes(20_000)
        .with_max_files(100);
    let server = with(server(), log);
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..8 {
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let ids: Vec<Value> = (0..50)
            .map(|call| {
                let arguments =
                    json!({"client": number, "call": call, "text": "x".repeat(call * 7)});
                client.begin(
                    "tools/call",
                    json!({"name": "echo", "arguments": arguments}),
                )
            })
            .collect();
        clients.spawn_blocking(move || {
            tokio::runtime::Handle::current().block_on(async {
                // In any order.
                for _ in ids {
                    let answer = client.next().await;
                    assert!(answer.get("result").is_some(), "{answer}");
                }
            });
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("no panic");
    }
    let mut seen = Vec::new();
    for entry in fs::read_dir(&folder.0).expect("a folder") {
        for record in records(&entry.expect("an entry").path()) {
            let arguments = &record["arguments"];
            seen.push((arguments["client"].as_u64(), arguments["call"].as_u64()));
        }
    }
    seen.sort();
    let expected: Vec<_> = (0..8)
        .flat_map(|client| (0..50).map(move |call| (Some(client), Some(call))))
        .collect();
    assert_eq!(seen, expected);
}

#[cfg(target_os = "linux")]
#[runtimes::test]
async fn a_full_disk_fails_requests_unless_the_log_is_not_required() {
    for is_required in [true, false] {
        let log = AuditLog::open("/dev/full").expect("opens");
        let server = with(server(), log.with_required(is_required));
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let outcome = call(&mut client, "echo").await;
        match is_required {
            true => {
                let error = outcome.expect_err("it fails");
                assert_eq!(error["code"], -32_603);
                assert_eq!(
                    error["message"],
                    "the audit log cannot be written; the request may have been performed"
                );
            }
            false => assert_eq!(outcome.expect("a result"), "{}"),
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_a_mistake() {
    let folder = Folder::new();
    let error = AuditLog::open(&folder.0).expect_err("a folder");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let path = folder.0.display().to_string();
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot open the audit log {path}: ")),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn a_new_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    AuditLog::open(folder.log()).expect("opens");
    let mode = fs::metadata(folder.log())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[runtimes::test]
async fn a_log_of_a_mounted_server_sees_its_own_requests() {
    let folder = Folder::new();
    let inner = with(server(), AuditLog::open(folder.log()).expect("opens"));
    let outer_path = folder.0.join("outer.jsonl");
    let outer = with(
        Server::new("outer", "1"),
        AuditLog::open(&outer_path).expect("opens"),
    );
    outer
        .mount(&inner, MountOptions::default().with_prefix("sub"))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    call(&mut client, "sub_echo").await.expect("a result");
    call(&mut client, "unknown").await.expect_err("unknown");
    let names = |path: &Path| -> Vec<Value> {
        records(path)
            .iter()
            .map(|record| record["name"].clone())
            .collect()
    };
    assert_eq!(names(&folder.log()), ["echo"]);
    assert_eq!(names(&outer_path), ["sub_echo", "unknown"]);
}

#[runtimes::test]
async fn the_order_with_a_redaction_decides_what_is_recorded() {
    let folder = Folder::new();
    let server = server();
    let inside = folder.0.join("inside.jsonl");
    let log = |path: &Path| {
        let log = AuditLog::open(path).expect("opens");
        Arc::new(log.with_arguments(true).with_results(true))
    };
    let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
    let redaction = Arc::new(redaction.with_arguments(true).with_replacement("#"));
    let tools = || MiddlewareScope::all().with_methods(["tools/call"]);
    server
        .add_middleware(tools(), log(&folder.log()))
        .expect("a middleware");
    server
        .add_middleware(tools(), redaction)
        .expect("a middleware");
    server
        .add_middleware(tools(), log(&inside))
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let params = json!({"name": "echo", "arguments": {"a": "ann"}});
    let result = ask(&mut client, "tools/call", params)
        .await
        .expect("a result");
    assert_eq!(result["content"][0]["text"], r##"{"a":"#"}"##);
    assert_eq!(records(&folder.log())[0]["arguments"], json!({"a": "ann"}));
    assert_eq!(records(&inside)[0]["arguments"], json!({"a": "#"}));
    assert_eq!(records(&folder.log())[0]["result"], result);
}
