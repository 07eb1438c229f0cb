//! Several processes of one service: a handshake-era client may reach any of them.
//!
//! The "processes" are servers that have only [`Sharing`] in common.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::http_sessions::{self, next_message, remaining_messages, settle};
use crate::support::requests::{body, call, events, initialize, request};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use mcpline::middleware::{LimitKey, RateLimit};
use mcpline::protocol::session::Change;
use mcpline::protocol::vocabulary::{ElicitParams, FormSchema, LoggingLevel, Resource};
use mcpline::server::MiddlewareScope;
use mcpline::sharing::{
    BucketPolicy, Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, SharedBuckets,
    Sharing, SharingError, Subscription, TakeOutcome,
};
use mcpline::transport::http::{Body, HttpOptions, HttpService, Principal};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

/// One process.
struct Process {
    server: Server,
    service: HttpService,
    go_on: Arc<Notify>,
    cancelled: Arc<AtomicBool>,
}

impl Process {
    fn start(sharing: &Sharing) -> Self {
        Self::start_with(sharing, HttpOptions::default())
    }

    fn start_with(sharing: &Sharing, mut options: HttpOptions) -> Self {
        let mut settings = Settings::default();
        settings.sharing = Some(sharing.clone());
        let go_on = Arc::new(Notify::new());
        let cancelled = Arc::new(AtomicBool::new(false));
        let (wait, flag) = (go_on.clone(), cancelled.clone());
        let server = Server::builder("replica", "1")
            .settings(settings)
            .build()
            .expect("a server")
            .resource(Resource::new("file:///a", "a"), || async { "a" })
            .resource(Resource::new("file:///b", "b"), || async { "b" })
            .resource(Resource::new("file:///c", "c"), || async { "c" })
            .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
                "done"
            })
            .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
                let elicitation = ElicitParams::form("Name?", FormSchema::new());
                match ctx.elicit(&elicitation).await {
                    Ok(answer) => format!("{:?}", answer.action),
                    Err(error) => error.to_string(),
                }
            })
            .tool("logs", "Logs", |_: Nothing, ctx: Context| async move {
                ctx.log(LoggingLevel::Info, None, "quiet");
                ctx.log(LoggingLevel::Error, None, "loud");
                "logged"
            })
            .tool("streams", "Reports", move |_: Nothing, ctx: Context| {
                let (wait, flag) = (wait.clone(), flag.clone());
                ctx.on_cancel(move || flag.store(true, Ordering::SeqCst));
                async move {
                    ctx.progress(1.0, None, None);
                    wait.notified().await;
                    ctx.progress(2.0, None, None);
                    "done"
                }
            });
        options.retry = Duration::from_millis(1);
        Self {
            service: server.http_service(options),
            server,
            go_on,
            cancelled,
        }
    }

    async fn send(&self, method: Method, session: &str, body: Value) -> Response<Body> {
        http_sessions::send(&self.service, method, session, body).await
    }

    async fn post(&self, session: &str, body: Value) -> Response<Body> {
        self.send(Method::POST, session, body).await
    }

    /// Performs the handshake at this process; returns the session's id.
    async fn begin(&self) -> String {
        http_sessions::initialized(&self.service, "2025-11-25").await
    }
}

