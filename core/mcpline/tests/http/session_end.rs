//! The end of a session while calls are in flight: each is answered with an error before its response ends, whatever form the
//! response has, and whichever process is asked to end the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::http_sessions::{self, next_events, next_message, remaining_messages, settle};
use crate::support::requests::{body, call, request};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::vocabulary::{ElicitParams, FormSchema};
use mcpline::sharing::{Bus, Pending, SaveOutcome, SessionStore, Sharing, Subscription};
use mcpline::transport::http::{Body, HttpOptions, HttpService};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;

const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// One process.
struct Process {
    service: HttpService,
    cancelled: Arc<AtomicBool>,
}

impl Process {
    fn start(sharing: Option<&Sharing>) -> Self {
        let mut settings = Settings::default();
        settings.sharing = sharing.cloned();
        settings.session.ping_interval = Some(Duration::from_secs(3_600));
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        let server = Server::builder("ends", "1")
            .settings(settings)
            .build()
            .expect("a server")
            .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
                "done"
            })
            .tool("silent", "Waits", move |_: Nothing, ctx: Context| {
                let flag = flag.clone();
                ctx.on_cancel(move || flag.store(true, Ordering::SeqCst));
                std::future::pending::<String>()
            })
            .tool(
                "streams",
                "Reports and waits",
                |_: Nothing, ctx: Context| {
                    ctx.progress(1.0, None, None);
                    std::future::pending::<String>()
                },
            )
            .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
                let elicitation = ElicitParams::form("Name?", FormSchema::new());
                match ctx.elicit(&elicitation).await {
                    Ok(answer) => format!("{:?}", answer.action),
                    Err(error) => error.to_string(),
                }
            });
        let mut options = HttpOptions::default();
        options.retry = Duration::from_millis(1);
        options.session_idle_timeout = IDLE_TIMEOUT;
        Self {
            service: server.http_service(options),
            cancelled,
        }
    }

    async fn send(&self, method: Method, session: &str, body: Value) -> Response<Body> {
        http_sessions::send(&self.service, method, session, body).await
    }

    async fn post(&self, session: &str, body: Value) -> Response<Body> {
        self.send(Method::POST, session, body).await
    }

    /// Starts a call whose response has no form yet.
    async fn post_silent(&self, session: &str, id: i64) -> Waiting {
        let headers = [
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let call = request(Method::POST, &headers, call(id, "silent"));
        let service = self.service.clone();
        let response = tokio::spawn(async move { service.handle(call).await });
        settle().await;
        Waiting(response)
    }

    async fn end(&self, session: &str) {
        let ended = self.send(Method::DELETE, session, Value::Null).await;
        assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    }

    /// Resumes a stream after this event.
    async fn resume(&self, session: &str, after: &str) -> Response<Body> {
        let headers = [("mcp-session-id", session), ("last-event-id", after)];
        let resumed = request(Method::GET, &headers, Value::Null);
        let resumed = self.service.handle(resumed).await;
        assert_eq!(resumed.status(), StatusCode::OK);
        resumed
    }

    /// Performs a handshake; returns the session's id.
    async fn begin(&self, revision: &str) -> String {
        let id = http_sessions::initialized(&self.service, revision).await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let headers = [("mcp-session-id", id.as_str())];
        let ready = self.service.handle(request(Method::POST, &headers, ready));
        assert_eq!(ready.await.status(), StatusCode::ACCEPTED);
        id
    }
}

/// A response that has not begun.
struct Waiting(tokio::task::JoinHandle<Response<Body>>);

impl Waiting {
    async fn response(self) -> Response<Body> {
        let response = tokio::time::timeout(Duration::from_secs(5), self.0).await;
        response.expect("a response").expect("no panic")
    }
}

fn assert_session_ended(answer: &Value, id: i64) {
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(answer["error"]["code"], ErrorCode::SESSION_ENDED.0);
    let data = json!({"retryable": true, "outcomeKnown": false});
    assert_eq!(answer["error"]["data"], data);
}

/// Where a client ends its session whose calls run at the first process.
#[derive(Debug, Clone, Copy)]
enum EndedAt {
    /// The process that has the calls.
    Owner,
    /// A process that has served the session.
    Sibling,
    /// A process that does not know the session.
    Stranger,
}

/// Three processes of one service, and a session that the first two have served.
struct Fleet {
    processes: [Process; 3],
    id: String,
}

impl Fleet {
    async fn start() -> Self {
        Self::start_with(&Sharing::in_memory()).await
    }

