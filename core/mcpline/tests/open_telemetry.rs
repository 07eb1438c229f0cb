//! Spans of `tracing` that are exported to OpenTelemetry: a client and a server are one trace.

use std::sync::{Arc, Mutex};

use mcpline::client::middleware::{ClientNext, ClientRequest};
use mcpline::client::{Client, RequestOptions};
use mcpline::middleware::Redaction;
use mcpline::open_telemetry::RequestSampler;
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult};
use mcpline::protocol::{ErrorCode, Raw};
use mcpline::server::{MiddlewareScope, MountOptions};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, RpcError, Server, Settings, ToolError};
use opentelemetry::KeyValue;
use opentelemetry::trace::{
    FutureExt as _, Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
    TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_sdk::trace::{
    InMemorySpanExporter, Sampler, SamplingDecision, SamplingResult, SdkTracerProvider,
    ShouldSample, SpanData,
};
use serde_json::{Value, json};
use tracing::Instrument as _;
use tracing_subscriber::layer::{Identity, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

fn server() -> Server {
    Server::new("traced", "1")
        .tool("works", "", async || {
            tracing::info_span!("work").in_scope(|| ());
            tokio::task::yield_now().await;
            tracing::info_span!("more work").in_scope(|| ());
            "done"
        })
        .tool("fails", "", async || Err::<String, _>(ToolError::new("no")))
        .tool("meta", "", async |ctx: Context| {
            ctx.meta()
                .map_or_else(|| "none".to_owned(), |meta| meta.as_str().to_owned())
        })
}

struct Recording {
    exporter: InMemorySpanExporter,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Recording {
    /// Exports the spans of this thread.
    fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        Self {
            exporter,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    fn take(&self) -> Vec<SpanData> {
        let spans = self.exporter.get_finished_spans().expect("not poisoned");
        self.exporter.reset();
        spans
    }
}

fn named(spans: &[SpanData], name: &str, kind: SpanKind) -> SpanData {
    let mut matching = spans
        .iter()
        .filter(|span| span.name == name && span.span_kind == kind);
    let names: Vec<_> = spans
        .iter()
        .map(|span| (&span.name, &span.span_kind))
        .collect();
    let found = matching.next().unwrap_or_else(|| panic!("{names:?}"));
    assert!(matching.next().is_none(), "{names:?}");
    found.clone()
}

fn id(span: &SpanData) -> SpanId {
    span.span_context.span_id()
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.as_str().into_owned())
}

#[tokio::test]
async fn a_call_is_one_trace_from_the_caller_to_the_handlers_own_spans() {
    let recording = Recording::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let revision_of_client = revision.parse().expect("a revision");
        let client = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision_of_client])
            .connect(&server())
            .await
            .expect("connects");
        recording.take();
        let caller = tracing::info_span!("caller");
        let call = client
            .call_tool("works", json!({}))
            .instrument(caller.clone());
        call.await.expect("a result");
        drop(caller);
        let spans = recording.take();
        let caller = named(&spans, "caller", SpanKind::Internal);
        let sent = named(&spans, "tools/call works", SpanKind::Client);
        let served = named(&spans, "tools/call works", SpanKind::Server);
        assert_eq!(sent.parent_span_id, id(&caller));
        assert_eq!(served.parent_span_id, id(&sent));
        assert!(served.parent_span_is_remote);
        for own in ["work", "more work"] {
            let own = named(&spans, own, SpanKind::Internal);
            assert_eq!(own.parent_span_id, id(&served));
        }
        for span in &spans {
            assert_eq!(span.span_context.trace_id(), caller.span_context.trace_id());
        }
        for span in [&sent, &served] {
            assert_eq!(
                attribute(span, "mcp.method.name").as_deref(),
                Some("tools/call")
            );
            assert_eq!(
                attribute(span, "gen_ai.tool.name").as_deref(),
                Some("works")
            );
            assert_eq!(
                attribute(span, "gen_ai.operation.name").as_deref(),
                Some("execute_tool")
            );
            assert_eq!(
                attribute(span, "mcp.protocol.version").as_deref(),
                Some(revision)
            );
            assert_eq!(span.status, Status::Unset);
        }
    }
}

