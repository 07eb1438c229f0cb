//! Records of requests: one for each request, with its outcome, for listeners and for `tracing`.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::protocol::vocabulary::Resource;
use mcpline::server::{Caller, RequestOutcome};
use mcpline::{Context, Server, ToolError};
use serde_json::json;
use support::log::Log;
use support::{Client, Nothing};

type Records = Arc<Mutex<Vec<String>>>;

/// A server whose requests are kept, with their durations in whole seconds.
fn server() -> (Server, Records) {
    let records = Records::default();
    let kept = records.clone();
    let server = Server::new("recorded", "1")
        .tool("ok", "Works", async || "fine")
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("waits", "Waits", async || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "done"
        })
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        })
        .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
            let asked = ctx
                .request_input(mcpline::InputRequest::new(
                    mcpline::InputRequestMethod::ListRoots,
                    None,
                ))
                .await;
            asked
                .map(|_| "answered")
                .map_err(|error| ToolError::new(error.to_string()))
        })
        .resource(Resource::new("a://b", "b"), async || "b");
    server.on_request_end(move |record| {
        let seconds = record.duration.as_secs_f64().round();
        let client = record.client.unwrap_or("nobody");
        let line = format!(
            "{} {:?} {} {seconds} s {client} {:?}",
            record.method, record.name, record.outcome, record.session
        );
        kept.lock().expect("not poisoned").push(line);
    });
    (server, records)
}

fn taken(records: &Records) -> Vec<String> {
    std::mem::take(&mut records.lock().expect("not poisoned"))
}

#[tokio::test(start_paused = true)]
async fn each_request_of_a_session_is_recorded_with_its_outcome() {
    let (server, records) = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({"cursor": "x"})),
        ("tools/call", json!({"name": "ok"})),
        ("tools/call", json!({"name": "fails"})),
        ("tools/call", json!({"name": "ok", "arguments": []})),
        ("tools/call", json!({"name": "missing"})),
        ("tools/call", json!({"name": "waits"})),
        ("resources/read", json!({"uri": "a://b"})),
        ("resources/subscribe", json!({"uri": "a://c"})),
        ("logging/setLevel", json!({"level": "info"})),
        ("nothing", json!({})),
    ] {
        let id = client.begin(method, params);
        let _ = client.response(&id).await;
    }
    let expected = [
        r#"initialize "" ok 0 s test None"#,
        r#"ping "" ok 0 s test None"#,
        r#"tools/list "" ok 0 s test None"#,
        r#"tools/list "" error -32602 0 s test None"#,
        r#"tools/call "ok" ok 0 s test None"#,
        r#"tools/call "fails" tool_error 0 s test None"#,
        r#"tools/call "ok" error -32602 0 s test None"#,
        r#"tools/call "missing" error -32602 0 s test None"#,
        r#"tools/call "waits" ok 2 s test None"#,
        r#"resources/read "a://b" ok 0 s test None"#,
        r#"resources/subscribe "a://c" error -32002 0 s test None"#,
        r#"logging/setLevel "" ok 0 s test None"#,
        r#"nothing "" error -32601 0 s test None"#,
    ];
    assert_eq!(taken(&records), expected);
}

