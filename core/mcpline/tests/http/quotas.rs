//! One client cannot use up the share of others: memory, sessions, streams.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::requests::{call, initialize, request};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use mcpline::foreign::workers::{Limits, WorkerPool, WorkerStep, WorkerThreadStarter};
use mcpline::foreign::{CallQueue, IoAction, IoThreadQueue};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{ResourceTemplate, Tool};
use mcpline::server::{Handler, ToolOptions};
use mcpline::transport::http::{Body, HttpOptions, HttpService, RemoteAddress};
use mcpline::{
    Call, Context, InputRequest, InputRequestMethod, Reply, Server, Settings, ToolReply,
};
use serde_json::{Value, json};

const GREEDY: &str = "192.0.2.1";
const HONEST: &str = "192.0.2.2";

/// Bytes of a result of the tool `large`.
const LARGE: usize = 100_000;

/// Bytes of a result of the tool `short`, which is put on a stream even if its client's quota is used up.
const SHORT: usize = 3_000;

fn service(settings: Settings, options: HttpOptions) -> HttpService {
    Server::builder("quotas", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .tool(
            "large",
            "Answers at length",
            |_: Nothing, _: Context| async { "x".repeat(LARGE) },
        )
        .tool(
            "short",
            "Answers at a length that is not charged to bodies",
            |_: Nothing, _: Context| async { "x".repeat(SHORT) },
        )
        .tool("wait", "Never answers", |_: Nothing, _: Context| async {
            std::future::pending::<()>().await;
            "never"
        })
        .http_service(options)
}

fn from<B>(address: &str, mut request: Request<B>) -> Request<B> {
    let address: IpAddr = address.parse().expect("an address");
    request.extensions_mut().insert(RemoteAddress(address));
    request
}

async fn post(
    service: &HttpService,
    address: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Response<Body> {
    let request = request(Method::POST, headers, body);
    service.handle(from(address, request)).await
}

fn session_id(response: &Response<Body>) -> String {
    let id = response.headers()["mcp-session-id"].to_str();
    id.expect("visible ASCII").to_owned()
}

async fn begin(service: &HttpService, address: &str) -> Response<Body> {
    post(service, address, &[], initialize("2025-11-25")).await
}

async fn use_session(service: &HttpService, address: &str, id: &str) -> StatusCode {
    let headers = [("mcp-session-id", id)];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(service, address, &headers, initialized).await;
    post(service, address, &headers, call(1, "plain"))
        .await
        .status()
}

#[runtimes::test]
async fn a_flood_of_sessions_evicts_none_of_another_client() {
    let mut options = HttpOptions::default();
    options.max_sessions = 40;
    let service = service(Settings::default(), options);
    let id = session_id(&begin(&service, HONEST).await);
    assert_eq!(use_session(&service, HONEST, &id).await, StatusCode::OK);
    for _ in 0..200 {
        assert_eq!(begin(&service, GREEDY).await.status(), StatusCode::OK);
    }
    assert_eq!(begin(&service, HONEST).await.status(), StatusCode::OK);
    assert_eq!(use_session(&service, HONEST, &id).await, StatusCode::OK);
}

#[runtimes::test]
async fn a_flood_of_sessions_evicts_none_in_use_at_the_same_address() {
    let mut options = HttpOptions::default();
    options.max_sessions = 40;
    let service = service(Settings::default(), options);
    let id = session_id(&begin(&service, GREEDY).await);
    assert_eq!(use_session(&service, GREEDY, &id).await, StatusCode::OK);
    for _ in 0..200 {
        assert_eq!(begin(&service, GREEDY).await.status(), StatusCode::OK);
    }
    assert_eq!(use_session(&service, GREEDY, &id).await, StatusCode::OK);
}

#[runtimes::test]
async fn unread_responses_are_charged_to_their_client() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 40 * LARGE;
    let service = service(settings, HttpOptions::default());
    let call_large = async |address: &str| {
        let mut body = call(1, "large");
        let meta = &mut body["params"]["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "large"),
        ];
        post(&service, address, &headers, body).await
    };
    let mut unread = Vec::new();
    // A quarter of the whole, minus what a response has in addition to the text.
    for _ in 0..9 {
        unread.push(call_large(GREEDY).await);
    }
    assert!(
        unread
            .iter()
            .all(|response| response.status() == StatusCode::OK)
    );
    assert_ne!(call_large(GREEDY).await.status(), StatusCode::OK);
    assert_eq!(call_large(HONEST).await.status(), StatusCode::OK);
    drop(unread);
    assert_eq!(call_large(GREEDY).await.status(), StatusCode::OK);
}

#[runtimes::test]
async fn a_flood_of_sessions_evicts_none_that_sends_custom_notifications() {
    let mut options = HttpOptions::default();
    options.max_sessions = 40;
    let server = Server::new("quotas", "1");
    let server = server.on_notification("acme/note", |_: Nothing, _: Context| async {});
    let service = server.http_service(options);
    let mut ids = Vec::new();
    // A notification without a handler costs its client nothing, so it does not count as use of the session.
    for method in ["acme/note", "acme/other"] {
        let id = session_id(&begin(&service, GREEDY).await);
        let headers = [("mcp-session-id", id.as_str())];
        for method in ["notifications/initialized", method] {
            let message = json!({"jsonrpc": "2.0", "method": method});
            let accepted = post(&service, GREEDY, &headers, message).await;
            assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        }
        ids.push(id);
    }
    for _ in 0..200 {
        assert_eq!(begin(&service, GREEDY).await.status(), StatusCode::OK);
    }
    for (id, status) in ids
        .iter()
        .zip([StatusCode::ACCEPTED, StatusCode::NOT_FOUND])
    {
        let headers = [("mcp-session-id", id.as_str())];
        let message = json!({"jsonrpc": "2.0", "method": "acme/note"});
        assert_eq!(
            post(&service, GREEDY, &headers, message).await.status(),
            status
        );
    }
}

#[runtimes::test]
async fn refuses_new_sessions_only_to_the_client_that_uses_all_of_its_own() {
    let mut options = HttpOptions::default();
    options.max_sessions = 8;
    let service = service(Settings::default(), options);
    for _ in 0..2 {
        let id = session_id(&begin(&service, GREEDY).await);
        assert_eq!(use_session(&service, GREEDY, &id).await, StatusCode::OK);
    }
    let refused = begin(&service, GREEDY).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(begin(&service, HONEST).await.status(), StatusCode::OK);
}

/// Lets the greedy client call a tool twenty times in two sessions, and the honest one once after `len` shows that all
/// of these wait. Returns whose calls `next` yields, in order.
async fn queue_calls(
    service: &HttpService,
    len: impl Fn() -> usize,
    next: impl FnOnce() -> Vec<Call>,
) -> Vec<Option<String>> {
    let begin_calls = async |address: &'static str, sessions: usize, each: i64| {
        for _ in 0..sessions {
            let id = session_id(&begin(service, address).await);
            use_session(service, address, &id).await;
            for number in 0..each {
                let (service, id) = (service.clone(), id.clone());
                let mut call = call(100 + number, "queued");
                call["params"]["arguments"] = json!({ "of": address });
                tokio::spawn(async move {
                    let headers = [("mcp-session-id", &*id)];
                    post(&service, address, &headers, call).await
                });
            }
        }
    };
    begin_calls(GREEDY, 2, 10).await;
    while len() < 20 {
        tokio::task::yield_now().await;
    }
    begin_calls(HONEST, 1, 1).await;
    while len() < 21 {
        tokio::task::yield_now().await;
    }
    let of = |call: Call| {
        let arguments: Value = serde_json::from_slice(call.arguments().as_bytes()).expect("JSON");
        arguments["of"].as_str().map(str::to_owned)
    };
    next().into_iter().map(of).collect()
}