/// A server with spans of these contents, whose tool returns a text or, without one, fails.
fn with_contents(has_contents: bool) -> Server {
    let mut settings = Settings::default();
    settings.span_contents = has_contents;
    let builder = Server::builder("traced", "1").settings(settings);
    builder
        .build()
        .expect("valid settings")
        .tool(
            "answers",
            "",
            async |arguments: Value| match arguments["text"].as_str() {
                Some(text) => Ok(text.to_owned()),
                None => Err(ToolError::new("no text")),
            },
        )
}

/// Returns the arguments and the results in the spans of a call at a client and its server, in this order.
async fn contents_of_a_call(
    server: &Server,
    at_client: bool,
    arguments: Value,
) -> [[Option<String>; 2]; 2] {
    let recording = Recording::new();
    let client = Client::builder("test", "1")
        .configure(|settings| settings.span_contents = at_client)
        .connect(server)
        .await
        .expect("connects");
    recording.take();
    client
        .call_tool("answers", arguments)
        .await
        .expect("a result");
    let spans = recording.take();
    [SpanKind::Client, SpanKind::Server].map(|kind| {
        let span = named(&spans, "tools/call answers", kind);
        let names = ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result"];
        names.map(|name| attribute(&span, name))
    })
}

#[tokio::test]
async fn spans_have_arguments_and_results_only_on_request() {
    let arguments = json!({"text": "hello"});
    for (at_client, at_server) in [(false, false), (true, false), (false, true)] {
        let server = with_contents(at_server);
        let [sent, served] = contents_of_a_call(&server, at_client, arguments.clone()).await;
        for (is_recorded, [arguments, result]) in [(at_client, sent), (at_server, served)] {
            if !is_recorded {
                assert_eq!((arguments, result), (None, None));
                continue;
            }
            assert_eq!(arguments.as_deref(), Some(r#"{"text":"hello"}"#));
            let result: Value = serde_json::from_str(&result.expect("recorded")).expect("JSON");
            assert_eq!(result["content"][0]["text"], "hello");
        }
    }
}

#[tokio::test]
async fn arguments_and_results_in_spans_have_no_secrets_and_a_maximum_length() {
    let server = with_contents(true);
    let arguments = json!({"text": "{\"apiKey\": \"s3cret\"}", "password": "s3cret"});
    for contents in contents_of_a_call(&server, true, arguments).await {
        let [arguments, result] = contents.map(|content| content.expect("recorded"));
        assert!(!arguments.contains("s3cret"), "{arguments}");
        assert!(!result.contains("s3cret"), "{result}");
        assert!(
            arguments.contains(r#""password":"[redacted]""#),
            "{arguments}"
        );
    }

    let arguments = json!({"text": "x".repeat(100_000)});
    let length = arguments.to_string().len();
    for contents in contents_of_a_call(&server, true, arguments).await {
        let [arguments, result] = contents.map(|content| content.expect("recorded"));
        assert!(arguments.ends_with(&format!("… ({length} bytes)")));
        for content in [arguments, result] {
            assert!((8_000..8_300).contains(&content.len()), "{}", content.len());
        }
    }

    // That it failed is an attribute of its own.
    for [arguments, result] in contents_of_a_call(&server, true, json!({})).await {
        assert_eq!(arguments.as_deref(), Some("{}"));
        assert_eq!(result, None);
    }
}

// The time for redaction is limited, so it stands still.
#[tokio::test(start_paused = true)]
async fn redaction_applies_to_arguments_in_spans_whatever_its_scope() {
    let redaction = || {
        let redaction = Redaction::new().with_members(["iban"]);
        let redaction = redaction.with_patterns([r"\d{3}-\d{2}"]);
        Arc::new(redaction.expect("valid patterns"))
    };
    let arguments = json!({"text": "call 123-45", "iban": "DE1"});
    let scope = || MiddlewareScope::all().with_methods(["prompts/get"]);
    let own = with_contents(true);
    own.add_middleware(scope(), redaction()).expect("added");
    let mounted = with_contents(false);
    mounted.add_middleware(scope(), redaction()).expect("added");
    let outer = Server::builder("outer", "1");
    let outer = outer
        .settings(own.settings().clone())
        .build()
        .expect("valid settings");
    outer
        .mount(&mounted, MountOptions::default())
        .expect("mounted");
    for server in [own, outer] {
        let [_, served] = contents_of_a_call(&server, false, arguments.clone()).await;
        let [arguments, result] = served.map(|content| content.expect("recorded"));
        let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
        let redacted = json!({"iban": "[redacted]", "text": "call [redacted]"});
        assert_eq!(arguments, redacted);
        assert!(!result.contains("123-45"), "{result}");
    }
    // It may take too long.
    let own = with_contents(true);
    own.add_middleware(scope(), redaction()).expect("added");
    let arguments = json!({"text": "x".repeat(100_000)});
    let [_, served] = contents_of_a_call(&own, false, arguments).await;
    assert_eq!(served, [None, None]);
}

// The time for redaction is limited, so it stands still.
#[tokio::test(start_paused = true)]
async fn redaction_of_a_client_applies_to_its_spans() {
    let recording = Recording::new();
    let redaction = Redaction::new().with_members(["iban"]);
    let redaction = redaction.with_patterns([r"\d{3}-\d{2}"]);
    let arguments = json!({"text": "call 123-45", "iban": "DE1"});
    let client = Client::builder("test", "1")
        .configure(|settings| settings.span_contents = true)
        .middleware(redaction.expect("valid patterns"))
        .connect(with_contents(true))
        .await
        .expect("connects");
    recording.take();
    let called = client.call_tool("answers", arguments).await;
    called.expect("a result");
    let sent = named(&recording.take(), "tools/call answers", SpanKind::Client);
    let sent_arguments = attribute(&sent, "gen_ai.tool.call.arguments").expect("recorded");
    let sent_arguments: Value = serde_json::from_str(&sent_arguments).expect("JSON");
    let redacted = json!({"iban": "[redacted]", "text": "call [redacted]"});
    assert_eq!(sent_arguments, redacted);
    let result = attribute(&sent, "gen_ai.tool.call.result").expect("recorded");
    assert!(!result.contains("123-45"), "{result}");
}

#[tokio::test]
async fn records_of_requests_have_the_trace_of_their_span() {
    let recording = Recording::new();
    let server = server();
    let traces = Arc::new(Mutex::new(Vec::new()));
    let kept = traces.clone();
    server.on_request_end(move |record| {
        let trace = record.trace_id.map(str::to_owned);
        kept.lock().expect("not poisoned").push(trace);
    });
    let kept = traces.clone();
    let client = Client::builder("test", "1")
        .on_request_end(move |record| {
            let trace = record.trace_id.map(str::to_owned);
            kept.lock().expect("not poisoned").push(trace);
        })
        .connect(&server)
        .await
        .expect("connects");
    recording.take();
    traces.lock().expect("not poisoned").clear();
    client
        .call_tool("works", json!({}))
        .await
        .expect("a result");
    let served = named(&recording.take(), "tools/call works", SpanKind::Server);
    let trace = served.span_context.trace_id().to_string();
    // That of the server and that of the client.
    let both = [Some(trace.clone()), Some(trace)];
    assert_eq!(*traces.lock().expect("not poisoned"), both);
}

#[tokio::test]
async fn spans_over_http_name_both_ends_the_request_and_the_session() {
    let recording = Recording::new();
    let http = http("127.0.0.1:0", HttpOptions::default());
    let http = http.await.expect("a port");
    let (url, port, stop) = (http.url(), http.address().port(), Stop::new());
    let serving = {
        let (server, stop) = (server(), stop.clone());
        tokio::spawn(async move { server.serve_until(http, stop).await })
    };
    for revision in ["2025-11-25", "2026-07-28"] {
        let client = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
            .connect(&*url)
            .await
            .expect("connects");
        recording.take();
        client
            .call_tool("works", json!({}))
            .await
            .expect("a result");
        let spans = recording.take();
        let sent = named(&spans, "tools/call works", SpanKind::Client);
        let served = named(&spans, "tools/call works", SpanKind::Server);
        let has = |span: &SpanData, name: &str, value: &str| {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        };
        has(&sent, "server.address", "127.0.0.1");
        has(&sent, "server.port", &port.to_string());
        has(&served, "client.address", "127.0.0.1");
        assert!(attribute(&served, "client.port").is_some());
        has(&served, "network.protocol.version", "1.1");
        for span in [&sent, &served] {
            has(span, "network.transport", "tcp");
            has(span, "network.protocol.name", "http");
        }
        let id = attribute(&served, "jsonrpc.request.id").expect("an id");
        has(&sent, "jsonrpc.request.id", &id);
        let session = attribute(&served, "mcp.session.id");
        assert_eq!(session.is_some(), revision == "2025-11-25");
        assert_eq!(attribute(&sent, "mcp.session.id"), session);
        client.close().await;
    }
    stop.stop();
    serving.await.expect("no panic").expect("serves");
}

#[cfg(unix)]
#[tokio::test]
async fn a_span_that_begins_without_a_connection_gets_to_know_it() {
    use mcpline::client::Address;
    use mcpline::transport::{UnixOptions, unix};

    let recording = Recording::new();
    let name = format!("mcpline-late-span-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let serve = async || {
        let socket = unix(path.clone(), UnixOptions::default()).await;
        let (server, socket, stop) = (server(), socket.expect("a socket"), Stop::new());
        let stopped = stop.clone();
        let serving = async move { server.serve_until(socket, stopped).await };
        (stop, tokio::spawn(serving))
    };
    let (stop, serving) = serve().await;
    let client = Client::builder("test", "1")
        .connect(Address::Socket(path.clone()))
        .await
        .expect("connects");
    stop.stop();
    serving.await.expect("no panic").expect("serves");
    while client.stats().is_connected {
        tokio::task::yield_now().await;
    }
    let (stop, serving) = serve().await;
    recording.take();
    client
        .call_tool("works", json!({}))
        .await
        .expect("a result");
    let sent = named(&recording.take(), "tools/call works", SpanKind::Client);
    for (name, value) in [
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "unix"),
        ("server.address", &*path.display().to_string()),
    ] {
        assert_eq!(attribute(&sent, name).as_deref(), Some(value), "{name}");
    }
    assert!(attribute(&sent, "jsonrpc.request.id").is_some());
    client.close().await;
    stop.stop();
    serving.await.expect("no panic").expect("serves");
}

#[tokio::test]
async fn a_request_whose_future_is_dropped_is_cancelled() {
    let recording = Recording::new();
    let client = Client::connect(&server()).await.expect("connects");
    recording.take();
    let mut call = Box::pin(client.call_tool("works", json!({})));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx)));
    assert!(polled.await.is_pending());
    drop(call);
    let mut spans = Vec::new();
    // The span of the server, which handles the cancellation, keeps its parent open.
    while spans.len() < 2 {
        tokio::task::yield_now().await;
        spans.extend(recording.take());
    }
    let sent = named(&spans, "tools/call works", SpanKind::Client);
    assert_eq!(attribute(&sent, "error.type").as_deref(), Some("cancelled"));
    assert!(attribute(&sent, "jsonrpc.request.id").is_some());
}

