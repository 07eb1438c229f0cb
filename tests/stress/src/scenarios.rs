//! The scenarios: the events of one round, and its expected outcome.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use mcpline::transport::http::{Body, HttpOptions, HttpService};
use mcpline::{Context, InputRequest, InputRequestMethod, Server};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// The events of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A call sends an input request (2026-07-28), and its client retries as soon as it receives it.
    Retry,
    /// A call ends while it is suspended (2026-07-28), and its client retries.
    EarlyResult,
    /// A call is cancelled while it is admitted, dispatched, served or answered (2025-11-25): its POST ends.
    Cancel,
    /// The same in a batch (2025-03-26); the other request of the batch is answered.
    CancelInBatch,
    /// A call sends an input request on its stream (2025-11-25), and its client answers as soon as it receives it.
    Answer,
}

impl Scenario {
    pub(crate) const ALL: [Self; 5] = [
        Self::Retry,
        Self::EarlyResult,
        Self::Cancel,
        Self::CancelInBatch,
        Self::Answer,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::EarlyResult => "early-result",
            Self::Cancel => "cancel",
            Self::CancelInBatch => "cancel-in-batch",
            Self::Answer => "answer",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|all| all.name() == name)
    }

    /// Runs a round, which ends once everything is answered.
    ///
    /// # Panics
    ///
    /// If an answer is wrong.
    pub(crate) async fn round(self, client: &Client, number: u64) {
        match self {
            Self::Retry => client.call_and_retry("ask", number).await,
            Self::EarlyResult => client.call_and_retry("hurry", number).await,
            Self::Cancel => client.cancel(number).await,
            Self::CancelInBatch => client.cancel_in_batch(number).await,
            Self::Answer => client.answer(number).await,
        }
    }
}

/// The server.
pub(crate) struct Rig {
    service: HttpService,
}

impl Rig {
    /// Creates the server. Must be called within a runtime.
    pub(crate) fn new() -> Self {
        let list_roots = || InputRequest::new(InputRequestMethod::ListRoots, None);
        let server = Server::new("stress", "1")
            .tool(
                "ask",
                "Asks and answers",
                move |_: Value, ctx: Context| async move {
                    ctx.request_input(list_roots()).await.map(|_| "done")
                },
            )
            .tool(
                "hurry",
                "Asks and answers without waiting for the client's answer",
                move |_: Value, ctx: Context| async move {
                    let (sender, mut answered) = oneshot::channel::<()>();
                    ctx.request_input_with(list_roots(), move |_| drop(sender));
                    // The call may be suspended and resumed before this check.
                    while !ctx.is_suspended() && answered.try_recv() == Err(TryRecvError::Empty) {
                        tokio::task::yield_now().await;
                    }
                    "done"
                },
            )
            .tool(
                "yield",
                "Answers a moment later",
                |_: Value, _: Context| async {
                    tokio::task::yield_now().await;
                    "done"
                },
            );
        Self {
            service: server.http_service(HttpOptions::default()),
        }
    }

    /// Creates a client with a session of each revision that has sessions.
    pub(crate) async fn client(&self) -> Client {
        Client {
            service: self.service.clone(),
            session: self.begin("2025-11-25").await,
            batching: self.begin("2025-03-26").await,
        }
    }

    async fn begin(&self, revision: &str) -> Session {
        let handshake = json!({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {"roots": {}},
            "clientInfo": {"name": "stress", "version": "1"}}});
        let response = self.service.handle(request(&[], &handshake)).await;
        let id = response.headers()["mcp-session-id"].to_str();
        let session = Session {
            id: id.expect("visible ASCII").to_owned(),
        };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.service.handle(session.request(&ready)).await;
        session
    }
}

/// A session of a handshake revision.
struct Session {
    id: String,
}

impl Session {
    fn request(&self, body: &Value) -> Request<Full<Bytes>> {
        request(&[("mcp-session-id", &self.id)], body)
    }
}

/// A client, which runs one round at a time.
pub(crate) struct Client {
    service: HttpService,
    session: Session,
    batching: Session,
}

impl Client {
    async fn call_and_retry(&self, tool: &str, number: u64) {
        let round = self.modern_call(tool, number, json!({})).await;
        let state = &round["result"]["requestState"];
        assert!(state.is_string(), "{round}");
        let more = json!({"requestState": state, "inputResponses": {"ask-1": {"roots": []}}});
        let answer = self.modern_call(tool, number, more).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    }

    async fn modern_call(&self, tool: &str, id: u64, more: Value) -> Value {
        let mut body = call(id, tool);
        for (name, value) in more.as_object().into_iter().flatten() {
            body["params"][name] = value.clone();
        }
        body["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}}});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let response = self.service.handle(request(&headers, &body)).await;
        let body = read(response.into_body()).await;
        serde_json::from_slice(&body).expect("JSON")
    }

    async fn cancel(&self, number: u64) {
        let posted = self.post(self.session.request(&call(number, "yield")));
        let cancelled = self.post(self.session.request(&cancellation(number)));
        // The cancelled request may be answered or not, but its POST must end.
        let (body, _) = (posted.await, cancelled.await);
        assert!(body.await.expect("no panic").len() < 200);
    }

    async fn cancel_in_batch(&self, number: u64) {
        let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
        let batch = json!([call(number, "yield"), ping]);
        let posted = self.post(self.batching.request(&batch));
        let cancelled = self.post(self.batching.request(&cancellation(number)));
        let (body, _) = (posted.await, cancelled.await);
        let body = body.await.expect("no panic");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let answers = body.as_array().expect("a batch");
        assert!(
            answers.iter().any(|answer| answer["id"] == "ping"),
            "{body}"
        );
    }

    async fn answer(&self, number: u64) {
        let response = self
            .service
            .handle(self.session.request(&call(number, "ask")))
            .await;
        let mut stream = response.into_body();
        let mut seen = String::new();
        let mut answered = false;
        while let Some(frame) = stream.frame().await {
            let frame = frame.expect("a frame");
            seen += &String::from_utf8_lossy(frame.data_ref().expect("data"));
            if answered {
                continue;
            }
            let Some(id) = input_request_id(&seen) else {
                continue;
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
            self.service.handle(self.session.request(&answer)).await;
            answered = true;
        }
        assert!(seen.contains("\"text\":\"done\""), "{seen}");
    }

    /// Sends a request in a task of its own, which reads and returns the body.
    async fn post(&self, request: Request<Full<Bytes>>) -> tokio::task::JoinHandle<Bytes> {
        let service = self.service.clone();
        tokio::spawn(async move { read(service.handle(request).await.into_body()).await })
    }
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": tool, "arguments": {}}})
}

fn cancellation(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// Returns the id of the input request on an event stream, once it has arrived.
fn input_request_id(seen: &str) -> Option<Value> {
    let line = seen.lines().find(|line| line.contains("roots/list"))?;
    let message: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
    Some(message["id"].clone())
}

fn request(headers: &[(&str, &str)], body: &Value) -> Request<Full<Bytes>> {
    let mut builder = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request")
}

async fn read(body: Body) -> Bytes {
    body.collect().await.expect("a body").to_bytes()
}
