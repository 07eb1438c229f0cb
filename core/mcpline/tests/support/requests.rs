//! HTTP requests as clients send them to the service, and their responses, validated against the schema of the revision
//! that the test negotiated.

use std::cell::RefCell;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use mcpline::protocol::wire::sse::EventDecoder;
use mcpline::transport::http::Body;
use schema_check::Conversation;
use serde_json::{Value, json};

thread_local! {
    /// Everything that this test, which has the thread to itself, sends and receives over HTTP.
    static TALK: RefCell<Conversation> = RefCell::default();
}

fn check(bytes: &[u8]) -> Value {
    let message = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    if message != Value::Null {
        TALK.with_borrow_mut(|talk| talk.server(&message));
    }
    message
}

/// Returns the request that begins a session.
pub(crate) fn initialize(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
}

/// Builds a request as a client of the service would send it; `headers` replace the default ones.
pub(crate) fn request(
    method: Method,
    headers: &[(&str, &str)],
    body: Value,
) -> Request<Full<Bytes>> {
    let mut builder = Request::builder().method(method).uri("/mcp");
    let defaults = [
        ("host", "localhost:8000"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    for (name, value) in defaults {
        if !headers.iter().any(|(other, _)| *other == name) {
            builder = builder.header(name, value);
        }
    }
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    TALK.with_borrow_mut(|talk| talk.client(&body));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    builder
        .body(Full::new(Bytes::from(body)))
        .expect("a request")
}

/// Builds a tool call that requests progress.
pub(crate) fn call(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": tool, "arguments": {}, "_meta": {"progressToken": id}}})
}

/// Reads a JSON body.
pub(crate) async fn body(response: Response<Body>) -> Value {
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    check(&bytes)
}

/// Reads the next events of a stream: `(id, message)`.
pub(crate) async fn events(body: &mut Body) -> Option<Vec<(String, Value)>> {
    let frame = body.frame().await?.expect("a frame");
    let data = frame.into_data().expect("data");
    let mut decoder = EventDecoder::new(1 << 20);
    decoder.push(&data);
    let mut found = Vec::new();
    while let Some(event) = decoder.next_event() {
        let event = event.expect("an event");
        let id = decoder.last_event_id().to_owned();
        found.push((id, check(&event.data)));
    }
    Some(found)
}