fn with_queued(handler: Arc<dyn Handler>) -> HttpService {
    let server = Server::builder("quotas", "1").build().expect("builds");
    let tool = Tool::new("queued", json!({"type": "object"}));
    server
        .add_tool(tool, ToolOptions::default(), handler)
        .expect("a tool");
    server.http_service(HttpOptions::default())
}

#[runtimes::test]
async fn queued_calls_of_clients_take_turns() {
    let queue = CallQueue::new(64, || {});
    let service = with_queued(queue.handler(()));
    let next = || {
        let mut calls = Vec::new();
        queue.drain(3, &mut calls);
        calls.into_iter().map(|((), call)| call).collect()
    };
    let order = queue_calls(&service, || queue.len(), next).await;
    let order: Vec<_> = order.iter().flatten().collect();
    assert_eq!(order, [GREEDY, HONEST, GREEDY]);
}

#[runtimes::test]
async fn calls_of_clients_take_turns_on_worker_threads() {
    let limits = Limits {
        max_running: 1,
        max_spare: 0,
        runs_in_parallel: true,
        max_unsent_results: 1,
    };
    let pool = WorkerPool::new(limits, WorkerThreadStarter::default());
    let service = with_queued(pool.handler(()));
    let mut worker = pool.worker();
    // The thread of this test is the worker: it counts as started, but takes jobs only in `next`.
    assert!(pool.expect_worker());
    let next = || {
        let mut calls = Vec::new();
        while calls.len() < 3 {
            match worker.take() {
                WorkerStep::StartAnother => pool.worker_not_started(),
                WorkerStep::Job(((), call)) => calls.push(call),
                WorkerStep::Nothing => worker.sleep(),
                WorkerStep::Ended => unreachable!("the pool is open"),
            }
        }
        calls
    };
    let order = queue_calls(&service, || pool.len(), next).await;
    let order: Vec<_> = order.iter().flatten().collect();
    assert_eq!(order, [GREEDY, HONEST, GREEDY]);
}

