//! Metrics: what is recorded of requests and sessions, its text, and its path at the HTTP server.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::connection::Connection;
use crate::support::requests::{body, initialize, request};
use crate::support::{Client, Nothing};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use mcpline::protocol::session::Rate;
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult, Prompt, Resource};
use mcpline::sharing::Sharing;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, ErrorKind, Server, Settings, ToolError};
use serde_json::{Value, json};

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.metrics = true;
    settings
}

fn server_with(settings: Settings) -> Server {
    Server::builder("measured", "1")
        .settings(settings)
        .build()
        .expect("builds")
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

fn server() -> Server {
    server_with(settings())
}

/// The values of all series, by name and labels.
fn values(server: &Server) -> BTreeMap<String, f64> {
    let text = server.metrics_text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let mut values = BTreeMap::new();
    for sample in samples {
        let (series, value) = sample.rsplit_once(' ').expect("a value");
        let value = value.parse().expect("a number");
        let before = values.insert(series.to_owned(), value);
        assert_eq!(before, None, "each series has one value: {series}");
    }
    values
}

/// How many requests each series has, by its labels without revision and transport.
fn counts(server: &Server) -> Vec<(String, f64)> {
    let name = "mcp_server_operation_duration_seconds_count{";
    let values = values(server).into_iter();
    let counts = values.filter_map(|(series, value)| {
        let labels = series.strip_prefix(name)?.strip_suffix('}')?;
        let common = ",mcp_protocol_version=\"2025-11-25\",network_transport=\"memory\"";
        Some((labels.strip_suffix(common)?.to_owned(), value))
    });
    counts.collect()
}

async fn ask(client: &mut Client, method: &str, params: Value) {
    let id = client.begin(method, params);
    let _ = client.response(&id).await;
}

#[tokio::test(start_paused = true)]
async fn input_requests_are_measured_until_they_are_answered() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let server = server_with(settings()).tool("asks", "Asks", async |ctx: Context| {
            let schema = json!({"type": "object", "properties": {}});
            let params = json!({"message": "Sure?", "requestedSchema": schema});
            let params = mcpline::protocol::Raw::from_serialize(&params).expect("JSON");
            let input_request =
                mcpline::InputRequest::new(mcpline::InputRequestMethod::Elicit, Some(params));
            ctx.request_input(input_request).await.is_ok().to_string()
        });
        let client = mcpline::client::Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
            .on_elicit(async |_| {
                tokio::time::sleep(Duration::from_secs(4)).await;
                Ok(ElicitResult::new(ElicitAction::Cancel))
            })
            .connect(&server)
            .await
            .expect("connects");
        client.call_tool("asks", json!({})).await.expect("a result");
        let values = values(&server);
        let labels = format!(
            "{{mcp_method_name=\"elicitation/create\",mcp_protocol_version=\"{revision}\",network_transport=\"memory\"}}"
        );
        let value =
            |name: &str| values[&format!("mcpline_input_request_duration_seconds_{name}{labels}")];
        assert_eq!(value("count"), 1.0);
        assert_eq!(value("sum").round(), 4.0);
        client.close().await;
    }
}

#[tokio::test]
async fn bytes_of_messages_are_counted() {
    let server = server();
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/call", json!({"name": "ok"}));
    client.response(&id).await.expect("a result");
    let values = values(&server);
    let value = |name: &str, transport: &str| {
        values[&format!("mcpline_{name}_bytes_total{{transport=\"{transport}\"}}")]
    };
    assert!((50.0..1_000.0).contains(&value("received", "memory")));
    assert!((50.0..1_000.0).contains(&value("sent", "memory")));
    assert_eq!(value("received", "http"), 0.0);
}

#[tokio::test]
async fn requests_that_the_http_server_refuses_are_counted_by_reason() {
    let server = server();
    let service = server.http_service(HttpOptions::default());
    for (name, value) in [
        ("host", "evil.example"),
        ("content-type", "text/plain"),
        ("accept", "image/png"),
        ("mcp-session-id", "unknown"),
    ] {
        let body = match name {
            "mcp-session-id" => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            _ => initialize("2025-11-25"),
        };
        let refused = request(Method::POST, &[(name, value)], body);
        let response = service.handle(refused).await;
        assert!(response.status().is_client_error(), "{name}");
    }
    service.close();
    service
        .handle(request(Method::POST, &[], initialize("2025-11-25")))
        .await;
    let values = values(&server);
    for (reason, count) in [
        ("forbidden", 1.0),
        ("content_type", 1.0),
        ("accept", 1.0),
        ("not_found", 1.0),
        ("shutting_down", 1.0),
        ("unauthorized", 0.0),
    ] {
        let series = format!("mcpline_http_requests_refused_total{{reason=\"{reason}\"}}");
        assert_eq!(values[&series], count, "{reason}");
    }
}

