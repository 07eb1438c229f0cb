//! Models of a server's calls: requests and their ends, with events on other threads that race them.

mod cancelling;
mod ending;
mod notifications;
mod rounds;

use mcpline_protocol::Raw;
use mcpline_protocol::session::{InputRequestError, SessionScope};
use mcpline_protocol::vocabulary::Tool;
use serde_json::{Value, json};
use shuttle::thread::{self, JoinHandle};

use crate::message_sink::{Encode, MessageKind, MessageSink};
use crate::race_models::Record;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

use super::connection::Connection;
use super::test_sink::{self, FnHandler};
use super::{Call, InputRequest, InputRequestMethod, Reply, Server, ToolOptions, ToolReply};

/// The client's end of an exchange: records what it receives.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) responses: Record<Value>,
    requests: Record<Value>,
    /// Methods of notifications that arrived before any response.
    notified_before_response: Record<String>,
    abandoned: AtomicUsize,
}

impl Client {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Asserts that its only request has ended exactly once. Returns whether it was answered.
    pub(crate) fn ended_once(&self) -> bool {
        let answers = self.responses.all().len();
        assert_eq!(
            answers + self.abandoned(),
            1,
            "{answers} answers, abandoned {} times",
            self.abandoned()
        );
        answers == 1
    }
}

impl MessageSink for Client {
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        let message = serde_json::from_slice(&message).expect("JSON");
        match kind {
            MessageKind::Response(_) => self.responses.add(message),
            MessageKind::Request => self.requests.add(message),
            MessageKind::Notification if self.responses.all().is_empty() => {
                let method = message["method"].as_str().expect("a method");
                self.notified_before_response.add(method.to_owned());
            }
            MessageKind::Notification => {}
        }
    }

    fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server whose tool `tool` passes its calls to `run`.
pub(crate) fn server(run: impl Fn(Call) + Send + Sync + 'static) -> Server {
    server_with(super::Settings::default(), run)
}

fn server_with(settings: super::Settings, run: impl Fn(Call) + Send + Sync + 'static) -> Server {
    let server = Server::builder("test", "1")
        .settings(settings)
        .build()
        .expect("builds");
    let tool = Tool::new("tool", json!({"type": "object"}));
    server
        .add_tool(tool, ToolOptions::default(), Arc::new(FnHandler(run)))
        .expect("a tool");
    server
}

/// An exchange of 2026-07-28.
fn exchange(server: &Server) -> Arc<Connection> {
    test_sink::connection(server.inner(), SessionScope::Exchange)
}

/// A session of 2025-03-26.
pub(crate) fn session(server: &Server) -> Arc<Connection> {
    test_sink::session(server.inner())
}

/// A session of 2025-06-18 with a client that supports elicitation.
fn session_with_elicitation(server: &Server) -> Arc<Connection> {
    let connection = test_sink::connection(server.inner(), SessionScope::Session);
    for message in [
        json!({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ] {
        receive(&connection, &Client::new(), &message);
    }
    connection
}

/// Number of calls that wait for their client's retry.
fn suspended(server: &Server) -> usize {
    server.inner().suspended.lock().expect("no panic").len()
}

pub(crate) fn receive(connection: &Arc<Connection>, client: &Arc<Client>, message: &Value) {
    let sink: Arc<dyn MessageSink> = client.clone();
    connection.receive(test_sink::read(message), &sink, None);
}

/// Returns a thread body that receives `message`.
pub(crate) fn receiving(
    connection: &Arc<Connection>,
    client: &Arc<Client>,
    message: Value,
) -> impl FnOnce() + Send + use<> {
    let (connection, client) = (connection.clone(), client.clone());
    move || receive(&connection, &client, &message)
}

fn modern_call(id: u64) -> Value {
    test_sink::modern_call(id, "tool", &json!({}))
}

pub(crate) fn legacy_call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "tool"}})
}

pub(crate) fn cancellation(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// The client's retry after the response `round`, with an answer to the input request `key`.
fn retry(id: u64, round: &Value, key: &str) -> Value {
    let state = round["result"]["requestState"].clone();
    assert!(state.is_string(), "{round}");
    let more = json!({"requestState": state, "inputResponses": {key: {"action": "decline"}}});
    test_sink::modern_call(id, "tool", &more)
}

fn requires_input(response: &Value) -> bool {
    response["result"]["resultType"] == "input_required"
}

pub(crate) fn text(response: &Value) -> &str {
    let text = response["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text in {response}"))
}

fn elicitation() -> InputRequest {
    let params =
        json!({"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}});
    InputRequest::new(
        InputRequestMethod::Elicit,
        Raw::from_serialize(&params).ok(),
    )
}

pub(crate) fn done(text: &str) -> Result<Reply, super::HandlerError> {
    Ok(Reply::Tool(ToolReply::text(text)))
}

/// The threads that a model has started.
#[derive(Clone, Default)]
pub(crate) struct Threads(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Threads {
    pub(crate) fn start(&self, act: impl FnOnce() + Send + 'static) {
        let thread = thread::spawn(act);
        self.0.lock().expect("no panic").push(thread);
    }

    /// Waits until all threads and all tasks have ended.
    pub(crate) fn join(&self) {
        self.join_threads();
        crate::race_models::settle();
    }

    /// Waits until all threads have ended.
    pub(crate) fn join_threads(&self) {
        loop {
            let thread = self.0.lock().expect("no panic").pop();
            match thread {
                Some(thread) => thread.join().expect("no panic"),
                None => break,
            }
        }
    }
}

/// Outcomes of a handler's input requests.
type Outcomes = Arc<Record<Result<(), InputRequestError>>>;

/// Sends an input request and records its outcome.
fn request_input(call: &super::Context, outcomes: &Outcomes) {
    let outcomes = outcomes.clone();
    call.request_input_with(elicitation(), move |outcome| {
        outcomes.add(outcome.map(|_| ()));
    });
}