fn two() -> (Process, Process) {
    let sharing = Sharing::in_memory();
    (Process::start(&sharing), Process::start(&sharing))
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[tokio::test(start_paused = true)]
async fn a_handshake_at_one_process_is_completed_and_used_at_another() {
    let (a, b) = two();
    let id = a.begin().await;
    let ready = notification("notifications/initialized", json!({}));
    assert_eq!(b.post(&id, ready).await.status(), StatusCode::ACCEPTED);
    for process in [&a, &b] {
        let answer = body(process.post(&id, call(1, "plain")).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_level_set_at_one_process_holds_at_another() {
    let (a, b) = two();
    let id = a.begin().await;
    // Both have loaded the session before it changes.
    let ready = notification("notifications/initialized", json!({}));
    assert_eq!(b.post(&id, ready).await.status(), StatusCode::ACCEPTED);
    let level = json!({"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel",
                       "params": {"level": "error"}});
    assert!(body(b.post(&id, level).await).await["result"].is_object());
    let messages = remaining_messages(a.post(&id, call(6, "logs")).await.body_mut()).await;
    let logged: Vec<_> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| message["params"]["data"].clone())
        .collect();
    assert_eq!(logged, ["loud"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_found_only_by_its_principal() {
    let (a, b) = two();
    let mut hello = request(Method::POST, &[], initialize("2025-11-25"));
    hello.extensions_mut().insert(Principal("alice".into()));
    let begun = a.service.handle(hello).await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let as_principal = |name: &str| {
        let mut request = request(Method::POST, &[("mcp-session-id", id)], call(1, "plain"));
        request.extensions_mut().insert(Principal(name.to_owned()));
        b.service.handle(request)
    };
    assert_eq!(as_principal("bob").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(as_principal("alice").await.status(), StatusCode::OK);
    assert_eq!(as_principal("bob").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn an_input_request_of_one_process_is_answered_at_another() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut at_a = a.post(&id, call(1, "asks")).await;
    let mut at_b = b.post(&id, call(2, "asks")).await;
    let (_, first) = next_message(at_a.body_mut()).await;
    let (_, second) = next_message(at_b.body_mut()).await;
    assert_eq!(first["method"], "elicitation/create");
    assert_ne!(
        first["id"], second["id"],
        "ids are the session's, not a process's"
    );
    let answer = |id: &Value, action: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"action": action}});
    assert_eq!(
        b.post(&id, answer(&first["id"], "decline")).await.status(),
        StatusCode::ACCEPTED
    );
    a.post(&id, answer(&second["id"], "cancel")).await;
    let (_, result) = next_message(at_a.body_mut()).await;
    assert_eq!(result["result"]["content"][0]["text"], "Decline");
    let (_, result) = next_message(at_b.body_mut()).await;
    assert_eq!(result["result"]["content"][0]["text"], "Cancel");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_the_process_that_has_the_request() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut streaming = a.post(&id, call(1, "streams")).await;
    next_message(streaming.body_mut()).await;
    b.post(
        &id,
        notification("notifications/cancelled", json!({"requestId": 1})),
    )
    .await;
    assert!(a.cancelled.load(Ordering::SeqCst));
    assert_eq!(
        remaining_messages(streaming.body_mut()).await,
        [] as [Value; 0]
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_at_one_process_reaches_a_listener_at_another_once() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let subscribe = json!({"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe",
                           "params": {"uri": "file:///a"}});
    assert!(body(a.post(&id, subscribe).await).await["result"].is_object());
    let mut listening = b.send(Method::GET, &id, Value::Null).await;
    a.server.notify_resource_updated("file:///a");
    let (_, first) = next_message(listening.body_mut()).await;
    assert_eq!(first["method"], "notifications/resources/updated");
    b.server.notify_resource_updated("file:///a");
    next_message(listening.body_mut()).await;
    // No process kept a second copy for later.
    let mut again = a.send(Method::GET, &id, Value::Null).await;
    a.server
        .notify_changed(&mcpline::protocol::session::Change::Tools);
    let (_, next) = next_message(again.body_mut()).await;
    assert_eq!(next["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn input_requests_wait_until_the_client_opens_its_stream() {
    let mut settings = Settings::default();
    settings.sharing = Some(Sharing::in_memory());
    let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder("replica", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .on_initialized(move |ctx: Context| {
            let sender = sender.clone();
            async move {
                let elicitation = ElicitParams::form("Name?", FormSchema::new());
                // The test may be over.
                let _ = sender.send(ctx.elicit(&elicitation).await.map(|answer| answer.action));
            }
        });
    let a = Process {
        service: server.http_service(HttpOptions::default()),
        server,
        go_on: Arc::default(),
        cancelled: Arc::default(),
    };
    let id = a.begin().await;
    a.post(
        &id,
        self::notification("notifications/initialized", json!({})),
    )
    .await;
    // The handler has sent its input request by now.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    // Each process sends changes only where the client has a stream: this one is dropped.
    a.server
        .notify_changed(&mcpline::protocol::session::Change::Tools);
    let mut listening = a.send(Method::GET, &id, Value::Null).await;
    let (_, input_request) = next_message(listening.body_mut()).await;
    assert_eq!(input_request["method"], "elicitation/create");
    let answer =
        json!({"jsonrpc": "2.0", "id": input_request["id"], "result": {"action": "decline"}});
    a.post(&id, answer).await;
    let answered = answers.recv().await.expect("it was asked");
    assert_eq!(format!("{:?}", answered.expect("an answer")), "Decline");
    a.server
        .notify_changed(&mcpline::protocol::session::Change::Prompts);
    let (_, next) = next_message(listening.body_mut()).await;
    assert_eq!(next["method"], "notifications/prompts/list_changed");
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_continued_at_another_process_while_the_call_runs() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut lost = a.post(&id, call(1, "streams")).await;
    let (seen, first) = next_message(lost.body_mut()).await;
    assert_eq!(first["params"]["progress"], 1.0);
    drop(lost);
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
    let resumed = request(Method::GET, &headers, Value::Null);
    let mut resumed = b.service.handle(resumed).await;
    assert_eq!(resumed.status(), StatusCode::OK);
    a.go_on.notify_one();
    let messages = remaining_messages(resumed.body_mut()).await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["params"]["progress"], 2.0);
    assert_eq!(messages[1]["result"]["content"][0]["text"], "done");
    // The whole stream again, at either process; it has ended by now.
    let (stream, _) = seen.split_once('-').expect("a stream and a number");
    let start = format!("{stream}-0");
    for process in [&a, &b] {
        let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &start)];
        let again = request(Method::GET, &headers, Value::Null);
        let mut again = process.service.handle(again).await;
        assert_eq!(remaining_messages(again.body_mut()).await.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_ended_at_one_process_is_unknown_to_all() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    b.post(&id, call(1, "plain")).await;
    let ended = b.send(Method::DELETE, &id, Value::Null).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    for process in [&a, &b] {
        let gone = process.post(&id, call(2, "plain")).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_outlives_the_process_that_began_it() {
    let (a, b) = two();
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    a.service.close();
    drop(a);
    let answer = body(b.post(&id, call(1, "plain")).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_session_in_use_lives_on_though_each_request_reaches_another_process() {
    let sharing = Sharing::in_memory();
    let idle_timeout = Duration::from_secs(60);
    let start = || {
        let mut options = HttpOptions::default();
        options.session_idle_timeout = idle_timeout;
        Process::start_with(&sharing, options)
    };
    let first = start();
    let id = first.begin().await;
    first
        .post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut others = Vec::new();
    // Longer than the lifetime in the store that the first process asked for.
    for request in 1..8 {
        tokio::time::sleep(idle_timeout / 2).await;
        let process = start();
        let answer = process.post(&id, call(request, "plain")).await;
        assert_eq!(answer.status(), StatusCode::OK, "request {request}");
        others.push(process);
    }
}

/// A store that cannot be reached.
struct Unreachable;

impl SessionStore for Unreachable {
    fn save<'a>(&'a self, _: &'a str, _: Bytes, _: Bytes, _: Duration) -> Pending<'a, SaveOutcome> {
        Box::pin(async { Err(SharingError::new("unreachable")) })
    }

    fn load<'a>(&'a self, _: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async { Err(SharingError::new("unreachable")) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> Pending<'a, ()> {
        Box::pin(async { Err(SharingError::new("unreachable")) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_does_not_affect_the_process_that_has_the_session() {
    let mut sharing = Sharing::in_memory();
    sharing.sessions = Arc::new(Unreachable);
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let answer = body(a.post(&id, call(1, "plain")).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    // Not 404, which would end the session for the client.
    let elsewhere = b.post(&id, call(2, "plain")).await;
    assert_eq!(elsewhere.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_process_without_room_does_not_say_that_a_session_is_unknown() {
    let sharing = Sharing::in_memory();
    let a = Process::start(&sharing);
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    let b = Process::start_with(&sharing, options);
    let (at_a, at_b) = (a.begin().await, b.begin().await);
    // In use, so that it makes no room.
    let _call = b.post(&at_b, call(1, "streams")).await;
    let refused = b.post(&at_a, call(1, "plain")).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let answer = body(a.post(&at_a, call(1, "plain")).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

/// A log in which nothing is found until it has been read a few times, or which cannot be reached.
struct Late {
    log: Arc<dyn EventLog>,
    reads: AtomicUsize,
    is_reachable: bool,
}

impl EventLog for Late {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.log.append(stream, number, event);
    }

    fn end(&self, stream: &str, last: u64) {
        self.log.end(stream, last);
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        if !self.is_reachable {
            return Box::pin(async { Err(SharingError::new("unreachable")) });
        }
        match self.reads.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Box::pin(async { Ok(None) }),
            _ => self.log.read(stream, after),
        }
    }
}

/// A log with one ended stream, of which it returns one large event at a time.
#[derive(Default)]
struct Parts {
    reads: AtomicUsize,
}

impl Parts {
    const EVENTS: u64 = 12;

    fn event() -> Bytes {
        let text = "x".repeat(900 * 1024);
        notification(
            "notifications/message",
            json!({"level": "info", "data": text}),
        )
        .to_string()
        .into()
    }
}

impl EventLog for Parts {
    fn append(&self, _: &str, _: u64, _: Bytes) {}

    fn end(&self, _: &str, _: u64) {}

    fn read<'a>(&'a self, _: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let part = match after + 1 < Self::EVENTS {
            true => LoggedEvents::part(vec![Self::event()]),
            false => LoggedEvents::new(vec![Self::event()], true),
        };
        Box::pin(async { Ok(Some(part)) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_only_as_far_as_the_client_reads_the_resumed_stream() {
    let log = Arc::new(Parts::default());
    let mut sharing = Sharing::in_memory();
    sharing.events = log.clone();
    let a = Process::start(&sharing);
    let id = a.begin().await;
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("last-event-id", "1.ffff-0"),
    ];
    let resume = || {
        a.service
            .handle(request(Method::GET, &headers, Value::Null))
    };
    let mut resumed = resume().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let read = log.reads.load(Ordering::SeqCst);
    assert!(read < 4, "{read} parts without a reader");
    assert_eq!(
        remaining_messages(resumed.body_mut()).await.len() as u64,
        Parts::EVENTS
    );
    // A client that leaves ends the reading.
    let left = resume().await;
    drop(left);
    let before = log.reads.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = log.reads.load(Ordering::SeqCst);
    assert!(
        after - before < 2,
        "{} parts for a client that left",
        after - before
    );
}

/// A log with two ended streams: a notification, which is long in stream 1, and a response.
struct LongNotification;

impl EventLog for LongNotification {
    fn append(&self, _: &str, _: u64, _: Bytes) {}

    fn end(&self, _: &str, _: u64) {}

    fn read<'a>(&'a self, stream: &'a str, _: u64) -> Pending<'a, Option<LoggedEvents>> {
        let length = if stream.contains("/1.") {
            200_000
        } else {
            100_000
        };
        let params = json!({"level": "info", "data": "x".repeat(length)});
        let notification = notification("notifications/message", params).to_string();
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string();
        let all = LoggedEvents::new(vec![notification.into(), response.into()], true);
        Box::pin(async { Ok(Some(all)) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_stream_without_room_for_an_event_is_interrupted_before_it() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 650_000;
    settings.client_share = 1.0;
    let mut sharing = Sharing::in_memory();
    sharing.events = Arc::new(LongNotification);
    settings.sharing = Some(sharing);
    let server = Server::builder("replica", "1").settings(settings);
    let server = server.build().expect("a server");
    let a = Process {
        service: server.http_service(HttpOptions::default()),
        server,
        go_on: Arc::default(),
        cancelled: Arc::default(),
    };
    let id = a.begin().await;
    let resume = async |after: &str| {
        let headers = [("mcp-session-id", id.as_str()), ("last-event-id", after)];
        let resumed = request(Method::GET, &headers, Value::Null);
        a.service.handle(resumed).await.into_body()
    };
    let held = [
        resume("1.ffff-0").await,
        resume("1.ffff-0").await,
        resume("2.ffff-0").await,
    ];
    let interrupted = remaining_messages(&mut resume("1.ffff-0").await).await;
    assert_eq!(interrupted.len(), 0, "no response without the notification");
    for mut body in held {
        assert_eq!(remaining_messages(&mut body).await.len(), 2);
    }
    assert_eq!(
        remaining_messages(&mut resume("1.ffff-0").await)
            .await
            .len(),
        2
    );
}

/// What a process shares until it is killed.
struct Mortal {
    parts: Sharing,
    is_killed: AtomicBool,
}

impl SessionStore for Mortal {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        match self.is_killed.load(Ordering::SeqCst) {
            true => Box::pin(std::future::pending()),
            false => self.parts.sessions.save(id, session, replaces, lifetime),
        }
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.parts.sessions.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.parts.sessions.remove(id)
    }
}

impl EventLog for Mortal {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        if !self.is_killed.load(Ordering::SeqCst) {
            self.parts.events.append(stream, number, event);
        }
    }

    fn end(&self, stream: &str, last: u64) {
        if !self.is_killed.load(Ordering::SeqCst) {
            self.parts.events.end(stream, last);
        }
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        self.parts.events.read(stream, after)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_process_was_killed_ends_with_an_error_on_the_resumed_stream() {
    let sharing = Sharing::in_memory();
    let mortal = Arc::new(Mortal {
        parts: sharing.clone(),
        is_killed: AtomicBool::new(false),
    });
    let a = Process::start(&Sharing {
        sessions: mortal.clone(),
        events: mortal.clone(),
        bus: sharing.bus.clone(),
        buckets: None,
    });
    let b = Process::start(&sharing);
    let id = a.begin().await;
    let mut lost = a.post(&id, call(7, "streams")).await;
    let (seen, _) = next_message(lost.body_mut()).await;
    drop(lost);
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
    let resumed = b
        .service
        .handle(request(Method::GET, &headers, Value::Null))
        .await;
    let mut resumed = resumed.into_body();
    let mut messages = async |time: Duration| {
        let found = async {
            while let Some(found) = events(&mut resumed).await {
                let mut messages = found.into_iter().map(|(_, message)| message);
                if let Some(message) = messages.find(|message| !message.is_null()) {
                    return Some(message);
                }
            }
            None
        };
        tokio::time::timeout(time, found).await
    };
    // A call may take any time while its process is alive.
    let long = Duration::from_secs(40);
    messages(long).await.expect_err("the call goes on");
    mortal.is_killed.store(true, Ordering::SeqCst);
    let answer = messages(Duration::from_secs(30)).await;
    let answer = answer.expect("in time").expect("an answer");
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(7), &json!(-31_003))
    );
    let data = json!({"retryable": true, "outcomeKnown": false});
    assert_eq!(answer["error"]["data"], data);
    assert_eq!(messages(long).await.expect("it ends"), None);
}

/// A log that loses the response of each request.
struct Forgetful {
    log: Arc<dyn EventLog>,
}

impl EventLog for Forgetful {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        if !event.windows(8).any(|part| part == b"\"result\"") {
            self.log.append(stream, number, event);
        }
    }

    fn end(&self, stream: &str, last: u64) {
        self.log.end(stream, last);
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        self.log.read(stream, after)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_response_was_lost_ends_with_an_error_on_the_resumed_stream() {
    let mut sharing = Sharing::in_memory();
    sharing.events = Arc::new(Forgetful {
        log: sharing.events.clone(),
    });
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    for has_ended in [false, true] {
        let mut lost = a.post(&id, call(7, "streams")).await;
        let (seen, _) = next_message(lost.body_mut()).await;
        if has_ended {
            a.go_on.notify_one();
            remaining_messages(lost.body_mut()).await;
        }
        let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
        let mut resumed = b
            .service
            .handle(request(Method::GET, &headers, Value::Null))
            .await;
        assert_eq!(resumed.status(), 200);
        if !has_ended {
            a.go_on.notify_one();
        }
        let messages = remaining_messages(resumed.body_mut()).await;
        let answer = messages.last().expect("an answer");
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(7), &json!(-31_003))
        );
        let data = json!({"retryable": true, "outcomeKnown": false});
        assert_eq!(answer["error"]["data"], data);
    }
}

/// A store that can be read, and written to unless it is full.
struct Limited {
    store: Arc<dyn SessionStore>,
    is_full: AtomicBool,
}

impl SessionStore for Limited {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        match self.is_full.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(SharingError::new("full")) }),
            false => self.store.save(id, session, replaces, lifetime),
        }
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.store.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.store.remove(id)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_while_the_store_takes_no_signs_of_life() {
    let mut sharing = Sharing::in_memory();
    let store = Arc::new(Limited {
        store: sharing.sessions.clone(),
        is_full: AtomicBool::new(false),
    });
    sharing.sessions = store.clone();
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    let mut begun = a.post(&id, call(7, "streams")).await;
    let (seen, _) = next_message(begun.body_mut()).await;
    drop(begun);
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
    let resumed = b
        .service
        .handle(request(Method::GET, &headers, Value::Null))
        .await;
    let mut resumed = resumed.into_body();
    for is_full in [true, false] {
        store.is_full.store(is_full, Ordering::SeqCst);
        let answered = async {
            while let Some(found) = events(&mut resumed).await {
                if let Some((_, message)) =
                    found.into_iter().find(|(_, message)| !message.is_null())
                {
                    return message;
                }
            }
            Value::Null
        };
        let answered = tokio::time::timeout(Duration::from_secs(120), answered).await;
        assert!(answered.is_err(), "{answered:?}");
    }
}

/// A log that counts how often it was flushed, and how many events it had before.
struct Flushed {
    log: Arc<dyn EventLog>,
    events: AtomicUsize,
    at_flush: Mutex<Vec<usize>>,
}

impl EventLog for Flushed {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.events.fetch_add(1, Ordering::SeqCst);
        self.log.append(stream, number, event);
    }

    fn end(&self, stream: &str, last: u64) {
        self.log.end(stream, last);
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let events = self.events.load(Ordering::SeqCst);
            self.at_flush.lock().expect("no panic").push(events);
            Ok(())
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        self.log.read(stream, after)
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_flushes_the_log_after_the_last_call() {
    let mut sharing = Sharing::in_memory();
    let log = Arc::new(Flushed {
        log: sharing.events.clone(),
        events: AtomicUsize::new(0),
        at_flush: Mutex::default(),
    });
    sharing.events = log.clone();
    let a = Process::start(&sharing);
    let id = a.begin().await;
    let mut streaming = a.post(&id, call(1, "streams")).await;
    next_message(streaming.body_mut()).await;
    let finishing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.go_on.notify_one();
        remaining_messages(streaming.body_mut()).await
    };
    let shutting_down = a.service.shut_down(Duration::from_secs(10));
    tokio::join!(shutting_down, finishing);
    let events = log.events.load(Ordering::SeqCst);
    assert_eq!(*log.at_flush.lock().expect("no panic"), [events]);
}

/// Resumes a call's stream at another process, whose log is late or cannot be reached.
async fn resume_with(is_reachable: bool) -> Response<Body> {
    let mut sharing = Sharing::in_memory();
    sharing.events = Arc::new(Late {
        log: sharing.events.clone(),
        reads: AtomicUsize::new(0),
        is_reachable,
    });
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    let mut lost = a.post(&id, call(1, "streams")).await;
    let (seen, _) = next_message(lost.body_mut()).await;
    drop(lost);
    a.go_on.notify_one();
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
    b.service
        .handle(request(Method::GET, &headers, Value::Null))
        .await
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_resumed_although_the_log_is_behind_the_client() {
    let mut resumed = resume_with(true).await;
    assert_eq!(resumed.status(), StatusCode::OK);
    let messages = remaining_messages(resumed.body_mut()).await;
    let last = messages.last().expect("a result");
    assert_eq!(last["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_failing_log_does_not_say_that_a_stream_is_unknown() {
    let refused = resume_with(false).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// A bus that holds messages back until it is released.
struct LateBus {
    bus: Arc<dyn Bus>,
    held: Mutex<Option<Vec<Bytes>>>,
}

impl LateBus {
    fn release(&self) {
        let held = self.held.lock().expect("no panic").take();
        for message in held.into_iter().flatten() {
            self.bus.publish(message);
        }
    }
}

impl Bus for LateBus {
    fn publish(&self, message: Bytes) {
        match &mut *self.held.lock().expect("no panic") {
            Some(held) => held.push(message),
            None => self.bus.publish(message),
        }
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        self.bus.subscribe(receive)
    }
}

#[tokio::test(start_paused = true)]
async fn changes_at_several_processes_add_up_although_the_bus_is_behind_the_client() {
    let mut sharing = Sharing::in_memory();
    let bus = Arc::new(LateBus {
        bus: sharing.bus.clone(),
        held: Mutex::new(Some(Vec::new())),
    });
    sharing.bus = bus.clone();
    let [a, b, c] = [(); 3].map(|()| Process::start(&sharing));
    let id = a.begin().await;
    let ready = notification("notifications/initialized", json!({}));
    assert_eq!(b.post(&id, ready).await.status(), StatusCode::ACCEPTED);
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
                           "params": {"uri": "file:///a"}});
    assert_eq!(a.post(&id, subscribe).await.status(), StatusCode::OK);
    // By now A gets the change that B made first.
    bus.release();
    for process in [&c, &a, &b] {
        let mut listening = process.send(Method::GET, &id, Value::Null).await;
        process.server.notify_resource_updated("file:///a");
        let (_, update) = next_message(listening.body_mut()).await;
        assert_eq!(update["params"]["uri"], "file:///a");
    }
}

/// A store from which sessions are loaded as they were before, until it is released.
struct Behind {
    store: Arc<dyn SessionStore>,
    before: Mutex<Option<Bytes>>,
}

impl SessionStore for Behind {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        self.store.save(id, session, replaces, lifetime)
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        match self.before.lock().expect("no panic").clone() {
            Some(before) => Box::pin(async { Ok(Some(before)) }),
            None => self.store.load(id),
        }
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.store.remove(id)
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_a_client_makes_at_several_processes_at_once_add_up() {
    let mut sharing = Sharing::in_memory();
    let (recorded, recording) = Recording::wrap(sharing.clone());
    let bus = Arc::new(LateBus {
        bus: sharing.bus.clone(),
        held: Mutex::new(Some(Vec::new())),
    });
    let store = Arc::new(Behind {
        store: recorded.sessions,
        before: Mutex::default(),
    });
    sharing.bus = bus.clone();
    sharing.sessions = store.clone();
    let processes = [(); 3].map(|()| Process::start(&sharing));
    let id = processes[0].begin().await;
    let ready = notification("notifications/initialized", json!({}));
    processes[0].post(&id, ready).await;
    // All of them have the session as it is now, and do not know of each other's changes.
    for process in &processes {
        process.post(&id, call(1, "plain")).await;
    }
    let saved = {
        let seen = recording.seen.lock().expect("not poisoned");
        let mut saved = seen.iter().filter(|(_, bytes)| bytes.ends_with(b"}"));
        let (_, saved) = saved.next_back().expect("a saved session");
        let begin = saved.iter().position(|byte| *byte == b'{');
        Bytes::copy_from_slice(&saved[begin.expect("JSON")..])
    };
    *store.before.lock().expect("no panic") = Some(saved);
    let uris = ["file:///a", "file:///b", "file:///c"];
    for (uri, process) in uris.iter().zip(&processes) {
        let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
                               "params": {"uri": uri}});
        assert_eq!(process.post(&id, subscribe).await.status(), StatusCode::OK);
    }
    *store.before.lock().expect("no panic") = None;
    bus.release();
    settle().await;
    let restarted = Process::start(&sharing);
    for process in processes.iter().chain([&restarted]) {
        let mut listening = process.send(Method::GET, &id, Value::Null).await;
        for uri in uris {
            process.server.notify_resource_updated(uri);
            let (_, update) = next_message(listening.body_mut()).await;
            assert_eq!(update["params"]["uri"], uri);
        }
    }
}

/// The connection of one process to the shared state. While it is cut off, the process reaches neither the store nor others.
struct Link {
    sharing: Sharing,
    is_cut_off: Arc<AtomicBool>,
}

impl Link {
    /// Starts a process that has a connection of its own.
    fn connect(sharing: &Sharing) -> (Process, Arc<AtomicBool>) {
        let is_cut_off = Arc::<AtomicBool>::default();
        let link = Arc::new(Self {
            sharing: sharing.clone(),
            is_cut_off: is_cut_off.clone(),
        });
        let mut own = sharing.clone();
        own.sessions = link.clone();
        own.bus = link;
        (Process::start(&own), is_cut_off)
    }

    fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::SeqCst)
    }
}

impl SessionStore for Link {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        match self.is_cut_off() {
            true => Unreachable.save(id, session, replaces, lifetime),
            false => self.sharing.sessions.save(id, session, replaces, lifetime),
        }
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        match self.is_cut_off() {
            true => Unreachable.load(id),
            false => self.sharing.sessions.load(id),
        }
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.sharing.sessions.remove(id)
    }
}

impl Bus for Link {
    fn publish(&self, message: Bytes) {
        if !self.is_cut_off() {
            self.sharing.bus.publish(message);
        }
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        let is_cut_off = self.is_cut_off.clone();
        self.sharing.bus.subscribe(Arc::new(move |message| {
            if !is_cut_off.load(Ordering::SeqCst) {
                receive(message);
            }
        }))
    }
}

/// Longer than a process waits before it saves changes again that the store did not take.
const UNTIL_SAVED: Duration = Duration::from_secs(3);

/// Returns the next message of a stream. Comments, which keep a silent stream alive, do not count.
async fn message_soon(stream: &mut Body) -> (String, Value) {
    tokio::time::timeout(UNTIL_SAVED, next_message(stream))
        .await
        .expect("a message arrives")
}

fn change_subscription(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {"uri": "file:///a"}})
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_its_client_although_the_process_that_knew_it_to_be_ready_has_ended() {
    let sharing = Sharing::in_memory();
    let (a, is_cut_off) = Link::connect(&sharing);
    let b = Process::start(&sharing);
    let id = a.begin().await;
    is_cut_off.store(true, Ordering::SeqCst);
    let ready = notification("notifications/initialized", json!({}));
    assert_eq!(a.post(&id, ready).await.status(), StatusCode::ACCEPTED);
    a.service.close();
    drop(a);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(b.post(&id, ping).await.status(), StatusCode::OK);
    let mut response = b.post(&id, call(2, "asks")).await;
    let (_, asked) = message_soon(response.body_mut()).await;
    assert_eq!(asked["method"], "elicitation/create");
    // Other processes learn it, and do not need a request.
    tokio::time::sleep(UNTIL_SAVED).await;
    let c = Process::start(&sharing);
    let mut listening = c.send(Method::GET, &id, Value::Null).await;
    c.server.notify_changed(&Change::Tools);
    let (_, changed) = message_soon(listening.body_mut()).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn the_initialized_handler_runs_once_although_a_request_overtakes_the_notification() {
    let sharing = Sharing::in_memory();
    let runs = Arc::<AtomicUsize>::default();
    let [a, b] = [(); 2].map(|()| {
        let process = Process::start(&sharing);
        let runs = runs.clone();
        let _ = process.server.clone().on_initialized(move |_: Context| {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
            }
        });
        process
    });
    let id = a.begin().await;
    // B concludes from it that the handshake is complete, and shares that.
    b.post(&id, call(1, "plain")).await;
    tokio::time::sleep(UNTIL_SAVED).await;
    assert_eq!(
        runs.load(Ordering::SeqCst),
        0,
        "no notification has arrived"
    );
    // A client that sends it again, to any process, changes nothing.
    for process in [&a, &a, &b] {
        let ready = notification("notifications/initialized", json!({}));
        process.post(&id, ready).await;
        settle().await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_later_of_two_changes_holds_although_the_first_was_made_at_a_process_that_was_cut_off()
{
    let sharing = Sharing::in_memory();
    let (a, is_cut_off) = Link::connect(&sharing);
    let b = Process::start(&sharing);
    let id = a.begin().await;
    let ready = notification("notifications/initialized", json!({}));
    a.post(&id, ready).await;
    for (process, cut_off, method) in [
        (&a, false, "resources/subscribe"),
        (&a, true, "resources/unsubscribe"),
        // Changes nothing that this process knows.
        (&b, true, "resources/subscribe"),
    ] {
        is_cut_off.store(cut_off, Ordering::SeqCst);
        let answer = process.post(&id, change_subscription(method)).await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
    is_cut_off.store(false, Ordering::SeqCst);
    tokio::time::sleep(UNTIL_SAVED).await;
    for (listener, updating) in [(&a, &b), (&b, &a)] {
        let mut listening = listener.send(Method::GET, &id, Value::Null).await;
        updating.server.notify_resource_updated("file:///a");
        let (_, update) = message_soon(listening.body_mut()).await;
        assert_eq!(update["params"]["uri"], "file:///a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_store_did_not_take_is_saved_and_published_later() {
    let sharing = Sharing::in_memory();
    let (a, is_cut_off) = Link::connect(&sharing);
    let b = Process::start(&sharing);
    let id = a.begin().await;
    let ready = notification("notifications/initialized", json!({}));
    a.post(&id, ready).await;
    b.post(&id, call(1, "plain")).await;
    is_cut_off.store(true, Ordering::SeqCst);
    let subscribe = change_subscription("resources/subscribe");
    assert_eq!(a.post(&id, subscribe).await.status(), StatusCode::OK);
    // Several attempts fail.
    tokio::time::sleep(4 * UNTIL_SAVED).await;
    is_cut_off.store(false, Ordering::SeqCst);
    tokio::time::sleep(UNTIL_SAVED).await;
    a.service.close();
    drop(a);
    for process in [&b, &Process::start(&sharing)] {
        let mut listening = process.send(Method::GET, &id, Value::Null).await;
        process.server.notify_resource_updated("file:///a");
        let (_, update) = message_soon(listening.body_mut()).await;
        assert_eq!(update["params"]["uri"], "file:///a");
    }
}

/// Counts the sessions that a store holds. Each `save` waits for a permit.
struct Counting {
    store: Arc<dyn SessionStore>,
    ids: Mutex<HashSet<String>>,
    started: AtomicUsize,
    go_on: Semaphore,
}

impl Counting {
    /// Wraps the store of `sharing`; `saves` calls of `save` may proceed.
    fn wrap(sharing: &mut Sharing, saves: usize) -> Arc<Self> {
        let counting = Arc::new(Self {
            store: sharing.sessions.clone(),
            ids: Mutex::default(),
            started: AtomicUsize::new(0),
            go_on: Semaphore::new(saves),
        });
        sharing.sessions = counting.clone();
        counting
    }

    fn held(&self) -> usize {
        self.ids.lock().expect("not poisoned").len()
    }
}

impl SessionStore for Counting {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        Box::pin(async move {
            // The session may be stored even if the caller no longer waits for it.
            self.ids.lock().expect("not poisoned").insert(id.to_owned());
            self.started.fetch_add(1, Ordering::SeqCst);
            self.go_on.acquire().await.expect("open").forget();
            self.store.save(id, session, replaces, lifetime).await
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.store.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.ids.lock().expect("not poisoned").remove(id);
        self.store.remove(id)
    }
}

/// Whether a process that knows a session only from the store notifies its client of updates of `file:///a`.
async fn is_stored_as_subscribed(sharing: &Sharing, id: &str) -> bool {
    let process = Process::start(sharing);
    let mut listening = process.send(Method::GET, id, Value::Null).await;
    process.server.notify_resource_updated("file:///a");
    let update = tokio::time::timeout(UNTIL_SAVED, next_message(listening.body_mut())).await;
    update.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_change_is_saved_although_its_client_leaves_meanwhile() {
    let mut sharing = Sharing::in_memory();
    // The handshake, and the notification that it is complete.
    let store = Counting::wrap(&mut sharing, 2);
    let a = Process::start(&sharing);
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let subscribe = change_subscription("resources/subscribe");
    let change = request(Method::POST, &headers, subscribe);
    let service = a.service.clone();
    let before = store.started.load(Ordering::SeqCst);
    let changing = tokio::spawn(async move { service.handle(change).await.status() });
    while store.started.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
    changing.abort();
    assert!(changing.await.is_err(), "the client has left");
    store.go_on.add_permits(Semaphore::MAX_PERMITS / 2);
    tokio::time::sleep(UNTIL_SAVED).await;
    assert!(is_stored_as_subscribed(&sharing, &id).await);
}

/// A store of which the third `save` fails, and the fourth panics.
struct Panicking {
    store: Arc<dyn SessionStore>,
    saves: AtomicUsize,
}

impl SessionStore for Panicking {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        match self.saves.fetch_add(1, Ordering::SeqCst) {
            2 => Unreachable.save(id, session, replaces, lifetime),
            3 => panic!("a fault of the store"),
            _ => self.store.save(id, session, replaces, lifetime),
        }
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.store.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.store.remove(id)
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_saved_after_a_panic_of_the_store() {
    let mut sharing = Sharing::in_memory();
    let store = Arc::new(Panicking {
        store: sharing.sessions.clone(),
        saves: AtomicUsize::new(0),
    });
    sharing.sessions = store.clone();
    let a = Process::start(&sharing);
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    a.post(&id, change_subscription("resources/subscribe"))
        .await;
    tokio::time::sleep(UNTIL_SAVED).await;
    assert_eq!(store.saves.load(Ordering::SeqCst), 4);
    // The next request finds that the session is unsaved.
    a.post(&id, call(1, "plain")).await;
    tokio::time::sleep(UNTIL_SAVED).await;
    assert!(is_stored_as_subscribed(&sharing, &id).await);
}

/// Changes a session at one process while the store is slow, and ends it at another meanwhile.
async fn end_while_it_is_saved(a: &Process, b: &Process, store: &Counting, id: &str) {
    let level = json!({"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel",
                       "params": {"level": "error"}});
    let headers = [
        ("mcp-session-id", id),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let change = request(Method::POST, &headers, level);
    let service = a.service.clone();
    let before = store.started.load(Ordering::SeqCst);
    let changing = tokio::spawn(async move { service.handle(change).await.status() });
    while store.started.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
    let ended = b.send(Method::DELETE, id, Value::Null).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    store.go_on.add_permits(1);
    changing.await.expect("no panic");
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_it_is_saved_does_not_come_back() {
    for ends_elsewhere in [false, true] {
        let mut sharing = Sharing::in_memory();
        // The handshake, the notification that it is complete, and the renewal by the process that takes the session over.
        let store = Counting::wrap(&mut sharing, 3);
        let [a, b, c] = [(); 3].map(|()| Process::start(&sharing));
        let id = a.begin().await;
        a.post(&id, notification("notifications/initialized", json!({})))
            .await;
        b.post(&id, call(1, "plain")).await;
        settle().await;
        let ending = if ends_elsewhere { &b } else { &a };
        end_while_it_is_saved(&a, ending, &store, &id).await;
        for process in [&a, &b, &c] {
            let gone = process.post(&id, call(2, "plain")).await;
            assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        }
    }
}

/// Records everything that the shared parts are given.
struct Recording {
    parts: Sharing,
    seen: Mutex<Vec<(&'static str, Vec<u8>)>>,
}

impl Recording {
    fn wrap(parts: Sharing) -> (Sharing, Arc<Self>) {
        let recording = Arc::new(Self {
            parts,
            seen: Mutex::default(),
        });
        let sharing = Sharing {
            sessions: recording.clone(),
            events: recording.clone(),
            bus: recording.clone(),
            buckets: Some(recording.clone()),
        };
        (sharing, recording)
    }

    fn saw(&self, part: &'static str, name: &str, bytes: &[u8]) {
        let seen = [name.as_bytes(), b" ", bytes].concat();
        self.seen.lock().expect("not poisoned").push((part, seen));
    }
}

impl SessionStore for Recording {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        self.saw("store", id, &session);
        self.parts.sessions.save(id, session, replaces, lifetime)
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.saw("store", id, b"");
        self.parts.sessions.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.saw("store", id, b"");
        self.parts.sessions.remove(id)
    }
}

impl EventLog for Recording {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.saw("log", stream, &event);
        self.parts.events.append(stream, number, event);
    }

    fn end(&self, stream: &str, last: u64) {
        self.saw("log", stream, b"");
        self.parts.events.end(stream, last);
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        self.saw("log", stream, b"");
        self.parts.events.read(stream, after)
    }
}

impl Bus for Recording {
    fn publish(&self, message: Bytes) {
        self.saw("bus", "", &message);
        self.parts.bus.publish(message);
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        self.parts.bus.subscribe(receive)
    }
}

impl SharedBuckets for Recording {
    fn take<'a>(&'a self, key: &'a str, _: BucketPolicy, tokens: u32) -> Pending<'a, TakeOutcome> {
        self.saw("buckets", key, b"");
        Box::pin(async move { Ok(TakeOutcome::Taken(tokens)) })
    }

    fn give_back<'a>(&'a self, key: &'a str, _: BucketPolicy, _: u32) -> Pending<'a, ()> {
        self.saw("buckets", key, b"");
        Box::pin(async { Ok(()) })
    }
}

/// Reading a store, a log or a bus does not give access to a session: its id is a secret of its client.
#[tokio::test(start_paused = true)]
async fn the_shared_parts_never_see_session_ids() {
    let (sharing, recording) = Recording::wrap(Sharing::in_memory());
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let limit = RateLimit::new(1_000, Duration::from_secs(1)).per([LimitKey::Session]);
    let limited = MiddlewareScope::all();
    let added = a
        .server
        .add_middleware(limited, Arc::new(limit.shared("calls")));
    added.expect("a limit");
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut asking = a.post(&id, call(1, "asks")).await;
    let (_, input_request) = next_message(asking.body_mut()).await;
    let answer =
        json!({"jsonrpc": "2.0", "id": input_request["id"], "result": {"action": "decline"}});
    b.post(&id, answer).await;
    remaining_messages(asking.body_mut()).await;
    // A stream that is lost at one process and continued at another.
    let mut lost = a.post(&id, call(2, "streams")).await;
    let (seen, _) = next_message(lost.body_mut()).await;
    drop(lost);
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", &seen)];
    let resumed = request(Method::GET, &headers, Value::Null);
    let mut resumed = b.service.handle(resumed).await;
    a.go_on.notify_one();
    remaining_messages(resumed.body_mut()).await;
    b.send(Method::DELETE, &id, Value::Null).await;
    settle().await;
    let seen = recording.seen.lock().expect("not poisoned");
    for part in ["store", "log", "bus", "buckets"] {
        let of_part: Vec<_> = seen.iter().filter(|(of, _)| *of == part).collect();
        assert!(!of_part.is_empty(), "nothing was seen by the {part}");
        for (_, bytes) in of_part {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains(&id), "the {part} saw {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_responses_that_another_process_may_wait_for_are_passed_on() {
    let (sharing, recording) = Recording::wrap(Sharing::in_memory());
    let a = Process::start(&sharing);
    let id = a.begin().await;
    a.post(&id, notification("notifications/initialized", json!({})))
        .await;
    let mut asking = a.post(&id, call(1, "asks")).await;
    let (_, input_request) = next_message(asking.body_mut()).await;
    let passed_on = || {
        let seen = recording.seen.lock().expect("not poisoned");
        let is_message = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("{\"message\":");
        seen.iter().filter(|(_, bytes)| is_message(bytes)).count()
    };
    let answer = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
    // The second one comes too late.
    for _ in 0..2 {
        a.post(&id, answer(&input_request["id"])).await;
    }
    remaining_messages(asking.body_mut()).await;
    for made_up in [json!("name"), json!(-1), json!(0)] {
        a.post(&id, answer(&made_up)).await;
    }
    assert_eq!(passed_on(), 0);
    a.post(&id, answer(&json!(70_000))).await;
    assert_eq!(passed_on(), 1);
}

#[tokio::test(start_paused = true)]
async fn messages_for_other_processes_are_limited_until_the_bus_has_taken_them() {
    let mut sharing = Sharing::in_memory();
    let bus = Arc::new(LateBus {
        bus: sharing.bus.clone(),
        held: Mutex::new(Some(Vec::new())),
    });
    sharing.bus = bus.clone();
    let a = Process::start(&sharing);
    let id = a.begin().await;
    let large = "x".repeat(6 * 1024 * 1024);
    let answer = || json!({"jsonrpc": "2.0", "id": 70_000, "result": {"text": large}});
    for _ in 0..2 {
        assert_eq!(a.post(&id, answer()).await.status(), StatusCode::ACCEPTED);
    }
    let refused = a.post(&id, answer()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    bus.release();
    assert_eq!(a.post(&id, answer()).await.status(), StatusCode::ACCEPTED);
}

/// A store whose sessions another version has written.
struct Unreadable;

impl SessionStore for Unreadable {
    fn save<'a>(&'a self, _: &'a str, _: Bytes, _: Bytes, _: Duration) -> Pending<'a, SaveOutcome> {
        Box::pin(async { Ok(SaveOutcome::Saved) })
    }

    fn load<'a>(&'a self, _: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async { Ok(Some(Bytes::from_static(b"{\"sessions\": 2}"))) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_session_that_cannot_be_read_is_unknown() {
    let mut sharing = Sharing::in_memory();
    sharing.sessions = Arc::new(Unreadable);
    let (a, b) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    let elsewhere = b.post(&id, call(1, "plain")).await;
    // The client begins a new session.
    assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND);
}

fn few_sessions() -> HttpOptions {
    let mut options = HttpOptions::default();
    options.max_sessions = 4;
    options
}

#[tokio::test(start_paused = true)]
async fn evicted_unused_sessions_are_removed_from_the_store() {
    let mut sharing = Sharing::in_memory();
    let store = Counting::wrap(&mut sharing, Semaphore::MAX_PERMITS);
    let a = Process::start_with(&sharing, few_sessions());
    for _ in 0..50 {
        a.begin().await;
    }
    settle().await;
    assert_eq!(store.held(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_session_continues_at_the_process_that_took_it_over() {
    let sharing = Sharing::in_memory();
    let a = Process::start_with(&sharing, few_sessions());
    let (b, c) = (Process::start(&sharing), Process::start(&sharing));
    let id = a.begin().await;
    b.post(&id, notification("notifications/initialized", json!({})))
        .await;
    b.post(&id, call(1, "plain")).await;
    for _ in 0..50 {
        a.begin().await;
    }
    settle().await;
    for process in [&a, &b, &c] {
        let answer = body(process.post(&id, call(2, "plain")).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_and_abandoned_handshakes_leave_nothing_in_the_store() {
    let mut sharing = Sharing::in_memory();
    let store = Counting::wrap(&mut sharing, 0);
    let a = Process::start_with(&sharing, few_sessions());
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!("none");
    let refused = a
        .service
        .handle(request(Method::POST, &[], hello.clone()))
        .await;
    assert!(!refused.headers().contains_key("mcp-session-id"));
    for _ in 0..50 {
        let service = a.service.clone();
        let hello = request(Method::POST, &[], initialize("2025-11-25"));
        let waiting = tokio::spawn(async move { service.handle(hello).await.status() });
        let before = store.started.load(Ordering::SeqCst);
        while store.started.load(Ordering::SeqCst) == before {
            assert!(!waiting.is_finished(), "there is a place for it");
            tokio::task::yield_now().await;
        }
        waiting.abort();
        // It was aborted, so it has no status.
        let _ = waiting.await;
    }
    settle().await;
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn handshakes_waiting_for_the_store_respect_the_session_limit() {
    let mut sharing = Sharing::in_memory();
    let store = Counting::wrap(&mut sharing, 0);
    let a = Process::start_with(&sharing, few_sessions());
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let service = a.service.clone();
            let hello = request(Method::POST, &[], initialize("2025-11-25"));
            tokio::spawn(async move { service.handle(hello).await.status() })
        })
        .collect();
    // Each waits for the store by now, or was refused.
    loop {
        let refused = waiting.iter().filter(|task| task.is_finished()).count();
        if store.started.load(Ordering::SeqCst) + refused >= waiting.len() {
            break;
        }
        tokio::task::yield_now().await;
    }
    store.go_on.add_permits(waiting.len() + 1);
    let mut begun = 0;
    for task in waiting {
        match task.await.expect("no panic") {
            StatusCode::OK => begun += 1,
            status => assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE),
        }
    }
    assert_eq!(begun, 4);
    // The limit is reached; sessions that are not in use are evicted.
    a.begin().await;
}
