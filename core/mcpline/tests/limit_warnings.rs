//! Refusals by a limit are logged, but a peer cannot fill the log with them. Each warning has a limit for the whole
//! process, so these tests are a separate program.

mod support;

use http::Method;
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use support::Nothing;
use support::log::Log;
use support::requests::{body, call, initialize, request};

/// How many warnings of one place are logged at once, `RATE` in `src/warning_limit.rs`; one more each second.
const BURST: usize = 16;
/// More than the burst and what another second or two add.
const FLOOD: i64 = 200;

#[tokio::test]
async fn refusals_by_a_limit_are_logged_a_few_times() {
    let log = Log::new(tracing::Level::WARN);
    let _log = tracing::subscriber::set_default(log.clone());
    let mut settings = Settings::default();
    settings.session.max_requests_in_flight = 1;
    let server = Server::builder("limits", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .tool("waits", "Waits", |_: Nothing, _: Context| {
            std::future::pending::<String>()
        });
    let client = server.connect();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [initialize("2025-11-25"), initialized, call(0, "waits")] {
        client.send(message.to_string());
    }
    client.receive().await.expect("a handshake");
    for id in 1..=FLOOD {
        client.send(call(id, "waits").to_string());
        let answer = client.receive().await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["error"]["code"], -31000, "{answer}");
    }
    let lines = log.lines();
    let reasons = lines
        .iter()
        .filter(|line| line.contains("1 requests are in flight already"));
    let logged = reasons.count();
    assert!(
        (BURST..FLOOD as usize / 2).contains(&logged),
        "{logged} of {FLOOD}: {lines:?}"
    );
}

#[tokio::test]
async fn refusals_by_the_transport_are_logged_a_few_times() {
    let log = Log::new(tracing::Level::WARN);
    let _log = tracing::subscriber::set_default(log.clone());
    let server = Server::new("limits", "1");
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    let service = server.http_service(options);
    let begin = || service.handle(request(Method::POST, &[], initialize("2025-11-25")));
    let first = begin().await;
    let id = first.headers()["mcp-session-id"].to_str().expect("ASCII");
    // An open stream keeps the session from being evicted.
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let _stream = service
        .handle(request(Method::GET, &headers, Value::Null))
        .await;
    for _ in 0..FLOOD {
        let refused = begin().await;
        assert_eq!(refused.status(), 503);
        assert_eq!(body(refused).await["error"]["code"], -31000);
    }
    let lines = log.lines();
    let logged = lines
        .iter()
        .filter(|line| line.contains("too many sessions are in use"))
        .count();
    assert!(
        (BURST..FLOOD as usize / 2).contains(&logged),
        "{logged} of {FLOOD}: {lines:?}"
    );
}