#[tokio::test]
async fn input_requests_belong_to_the_trace_of_their_call() {
    let recording = Recording::new();
    for (revision, refuses) in [
        ("2025-11-25", false),
        ("2025-11-25", true),
        ("2026-07-28", false),
    ] {
        let server = Server::new("asking", "1").tool("asks", "", async |ctx: Context| {
            let schema = json!({"type": "object", "properties": {}});
            let params = json!({"message": "Sure?", "requestedSchema": schema});
            let params = Raw::from_serialize(&params).expect("JSON");
            let input_request =
                mcpline::InputRequest::new(mcpline::InputRequestMethod::Elicit, Some(params));
            let answer = ctx.request_input(input_request).await;
            tracing::info_span!("after").in_scope(|| ());
            answer.is_ok().to_string()
        });
        let client = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
            .on_elicit(move |_| async move {
                tracing::info_span!("user").in_scope(|| ());
                match refuses {
                    true => Err(RpcError::new(ErrorCode(-31_002), "no user is here")),
                    false => Ok(ElicitResult::new(ElicitAction::Cancel)),
                }
            })
            .connect(&server)
            .await
            .expect("connects");
        recording.take();
        let caller = tracing::info_span!("caller");
        let call = client.call_tool("asks", json!({}));
        call.instrument(caller.clone()).await.expect("a result");
        drop(caller);
        let spans = recording.take();
        let asked = named(&spans, "elicitation/create", SpanKind::Client);
        let answered = named(&spans, "elicitation/create", SpanKind::Server);
        let served = spans.iter().find(|span| id(span) == asked.parent_span_id);
        assert_eq!(served.expect("a parent").name, "tools/call asks");
        assert_eq!(answered.parent_span_id, id(&asked), "{revision}");
        let user = named(&spans, "user", SpanKind::Internal);
        assert_eq!(user.parent_span_id, id(&answered));
        let caller = named(&spans, "caller", SpanKind::Internal);
        for span in &spans {
            assert_eq!(span.span_context.trace_id(), caller.span_context.trace_id());
        }
        let is_request = revision == "2025-11-25";
        let id = attribute(&answered, "jsonrpc.request.id");
        assert_eq!(id.is_some(), is_request, "part of a result otherwise");
        for span in [&asked, &answered] {
            let version = attribute(span, "mcp.protocol.version");
            assert_eq!(version.as_deref(), Some(revision));
            let error = attribute(span, "error.type");
            assert_eq!(error.as_deref(), refuses.then_some("-31002"));
        }
        client.close().await;
    }
}

