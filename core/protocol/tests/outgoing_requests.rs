//! A client's requests in flight, under virtual time, with a session of our server as the other end.

use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::client::{
    OutgoingRequestError, OutgoingRequestEvent, OutgoingRequests, RequestTimeouts,
};
use mcpline_protocol::session::{
    ReceiveOutcome, ServerProfile, ServerSession, SessionLimits, SessionScope,
};
use mcpline_protocol::vocabulary::{Implementation, ListCapability, ServerCapabilities};
use mcpline_protocol::wire::{Incoming, Message, Params, encode, read};
use mcpline_protocol::{Raw, RequestId, Revision, RpcError};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUTS: RequestTimeouts = RequestTimeouts {
    idle: Duration::from_secs(10),
    total: Duration::from_secs(25),
};

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("serializes")
}

fn params(value: &Value) -> Params {
    Params::from_raw(raw(value)).expect("an object")
}

fn progress(token: u64, progress: f64) -> Params {
    params(&json!({"progressToken": token, "progress": progress}))
}

#[test]
fn requests_end_once_with_the_response_to_their_id() {
    let mut calls = OutgoingRequests::new(5);
    let first = calls.begin("first", TIMEOUTS, false, SECOND);
    let second = calls.begin("second", TIMEOUTS, false, SECOND);
    assert_eq!(first.id(), RequestId::number(5));
    assert_eq!(second.id(), RequestId::number(6));
    // Out of order, and an error.
    let refusal = RpcError::method_not_found("x");
    assert_eq!(
        calls.receive_response(Some(&second.id()), Err(refusal.clone())),
        OutgoingRequestEvent::Ended("second", Err(OutgoingRequestError::Rpc(refusal)))
    );
    let result = raw(&json!({}));
    assert_eq!(
        calls.receive_response(Some(&first.id()), Ok(result.clone())),
        OutgoingRequestEvent::Ended("first", Ok(result.clone()))
    );
    assert!(calls.is_empty());
    for id in [first.id(), RequestId::number(99), RequestId::string("5")] {
        let outcome = calls.receive_response(Some(&id), Ok(result.clone()));
        assert!(
            matches!(outcome, OutgoingRequestEvent::Ignored(_)),
            "{id:?}"
        );
    }
    assert!(matches!(
        calls.receive_response(None, Ok(result)),
        OutgoingRequestEvent::Ignored(_)
    ));
}

#[test]
fn progress_extends_a_request_up_to_the_maximum() {
    let mut calls = OutgoingRequests::new(1);
    let key = calls.begin("slow", TIMEOUTS, true, Duration::ZERO);
    assert_eq!(calls.poll_deadline(), Some(10 * SECOND));
    for (at, value) in [(8, 1.0), (16, 2.0), (24, 3.0)] {
        assert!(calls.handle_timeout(at * SECOND).is_empty());
        let outcome = calls.receive_progress(Some(&progress(1, value)), at * SECOND);
        assert!(matches!(outcome, OutgoingRequestEvent::Progress(reported, _) if reported == key));
    }
    assert_eq!(calls.poll_deadline(), Some(25 * SECOND));
    let overdue: Vec<_> = calls
        .handle_timeout(25 * SECOND)
        .into_iter()
        .map(|(_, overdue)| overdue)
        .collect();
    let [overdue] = &overdue[..] else {
        panic!("one is overdue");
    };
    let waited = TIMEOUTS.total;
    assert_eq!(
        overdue.error,
        OutgoingRequestError::TimedOut {
            waited,
            in_all: true
        }
    );
    let cancellation: Value = serde_json::from_slice(&overdue.cancellation).expect("JSON");
    assert_eq!(cancellation["method"], "notifications/cancelled");
    assert_eq!(cancellation["params"]["requestId"], 1);
    // The server's response may still arrive.
    let late = calls.receive_response(Some(&key.id()), Ok(raw(&json!({}))));
    assert!(matches!(late, OutgoingRequestEvent::Ignored(_)));
}

#[test]
fn idle_requests_time_out() {
    let mut calls = OutgoingRequests::new(1);
    calls.begin("silent", TIMEOUTS, true, Duration::ZERO);
    calls.begin("later", TIMEOUTS, true, SECOND);
    assert!(
        calls
            .handle_timeout(10 * SECOND - Duration::from_millis(1))
            .is_empty()
    );
    let overdue: Vec<_> = calls
        .handle_timeout(10 * SECOND)
        .into_iter()
        .map(|(_, overdue)| overdue)
        .collect();
    assert_eq!(overdue.len(), 1);
    assert_eq!(overdue[0].handle, "silent");
    let waited = TIMEOUTS.idle;
    let in_all = false;
    assert_eq!(
        overdue[0].error,
        OutgoingRequestError::TimedOut { waited, in_all }
    );
    assert_eq!(calls.len(), 1);
}

