//! The exporter of spans, with a collector that takes what it sends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use mcpline::client::Client;
use mcpline::otlp::{OtlpExporter, OtlpSettings};
use mcpline::{ErrorKind, Server};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// What a collector has received.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>);

impl Received {
    fn requests(&self) -> Vec<(HeaderMap, ExportTraceServiceRequest)> {
        self.0.lock().unwrap().clone()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests().into_iter().map(|(_, request)| request);
        requests
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }
}

/// Starts a collector that answers with this status; returns its URL.
async fn collector(received: &Received, status: StatusCode) -> String {
    collector_after(received, Vec::new(), status).await
}

/// Like [`collector`], but the first answers have other statuses.
async fn collector_after(
    received: &Received,
    first: Vec<StatusCode>,
    status: StatusCode,
) -> String {
    let first = Arc::new(Mutex::new(first.into_iter()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = received.clone();
    let traces = post(move |headers: HeaderMap, body: Bytes| async move {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        if let Some(status) = first.lock().unwrap().next() {
            return status;
        }
        received.0.lock().unwrap().push((headers, request));
        status
    });
    let router = Router::new().route("/v1/traces", traces);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn settings(endpoint: &str) -> OtlpSettings {
    let mut settings = OtlpSettings::default();
    settings.endpoint = Some(endpoint.to_owned());
    settings.headers = vec![("api-key".to_owned(), "secret".to_owned())];
    settings.service_name = Some("weather".to_owned());
    settings
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue {
            value: Some(Value::StringValue(text)),
        }) => Some(text.clone()),
        other => panic!("{key} is {other:?}"),
    }
}

/// Calls a tool, whose handler has a span of its own.
async fn call_tool() {
    let server = Server::new("traced", "1").tool("works", "", async || {
        tracing::info_span!("working").in_scope(|| "done")
    });
    let client = Client::builder("test", "1").connect(&server).await.unwrap();
    let result = client
        .call_tool("works", &serde_json::json!({}))
        .await
        .unwrap();
    assert_eq!(result.text(), "done");
    client.close().await;
}

#[tokio::test]
async fn spans_of_a_call_arrive_as_one_trace() {
    let received = Received::default();
    let endpoint = collector(&received, StatusCode::OK).await;
    let exporter = OtlpExporter::start(settings(&endpoint)).unwrap();
    let recording =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(exporter.layer()));
    call_tool().await;
    exporter.flush().await.unwrap();
    let spans: HashMap<_, _> = received
        .spans()
        .into_iter()
        .filter(|span| span.name != "server/discover" && span.name != "initialize")
        .map(|span| ((span.name.clone(), span.kind()), span))
        .collect();
    let named = |name: &str, kind| {
        spans
            .get(&(name.to_owned(), kind))
            .unwrap_or_else(|| panic!("{spans:?}"))
    };
    let client = named("tools/call works", SpanKind::Client);
    let server = named("tools/call works", SpanKind::Server);
    let own = named("working", SpanKind::Internal);
    assert_eq!(server.parent_span_id, client.span_id);
    assert_eq!(own.parent_span_id, server.span_id);
    assert!(
        [server, own]
            .iter()
            .all(|span| span.trace_id == client.trace_id)
    );
    assert_eq!(
        text(&server.attributes, "gen_ai.tool.name").as_deref(),
        Some("works")
    );

    let (headers, request) = received.requests().swap_remove(0);
    assert_eq!(headers["api-key"], "secret");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(
        text(&resource.attributes, "service.name").as_deref(),
        Some("weather")
    );

    // What ends after a flush is sent at the end.
    let before = received.spans().len();
    call_tool().await;
    exporter.shut_down().await.unwrap();
    assert!(received.spans().len() > before);
    drop(recording);
}

#[tokio::test]
async fn collectors_that_do_not_take_spans_fail_the_export_alone() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unreachable = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let refusing = collector(&Received::default(), StatusCode::BAD_REQUEST).await;
    for (endpoint, because) in [(unreachable, "refused"), (refusing, "400 Bad Request")] {
        let exporter = OtlpExporter::start(settings(&endpoint)).unwrap();
        let recording =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(exporter.layer()));
        call_tool().await;
        let error = exporter.shut_down().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error:#}");
        assert_eq!(error.to_string(), "spans were not exported");
        let reason = format!("{error:#}");
        assert!(reason.contains(because), "{reason}");
        drop(recording);
    }
}

#[tokio::test]
async fn a_batch_that_arrives_at_the_second_attempt_is_exported() {
    let received = Received::default();
    let first = vec![StatusCode::SERVICE_UNAVAILABLE];
    let endpoint = collector_after(&received, first, StatusCode::OK).await;
    let exporter = OtlpExporter::start(settings(&endpoint)).unwrap();
    let recording =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(exporter.layer()));
    call_tool().await;
    exporter.flush().await.expect("the second attempt succeeds");
    assert!(received.spans().iter().any(|span| span.name == "working"));
    exporter.shut_down().await.expect("nothing is left");
    drop(recording);
}

#[tokio::test]
async fn a_failure_is_reported_once() {
    let received = Received::default();
    let first = vec![StatusCode::BAD_REQUEST];
    let endpoint = collector_after(&received, first, StatusCode::OK).await;
    let exporter = OtlpExporter::start(settings(&endpoint)).unwrap();
    let recording =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(exporter.layer()));
    call_tool().await;
    exporter
        .flush()
        .await
        .expect_err("the collector refuses it");
    call_tool().await;
    exporter.flush().await.expect("the collector takes it");
    drop(recording);
}

#[test]
fn an_exporter_needs_a_runtime_and_a_url() {
    let error = OtlpExporter::start(OtlpSettings::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("tokio runtime"), "{error}");

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let error = runtime
        .block_on(async { OtlpExporter::start(settings("localhost:4318")) })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("`endpoint`"), "{error}");
    let mut unusable = settings("http://localhost:4318");
    unusable.headers = vec![("api-key".to_owned(), "hidden\n".to_owned())];
    let error = runtime
        .block_on(async { OtlpExporter::start(unusable) })
        .unwrap_err();
    assert!(error.to_string().contains("\"api-key\""), "{error}");
    assert!(!error.to_string().contains("hidden"), "{error}");
    // Ends at once, because nothing waits for the collector.
    runtime.shutdown_timeout(Duration::from_secs(1));
}
