//! A sink for tests that records its messages, and runs hooks at moments that otherwise only another thread would hit.

use mcpline_protocol::Scopes;
use mcpline_protocol::session::{SessionLimits, SessionScope};
use serde_json::{Value, json};

use crate::message_sink::{Encode, MessageKind, MessageSink};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};

use super::connection::{Connection, ConnectionOptions};
use super::traffic::TransportKind;
use super::{Call, Handler, Inner};

type MissingScopesHook = Box<dyn FnOnce() + Send>;
type ResponseHook = Box<dyn FnOnce(Value) + Send>;

#[derive(Default)]
pub(super) struct TestSink {
    written: Mutex<Vec<(MessageKind, Value)>>,
    abandoned: AtomicUsize,
    on_response: Mutex<Option<ResponseHook>>,
    on_demand: Mutex<Option<MissingScopesHook>>,
}

impl TestSink {
    /// Runs `hook` with the next response, within the write.
    pub(super) fn on_response(&self, hook: impl FnOnce(Value) + Send + 'static) {
        *lock(&self.on_response) = Some(Box::new(hook));
    }

    /// Runs `hook` when a request is refused for lack of scopes, before the response.
    pub(super) fn on_demand(&self, hook: impl FnOnce() + Send + 'static) {
        *lock(&self.on_demand) = Some(Box::new(hook));
    }

    /// Returns the responses so far.
    pub(super) fn responses(&self) -> Vec<Value> {
        let written = lock(&self.written);
        let responses = written
            .iter()
            .filter(|(kind, _)| matches!(kind, MessageKind::Response(_)));
        responses.map(|(_, message)| message.clone()).collect()
    }

    /// Returns all messages.
    pub(super) fn messages(&self) -> Vec<Value> {
        let written = lock(&self.written);
        written.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Returns the number of messages.
    pub(super) fn written(&self) -> usize {
        lock(&self.written).len()
    }

    /// Returns how often a request was abandoned.
    pub(super) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }
}

impl MessageSink for TestSink {
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        lock(&self.written).push((kind, message.clone()));
        let hook = match kind {
            MessageKind::Notification | MessageKind::Request => None,
            MessageKind::Response(_) => lock(&self.on_response).take(),
        };
        if let Some(hook) = hook {
            hook(message);
        }
    }

    fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
    }

    fn report_missing_scopes(&self, _: &Scopes) {
        let hook = lock(&self.on_demand).take();
        if let Some(hook) = hook {
            hook();
        }
    }
}

/// A handler that runs a function with the call.
pub(crate) struct FnHandler<F>(pub(crate) F);

impl<F: Fn(Call) + Send + Sync + 'static> Handler for FnHandler<F> {
    fn call(&self, call: Call) {
        (self.0)(call);
    }
}

/// Creates a connection with a sink for messages that belong to no request.
pub(super) fn connection(server: &Arc<Inner>, scope: SessionScope) -> Arc<Connection> {
    let options = ConnectionOptions {
        scope,
        limits: SessionLimits::default(),
        general: Arc::new(TestSink::default()),
        session_id: None,
        auth: None,
        principal: String::new(),
        transport: server.next_transport(),
        transport_kind: TransportKind::Memory,
        traffic: None,
        client: server.clients().sole_client(),
    };
    Connection::for_one_exchange(server, options)
}

/// Passes a message to the connection, with responses to `sink`.
pub(super) fn receive(connection: &Arc<Connection>, sink: &Arc<TestSink>, message: &Value) {
    let sink: Arc<dyn MessageSink> = sink.clone();
    connection.receive(read(message), &sink, None);
}

/// Returns a message as read from the wire.
pub(super) fn read(
    message: &Value,
) -> Result<mcpline_protocol::wire::Incoming, mcpline_protocol::wire::ReadError> {
    mcpline_protocol::wire::read(message.to_string().into())
}

/// A connection after the handshake of 2025-03-26, the revision with batches.
pub(super) fn session(server: &Arc<Inner>) -> Arc<Connection> {
    let connection = connection(server, SessionScope::Session);
    let sink = Arc::new(TestSink::default());
    for message in [
        json!({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ] {
        receive(&connection, &sink, &message);
    }
    connection
}

/// A `tools/call` of 2026-07-28.
pub(super) fn modern_call(id: u64, tool: &str, more: &Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn lock<T>(mutex: &Mutex<T>) -> crate::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