#[test]
fn ignores_progress_that_is_unrequested_or_does_not_increase() {
    let mut calls = OutgoingRequests::new(1);
    calls.begin("deaf", TIMEOUTS, false, Duration::ZERO);
    calls.begin("listens", TIMEOUTS, true, Duration::ZERO);
    let at = 5 * SECOND;
    let none = |outcome: OutgoingRequestEvent<&str>| {
        assert!(
            matches!(outcome, OutgoingRequestEvent::Ignored(_)),
            "{outcome:?}"
        )
    };
    none(calls.receive_progress(Some(&progress(1, 1.0)), at));
    none(calls.receive_progress(Some(&progress(7, 1.0)), at));
    none(calls.receive_progress(Some(&params(&json!({"progress": 1}))), at));
    none(calls.receive_progress(None, at));
    assert!(matches!(
        calls.receive_progress(Some(&progress(2, 2.0)), at),
        OutgoingRequestEvent::Progress(..)
    ));
    none(calls.receive_progress(Some(&progress(2, 2.0)), 9 * SECOND));
    // 10 s for the first, 15 s for the second: the repeated report did not extend the deadline.
    assert_eq!(calls.handle_timeout(10 * SECOND).len(), 1);
    assert_eq!(calls.poll_deadline(), Some(15 * SECOND));
}

#[test]
fn closing_ends_every_request() {
    let mut calls = OutgoingRequests::new(1);
    for name in ["a", "b", "c"] {
        calls.begin(name, TIMEOUTS, false, Duration::ZERO);
    }
    let ended: Vec<_> = calls.close().collect();
    let names: Vec<_> = ended.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(
        ended
            .iter()
            .all(|(_, error)| *error == OutgoingRequestError::Closed)
    );
    assert_eq!(calls.poll_deadline(), None);
}

#[test]
fn cancellations_reach_our_server_which_does_not_respond() {
    let profile = ServerProfile {
        info: Implementation::new("ours", "1"),
        capabilities: ServerCapabilities::default().with_tools(ListCapability::default()),
        revisions: Revision::ALL.to_vec(),
        ..ServerProfile::default()
    };
    let mut session =
        ServerSession::<&str, ()>::new(SessionScope::Connection, SessionLimits::default());
    let receive = |session: &mut ServerSession<&'static str, ()>, bytes: Vec<u8>| {
        let Ok(Incoming::Single(message)) = read(Bytes::from(bytes)) else {
            panic!("one message");
        };
        let _: &Message = &message;
        session.receive(message, false, &profile, Duration::ZERO)
    };
    let mut calls = OutgoingRequests::new(1);
    let key = calls.begin("mine", TIMEOUTS, true, Duration::ZERO);
    let mut request = Vec::new();
    let params = json!({"name": "t", "_meta": {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}});
    encode::request(
        &mut request,
        &key.id(),
        "tools/call",
        Some(params.to_string().as_bytes()),
    );
    let ReceiveOutcome::Request(admitted) = receive(&mut session, request) else {
        panic!("it is admitted");
    };
    session.attach(admitted.key, "theirs");
    let report = session
        .progress(admitted.key, 0.5, None, None, Duration::ZERO)
        .expect("it is wanted");
    let Ok(Incoming::Single(Message::Notification(report))) = read(report.message.into()) else {
        panic!("a notification");
    };
    assert!(matches!(
        calls.receive_progress(report.params.as_ref(), SECOND),
        OutgoingRequestEvent::Progress(reported, progress) if reported == key && progress.progress == 0.5
    ));
    let (handle, message) = calls.cancel(key, "no longer needed").expect("in flight");
    assert_eq!(handle, "mine");
    assert_eq!(calls.cancel(key, "again"), None);
    let ReceiveOutcome::Cancelled { handle, reason, .. } = receive(&mut session, message) else {
        panic!("it is cancelled");
    };
    assert_eq!(handle, Some("theirs"));
    assert_eq!(reason.as_deref(), Some("no longer needed"));
    assert!(session.finish(admitted.key).is_none());
}

#[test]
fn resuming_a_paused_timeout_restores_the_full_idle_time() {
    let mut calls = OutgoingRequests::new(1);
    let held = calls.begin("held", TIMEOUTS, false, SECOND);
    calls.pause_timeout(held);
    assert_eq!(calls.poll_deadline(), None);
    assert!(calls.handle_timeout(500 * SECOND).is_empty());
    calls.resume_timeout(held, 500 * SECOND);
    assert_eq!(calls.poll_deadline(), Some(510 * SECOND));
    // Resuming again does not extend the deadline.
    calls.resume_timeout(held, 505 * SECOND);
    assert_eq!(calls.handle_timeout(510 * SECOND).len(), 1);
}

#[test]
fn the_next_deadline_follows_every_change_of_a_request() {
    let mut calls = OutgoingRequests::new(0);
    let forever = RequestTimeouts {
        idle: Duration::MAX,
        total: Duration::MAX,
    };
    calls.begin("forever", forever, false, SECOND);
    assert_eq!(calls.poll_deadline(), None);
    let first = calls.begin("first", TIMEOUTS, true, SECOND);
    let second = calls.begin("second", TIMEOUTS, false, 2 * SECOND);
    assert_eq!(calls.poll_deadline(), Some(11 * SECOND));
    calls.receive_progress(Some(&progress(first.number(), 1.0)), 3 * SECOND);
    assert_eq!(calls.poll_deadline(), Some(12 * SECOND));
    calls.pause_timeout(second);
    assert_eq!(calls.poll_deadline(), Some(13 * SECOND));
    calls.resume_timeout(second, 4 * SECOND);
    assert_eq!(calls.poll_deadline(), Some(13 * SECOND));
    calls.remove(first);
    assert_eq!(calls.poll_deadline(), Some(14 * SECOND));
    let overdue = calls.handle_timeout(14 * SECOND);
    assert_eq!(overdue.len(), 1);
    assert_eq!((overdue[0].0, calls.poll_deadline()), (second, None));
    assert_eq!(calls.len(), 1);
}