#[tokio::test]
async fn requests_have_the_revision_that_they_name() {
    let server = server();
    let mut client = Client::modern(&server);
    let id = client.begin_modern("server/discover", json!({}));
    client.response(&id).await.expect("a result");
    let series = concat!(
        "mcp_server_operation_duration_seconds_count{mcp_method_name=\"server/discover\",",
        "mcp_protocol_version=\"2026-07-28\",network_transport=\"memory\"}"
    );
    assert_eq!(values(&server).get(series), Some(&1.0));
}

#[tokio::test(start_paused = true)]
async fn each_request_is_counted_with_its_outcome() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({"cursor": "x"})),
        ("tools/call", json!({"name": "ok"})),
        ("tools/call", json!({"name": "ok", "arguments": []})),
        ("tools/call", json!({"name": "fails"})),
        ("prompts/get", json!({"name": "greet"})),
        ("resources/read", json!({"uri": "a://b"})),
    ] {
        ask(&mut client, method, params).await;
    }
    let hanging = client.begin("tools/call", json!({"name": "hangs"}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.send(json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hanging}
    }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let code = |code: i32| format!("error_type=\"{code}\",rpc_response_status_code=\"{code}\"");
    let call = "mcp_method_name=\"tools/call\",gen_ai_tool_name=";
    let expected = [
        ("mcp_method_name=\"initialize\"".to_owned(), 1.0),
        ("mcp_method_name=\"ping\"".to_owned(), 1.0),
        (
            "mcp_method_name=\"prompts/get\",gen_ai_prompt_name=\"greet\"".to_owned(),
            1.0,
        ),
        ("mcp_method_name=\"resources/read\"".to_owned(), 1.0),
        (format!("{call}\"fails\",error_type=\"tool_error\""), 1.0),
        (format!("{call}\"hangs\",error_type=\"cancelled\""), 1.0),
        (format!("{call}\"ok\",{}", code(-32602)), 1.0),
        (format!("{call}\"ok\""), 1.0),
        (
            format!("mcp_method_name=\"tools/list\",{}", code(-32602)),
            1.0,
        ),
        ("mcp_method_name=\"tools/list\"".to_owned(), 2.0),
    ];
    let mut counts = counts(&server);
    let mut expected = expected.to_vec();
    counts.sort_by(|one, other| one.0.cmp(&other.0));
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(counts, expected);
}

#[tokio::test(start_paused = true)]
async fn durations_are_in_their_buckets() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for tool in ["waits", "waits"] {
        ask(&mut client, "tools/call", json!({"name": tool})).await;
    }
    let values = values(&server);
    let labels = "mcp_method_name=\"tools/call\",gen_ai_tool_name=\"waits\",\
                  mcp_protocol_version=\"2025-11-25\",network_transport=\"memory\"";
    let name = "mcp_server_operation_duration_seconds";
    let bucket = |le: &str| values[&format!("{name}_bucket{{{labels},le=\"{le}\"}}")];
    let bounds = [
        "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30", "60", "120", "300",
        "+Inf",
    ];
    let counted: Vec<f64> = bounds.iter().map(|bound| bucket(bound)).collect();
    let mut expected = vec![0.0; 8];
    expected.extend([2.0; 7]);
    assert_eq!(counted, expected);
    let sum = values[&format!("{name}_sum{{{labels}}}")];
    assert!((5.9..6.1).contains(&sum), "{sum}");
}

#[tokio::test(start_paused = true)]
async fn names_that_the_server_does_not_have_share_a_series() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let before = values(&server).len();
    for number in 0..50 {
        // Its printable form is the name of a tool.
        let name = match number {
            0 => "\u{1b}[31mok".to_owned(),
            number => format!("tool-{number}\"\\\n"),
        };
        ask(&mut client, "tools/call", json!({"name": name})).await;
        ask(&mut client, "prompts/get", json!({"name": name})).await;
        ask(&mut client, &format!("method/{number}"), json!({})).await;
    }
    let counts = counts(&server);
    let others: Vec<_> = counts
        .iter()
        .filter(|(labels, _)| labels.contains("_OTHER"))
        .collect();
    let error = |code: i32| format!("error_type=\"{code}\",rpc_response_status_code=\"{code}\"");
    let mut expected = [
        (
            format!(
                "mcp_method_name=\"prompts/get\",gen_ai_prompt_name=\"_OTHER\",{}",
                error(-32602)
            ),
            50.0,
        ),
        (
            format!(
                "mcp_method_name=\"tools/call\",gen_ai_tool_name=\"_OTHER\",{}",
                error(-32602)
            ),
            50.0,
        ),
        (
            format!("mcp_method_name=\"_OTHER\",{}", error(-32601)),
            50.0,
        ),
    ];
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(others, expected.iter().collect::<Vec<_>>());
    assert_eq!(values(&server).len(), before + 3 * 17);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_counted_while_open_and_recorded_when_they_end() {
    let server = server();
    let service = server.http_service(HttpOptions::default());
    let begun = service.handle(request(Method::POST, &[], initialize("2025-06-18")));
    let begun = begun.await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let memory = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(values(&server)["mcpline_sessions"], 2.0);
    tokio::time::sleep(Duration::from_secs(7)).await;
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    let ended = service.handle(request(Method::DELETE, &headers, Value::Null));
    assert!(ended.await.status().is_success());
    let values_after = values(&server);
    assert_eq!(values_after["mcpline_sessions"], 1.0);
    let name = "mcp_server_session_duration_seconds";
    let labels = "mcp_protocol_version=\"2025-06-18\",network_transport=\"tcp\"";
    assert_eq!(values_after[&format!("{name}_count{{{labels}}}")], 1.0);
    let sum = values_after[&format!("{name}_sum{{{labels}}}")];
    assert!((6.9..7.1).contains(&sum), "{sum}");
    drop(memory);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let values = values(&server);
    assert_eq!(values["mcpline_sessions"], 0.0);
    let labels = "mcp_protocol_version=\"2025-11-25\",network_transport=\"memory\"";
    assert_eq!(values[&format!("{name}_count{{{labels}}}")], 1.0);
}

