//! Metrics and statistics of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{Prompt, Resource, Tool};
use mcpline::server::ToolOptions;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, HandlerError, Revision, Server, ToolError};
use serde_json::{Value, json};

fn server() -> Server {
    Server::new("measured", "1")
        .tool("ok", "Works", async || "fine")
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("waits", "Waits", async || {
            tokio::time::sleep(Duration::from_secs(3)).await;
            "done"
        })
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        })
        .prompt(Prompt::new("greet"), async || "hello")
        .resource(Resource::new("a://b", "b"), async || "b")
}

fn host(revision: Revision) -> ClientBuilder {
    Client::builder("host", "1").configure(|settings| {
        settings.revisions = vec![revision];
        settings.metrics = true;
    })
}

/// The values of all series, by name and labels. Checks that each metric is described once, before its series.
fn values(text: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let mut described = Vec::new();
    for line in text.lines() {
        if let Some(metric) = line.strip_prefix("# TYPE ") {
            let (name, _) = metric.split_once(' ').expect("a type");
            assert!(!described.contains(&name), "{name} is described once");
            described.push(name);
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let metric = described.last().expect("a description");
        assert!(series.starts_with(metric), "{series} belongs to {metric}");
        let before = values.insert(series.to_owned(), value.parse().expect("a number"));
        assert_eq!(before, None, "each series has one value: {series}");
    }
    values
}

/// How many requests each series has, by its labels.
fn counts(text: &str) -> Vec<(String, f64)> {
    let name = "mcp_client_operation_duration_seconds_count{";
    let values = values(text).into_iter();
    let counts = values.filter_map(|(series, value)| {
        let labels = series.strip_prefix(name)?.strip_suffix('}')?;
        Some((labels.to_owned(), value))
    });
    counts.collect()
}

fn params(params: Value) -> Option<mcpline::protocol::Raw> {
    Some(mcpline::protocol::Raw::from_serialize(&params).expect("JSON"))
}

async fn ask(client: &Client, method: &str, given: Value) -> Result<(), ClientError> {
    let given = params(given);
    let options = RequestOptions::new();
    let outcome = client.request(method, given.as_ref(), &options).await;
    outcome.map(drop)
}

#[tokio::test(start_paused = true)]
async fn each_request_is_measured_with_its_outcome() {
    let client = host(Revision::V2025_11_25)
        .connect(server())
        .await
        .expect("connects");
    for _ in 0..2 {
        ask(&client, "tools/call", json!({"name": "ok"}))
            .await
            .expect("a result");
    }
    ask(&client, "tools/call", json!({"name": "fails"}))
        .await
        .expect("a result");
    ask(&client, "tools/call", json!({"name": "waits"}))
        .await
        .expect("a result");
    ask(&client, "prompts/get", json!({"name": "greet"}))
        .await
        .expect("a result");
    ask(&client, "resources/read", json!({"uri": "a://b"}))
        .await
        .expect("a result");
    ask(&client, "resources/read", json!({"uri": "a://c"}))
        .await
        .expect_err("unknown");
    let hanging = ask(&client, "tools/call", json!({"name": "hangs"}));
    let given_up = tokio::time::timeout(Duration::from_secs(1), hanging).await;
    assert!(given_up.is_err(), "it hangs");
    let mut options = RequestOptions::new();
    options.timeouts = Some(mcpline::protocol::client::RequestTimeouts {
        idle: Duration::from_secs(1),
        ..Default::default()
    });
    let given = params(json!({"name": "hangs"}));
    let outcome = client.request("tools/call", given.as_ref(), &options).await;
    outcome.expect_err("a timeout");
    let text = client.metrics_text();
    let revision = |labels: &str| format!("{labels},mcp_protocol_version=\"2025-11-25\"");
    let expected = [
        (
            r#"mcp_method_name="prompts/get",gen_ai_prompt_name="greet""#,
            1.0,
        ),
        (
            r#"mcp_method_name="resources/read",error_type="-32002",rpc_response_status_code="-32002""#,
            1.0,
        ),
        (r#"mcp_method_name="resources/read""#, 1.0),
        (
            r#"mcp_method_name="tools/call",gen_ai_tool_name="fails",error_type="tool_error""#,
            1.0,
        ),
        (
            r#"mcp_method_name="tools/call",gen_ai_tool_name="hangs",error_type="cancelled""#,
            1.0,
        ),
        (
            r#"mcp_method_name="tools/call",gen_ai_tool_name="hangs",error_type="request_timed_out""#,
            1.0,
        ),
        (r#"mcp_method_name="tools/call",gen_ai_tool_name="ok""#, 2.0),
        (
            r#"mcp_method_name="tools/call",gen_ai_tool_name="waits""#,
            1.0,
        ),
    ];
    let expected = expected.map(|(labels, count)| (revision(labels), count));
    assert_eq!(counts(&text), expected);
    let waited = revision(
        r#"mcp_client_operation_duration_seconds_sum{mcp_method_name="tools/call",gen_ai_tool_name="waits""#,
    );
    let seconds = values(&text)[&format!("{waited}}}")];
    assert!((2.9..3.5).contains(&seconds), "{seconds}");
    client.close().await;
}

#[tokio::test]
async fn names_that_are_too_long_or_unknown_share_a_series() {
    let server = Server::new("measured", "1");
    for length in [256, 257, 300] {
        let tool = Tool::new("x".repeat(length), json!({"type": "object"}));
        let echo = |_: Value, _: Context| async { Ok::<_, HandlerError>("fine") };
        server
            .add_tool_fn(tool, ToolOptions::default(), echo)
            .expect("a tool");
    }
    let client = host(Revision::V2025_11_25)
        .connect(server)
        .await
        .expect("connects");
    for length in [256, 257, 300] {
        let name = "x".repeat(length);
        ask(&client, "tools/call", json!({"name": name}))
            .await
            .expect("a result");
    }
    for number in 0..10 {
        let name = format!("invented {number}");
        ask(&client, "tools/call", json!({"name": name}))
            .await
            .expect_err("unknown");
    }
    let found = counts(&client.metrics_text());
    let tool = |name: &str| -> Vec<f64> {
        let label = format!("gen_ai_tool_name=\"{name}\"");
        let series = found.iter().filter(|(labels, _)| labels.contains(&label));
        series.map(|(_, count)| *count).collect()
    };
    assert_eq!(tool("_OTHER"), [10.0, 2.0]);
    assert_eq!(tool(&"x".repeat(256)), [1.0]);
    assert_eq!(found.len(), 3);
    client.close().await;
}

#[tokio::test]
async fn sessions_are_measured_when_they_end_and_several_clients_share_a_text() {
    let stop = Stop::new();
    let listener = http("127.0.0.1:0", HttpOptions::default()).await;
    let listener = listener.expect("binds");
    let (url, port) = (listener.url(), listener.address().port());
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { server().serve_until(listener, stop).await }
    });
    let legacy = host(Revision::V2025_11_25)
        .connect(&*url)
        .await
        .expect("connects");
    let modern = host(Revision::V2026_07_28)
        .connect(&*url)
        .await
        .expect("connects");
    let unmeasured = Client::connect(server()).await.expect("connects");
    for client in [&legacy, &modern, &unmeasured] {
        ask(client, "tools/call", json!({"name": "ok"}))
            .await
            .expect("a result");
    }
    assert_eq!(unmeasured.metrics_text(), "");
    legacy.close().await;
    modern.close().await;
    let clients = [
        ("old \"one\"", &legacy),
        ("new", &modern),
        ("none", &unmeasured),
    ];
    let text = Client::metrics_of(clients);
    let values = values(&text);
    let address = format!(r#"server_address="127.0.0.1",server_port="{port}""#);
    let session = format!(
        r#"mcp_client_session_duration_seconds_count{{server="old \"one\"",{address},mcp_protocol_version="2025-11-25",network_transport="tcp"}}"#
    );
    assert_eq!(values[&session], 1.0);
    let sessions = values
        .keys()
        .filter(|series| series.contains("session_duration_seconds_count"));
    assert_eq!(sessions.count(), 1, "2026-07-28 has no sessions");
    let call = |server: &str, revision: &str| {
        let name = "mcp_client_operation_duration_seconds_count";
        let labels = format!(
            "server=\"{server}\",{address},mcp_method_name=\"tools/call\",gen_ai_tool_name=\"ok\""
        );
        values[&format!(
            "{name}{{{labels},mcp_protocol_version=\"{revision}\",network_transport=\"tcp\"}}"
        )]
    };
    assert_eq!(call("old \\\"one\\\"", "2025-11-25"), 1.0);
    assert_eq!(call("new", "2026-07-28"), 1.0);
    assert_eq!(values["mcpline_client_connected{server=\"new\"}"], 0.0);
    assert_eq!(
        values["mcpline_client_connections_total{server=\"new\"}"],
        1.0
    );
    assert!(!text.contains("none"));
    assert_eq!(Client::metrics_of([("none", &unmeasured)]), "");
    unmeasured.close().await;
    stop.stop();
    serving.await.expect("ends").expect("no error");
}

#[tokio::test]
async fn statistics_say_what_a_client_holds() {
    let begun = std::sync::Arc::new(tokio::sync::Notify::new());
    let notify = begun.clone();
    let server = server().tool("begins", "Never ends", move |_: Value, _: Context| {
        notify.notify_one();
        std::future::pending::<String>()
    });
    let client = Client::builder("host", "1")
        .connect(server)
        .await
        .expect("connects");
    let stats = client.stats();
    assert!(stats.is_connected);
    assert_eq!((stats.connections, stats.requests_in_flight), (1, 0));
    let other = client.clone();
    let call = tokio::spawn(async move {
        ask(
            &other,
            "tools/call",
            json!({"name": "begins", "arguments": {}}),
        )
        .await
    });
    begun.notified().await;
    assert_eq!(client.stats().requests_in_flight, 1);
    client.close().await;
    call.await.expect("ends").expect_err("closed");
    let stats = client.stats();
    assert!(!stats.is_connected);
    assert_eq!(stats.requests_in_flight, 0);
    let json = serde_json::to_value(&stats).expect("JSON");
    assert_eq!(json["connections"], 1);
    assert!(json["uptime"].is_f64());
}