#[tokio::test]
async fn failures_have_their_type_and_text() {
    let recording = Recording::new();
    let client = Client::connect(&server()).await.expect("connects");
    recording.take();
    client
        .call_tool("fails", json!({}))
        .await
        .expect("a result");
    client
        .call_tool("missing", json!({}))
        .await
        .expect_err("no such tool");
    let spans = recording.take();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let failed = named(&spans, "tools/call fails", kind.clone());
        assert_eq!(
            attribute(&failed, "error.type").as_deref(),
            Some("tool_error")
        );
        assert!(matches!(failed.status, Status::Error { .. }));
        let missing = named(&spans, "tools/call missing", kind);
        assert_eq!(attribute(&missing, "error.type").as_deref(), Some("-32602"));
        assert_eq!(
            attribute(&missing, "rpc.response.status_code").as_deref(),
            Some("-32602")
        );
        let Status::Error { description } = &missing.status else {
            panic!("{:?}", missing.status);
        };
        assert!(
            description.contains("Unknown tool: missing"),
            "{description}"
        );
    }
}

#[tokio::test]
async fn a_trace_context_of_the_host_is_kept() {
    let recording = Recording::new();
    let client = Client::connect(&server()).await.expect("connects");
    recording.take();
    let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = Raw::from_serialize(&json!({"name": "meta", "arguments": {}})).expect("JSON");
    let meta = Raw::from_serialize(&json!({"traceparent": own})).expect("JSON");
    let mut options = RequestOptions::new();
    options.meta = Some(meta);
    let sent = client.request("tools/call", Some(&params), &options).await;
    sent.expect("a result");
    let served = named(&recording.take(), "tools/call meta", SpanKind::Server);
    assert_eq!(served.parent_span_id.to_string(), "00f067aa0ba902b7");
}

