//! The HTTP service's responses, request by request, without a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::support::Nothing;
use crate::support::requests::{body, call, events, initialize, request};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use mcpline::transport::http::{Body, HttpOptions, HttpService, MountPrefix, Principal};
use mcpline::{Context, InputRequest, InputRequestMethod, Revision, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A service with a tool for each kind of response.
struct Rig {
    service: HttpService,
    go_on: Arc<Notify>,
    cancelled: Arc<AtomicBool>,
}

impl Rig {
    fn new() -> Self {
        Self::with(HttpOptions::default())
    }

    fn with(options: HttpOptions) -> Self {
        let go_on = Arc::new(Notify::new());
        let cancelled = Arc::new(AtomicBool::new(false));
        let (wait, flag) = (go_on.clone(), cancelled.clone());
        let silent = go_on.clone();
        let server = Server::new("http", "1")
            .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
                "done"
            })
            .tool(
                "streams",
                "Reports, waits, answers",
                move |_: Nothing, ctx: Context| {
                    let (wait, flag) = (wait.clone(), flag.clone());
                    ctx.on_cancel(move || flag.store(true, Ordering::SeqCst));
                    async move {
                        ctx.progress(1.0, None, None);
                        wait.notified().await;
                        ctx.progress(2.0, None, None);
                        "done"
                    }
                },
            )
            .tool("silent", "Waits, answers", move |_: Nothing, _: Context| {
                let wait = silent.clone();
                async move {
                    wait.notified().await;
                    "done"
                }
            });
        Self {
            service: server.http_service(options),
            go_on,
            cancelled,
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        self.service.handle(request).await
    }

    async fn post(&self, headers: &[(&str, &str)], body: Value) -> Response<Body> {
        self.send(request(Method::POST, headers, body)).await
    }

    /// Performs the handshake; returns the session's id.
    async fn session(&self, revision: &str) -> String {
        let response = self.post(&[], initialize(revision)).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"]
            .to_str()
            .expect("visible ASCII")
            .to_owned();
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = self.post(&[("mcp-session-id", &id)], body).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        id
    }
}

/// Sends a 2026-07-28 call; `more` replaces or, if empty, removes headers.
async fn modern(rig: &Rig, tool: &str, more: &[(&str, &str)]) -> Response<Body> {
    let mut body = call(1, tool);
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    for header in more {
        headers.retain(|(name, _)| *name != header.0);
        if !header.1.is_empty() {
            headers.push(*header);
        }
    }
    rig.post(&headers, body).await
}

fn progress(message: &Value) -> i64 {
    message["params"]["progress"]
        .as_i64()
        .unwrap_or_else(|| panic!("{message}"))
}