    async fn start_with(sharing: &Sharing) -> Self {
        let processes = [(); 3].map(|()| Process::start(Some(sharing)));
        let id = processes[0].begin("2025-11-25").await;
        let answer = body(processes[1].post(&id, call(100, "plain")).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        Self { processes, id }
    }

    fn owner(&self) -> &Process {
        &self.processes[0]
    }

    async fn end_at(&self, at: EndedAt) {
        self.processes[at as usize].end(&self.id).await;
    }
}

const EVERYWHERE: [EndedAt; 3] = [EndedAt::Owner, EndedAt::Sibling, EndedAt::Stranger];

#[tokio::test(start_paused = true)]
async fn answers_a_call_that_has_sent_nothing_with_json() {
    for at in EVERYWHERE {
        let fleet = Fleet::start().await;
        let waiting = fleet.owner().post_silent(&fleet.id, 7).await;
        fleet.end_at(at).await;
        let response = waiting.response().await;
        assert_eq!(response.status(), StatusCode::OK, "{at:?}");
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_session_ended(&body(response).await, 7);
        assert!(fleet.owner().cancelled.load(Ordering::SeqCst));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_calls_on_their_streams() {
    for at in EVERYWHERE {
        let fleet = Fleet::start().await;
        let mut streaming = fleet.owner().post(&fleet.id, call(7, "streams")).await;
        let (_, progress) = next_message(streaming.body_mut()).await;
        assert_eq!(progress["method"], "notifications/progress");
        // A stream because it took long: it has no message.
        let mut upgraded = fleet.owner().post(&fleet.id, call(8, "silent")).await;
        assert_eq!(upgraded.headers()["content-type"], "text/event-stream");
        fleet.end_at(at).await;
        for (id, response) in [(7, &mut streaming), (8, &mut upgraded)] {
            let messages = remaining_messages(response.body_mut()).await;
            assert_eq!(messages.len(), 1, "{at:?}: {messages:?}");
            assert_session_ended(&messages[0], id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_a_call_with_an_open_input_request() {
    for at in EVERYWHERE {
        let fleet = Fleet::start().await;
        let mut asking = fleet.owner().post(&fleet.id, call(7, "asks")).await;
        let (_, input_request) = next_message(asking.body_mut()).await;
        assert_eq!(input_request["method"], "elicitation/create");
        fleet.end_at(at).await;
        let messages = remaining_messages(asking.body_mut()).await;
        assert_eq!(messages.len(), 2, "{at:?}: {messages:?}");
        assert_eq!(messages[0]["method"], "notifications/cancelled");
        assert_eq!(messages[0]["params"]["requestId"], input_request["id"]);
        assert_session_ended(&messages[1], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_each_request_of_a_batch() {
    let process = Process::start(None);
    let id = process.begin("2025-03-26").await;
    let headers = [("mcp-session-id", id.as_str())];
    let batch = json!([call(1, "plain"), call(2, "silent"), call(3, "silent")]);
    let batch = request(Method::POST, &headers, batch);
    let service = process.service.clone();
    let waiting = Waiting(tokio::spawn(async move { service.handle(batch).await }));
    settle().await;
    process.end(&id).await;
    let answers = body(waiting.response().await).await;
    assert_eq!(answers[0]["result"]["content"][0]["text"], "done");
    let mut ended: Vec<i64> = Vec::new();
    for answer in &answers.as_array().expect("a batch")[1..] {
        let id = answer["id"].as_i64().expect("a number");
        assert_session_ended(answer, id);
        ended.push(id);
    }
    ended.sort_unstable();
    assert_eq!(ended, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn ends_the_streams_of_the_session_cleanly() {
    for at in EVERYWHERE {
        let fleet = Fleet::start().await;
        let mut streams = Vec::new();
        for process in &fleet.processes[..2] {
            streams.push(process.send(Method::GET, &fleet.id, Value::Null).await);
        }
        fleet.end_at(at).await;
        for mut stream in streams {
            assert_eq!(
                remaining_messages(stream.body_mut()).await,
                [] as [Value; 0],
                "{at:?}"
            );
        }
        for process in &fleet.processes {
            let gone = process.post(&fleet.id, call(8, "plain")).await;
            assert_eq!(gone.status(), StatusCode::NOT_FOUND, "{at:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_a_call_whose_stream_was_resumed_at_another_process() {
    for at in EVERYWHERE {
        let fleet = Fleet::start().await;
        let mut lost = fleet.owner().post(&fleet.id, call(7, "streams")).await;
        let (seen, _) = next_message(lost.body_mut()).await;
        drop(lost);
        let mut resumed = fleet.processes[1].resume(&fleet.id, &seen).await;
        fleet.end_at(at).await;
        let messages = remaining_messages(resumed.body_mut()).await;
        assert_eq!(messages.len(), 1, "{at:?}: {messages:?}");
        assert_session_ended(&messages[0], 7);
    }
}

/// A store that removes nothing.
struct Keeping(Arc<dyn SessionStore>);

impl SessionStore for Keeping {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        self.0.save(id, session, replaces, lifetime)
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.0.load(id)
    }

    fn remove<'a>(&'a self, _: &'a str) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn answers_resumed_streams_although_the_store_keeps_their_events() {
    let mut sharing = Sharing::in_memory();
    sharing.sessions = Arc::new(Keeping(sharing.sessions.clone()));
    let fleet = Fleet::start_with(&sharing).await;
    let mut lost = fleet.owner().post(&fleet.id, call(7, "streams")).await;
    let (seen, _) = next_message(lost.body_mut()).await;
    drop(lost);
    let mut resumed = fleet.processes[1].resume(&fleet.id, &seen).await;
    fleet.end_at(EndedAt::Stranger).await;
    let messages = remaining_messages(resumed.body_mut()).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_session_ended(&messages[0], 7);
}

#[tokio::test(start_paused = true)]
async fn answers_a_resumed_stream_whose_process_no_longer_has_the_session() {
    let mut sharing = Sharing::in_memory();
    sharing.sessions = Arc::new(Keeping(sharing.sessions.clone()));
    let fleet = Fleet::start_with(&sharing).await;
    let mut lost = fleet.owner().post(&fleet.id, call(7, "streams")).await;
    let (seen, _) = next_message(lost.body_mut()).await;
    drop(lost);
    let mut resumed = fleet.processes[1].resume(&fleet.id, &seen).await;
    // Where the session is only read from, it is idle.
    tokio::time::sleep(2 * IDLE_TIMEOUT).await;
    fleet.end_at(EndedAt::Stranger).await;
    let messages = tokio::time::timeout(IDLE_TIMEOUT, remaining_messages(resumed.body_mut())).await;
    let messages = messages.expect("the stream ends");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_session_ended(&messages[0], 7);
}

/// A bus that delivers nothing.
struct Silent;

impl Bus for Silent {
    fn publish(&self, _: Bytes) {}

    fn subscribe(&self, _: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        Subscription::new(|| {})
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_if_the_bus_loses_the_end_of_its_session() {
    let mut sharing = Sharing::in_memory();
    sharing.bus = Arc::new(Silent);
    let (a, b) = (
        Process::start(Some(&sharing)),
        Process::start(Some(&sharing)),
    );
    let id = a.begin("2025-11-25").await;
    let mut asking = a.post(&id, call(7, "asks")).await;
    let (_, input_request) = next_message(asking.body_mut()).await;
    b.end(&id).await;
    let answer =
        json!({"jsonrpc": "2.0", "id": input_request["id"], "result": {"action": "decline"}});
    assert_eq!(a.post(&id, answer).await.status(), StatusCode::ACCEPTED);
    let messages = remaining_messages(asking.body_mut()).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["result"]["content"][0]["text"], "Decline");
}

/// A store whose lookups take as long as the test needs.
struct SlowLookups {
    store: Arc<dyn SessionStore>,
    loaded: Notify,
    go_on: Notify,
    is_slow: AtomicBool,
}

impl SessionStore for SlowLookups {
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
        Box::pin(async move {
            let found = self.store.load(id).await;
            if self.is_slow.swap(false, Ordering::SeqCst) {
                self.loaded.notify_one();
                self.go_on.notified().await;
            }
            found
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.store.remove(id)
    }
}

/// Sends `message` to a process whose lookup of the session waits, and ends the session meanwhile, at the same process or at another
/// one. Returns the status of the response.
async fn end_while_it_is_looked_up(
    message: Value,
    is_known: bool,
    at_same_process: bool,
) -> StatusCode {
    let mut sharing = Sharing::in_memory();
    let store = Arc::new(SlowLookups {
        store: sharing.sessions.clone(),
        loaded: Notify::new(),
        go_on: Notify::new(),
        is_slow: AtomicBool::new(false),
    });
    sharing.sessions = store.clone();
    let [a, b, c] = [(); 3].map(|()| Process::start(Some(&sharing)));
    let id = a.begin("2025-11-25").await;
    if is_known {
        body(b.post(&id, call(1, "plain")).await).await;
    }
    store.is_slow.store(true, Ordering::SeqCst);
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let message = request(Method::POST, &headers, message);
    let service = b.service.clone();
    let waiting = Waiting(tokio::spawn(async move { service.handle(message).await }));
    store.loaded.notified().await;
    let ending = if at_same_process { &b } else { &c };
    ending.end(&id).await;
    store.go_on.notify_one();
    let status = waiting.response().await.status();
    for process in [&a, &b, &c] {
        let gone = process.post(&id, call(8, "plain")).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    }
    status
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_it_is_looked_up_is_unknown() {
    for at_same_process in [false, true] {
        let status = end_while_it_is_looked_up(call(2, "plain"), false, at_same_process).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{at_same_process}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_its_changes_are_loaded_is_unknown() {
    for at_same_process in [false, true] {
        let level = json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
                           "params": {"level": "error"}});
        let status = end_while_it_is_looked_up(level, true, at_same_process).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{at_same_process}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_the_calls_of_a_client_that_no_longer_answers_pings() {
    let process = Process::start(None);
    let id = process.begin("2025-11-25").await;
    // Pings need a stream of the session.
    let mut listening = process.send(Method::GET, &id, Value::Null).await;
    let mut streaming = process.post(&id, call(7, "streams")).await;
    next_message(streaming.body_mut()).await;
    let ended = async {
        loop {
            let found = next_events(listening.body_mut()).await;
            if found.is_none() {
                break;
            }
        }
    };
    let day = Duration::from_secs(24 * 3_600);
    tokio::time::timeout(day, ended).await.expect("it ends");
    let messages = remaining_messages(streaming.body_mut()).await;
    assert_session_ended(messages.last().expect("an answer"), 7);
}