/// A body that arrives in part and then stalls. Counts itself in `waited_for` when it stalls.
struct Stalled {
    piece: Option<Bytes>,
    waited_for: Arc<AtomicUsize>,
}

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.piece.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => {
                self.waited_for.fetch_add(1, Ordering::SeqCst);
                Poll::Pending
            }
        }
    }
}

#[runtimes::test]
async fn stalled_bodies_leave_room_for_those_of_other_clients() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 400_000;
    let service = service(settings, HttpOptions::default());
    let waited_for = Arc::new(AtomicUsize::new(0));
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let piece = Bytes::from(vec![b' '; 20_000]);
        let (parts, _) = from(GREEDY, request(Method::POST, &[], json!({}))).into_parts();
        let service = service.clone();
        let body = Stalled {
            piece: Some(piece),
            waited_for: waited_for.clone(),
        };
        let request = Request::from_parts(parts, body);
        stalled.push(tokio::spawn(async move {
            service.handle(request).await.status()
        }));
    }
    // Each is held by now, or was refused because of the others.
    loop {
        let refused = stalled.iter().filter(|task| task.is_finished()).count();
        if waited_for.load(Ordering::SeqCst) + refused >= stalled.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut large = initialize("2025-11-25");
    large["params"]["padding"] = "x".repeat(50_000).into();
    let refused = post(&service, GREEDY, &[], large.clone()).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        post(&service, HONEST, &[], large.clone()).await.status(),
        StatusCode::OK
    );
    // The quota is returned as soon as the requests end.
    for task in stalled {
        task.abort();
        let _ = task.await;
    }
    assert_eq!(
        post(&service, GREEDY, &[], large).await.status(),
        StatusCode::OK
    );
}