#[tokio::test]
async fn without_an_exporter_messages_carry_no_trace_context() {
    let client = Client::connect(&server()).await.expect("connects");
    let result = client.call_tool("meta", json!({})).await.expect("a result");
    let result: Value = serde_json::to_value(&result).expect("JSON");
    assert!(!result.to_string().contains("traceparent"), "{result}");
}

#[tokio::test]
async fn the_text_of_an_error_is_cut() {
    let recording = Recording::new();
    let server = Server::new("traced", "1").tool("fails", "", async || {
        let text = format!("\u{1b}[31m{}", "x".repeat(5_000));
        Err::<String, _>(RpcError::new(ErrorCode(-7), text))
    });
    let client = Client::builder("test", "1")
        .connect(&server)
        .await
        .expect("connects");
    recording.take();
    let failed = client.call_tool("fails", json!({})).await;
    failed.expect_err("an error of the protocol");
    let spans = recording.take();
    for kind in [SpanKind::Server, SpanKind::Client] {
        let span = named(&spans, "tools/call fails", kind);
        let Status::Error { description } = &span.status else {
            panic!("{:?}", span.status);
        };
        let length = description.chars().count();
        assert!((300..=1_000).contains(&length), "{length}");
        assert!(!description.contains('\u{1b}'), "{description}");
    }
}

/// Exports the spans of this thread that are sampled by `sampler`, which is asked first. `also` is a further layer.
fn recording_sampled(
    sampler: impl ShouldSample + 'static,
    also: impl Layer<Registry> + Send + Sync,
) -> Recording {
    let exporter = InMemorySpanExporter::default();
    let sampler = RequestSampler::new(sampler);
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
    let provider = sampler.configure(provider).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry()
        .with(also)
        .with(layer.with_filter(sampler));
    Recording {
        exporter,
        _guard: tracing::subscriber::set_default(subscriber),
    }
}