#[runtimes::test]
async fn an_ended_session_is_unknown() {
    let rig = Rig::new();
    let id = rig.session("2025-11-25").await;
    let session = [
        ("mcp-session-id", id.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let answer = body(rig.post(&session, call(1, "plain")).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let ended = rig
        .send(request(Method::DELETE, &session, Value::Null))
        .await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    let gone = rig.post(&session, call(2, "plain")).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let none = rig.post(&[], call(3, "plain")).await;
    assert_eq!(none.status(), StatusCode::BAD_REQUEST);
}

#[runtimes::test]
async fn a_session_belongs_to_the_principal_that_started_it() {
    let rig = Rig::new();
    let as_principal = |name: &str, headers: &[(&str, &str)], body: Value| {
        let mut request = request(Method::POST, headers, body);
        request.extensions_mut().insert(Principal(name.to_owned()));
        request
    };
    let begun = rig
        .send(as_principal("alice", &[], initialize("2025-11-25")))
        .await;
    let id = begun.headers()["mcp-session-id"]
        .to_str()
        .expect("visible ASCII")
        .to_owned();
    let session = [("mcp-session-id", id.as_str())];
    let other = rig
        .send(as_principal("bob", &session, call(1, "plain")))
        .await;
    assert_eq!(other.status(), StatusCode::NOT_FOUND);
    let own = rig
        .send(as_principal("alice", &session, call(1, "plain")))
        .await;
    assert_eq!(own.status(), StatusCode::OK);
}

#[runtimes::test]
async fn malformed_requests_get_the_matching_status() {
    let rig = Rig::with({
        let mut options = HttpOptions::default();
        options.max_body_bytes = 1_000;
        options
    });
    let status = |headers: Vec<(&'static str, &'static str)>, body: Value| {
        let rig = &rig;
        async move { rig.post(&headers, body).await.status().as_u16() }
    };
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(
        status(vec![("content-type", "text/plain")], ping.clone()).await,
        415
    );
    assert_eq!(
        status(vec![("accept", "application/json")], ping.clone()).await,
        406
    );
    assert_eq!(
        status(vec![("host", "evil.example.com")], ping.clone()).await,
        403
    );
    assert_eq!(
        status(vec![("origin", "http://evil.example.com")], ping.clone()).await,
        403
    );
    assert_eq!(
        status(vec![("mcp-protocol-version", "1999-01-01")], ping.clone()).await,
        400
    );
    assert_eq!(
        status(
            vec![],
            json!({"jsonrpc": "2.0", "id": 1, "method": "x".repeat(1_000)})
        )
        .await,
        413
    );
    assert_eq!(status(vec![], json!("no message")).await, 400);
    let patched = rig.send(request(Method::PATCH, &[], ping)).await;
    assert_eq!(patched.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(patched.headers()["allow"], "POST, GET, DELETE");
}

#[runtimes::test]
async fn answers_batches_only_in_revisions_that_have_them() {
    let rig = Rig::new();
    let batch = json!([call(1, "plain"), {"jsonrpc": "2.0", "method": "notifications/x"}, call(2, "plain"), 7]);
    let id = rig.session("2025-03-26").await;
    let answer = body(rig.post(&[("mcp-session-id", &id)], batch.clone()).await).await;
    let mut ids: Vec<String> = answer
        .as_array()
        .expect("an array")
        .iter()
        .map(|entry| entry["id"].to_string())
        .collect();
    ids.sort();
    // An invalid entry does not affect the others.
    assert_eq!(ids, ["1", "2", "null"]);
    let only = json!([{"jsonrpc": "2.0", "method": "notifications/x"}]);
    assert_eq!(
        rig.post(&[("mcp-session-id", &id)], only).await.status(),
        StatusCode::ACCEPTED
    );
    let id = rig.session("2025-06-18").await;
    let refused = rig.post(&[("mcp-session-id", &id)], batch).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[runtimes::test]
async fn a_lost_stream_is_resumed_without_loss_or_duplicates() {
    let rig = Rig::new();
    let id = rig.session("2025-11-25").await;
    let session = [("mcp-session-id", id.as_str())];
    let mut lost = rig.post(&session, call(1, "streams")).await.into_body();
    let seen = events(&mut lost).await.expect("events");
    // The priming event has an id and no message.
    let last = seen.last().expect("progress");
    assert_eq!(progress(&last.1), 1);
    let last_id = last.0.clone();
    drop(lost);
    assert!(
        !rig.cancelled.load(Ordering::SeqCst),
        "a lost stream is no cancellation"
    );
    rig.go_on.notify_one();
    let resume = [
        ("mcp-session-id", id.as_str()),
        ("last-event-id", last_id.as_str()),
    ];
    let mut rest = rig
        .send(request(Method::GET, &resume, Value::Null))
        .await
        .into_body();
    let mut messages = Vec::new();
    while let Some(more) = events(&mut rest).await {
        messages.extend(more);
    }
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(progress(&messages[0].1), 2);
    assert_eq!(messages[1].1["result"]["content"][0]["text"], "done");
    // The same events again: reading them did not remove them.
    let mut again = rig
        .send(request(Method::GET, &resume, Value::Null))
        .await
        .into_body();
    assert_eq!(events(&mut again).await.expect("events").len(), 2);
    let unknown = [("mcp-session-id", id.as_str()), ("last-event-id", "99-1")];
    let refused = rig.send(request(Method::GET, &unknown, Value::Null)).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[runtimes::test]
async fn streams_before_2025_11_25_begin_without_an_empty_event() {
    let rig = Rig::new();
    let id = rig.session("2025-06-18").await;
    let response = rig
        .post(&[("mcp-session-id", &id)], call(1, "streams"))
        .await;
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut stream = response.into_body();
    let seen = events(&mut stream).await.expect("events");
    assert_eq!(seen.len(), 1);
    assert_eq!(progress(&seen[0].1), 1);
}

#[runtimes::test]
async fn the_get_stream_delivers_each_change_once_across_reopenings() {
    let server = Server::new("http", "1").tool("a", "A", |_: Nothing, _: Context| async { "a" });
    let service = server.http_service(HttpOptions::default());
    let rig = Rig {
        service,
        go_on: Arc::default(),
        cancelled: Arc::default(),
    };
    let id = rig.session("2025-06-18").await;
    let session = [("mcp-session-id", id.as_str())];
    let mut first = rig
        .send(request(Method::GET, &session, Value::Null))
        .await
        .into_body();
    server.remove_tool("a");
    let seen = events(&mut first).await.expect("events");
    assert_eq!(seen[0].1["method"], "notifications/tools/list_changed");
    drop(first);
    // A change without an open stream: kept for the next stream only.
    let _ = server
        .clone()
        .tool("b", "B", |_: Nothing, _: Context| async { "b" });
    let mut second = rig
        .send(request(Method::GET, &session, Value::Null))
        .await
        .into_body();
    assert_eq!(events(&mut second).await.expect("events").len(), 1);
}

#[runtimes::test]
async fn disconnecting_cancels_a_modern_streaming_call() {
    let rig = Rig::new();
    let mut stream = modern(&rig, "streams", &[]).await.into_body();
    assert_eq!(events(&mut stream).await.expect("events").len(), 1);
    drop(stream);
    assert!(rig.cancelled.load(Ordering::SeqCst));
}

#[runtimes::test]
async fn disconnecting_cancels_a_modern_call_waiting_for_json() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let server =
        Server::new("http", "1").tool("waits", "Waits", move |_: Nothing, ctx: Context| {
            let flag = flag.clone();
            ctx.on_cancel(move || flag.store(true, Ordering::SeqCst));
            std::future::pending::<String>()
        });
    let rig = Rig {
        service: server.http_service(HttpOptions::default()),
        go_on: Arc::default(),
        cancelled: cancelled.clone(),
    };
    {
        let mut waiting = Box::pin(modern(&rig, "waits", &[]));
        let polled = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::future::Future::poll(waiting.as_mut(), cx).is_pending())
        });
        assert!(polled.await);
    }
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_turns_into_a_stream_with_comments() {
    let rig = Rig::new();
    let response = modern(&rig, "silent", &[]).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body();
    let comment = stream
        .frame()
        .await
        .expect("a frame")
        .expect("data")
        .into_data()
        .expect("data");
    assert!(comment.starts_with(b":"), "{comment:?}");
    rig.go_on.notify_one();
    let seen = events(&mut stream).await.expect("events");
    assert_eq!(seen[0].1["result"]["content"][0]["text"], "done");
}

#[runtimes::test]
async fn modern_requests_must_match_their_headers() {
    let rig = Rig::new();
    let ok = modern(&rig, "plain", &[]).await;
    assert_eq!(ok.status(), StatusCode::OK);
    assert!(!ok.headers().contains_key("mcp-session-id"));
    for (header, value) in [
        ("mcp-name", "other"),
        ("mcp-name", ""),
        ("mcp-method", "tools/list"),
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        let response = modern(&rig, "plain", &[(header, value)]).await;
        assert_eq!(
            response.status(),
            StatusCode::BAD_REQUEST,
            "{header}: {value}"
        );
        let error = body(response).await;
        assert_eq!(error["error"]["code"], -32020, "{header}: {value}");
        assert_eq!(error["id"], 1);
    }
    let get = rig
        .send(request(
            Method::GET,
            &[("mcp-protocol-version", "2026-07-28")],
            Value::Null,
        ))
        .await;
    assert_eq!(get.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[runtimes::test]
async fn a_modern_only_server_has_no_handshake_and_no_sessions() {
    let mut settings = Settings::default();
    settings.revisions = vec![Revision::V2026_07_28];
    let server = Server::builder("http", "1")
        .settings(settings)
        .build()
        .expect("a server");
    let service = server.http_service(HttpOptions::default());
    let send = async |request| service.handle(request).await;
    let shaken = send(request(Method::POST, &[], initialize("2025-11-25"))).await;
    assert_eq!(shaken.status(), StatusCode::BAD_REQUEST);
    let shaken = body(shaken).await;
    assert_eq!(shaken["error"]["code"], -32022, "{shaken}");
    assert_eq!(shaken["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(shaken["error"]["data"]["requested"], "2025-11-25");
    let bare = send(request(
        Method::POST,
        &[],
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}),
    ))
    .await;
    assert_eq!(bare.status(), StatusCode::BAD_REQUEST);
    let bare = body(bare).await;
    assert_eq!(
        (&bare["error"]["code"], &bare["id"]),
        (&json!(-32020), &json!(7)),
        "{bare}"
    );
    for method in [Method::GET, Method::DELETE] {
        let answer = send(request(method, &[("mcp-session-id", "x")], Value::Null)).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers()["allow"], "POST");
    }
}

#[runtimes::test]
async fn refuses_unsupported_versions_within_a_session() {
    let mut settings = Settings::default();
    settings.revisions = vec![Revision::V2025_06_18, Revision::V2026_07_28];
    let server = Server::builder("http", "1")
        .settings(settings)
        .build()
        .expect("a server");
    let service = server.http_service(HttpOptions::default());
    let send = async |request| service.handle(request).await;
    let shaken = send(request(Method::POST, &[], initialize("2025-06-18"))).await;
    let id = shaken.headers()["mcp-session-id"].clone();
    let id = id.to_str().expect("ASCII").to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for (version, expected) in [
        ("2025-06-18", StatusCode::OK),
        ("2025-11-25", StatusCode::BAD_REQUEST),
        ("2024-11-05", StatusCode::BAD_REQUEST),
        ("2099-01-01", StatusCode::BAD_REQUEST),
    ] {
        let headers = [("mcp-session-id", &*id), ("mcp-protocol-version", version)];
        let answer = send(request(Method::POST, &headers, ping.clone())).await;
        assert_eq!(answer.status(), expected, "POST {version}");
        if expected == StatusCode::BAD_REQUEST {
            for method in [Method::GET, Method::DELETE] {
                let answer = send(request(method.clone(), &headers, Value::Null)).await;
                assert_eq!(answer.status(), expected, "{method} {version}");
            }
        }
    }
}

#[runtimes::test]
async fn refuses_events_that_were_never_sent() {
    let rig = Rig::new();
    let id = rig.session("2025-11-25").await;
    for event in [
        "0-18446744073709551615",
        "0-99",
        "7-0",
        "x",
        "0.ffffffff-18446744073709551615",
    ] {
        let headers = [
            ("mcp-session-id", id.as_str()),
            ("accept", "text/event-stream"),
            ("last-event-id", event),
        ];
        let refused = rig.send(request(Method::GET, &headers, Value::Null)).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{event}");
    }
}

#[runtimes::test]
async fn limits_the_number_of_sessions() {
    let rig = Rig::with({
        let mut options = HttpOptions::default();
        options.max_sessions = 1;
        options
    });
    let id = rig.session("2025-11-25").await;
    rig.post(&[("mcp-session-id", &id)], call(1, "plain")).await;
    let refused = rig.post(&[], initialize("2025-11-25")).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn http_sse_answers_on_the_stream_that_announced_the_endpoint() {
    let rig = Rig::new();
    let prefixed = |method: Method, body: Value, path: &str| {
        let mut request = request(method, &[], body);
        *request.uri_mut() = path.parse().expect("a path");
        let prefix = MountPrefix("/prefix".to_owned());
        request.extensions_mut().insert(prefix);
        request
    };
    let open = prefixed(Method::GET, Value::Null, "/prefix/sse");
    let mut stream = rig.send(open).await.into_body();
    let first = stream
        .frame()
        .await
        .expect("a frame")
        .expect("data")
        .into_data()
        .expect("data");
    let text = String::from_utf8(first.to_vec()).expect("UTF-8");
    let address = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .expect("an address")
        .to_owned();
    assert!(address.starts_with("/prefix/messages?sessionId="), "{text}");
    let post = |body: Value| rig.send(prefixed(Method::POST, body, &address));
    assert_eq!(
        post(initialize("2024-11-05")).await.status(),
        StatusCode::ACCEPTED
    );
    let answer = events(&mut stream).await.expect("events");
    assert_eq!(answer[0].1["result"]["protocolVersion"], "2024-11-05");
    post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    post(call(1, "plain")).await;
    let answer = events(&mut stream).await.expect("events");
    assert_eq!(answer[0].1["result"]["content"][0]["text"], "done");
    drop(stream);
    assert_eq!(post(call(2, "plain")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn sessions_may_be_idle_without_a_limit() {
    let rig = Rig::with({
        let mut options = HttpOptions::default();
        options.session_idle_timeout = Duration::MAX;
        options
    });
    let id = rig.session("2025-11-25").await;
    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
    let answer = rig.post(&[("mcp-session-id", &id)], call(1, "plain")).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn closes_idle_sessions() {
    let rig = Rig::with({
        let mut options = HttpOptions::default();
        options.session_idle_timeout = Duration::ZERO;
        options
    });
    let id = rig.session("2025-11-25").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let gone = rig.post(&[("mcp-session-id", &id)], call(1, "plain")).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn custom_notifications_keep_a_session_alive_but_their_handlers_do_not() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (begun, flag) = (started.clone(), dropped.clone());
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let server = Server::new("http", "1")
        .on_notification("acme/wait", move |_: Nothing, _: Context| {
            let (begun, guard) = (begun.clone(), OnDrop(flag.clone()));
            async move {
                let _guard = guard;
                begun.notify_one();
                std::future::pending::<()>().await;
            }
        })
        .on_notification("acme/note", |_: Nothing, _: Context| async {});
    let mut options = HttpOptions::default();
    options.session_idle_timeout = Duration::from_secs(100);
    let rig = Rig {
        service: server.http_service(options),
        go_on: Arc::default(),
        cancelled: Arc::default(),
    };
    let id = rig.session("2025-11-25").await;
    let headers = [("mcp-session-id", id.as_str())];
    let notify = |method: &str| rig.post(&headers, json!({"jsonrpc": "2.0", "method": method}));
    assert_eq!(notify("acme/wait").await.status(), StatusCode::ACCEPTED);
    started.notified().await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!dropped.load(Ordering::SeqCst), "the session is in use");
        assert_eq!(notify("acme/note").await.status(), StatusCode::ACCEPTED);
    }
    tokio::time::sleep(Duration::from_secs(101)).await;
    assert!(dropped.load(Ordering::SeqCst), "the session has been idle");
    assert_eq!(notify("acme/note").await.status(), StatusCode::NOT_FOUND);
}

#[runtimes::test]
async fn a_listen_stream_carries_changes_and_ends_with_a_result() {
    let server = Server::new("http", "1").tool("a", "A", |_: Nothing, _: Context| async { "a" });
    let rig = Rig {
        service: server.http_service(HttpOptions::default()),
        go_on: Arc::default(),
        cancelled: Arc::default(),
    };
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientCapabilities": {}},
        "notifications": {"toolsListChanged": true}}});
    let mut stream = rig.post(&headers, listen).await.into_body();
    let first = events(&mut stream).await.expect("events");
    assert_eq!(
        first[0].1["method"],
        "notifications/subscriptions/acknowledged"
    );
    server.remove_tool("a");
    let change = events(&mut stream).await.expect("events");
    assert_eq!(change[0].1["method"], "notifications/tools/list_changed");
    rig.service.close();
    let last = events(&mut stream).await.expect("events");
    assert_eq!(last[0].1["id"], "l");
    assert_eq!(last[0].1["result"]["resultType"], "complete");
    let meta = &last[0].1["result"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "l");
    assert!(events(&mut stream).await.is_none());
}

#[runtimes::test]
async fn handlers_see_request_extensions_of_middleware() {
    #[derive(Clone)]
    struct Tenant(&'static str);

    let server = Server::new("http", "1").tool(
        "tenant",
        "Names the tenant",
        |_: Nothing, ctx: Context| async move {
            let http = ctx.http();
            let tenant = http
                .as_ref()
                .and_then(|http| http.extensions.get::<Tenant>());
            tenant.map_or("none", |tenant| tenant.0).to_owned()
        },
    );
    let service = server.http_service(HttpOptions::default());
    let mut body_of_call = call(1, "tenant");
    let meta = &mut body_of_call["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "tenant"),
    ];
    let mut request = request(Method::POST, &headers, body_of_call);
    request.extensions_mut().insert(Tenant("acme"));
    let answer = body(service.handle(request).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "acme");
}

#[tokio::test(start_paused = true)]
async fn evicts_idle_sessions_but_not_those_in_use() {
    let rig = Rig::with({
        let mut options = HttpOptions::default();
        options.max_sessions = 2;
        options.session_idle_timeout = Duration::from_secs(30);
        options
    });
    let listening = rig.session("2025-11-25").await;
    let headers = [("mcp-session-id", listening.as_str())];
    let open = rig.send(request(Method::GET, &headers, Value::Null)).await;
    let idle = rig.session("2025-11-25").await;
    let gone = [("mcp-session-id", idle.as_str())];
    let used = rig.post(&gone, call(1, "plain")).await;
    assert_eq!(used.status(), StatusCode::OK);
    // A thirtieth of the idle timeout.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.session("2025-11-25").await;
    let gone = rig.post(&gone, call(2, "plain")).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let kept = rig.post(&headers, call(2, "plain")).await;
    assert_eq!(kept.status(), StatusCode::OK);
    drop(open);
}

/// The stream for the input request opens while the session handles `notifications/initialized`.
#[runtimes::test]
async fn sends_an_early_input_request_after_the_handshake() {
    let server = Server::new("http", "1").tool(
        "asks",
        "Asks before it answers",
        |_: Nothing, ctx: Context| async move {
            let input_request = InputRequest::new(InputRequestMethod::ListRoots, None);
            ctx.request_input(input_request).await.map(|_| "done")
        },
    );
    let service = server.http_service(HttpOptions::default());
    let mut handshake = initialize("2025-11-25");
    handshake["params"]["capabilities"] = json!({"roots": {}});
    let begun = service
        .handle(request(Method::POST, &[], handshake))
        .await
        .into_parts()
        .0;
    let id = begun.headers["mcp-session-id"].to_str().expect("ASCII");
    let session = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let asking = service.handle(request(Method::POST, &session, call(1, "asks")));
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let (asking, accepted) = tokio::join!(asking, async {
        service
            .handle(request(Method::POST, &session, ready))
            .await
            .status()
    });
    assert_eq!(accepted, StatusCode::ACCEPTED);
    let mut stream = asking.into_body();
    let mut input_request = Value::Null;
    while input_request["method"].is_null() {
        for (_, message) in events(&mut stream).await.expect("more") {
            input_request = message;
        }
    }
    assert_eq!(input_request["method"], "roots/list");
}

/// A body in pieces that counts the remaining ones.
struct Pieces(Arc<AtomicUsize>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = self.0.load(Ordering::SeqCst);
        if left == 0 {
            return Poll::Ready(None);
        }
        self.0.store(left - 1, Ordering::SeqCst);
        if left.is_multiple_of(2) {
            // The piece has yet to arrive.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{}")))))
    }
}

#[runtimes::test]
async fn reads_the_body_of_a_refused_request_to_keep_the_connection() {
    let rig = Rig::new();
    for (method, path, status) in [
        (Method::POST, "/sse", StatusCode::METHOD_NOT_ALLOWED),
        (Method::PUT, "/mcp", StatusCode::METHOD_NOT_ALLOWED),
        (Method::PUT, "/messages", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let left = Arc::new(AtomicUsize::new(10));
        let request = Request::builder().method(&method).uri(path);
        let request = request.header("host", "localhost:8000");
        let request = request.body(Pieces(left.clone())).expect("a request");
        assert_eq!(rig.service.handle(request).await.status(), status);
        assert_eq!(left.load(Ordering::SeqCst), 0, "{method} {path}");
    }
}