/// Opens an HTTP+SSE stream; returns it and the URL to post to.
async fn open_sse(service: &HttpService, address: &str) -> (Body, String) {
    let mut request = Request::new(Full::<Bytes>::default());
    *request.uri_mut() = "/sse".parse().expect("a path");
    let headers = request.headers_mut();
    headers.insert("host", "localhost".parse().expect("a header"));
    headers.insert("accept", "text/event-stream".parse().expect("a header"));
    let response = service.handle(from(address, request)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let frame = body.frame().await.expect("an event").expect("no error");
    let event = frame.into_data().expect("data");
    let event = std::str::from_utf8(&event).expect("text");
    let target = event.lines().find_map(|line| line.strip_prefix("data: "));
    (body, target.expect("the endpoint").to_owned())
}

async fn post_to(service: &HttpService, address: &str, target: &str, body: Value) -> StatusCode {
    let mut request = request(Method::POST, &[], body);
    *request.uri_mut() = target.parse().expect("an address");
    service.handle(from(address, request)).await.status()
}

// On a single thread, every call is answered when the test yields.
#[tokio::test]
async fn a_client_that_never_reads_its_stream_loses_it() {
    let mut options = HttpOptions::default();
    options.max_unread_bytes = 5 * LARGE;
    let service = service(Settings::default(), options);
    let (unread, target) = open_sse(&service, GREEDY).await;
    post_to(&service, GREEDY, &target, initialize("2024-11-05")).await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post_to(&service, GREEDY, &target, initialized).await;
    let mut taken = 0;
    for id in 1..100 {
        match post_to(&service, GREEDY, &target, call(id, "large")).await {
            StatusCode::ACCEPTED => taken += 1,
            status => {
                assert_eq!(status, StatusCode::NOT_FOUND, "the session has ended");
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    assert!((4..=8).contains(&taken), "{taken} calls were taken");
    let rest = unread.collect().await.expect("no error").to_bytes();
    assert!(
        rest.len() < LARGE,
        "{} bytes are kept of an ended stream",
        rest.len()
    );
}

// On a single thread, every call has ended after the test yields some times.
#[tokio::test]
async fn short_results_on_unread_streams_are_bounded_by_the_clients_quota() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 40 * LARGE;
    let service = service(settings, HttpOptions::default());
    // All streams are open before any is filled.
    let mut streams = Vec::new();
    for _ in 0..8 {
        let (unread, target) = open_sse(&service, GREEDY).await;
        let opening = initialize("2024-11-05");
        post_to(&service, GREEDY, &target, opening).await;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        post_to(&service, GREEDY, &target, initialized).await;
        streams.push((unread, target));
    }
    let (mut taken, mut last) = (0, StatusCode::OK);
    for id in 1..=100 {
        for (_, target) in &streams {
            last = post_to(&service, GREEDY, target, call(id, "short")).await;
            taken += usize::from(last == StatusCode::ACCEPTED);
            // Let the result reach the stream.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    let share = 10 * LARGE / SHORT;
    assert!(
        (share / 2..=share).contains(&taken),
        "{taken} answers are held"
    );
    // Messages that end something are accepted all the same.
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let passing = [
        cancelled.clone(),
        json!([cancelled]),
        json!([cancelled, answer]),
    ];
    for body in passing {
        let status = post_to(&service, GREEDY, &streams[0].1, body.clone()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    }
    for body in [
        json!([cancelled, call(0, "short")]),
        json!([cancelled, {"jsonrpc": "2.0", "id": 0}]),
    ] {
        let status = post_to(&service, GREEDY, &streams[0].1, body.clone()).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
    }
    let (_unread, target) = open_sse(&service, HONEST).await;
    let opening = initialize("2024-11-05");
    let status = post_to(&service, HONEST, &target, opening).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    streams.pop();
    let status = post_to(&service, GREEDY, &streams[0].1, call(101, "short")).await;
    assert_eq!(
        status,
        StatusCode::ACCEPTED,
        "a closed stream gives room back"
    );
}

#[runtimes::test]
async fn errors_replace_unread_responses_once_the_clients_quota_is_used_up() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 20 * LARGE;
    let service = service(settings, HttpOptions::default());
    let id = session_id(&begin(&service, GREEDY).await);
    assert_eq!(use_session(&service, GREEDY, &id).await, StatusCode::OK);
    let headers = [("mcp-session-id", id.as_str())];
    let mut unread = Vec::new();
    for number in 0..40 {
        unread.push(post(&service, GREEDY, &headers, call(number, "large")).await);
    }
    let length = |response: &Response<Body>| http_body::Body::size_hint(response.body()).exact();
    let large = unread
        .iter()
        .filter(|response| length(response) > Some(LARGE as u64));
    assert_eq!(large.count(), 4, "a quarter of what all may use");
    let last = unread.pop().expect("forty").into_body();
    let error: Value =
        serde_json::from_slice(&last.collect().await.expect("whole").to_bytes()).expect("JSON");
    assert_eq!(error["id"], 39);
    assert_eq!(error["error"]["code"], -31000);
    let honest = session_id(&begin(&service, HONEST).await);
    assert_eq!(use_session(&service, HONEST, &honest).await, StatusCode::OK);
    drop(unread);
    let answer = post(&service, GREEDY, &headers, call(99, "large")).await;
    assert!(
        length(&answer) > Some(LARGE as u64),
        "read answers give room back"
    );
}

#[runtimes::test]
async fn subscriptions_are_charged_to_their_client() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 200_000;
    settings.session.max_subscription_bytes = usize::MAX;
    let server = Server::builder("quotas", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .resource_template(
            ResourceTemplate::new("test://{number}/{text}", "any"),
            |_: Value, _: Context| async { "text" },
        );
    let service = server.http_service(HttpOptions::default());
    let id = session_id(&begin(&service, GREEDY).await);
    let headers = [("mcp-session-id", id.as_str())];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(&service, GREEDY, &headers, initialized).await;
    let mut subscribed = 0;
    for number in 0..40 {
        let uri = format!("test://{number}/{}", "x".repeat(3_000));
        let body = json!({"jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": {"uri": uri}});
        let answer = post(&service, GREEDY, &headers, body).await.into_body();
        let answer: Value =
            serde_json::from_slice(&answer.collect().await.expect("whole").to_bytes())
                .expect("JSON");
        subscribed += usize::from(answer["error"].is_null());
    }
    assert!(
        (10..=15).contains(&subscribed),
        "{subscribed} of 50,000 bytes"
    );
    assert_eq!(begin(&service, HONEST).await.status(), StatusCode::OK);
}

#[runtimes::test]
async fn pending_reports_are_bounded_by_the_clients_quota() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 400_000;
    let server = Server::builder("quotas", "1").settings(settings);
    let server = server.build().expect("builds").tool(
        "report",
        "Reports",
        |_: Nothing, context: Context| async move {
            let report = || mcpline::foreign::report(&context, 60_000, |_| {});
            let waiting = report();
            let accepted = [waiting.is_some(), report().is_some()];
            drop(waiting);
            let then = report().is_some();
            // Progress without a message uses quota, too.
            let short = (0..1_000)
                .map_while(|_| mcpline::foreign::report(&context, 0, |_| {}))
                .collect::<Vec<_>>();
            assert!((100..1_000).contains(&short.len()), "{}", short.len());
            format!("{accepted:?}, then {then}")
        },
    );
    let service = server.http_service(HttpOptions::default());
    let id = session_id(&begin(&service, GREEDY).await);
    let headers = [("mcp-session-id", &*id)];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(&service, GREEDY, &headers, initialized).await;
    let response = post(&service, GREEDY, &headers, call(1, "report")).await;
    let body = response.into_body().collect().await.expect("a body");
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    assert!(text.contains("[true, false], then true"), "{text}");
}

/// Queues actions for an I/O thread as bindings do: a result, or an input request before a result.
struct Foreign {
    completions: IoThreadQueue,
    sends_request: bool,
}

impl Handler for Foreign {
    fn call(&self, call: Call) {
        let text = "x".repeat(60_000);
        if !self.sends_request {
            let reply = Ok(Reply::Tool(ToolReply::text(&text)));
            return self.completions.push(IoAction::Reply(call, reply));
        }
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": text, "requestedSchema": schema});
        let params = Raw::from_serialize(&params).expect("JSON");
        let context = call.context();
        let input_request = InputRequest::new(InputRequestMethod::Elicit, Some(params));
        let sink = Box::new(move |_| call.reply(Ok(Reply::Tool(ToolReply::text("asked")))));
        self.completions
            .push(IoAction::InputRequest(context, input_request, sink));
    }
}

#[runtimes::test]
async fn actions_waiting_for_the_io_thread_are_charged_to_their_client() {
    for sends_request in [false, true] {
        let mut settings = Settings::default();
        settings.max_total_client_bytes = 400_000;
        // A runtime that is not driven: actions run only when the test calls `run`.
        let stopped = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let completions = IoThreadQueue::start(stopped.handle());
        let server = Server::builder("quotas", "1").settings(settings);
        let server = server.build().expect("builds");
        let tool = Tool::new("foreign", json!({"type": "object"}));
        let handler = Foreign {
            completions: completions.clone(),
            sends_request,
        };
        server
            .add_tool(tool, ToolOptions::default(), Arc::new(handler))
            .expect("a tool");
        let service = server.http_service(HttpOptions::default());
        let id = session_id(&begin(&service, GREEDY).await);
        let headers = [("mcp-session-id", &*id)];
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        post(&service, GREEDY, &headers, initialized).await;
        let waiting = post(&service, GREEDY, &headers, call(1, "foreign"));
        let mut waiting = std::pin::pin!(waiting);
        let mut cx = TaskContext::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        let long = || json!({"jsonrpc": "2.0", "method": "x", "params": {"x": "x".repeat(60_000)}});
        let refused = post(&service, GREEDY, &headers, long()).await;
        assert_eq!(
            refused.status(),
            StatusCode::TOO_MANY_REQUESTS,
            "{sends_request}"
        );
        completions.run();
        drop(waiting.await);
        let taken = post(&service, GREEDY, &headers, long()).await;
        assert_eq!(taken.status(), StatusCode::ACCEPTED, "{sends_request}");
        stopped.shutdown_background();
    }
}
