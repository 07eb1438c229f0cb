//! A client's sessions over HTTP with a service in this process: requests of a session, and the events of its streams.

use std::time::Duration;

use http::{Method, Response};
use mcpline::transport::http::{Body, HttpService};
use serde_json::{Value, json};

use super::requests::{events, initialize, request};

/// Longest silence on a stream that a test reads, in virtual time.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Sends a request of a session of 2025-11-25.
pub(crate) async fn send(
    service: &HttpService,
    method: Method,
    session: &str,
    body: Value,
) -> Response<Body> {
    let headers = [
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    service.handle(request(method, &headers, body)).await
}

/// Sends `initialize` of a client that answers elicitations, where the revision has them; returns the session's id.
pub(crate) async fn initialized(service: &HttpService, revision: &str) -> String {
    let mut hello = initialize(revision);
    if revision == "2025-11-25" {
        hello["params"]["capabilities"] = json!({"elicitation": {}});
    }
    let response = service.handle(request(Method::POST, &[], hello)).await;
    let id = response.headers()["mcp-session-id"].to_str();
    id.expect("visible ASCII").to_owned()
}

/// Returns the next events; `None` at the stream's end. Time is virtual: a silent stream fails at once.
pub(crate) async fn next_events(stream: &mut Body) -> Option<Vec<(String, Value)>> {
    tokio::time::timeout(MAX_SILENCE, events(stream))
        .await
        .expect("the stream goes on or ends")
}

/// Returns the next event that has a message.
pub(crate) async fn next_message(stream: &mut Body) -> (String, Value) {
    loop {
        let found = next_events(stream).await.expect("the stream goes on");
        if let Some(event) = found.into_iter().find(|(_, message)| !message.is_null()) {
            return event;
        }
    }
}

/// Returns all messages until the stream's end.
pub(crate) async fn remaining_messages(stream: &mut Body) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(found) = next_events(stream).await {
        all.extend(found.into_iter().map(|(_, message)| message));
    }
    all.retain(|message| !message.is_null());
    all
}

/// Lets background tasks finish.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