/// Each process takes over what the other one changes.
#[tokio::test(start_paused = true)]
async fn a_session_that_processes_share_is_counted_once_in_each() {
    let sharing = Sharing::in_memory();
    let servers = [(); 2].map(|()| {
        let mut settings = settings();
        settings.sharing = Some(sharing.clone());
        server_with(settings)
    });
    let services = [0, 1].map(|index| servers[index].http_service(HttpOptions::default()));
    let begun = services[0].handle(request(Method::POST, &[], initialize("2025-06-18")));
    let begun = begun.await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    for (index, level) in [(1, "error"), (0, "info"), (1, "debug"), (0, "error")] {
        let changed = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": level}});
        let changed = services[index].handle(request(Method::POST, &headers, changed));
        assert!(body(changed.await).await["result"].is_object());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let labels = "mcp_protocol_version=\"2025-06-18\",network_transport=\"tcp\"";
    let ended = format!("mcp_server_session_duration_seconds_count{{{labels}}}");
    for server in &servers {
        let values = values(server);
        assert_eq!(values["mcpline_sessions"], 1.0);
        assert_eq!(values.get(&ended), None, "the session goes on");
    }
    let deleted = services[0].handle(request(Method::DELETE, &headers, Value::Null));
    assert!(deleted.await.status().is_success());
    tokio::time::sleep(Duration::from_secs(1)).await;
    for server in &servers {
        let values = values(server);
        assert_eq!(values["mcpline_sessions"], 0.0);
        assert_eq!(values[&ended], 1.0);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_that_refuse_requests_are_counted() {
    let mut settings = settings();
    settings.max_calls = 1;
    settings.client_share = 1.0;
    settings.tool_rate = Some(Rate {
        burst: 2,
        per_second: 1,
    });
    let server = server_with(settings);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..3 {
        ask(&mut client, "tools/call", json!({"name": "ok"})).await;
    }
    client.begin("tools/call", json!({"name": "hangs"}));
    tokio::time::sleep(Duration::from_millis(1)).await;
    for _ in 0..2 {
        ask(&mut client, "prompts/get", json!({"name": "greet"})).await;
    }
    let values = values(&server);
    let reached = |limit: &str, scope: &str| {
        values[&format!("mcpline_limit_reached_total{{limit=\"{limit}\",scope=\"{scope}\"}}")]
    };
    assert_eq!(reached("tool_rate", "server"), 1.0);
    let calls = reached("max_calls", "server") + reached("max_calls", "client");
    assert_eq!(calls, 2.0);
    assert_eq!(reached("max_total_client_bytes", "server"), 0.0);
    assert_eq!(values["mcpline_requests_in_flight"], 1.0);
    assert_eq!(values["mcpline_budget_used{budget=\"max_calls\"}"], 1.0);
    assert_eq!(values["mcpline_budget_limit{budget=\"max_calls\"}"], 1.0);
}

#[tokio::test(start_paused = true)]
async fn notifications_of_clients_that_are_dropped_are_counted() {
    let mut settings = settings();
    settings.max_calls = 1;
    settings.client_share = 1.0;
    let server = server_with(settings).on_notification("acme/note", |_: Nothing, _: Context| {
        std::future::pending::<()>()
    });
    let client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..3 {
        client.send(json!({"jsonrpc": "2.0", "method": "acme/note", "params": {}}));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let values = values(&server);
    let dropped = "mcpline_notifications_dropped_total{direction=\"received\"}";
    assert_eq!(values[dropped], 2.0);
    assert_eq!(values["mcpline_requests_in_flight"], 1.0);
}

#[tokio::test(start_paused = true)]
async fn notifications_to_a_client_that_does_not_read_are_counted() {
    let server = server();
    let mut options = HttpOptions::default();
    options.max_kept_events = 2;
    let service = server.http_service(options);
    let begun = service.handle(request(Method::POST, &[], initialize("2025-11-25")));
    let begun = begun.await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = service.handle(request(Method::POST, &headers, ready));
    assert_eq!(ready.await.status(), StatusCode::ACCEPTED);
    let dropped = || values(&server)["mcpline_notifications_dropped_total{direction=\"sent\"}"];
    for tool in ["ok", "fails"] {
        assert!(server.remove_tool(tool));
    }
    let before = dropped();
    for tool in ["waits", "hangs"] {
        assert!(server.remove_tool(tool));
    }
    assert_eq!(dropped() - before, 2.0, "two are kept");
}

#[tokio::test(start_paused = true)]
async fn every_sample_belongs_to_a_metric_with_help_and_type() {
    let server = server();
    let _client = Client::legacy(&server, "2025-11-25").await;
    let text = server.metrics_text();
    let mut current = "";
    let mut helped = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split(' ').next().expect("a name");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            current = kind.split(' ').next().expect("a name");
            assert_eq!(current, helped);
        } else {
            let end = line.find(['{', ' ']).expect("a value");
            let rest = line[..end].strip_prefix(current).expect(line);
            assert!(["", "_bucket", "_sum", "_count"].contains(&rest), "{line}");
        }
    }
    assert!(text.ends_with('\n') && text.contains("mcpline_uptime_seconds"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_recorded_unless_they_are_on() {
    let server = server_with(Settings::default());
    let mut client = Client::legacy(&server, "2025-11-25").await;
    ask(&mut client, "tools/call", json!({"name": "ok"})).await;
    assert_eq!(server.metrics_text(), "");
}

#[runtimes::test]
async fn the_http_server_has_them_at_a_path_of_its_own() {
    let mut options = HttpOptions::default();
    options.metrics_path = Some("/metrics".into());
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let address = http.address();
    let (server, stop) = (server(), Stop::new());
    let signal = stop.clone();
    tokio::spawn(async move { server.serve_until(http, signal).await });
    let mut connection = Connection::open(address).await;
    let begin = initialize("2025-11-25");
    connection.send("POST", "/mcp", &[], &begin).await;
    connection.until(Some("protocolVersion")).await;
    let mut scraper = Connection::open(address).await;
    scraper.send("GET", "/metrics", &[], &Value::Null).await;
    scraper.until(Some("direction=\"sent\"} 0\n")).await;
    let seen = scraper.seen.to_lowercase();
    assert!(seen.starts_with("http/1.1 200 ok"), "{seen}");
    assert!(seen.contains("content-type: text/plain; version=0.0.4"));
    assert!(seen.contains("mcpline_connections 2\n"), "{seen}");
    let counted = "_count{mcp_method_name=\"initialize\",mcp_protocol_version=\"2025-11-25\",\
                   network_transport=\"tcp\"} 1\n";
    assert!(seen.contains(counted), "{seen}");
}

#[tokio::test]
async fn the_path_has_the_host_check_and_one_method() {
    let mut options = HttpOptions::default();
    options.metrics_path = Some("/metrics".into());
    let service = server().http_service(options);
    let of = async |method: Method, host: &str| {
        let request = http::Request::builder()
            .method(method)
            .uri("/metrics")
            .header("host", host)
            .body(http_body_util::Empty::<bytes::Bytes>::new());
        service.handle(request.expect("a request")).await
    };
    let rebound = of(Method::GET, "attacker.example").await;
    assert_eq!(rebound.status(), StatusCode::FORBIDDEN);
    let posted = of(Method::POST, "localhost").await;
    assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    let read = of(Method::GET, "localhost").await;
    assert_eq!(read.status(), StatusCode::OK);
    let body = read.into_body().collect().await.expect("a body");
    assert!(body.to_bytes().starts_with(b"# HELP mcp_server_operation"));
}

#[runtimes::test]
async fn a_path_that_cannot_be_served_is_refused_at_the_start() {
    for (path, settings, expected) in [
        ("/metrics", Settings::default(), "setting `metrics`"),
        ("/mcp", settings(), "`path`"),
        ("/sse", settings(), "`sse_paths`"),
        ("/health", settings(), "`health_path`"),
        ("metrics", settings(), "slash"),
    ] {
        let mut options = HttpOptions::default();
        options.metrics_path = Some(path.into());
        let http = http(("127.0.0.1", 0), options).await.expect("a free port");
        let server = server_with(settings);
        let error = server.serve_until(http, Stop::new()).await.expect_err(path);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
