//! An in-memory client that sends raw JSON, for tests of a server's responses.

#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod authorized;
pub(crate) mod computations;
pub(crate) mod connection;
pub(crate) mod http_sessions;
pub(crate) mod log;
pub(crate) mod peer;
pub(crate) mod requests;
pub(crate) mod scripted;
pub(crate) mod served_transports;
pub(crate) mod tasks;

use std::cell::RefCell;

use mcpline::Server;
use mcpline::transport::MemoryTransport;
use schema_check::Conversation;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// A raw JSON client.
pub(crate) struct Client {
    memory: MemoryTransport,
    /// Validates the server's messages against the schema of the client's revision.
    talk: RefCell<Conversation>,
    next_id: i64,
    /// The capabilities that it declares with each modern request.
    pub(crate) capabilities: Value,
}

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

impl Client {
    /// Creates a 2026-07-28 client.
    pub(crate) fn modern(server: &Server) -> Self {
        Self::over(server.connect())
    }

    /// Creates a 2026-07-28 client over this connection.
    pub(crate) fn over(memory: MemoryTransport) -> Self {
        Self {
            memory,
            talk: RefCell::default(),
            next_id: 1,
            capabilities: everything(),
        }
    }

    /// Creates a handshake-era client that has completed the handshake.
    pub(crate) async fn legacy(server: &Server, revision: &str) -> Self {
        Self::modern(server).shake_hands(revision).await
    }

    /// Performs the handshake with this client's capabilities.
    pub(crate) async fn shake_hands(self, revision: &str) -> Self {
        let mut client = self;
        let id = client.begin(
            "initialize",
            json!({"protocolVersion": revision, "capabilities": client.capabilities,
                   "clientInfo": {"name": "test", "version": "1"}}),
        );
        let result = client.response(&id).await.expect("a handshake");
        assert_eq!(result["protocolVersion"], revision);
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: Value) {
        self.talk.borrow_mut().client(&message);
        self.memory.send(message.to_string());
    }

    /// Sends a request; returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a 2026-07-28 request; returns its id.
    pub(crate) fn begin_modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        self.begin(method, params)
    }

    /// Waits for the server's next message.
    pub(crate) async fn next(&self) -> Value {
        let bytes = self.memory.receive().await.expect("the connection is open");
        self.check(&bytes)
    }

    /// Returns the server's next message if it has arrived.
    pub(crate) fn try_next(&self) -> Option<Value> {
        let bytes = self.memory.try_receive()?;
        Some(self.check(&bytes))
    }

    fn check(&self, bytes: &[u8]) -> Value {
        let message = serde_json::from_slice(bytes).expect("the server sends JSON");
        self.talk.borrow_mut().server(&message);
        message
    }

    /// Waits for the response to a request; skips other messages.
    pub(crate) async fn response(&self, id: &Value) -> Result<Value, Value> {
        loop {
            let message = self.next().await;
            if message["id"] != *id || message.get("method").is_some() {
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(error.clone()),
                None => Ok(message["result"].clone()),
            };
        }
    }

    /// Calls a tool on 2026-07-28. The members of `extra` are added to the parameters.
    pub(crate) async fn call_modern(&mut self, name: &str, extra: Value) -> Result<Value, Value> {
        let mut params = json!({"name": name, "arguments": {}});
        for (name, value) in extra.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let id = self.begin_modern("tools/call", params);
        self.response(&id).await
    }
}