#[tokio::test(start_paused = true)]
async fn texts_of_a_client_cannot_control_a_terminal_or_forge_lines() {
    let (server, records) = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    taken(&records);
    for (method, params) in [
        (
            "tools/call",
            json!({"name": "\u{1b}[31mred\r\nERROR forged\u{202e}\u{0}"}),
        ),
        ("no\n\u{1b}]0;title\u{7}thing", json!({})),
    ] {
        let id = client.begin(method, params);
        let _ = client.response(&id).await;
    }
    let expected = [
        "tools/call \"red  ERROR forged\u{fffd}\u{fffd}\" error -32602 0 s test None",
        r#"no thing "" error -32601 0 s test None"#,
    ];
    assert_eq!(taken(&records), expected);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_recorded_once() {
    let (server, records) = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "hangs"}));
    tokio::time::sleep(Duration::from_secs(3)).await;
    taken(&records);
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        taken(&records),
        [r#"tools/call "hangs" cancelled 3 s test None"#]
    );
    client.begin("tools/call", json!({"name": "hangs"}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Its client leaves.
    drop(client);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(taken(&records).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_asks_for_input_and_its_retry_are_two() {
    let (server, records) = server();
    let mut client = Client::modern(&server);
    let asked = client
        .call_modern("asks", json!({}))
        .await
        .expect("a result");
    let retry =
        json!({"requestState": asked["requestState"], "inputResponses": {"ask-1": {"roots": []}}});
    client.call_modern("asks", retry).await.expect("a result");
    let expected = [
        r#"tools/call "asks" input_required 0 s nobody None"#,
        r#"tools/call "asks" ok 0 s nobody None"#,
    ];
    assert_eq!(taken(&records), expected);
}

#[tokio::test(start_paused = true)]
async fn records_are_tracing_events() {
    let server = Server::new("recorded", "1").tool("ok", "Works", async || "fine");
    let mut client = Client::modern(&server);
    // `tracing` forgets a subscriber that is set while another test is the first to reach the same place in the code.
    client.call_modern("ok", json!({})).await.expect("a result");
    let log = Log::new(tracing::Level::INFO);
    let _guard = tracing::subscriber::set_default(log.clone());
    client.call_modern("ok", json!({})).await.expect("a result");
    for field in ["\"tools/call\"", "\"ok\"", "ok", "request"] {
        assert!(
            log.lines().iter().any(|line| line == field),
            "{field}: {:?}",
            log.lines()
        );
    }
}

#[tokio::test]
async fn records_have_the_caller_and_the_trace() {
    let lines: Records = Records::default();
    let kept = lines.clone();
    let server = Server::new("recorded", "1").tool("ok", "Works", async || "fine");
    server.on_request_end(move |record| {
        let line = format!(
            "{:?} {:?} {:?} {:?}",
            record.issuer, record.subject, record.client_id, record.trace_id
        );
        kept.lock()
            .expect("not poisoned")
            .extend([line, record.to_string()]);
    });
    let caller = Caller::new()
        .with_issuer("https://issuer.example")
        .with_subject("al\nice")
        .with_client_id("app");
    let mut client = Client::over(server.connect_as(caller));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": parent,
    });
    let id = client.begin("tools/call", json!({"name": "ok", "_meta": meta}));
    client.response(&id).await.expect("a result");
    let recorded = taken(&lines);
    assert_eq!(
        recorded[0],
        r#"Some("https://issuer.example") Some("al ice") Some("app") Some("4bf92f3577b34da6a3ce929d0e0e4736")"#
    );
    let end = r#", issuer "https://issuer.example", subject "al ice", client id "app", trace 4bf92f3577b34da6a3ce929d0e0e4736"#;
    assert!(recorded[1].ends_with(end), "{}", recorded[1]);
    let mut client = Client::modern(&server);
    client.call_modern("ok", json!({})).await.expect("a result");
    assert_eq!(taken(&lines)[0], "None None None None");
}

#[tokio::test]
async fn names_that_clients_choose_are_cut_and_printed_safely() {
    let lines: Records = Records::default();
    let kept = lines.clone();
    let server = Server::new("recorded", "1");
    server.on_request_end(move |record| {
        assert_eq!(record.outcome.name(), "error");
        assert!(matches!(record.outcome, RequestOutcome::Error(_)));
        kept.lock().expect("not poisoned").push(record.to_string());
    });
    let mut client = Client::modern(&server);
    let name = format!("\u{1b}[2J{}", "é".repeat(10_000));
    client
        .call_modern(&name, json!({}))
        .await
        .expect_err("unknown");
    let line = taken(&lines).pop().expect("a line");
    assert!(line.starts_with("tools/call "), "{line}");
    assert!(line.contains(": error -32601 in "), "{line}");
    assert!(
        line.chars().count() < 260 && !line.contains('\u{1b}'),
        "{line}"
    );
}