/// A server whose tool has a span of its own, after it has waited, and tells the trace context that its client sends.
fn passing_on() -> Server {
    Server::new("front", "1").tool("front", "", async || {
        tokio::task::yield_now().await;
        tracing::info_span!("own").in_scope(|| ());
        let client = Client::builder("test", "1").connect(&server()).await;
        let result = client.expect("connects").call_tool("meta", json!({})).await;
        result.expect("a result").text()
    })
}

/// Calls `front` with this trace context; returns the one that its client sent.
async fn called(traceparent: Option<&str>) -> String {
    let server = passing_on();
    let memory = server.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    memory.send(initialize.to_string());
    memory.receive().await.expect("a handshake");
    memory.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    let mut params = json!({"name": "front"});
    if let Some(traceparent) = traceparent {
        params["_meta"] = json!({"traceparent": traceparent});
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    memory.send(call.to_string());
    let response = memory.receive().await.expect("a response");
    let response: Value = serde_json::from_slice(&response).expect("JSON");
    let text = response["result"]["content"][0]["text"].as_str();
    let meta: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
    meta["traceparent"].as_str().expect("a text").to_owned()
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_request_that_is_not_sampled_has_no_span_and_passes_its_trace_on() {
    let parent_based = || Sampler::ParentBased(Box::new(Sampler::AlwaysOn));
    let recording = recording_sampled(parent_based(), Identity::new());
    let sent = called(Some(&format!("00-{TRACE}-00f067aa0ba902b7-00"))).await;
    assert!(sent.starts_with(&format!("00-{TRACE}-")), "{sent}");
    assert!(sent.ends_with("-00"), "{sent}");
    for span in recording.take() {
        assert_ne!(span.span_context.trace_id().to_string(), TRACE, "{span:?}");
    }

    let sent = called(Some(&format!("00-{TRACE}-00f067aa0ba902b7-01"))).await;
    assert!(sent.starts_with(&format!("00-{TRACE}-")), "{sent}");
    assert!(sent.ends_with("-01"), "{sent}");
    let spans = recording.take();
    let served = named(&spans, "tools/call front", SpanKind::Server);
    assert_eq!(served.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert!(served.events.is_empty(), "{served:?}");
    let own = named(&spans, "own", SpanKind::Internal);
    assert_eq!(own.parent_span_id, id(&served));
}

#[tokio::test]
async fn a_sampler_that_ignores_the_client_drops_a_sampled_request() {
    let recording = recording_sampled(Sampler::AlwaysOff, Identity::new());
    let sent = called(Some(&format!("00-{TRACE}-00f067aa0ba902b7-01"))).await;
    assert!(sent.starts_with(&format!("00-{TRACE}-")), "{sent}");
    assert!(sent.ends_with("-00"), "{sent}");
    let first = called(None).await;
    let second = called(None).await;
    assert!(first.ends_with("-00") && second.ends_with("-00"), "{first}");
    assert_ne!(first[..35], second[..35]);
    assert!(recording.take().is_empty());
}

/// A client whose middleware keeps the names of the spans that are current in it, and `traceparent` as the server gets it.
async fn sent_by_a_client() -> (Vec<Option<&'static str>>, String) {
    let current = Arc::new(Mutex::new(Vec::new()));
    let kept = current.clone();
    let keeping = move |request: ClientRequest, next: ClientNext| {
        let span = tracing::Span::current();
        let name = span.metadata().map(|span| span.name());
        kept.lock().unwrap().push(name);
        async move { next.run(request).await }
    };
    let client = Client::builder("test", "1")
        .middleware(keeping)
        .connect(&server())
        .await
        .expect("connects");
    let result = client.call_tool("meta", json!({})).await;
    let meta: Value = serde_json::from_str(&result.expect("a result").text()).expect("JSON");
    let sent = meta["traceparent"].as_str().expect("a text").to_owned();
    let current = current.lock().unwrap().clone();
    (current, sent)
}

#[tokio::test]
async fn a_clients_request_that_is_not_sampled_starts_a_trace_or_passes_it_on() {
    let recording = recording_sampled(Sampler::AlwaysOff, Identity::new());
    let (_, sent) = sent_by_a_client().await;
    assert!(sent.ends_with("-00"), "{sent}");
    assert!(!sent.contains(&"0".repeat(32)), "{sent}");

    // As in a handler whose request is not sampled.
    let parent = SpanContext::new(
        TraceId::from_hex(TRACE).expect("an id"),
        SpanId::from_hex("00f067aa0ba902b7").expect("an id"),
        TraceFlags::default(),
        true,
        TraceState::default(),
    );
    let parent = opentelemetry::Context::new().with_remote_span_context(parent);
    let (_, sent) = sent_by_a_client().with_context(parent).await;
    assert_eq!(sent, format!("00-{TRACE}-00f067aa0ba902b7-00"));
    assert!(recording.take().is_empty());
}

#[tokio::test]
async fn other_layers_see_a_clients_requests_that_are_not_sampled() {
    let names = Names::default();
    let recording = recording_sampled(Sampler::AlwaysOff, names.clone());
    let (current, sent) = sent_by_a_client().await;
    assert_eq!(current, [Some("mcp_request")]);
    assert!(sent.ends_with("-00"), "{sent}");
    let seen = names.0.lock().unwrap().clone();
    assert!(!seen.contains(&("mcp_request", false)), "{seen:?}");
    assert!(recording.take().is_empty());
}

#[tokio::test]
async fn a_clients_request_that_is_sampled_is_a_child_of_the_current_span() {
    let counting = Counting::of(SpanKind::Client);
    let recording = recording_sampled(counting.clone(), Identity::new());
    let (_, sent) = sent_by_a_client()
        .instrument(tracing::info_span!("caller"))
        .await;
    let asked = counting.asked.lock().unwrap().clone();
    let spans = recording.take();
    let caller = named(&spans, "caller", SpanKind::Internal);
    let span = named(&spans, "tools/call meta", SpanKind::Client);
    let trace = caller.span_context.trace_id();
    assert_eq!(asked, [("tools/call".to_owned(), trace)]);
    assert_eq!(span.parent_span_id, id(&caller));
    assert_eq!(attribute(&span, "sampler").as_deref(), Some("this"));
    assert_eq!(sent, format!("00-{trace}-{}-01", id(&span)));
}

/// Samples all spans, and keeps what it is asked about requests of this kind.
#[derive(Debug, Clone)]
struct Counting {
    kind: SpanKind,
    asked: Arc<Mutex<Vec<(String, TraceId)>>>,
}

impl Counting {
    fn of(kind: SpanKind) -> Self {
        Self {
            kind,
            asked: Arc::default(),
        }
    }
}

impl ShouldSample for Counting {
    fn should_sample(
        &self,
        _: Option<&opentelemetry::Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        if *kind == self.kind {
            self.asked.lock().unwrap().push((name.to_owned(), trace));
        }
        SamplingResult {
            decision: SamplingDecision::RecordAndSample,
            attributes: vec![KeyValue::new("sampler", "this")],
            trace_state: TraceState::default(),
        }
    }
}

#[tokio::test]
async fn the_sampler_is_asked_once_about_a_request() {
    let counting = Counting::of(SpanKind::Server);
    let recording = recording_sampled(counting.clone(), Identity::new());
    called(None).await;
    let asked = counting.asked.lock().unwrap().clone();
    let calls = asked.iter().filter(|(name, _)| name == "tools/call");
    let calls: Vec<_> = calls.collect();
    let spans = recording.take();
    let served = named(&spans, "tools/call front", SpanKind::Server);
    assert_eq!(calls.len(), 2, "{asked:?}");
    assert_eq!(calls[0].1, served.span_context.trace_id());
    assert_eq!(attribute(&served, "sampler").as_deref(), Some("this"));
}

/// Keeps the names of spans and whether they have the field `sampled`.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<(&'static str, bool)>>>);

impl<S: tracing::Subscriber> Layer<S> for Names {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::span::Id,
        _: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let metadata = attributes.metadata();
        let has_field = metadata.fields().field("sampled").is_some();
        self.0.lock().unwrap().push((metadata.name(), has_field));
    }
}

#[tokio::test]
async fn other_layers_see_requests_that_are_not_sampled() {
    let names = Names::default();
    let recording = recording_sampled(Sampler::AlwaysOff, names.clone());
    called(None).await;
    let seen = names.0.lock().unwrap().clone();
    // The handshake and the call.
    let unsampled = seen.iter().filter(|(_, has_field)| *has_field).count();
    assert!(unsampled >= 2, "{seen:?}");
    assert!(seen.contains(&("own", false)), "{seen:?}");
    assert!(recording.take().is_empty());
}
