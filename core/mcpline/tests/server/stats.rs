//! Statistics: a snapshot of what a server holds.

use std::time::Duration;

use crate::support::Client;
use crate::support::requests::{initialize, request};
use http::Method;
use mcpline::protocol::vocabulary::Resource;
use mcpline::server::ServerStats;
use mcpline::transport::http::HttpOptions;
use mcpline::{Server, Settings};
use serde_json::{Value, json};

fn server() -> Server {
    let mut settings = Settings::default();
    settings.max_calls = 8;
    Server::builder("counted", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        })
        .resource(Resource::new("a://b", "b"), async || "b")
}

fn used(stats: &ServerStats, name: &str) -> usize {
    let budget = stats.budgets.iter().find(|budget| budget.name == name);
    budget.expect(name).used
}

#[tokio::test(start_paused = true)]
async fn an_unused_server_holds_nothing() {
    let server = server();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stats = server.stats();
    assert_eq!(stats.uptime.as_secs_f64().round(), 5.0);
    let counted = [
        stats.connections,
        stats.sessions,
        stats.streams,
        stats.requests_in_flight,
    ];
    assert_eq!(counted, [0; 4]);
    let limits: Vec<_> = stats
        .budgets
        .iter()
        .map(|one| (one.name, one.limit))
        .collect();
    let expected = [
        ("max_total_client_bytes", 512 * 1024 * 1024),
        ("max_calls", 8),
        ("max_suspended_handlers", 10_000),
    ];
    assert_eq!(limits, expected);
}

#[tokio::test(start_paused = true)]
async fn clients_and_their_calls_are_counted_while_they_last() {
    let server = server();
    let mut legacy = Client::legacy(&server, "2025-11-25").await;
    let mut modern = Client::modern(&server);
    legacy.begin("tools/call", json!({"name": "hangs"}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stats = server.stats();
    assert_eq!(stats.connections, 2);
    assert_eq!(stats.sessions, 1, "2026-07-28 has none");
    assert_eq!(stats.requests_in_flight, 1);
    assert_eq!(used(&stats, "max_calls"), 1);
    assert!(
        used(&stats, "max_total_client_bytes") > 0,
        "for the session"
    );
    let _ = modern.call_modern("missing", json!({})).await;
    drop((legacy, modern));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let stats = server.stats();
    assert_eq!((stats.connections, stats.sessions), (0, 0));
    assert_eq!(stats.requests_in_flight, 0);
    assert_eq!(used(&stats, "max_total_client_bytes"), 0);
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_while_a_client_reads_them() {
    let server = server();
    let service = server.http_service(HttpOptions::default());
    let begun = service.handle(request(Method::POST, &[], initialize("2025-11-25")));
    let begun = begun.await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert_eq!((server.stats().sessions, server.stats().streams), (1, 0));
    let opened = service.handle(request(Method::GET, &headers, Value::Null));
    let stream = opened.await;
    assert_eq!((server.stats().sessions, server.stats().streams), (1, 1));
    drop(stream);
    assert_eq!((server.stats().sessions, server.stats().streams), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn statistics_serialize_with_seconds() {
    let server = server();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let stats = serde_json::to_value(server.stats()).expect("serializes");
    let uptime = stats["uptime"].as_f64().expect("a number");
    assert!((1.4..1.6).contains(&uptime), "{uptime}");
    let mut expected = json!({
        "connections": 0,
        "sessions": 0,
        "streams": 0,
        "requests_in_flight": 0,
        "budgets": [
            {"name": "max_total_client_bytes", "used": 0, "limit": 512 * 1024 * 1024},
            {"name": "max_calls", "used": 0, "limit": 8},
            {"name": "max_suspended_handlers", "used": 0, "limit": 10_000},
        ],
    });
    expected["uptime"] = stats["uptime"].clone();
    assert_eq!(stats, expected);
}
