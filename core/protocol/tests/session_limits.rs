//! Limits on what a session keeps for its client.

use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::session::{
    InputRequestTimeouts, ReceiveOutcome, ServerProfile, ServerRequest, ServerSession,
    SessionLimits, SessionScope,
};
use mcpline_protocol::vocabulary::{ListCapability, ResourcesCapability, ServerCapabilities};
use mcpline_protocol::wire::{Incoming, read};
use mcpline_protocol::{ErrorCode, Revision, RpcError};
use serde_json::{Value, json};

type Session = ServerSession<(), ()>;

const NOW: Duration = Duration::from_secs(1);

fn profile() -> ServerProfile {
    ServerProfile {
        capabilities: ServerCapabilities::default()
            .with_resources(ResourcesCapability::default().with_subscribe(true))
            .with_tools(ListCapability::default()),
        revisions: Revision::ALL.to_vec(),
        requests: std::collections::BTreeSet::new(),
        notifications: std::collections::BTreeSet::new(),
        ..ServerProfile::default()
    }
}

fn receive(session: &mut Session, message: &Value) -> ReceiveOutcome<(), ()> {
    let Ok(Incoming::Single(message)) = read(Bytes::from(message.to_string())) else {
        panic!("not a message: {message}");
    };
    session.receive(message, false, &profile(), NOW)
}

fn initialize(client_info: &Value, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client_info}})
}

fn refusal(received: ReceiveOutcome<(), ()>) -> RpcError {
    match received {
        ReceiveOutcome::Reply {
            outcome: Err(error),
            ..
        } => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn refuses_client_info_and_capabilities_that_are_too_large_to_keep() {
    let limit = SessionLimits::default().max_client_info_bytes;
    let large = "x".repeat(limit);
    for (info, capabilities) in [
        (json!({"name": large, "version": "1"}), json!({})),
        (
            json!({"name": "c", "version": "1"}),
            json!({"experimental": {"x": {"y": large}}}),
        ),
    ] {
        let mut session = Session::new(SessionScope::Session, SessionLimits::default());
        let error = refusal(receive(&mut session, &initialize(&info, &capabilities)));
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains("max_client_info_bytes"), "{error}");
        assert!(session.peer().is_none());
        // The session continues: the client may try again with less.
        let again = initialize(&json!({"name": "c", "version": "1"}), &json!({}));
        assert!(matches!(
            receive(&mut session, &again),
            ReceiveOutcome::Initialized { .. }
        ));
    }
}

fn initialized() -> Session {
    let mut session = Session::new(SessionScope::Session, SessionLimits::default());
    let info = json!({"name": "c", "version": "1"});
    receive(
        &mut session,
        &initialize(&info, &json!({"elicitation": {}})),
    );
    session
}

fn subscribe(session: &mut Session, uri: &str) -> Result<(), RpcError> {
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}});
    match receive(session, &request) {
        ReceiveOutcome::Reply { outcome, .. } => outcome.map(drop),
        other => panic!("not answered: {other:?}"),
    }
}

#[test]
fn refuses_subscriptions_whose_uris_are_too_large_together() {
    let limit = SessionLimits::default().max_subscription_bytes;
    let mut session = initialized();
    let uri = |number: usize| format!("test://{number}/{}", "x".repeat(limit / 4));
    let subscribed = (0..40)
        .filter(|number| subscribe(&mut session, &uri(*number)).is_ok())
        .count();
    assert_eq!(subscribed, 3);
    let error = subscribe(&mut session, &uri(99)).expect_err("too large");
    assert!(error.message.contains("max_subscription_bytes"), "{error}");
    // A repeated subscription takes no more space.
    assert_eq!(subscribe(&mut session, &uri(0)), Ok(()));
}

#[test]
fn keeps_no_requests_to_a_client_that_never_completes_the_handshake() {
    let mut session = initialized();
    for round in 0..300_i64 {
        let call = json!({"jsonrpc": "2.0", "id": round, "method": "tools/call", "params": {"name": "asks"}});
        let ReceiveOutcome::Request(admitted) = receive(&mut session, &call) else {
            panic!("not admitted");
        };
        let outgoing = ServerRequest {
            method: "elicitation/create".into(),
            params: None,
            related: Some(admitted.key),
            timeouts: InputRequestTimeouts {
                idle: Duration::from_secs(600),
                total: Duration::from_secs(600),
            },
        };
        let begun = session.begin_server_request(outgoing, (), NOW);
        assert!(
            matches!(begun, Ok((_, None))),
            "held until the handshake is complete"
        );
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": round}});
        assert!(matches!(
            receive(&mut session, &cancel),
            ReceiveOutcome::Cancelled { .. }
        ));
    }
    let kept = serde_json::to_value(session.snapshot()).expect("serializes");
    let held = kept["held"].as_array().map_or(0, Vec::len);
    assert!(held <= 1, "{held} requests are kept");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    match receive(&mut session, &ready) {
        ReceiveOutcome::Ready(messages) => assert_eq!(messages, []),
        other => panic!("not ready: {other:?}"),
    }
}

fn listen(id: i64, uris: &[String]) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientCapabilities": {}},
        "notifications": {"resourceSubscriptions": uris}}})
}

#[test]
fn refuses_streams_with_too_many_or_too_long_uris() {
    let mut session = Session::new(SessionScope::Connection, SessionLimits::default());
    let most = SessionLimits::default().max_subscriptions;
    let uris: Vec<_> = (0..=most).map(|number| format!("log://{number}")).collect();
    let error = refusal(receive(&mut session, &listen(1, &uris)));
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(
        error
            .message
            .contains("resourceSubscriptions has more than 1024 URIs"),
        "{error:?}"
    );
    let long = vec!["x".repeat(SessionLimits::default().max_subscription_bytes)];
    let error = refusal(receive(&mut session, &listen(1, &long)));
    assert!(
        error.message.contains("max_subscription_bytes"),
        "{error:?}"
    );
    // A client may open a second stream to replace the first before that ends; a third is refused.
    for id in [1, 2] {
        let received = receive(&mut session, &listen(id, &uris[1..]));
        assert!(
            matches!(received, ReceiveOutcome::Subscription(_)),
            "{received:?}"
        );
    }
    let error = refusal(receive(&mut session, &listen(3, &uris[..1])));
    assert_eq!(error.code, ErrorCode::BUSY);
}
