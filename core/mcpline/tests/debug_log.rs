//! What debug mode writes to the log. Apart from other tests of debug mode, because each needs a subscriber: see `Log`.

mod support;

use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, Server, Settings};
use serde_json::json;
use support::log::Log;
use support::{Client, Nothing};

fn server(debug: Option<bool>) -> Server {
    let mut settings = Settings::default();
    settings.debug = debug;
    let builder = Server::builder("observed", "1").settings(settings);
    let server = builder.build().expect("valid settings");
    server.tool("plain", "Answers", |_: Nothing, _: Context| async {
        "done"
    })
}

#[test]
fn a_warning_says_that_debug_mode_is_on() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    server(Some(false));
    assert!(!log.has("debug mode"));
    server(Some(true));
    let lines = log.lines();
    let warnings = lines.iter().filter(|line| line.contains("debug mode"));
    assert_eq!(warnings.count(), 1, "{lines:?}");
    assert!(log.has("do not use it in production"));
}

#[tokio::test]
async fn a_warning_names_an_address_that_other_machines_reach() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    for (address, debug, is_warned) in [
        ("127.0.0.1", true, false),
        ("0.0.0.0", false, false),
        ("0.0.0.0", true, true),
    ] {
        let http = http((address, 0), HttpOptions::default()).await;
        let http = http.expect("a free port");
        let listens = format!("listens on {}", http.address());
        let stop = Stop::new();
        stop.stop();
        let served = server(Some(debug)).serve_until(http, stop).await;
        served.expect("stopped");
        assert_eq!(log.has(&listens), is_warned, "{:?}", log.lines());
    }
}

#[tokio::test]
async fn records_are_tracing_events_with_redacted_messages_of_limited_length() {
    let log = Log::new(tracing::Level::INFO);
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = server(Some(true));
    let mut client = Client::modern(&server);
    let arguments = json!({"name": "plain", "arguments": {"password": "s3cret", "text": "\u{1b}[2J\u{9b}".repeat(10_000)}});
    let id = client.begin_modern("tools/call", arguments);
    let _ = client.response(&id).await;
    let received = log
        .lines()
        .into_iter()
        .find(|line| line.starts_with("received {"));
    let received = received.expect("a record");
    assert!(
        received.contains(r#""password":"[redacted]""#),
        "{received}"
    );
    assert!(
        received.ends_with(" bytes)") && received.len() < 5_000,
        "{received}"
    );
    for line in log.lines() {
        assert!(
            !line.contains("s3cret") && !line.contains(['\u{1b}', '\u{9b}']),
            "{line}"
        );
    }
    assert!(log.lines().iter().any(|line| line.starts_with("sent {")));
    for field in ["\"memory\"", "\"2026-07-28\""] {
        assert!(log.lines().iter().any(|line| line == field), "{field}");
    }
}
