//! A session driven by plain messages under virtual time. Each scenario also runs with the session serialized and
//! restored between any two messages: its responses must not depend on that.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::session::{
    Change, InputRequestError, InputRequestTimeouts, Rate, ReceiveOutcome, RequestKey,
    ServerProfile, ServerRequest, ServerSession, SessionLimits, SessionScope, SessionSnapshot,
    TimeoutEvent,
};
use mcpline_protocol::vocabulary::{
    CacheHints, CacheScope, Implementation, JsonObject, ListCapability, LoggingLevel,
    ResourcesCapability, ServerCapabilities,
};
use mcpline_protocol::wire::{Incoming, Message, encode, read};
use mcpline_protocol::{Raw, Revision, RpcError};
use schema_check::Conversation;
use serde_json::{Value, json};

thread_local! {
    /// Everything that this test, which has the thread to itself, sends and receives.
    static TALK: RefCell<Conversation> = RefCell::default();
}

type Session = ServerSession<(), &'static str>;

/// A session, and what its driver sees of it.
struct Rig {
    session: Session,
    profile: ServerProfile,
    limits: SessionLimits,
    now: Duration,
    /// Whether the session is serialized and restored after each step.
    restarts: bool,
    admitted: Vec<RequestKey>,
    answers: Vec<(&'static str, Result<Raw, InputRequestError>)>,
}

fn profile() -> ServerProfile {
    let lists = ListCapability::default().with_list_changed(true);
    ServerProfile {
        info: Implementation::new("rig", "1"),
        capabilities: ServerCapabilities::default()
            .with_tools(lists.clone())
            .with_prompts(lists)
            .with_resources(
                ResourcesCapability::default()
                    .with_list_changed(true)
                    .with_subscribe(true),
            )
            .with_logging(JsonObject::new()),
        instructions: None,
        discover_cache: CacheHints::new(0, CacheScope::Private),
        revisions: Revision::ALL.to_vec(),
        requests: std::collections::BTreeSet::new(),
        notifications: std::collections::BTreeSet::new(),
    }
}

fn limits() -> SessionLimits {
    SessionLimits {
        progress_rate: Rate {
            burst: 2,
            per_second: 10,
        },
        log_rate: Rate {
            burst: 2,
            per_second: 10,
        },
        max_requests_in_flight: 4,
        ..SessionLimits::default()
    }
}

impl Rig {
    fn new(restarts: bool) -> Self {
        Self::limited(restarts, limits())
    }

    fn limited(restarts: bool, limits: SessionLimits) -> Self {
        Self {
            session: Session::new(SessionScope::Connection, limits),
            profile: profile(),
            limits,
            now: Duration::from_secs(1),
            restarts,
            admitted: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn shaken(restarts: bool, revision: Revision, capabilities: Value) -> Self {
        let mut rig = Self::new(restarts);
        rig.shake(revision, capabilities);
        rig
    }

    fn shake(&mut self, revision: Revision, capabilities: Value) {
        self.send(
            json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "c", "version": "1"}}}),
        );
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn restart(&mut self) {
        if !self.restarts {
            return;
        }
        let text = serde_json::to_string(&self.session.snapshot()).expect("serializes");
        let snapshot: SessionSnapshot = serde_json::from_str(&text).expect("reads back");
        let keys_before: Vec<RequestKey> = self.admitted.clone();
        self.session = Session::restore(&snapshot, self.limits, |_| Some(()), |_| "restored");
        // At most one request is in flight, so its key is the only one.
        if let (Some(old), Some((new, ()))) =
            (keys_before.last(), self.session.request_handles().next())
        {
            let place = self.admitted.iter().position(|key| key == old);
            if let Some(place) = place {
                self.admitted[place] = new;
            }
        }
    }

    /// Delivers one message; returns the immediate replies.
    fn send(&mut self, message: Value) -> Vec<Value> {
        TALK.with_borrow_mut(|talk| talk.client(&message));
        let bytes = Bytes::from(message.to_string());
        let mut out = Vec::new();
        match read(bytes).expect("a message") {
            Incoming::Single(message) => self.receive(message, false, &mut out),
            Incoming::Batch(messages) => match self.session.admit_batch() {
                Err(error) => {
                    for entry in messages {
                        if let Ok(Message::Request(request)) = entry {
                            out.push(error_json(&request.id, &error));
                        }
                    }
                }
                Ok(()) => {
                    for message in messages {
                        self.receive(message.expect("a message"), true, &mut out);
                    }
                }
            },
        }
        self.restart();
        out
    }

    fn receive(&mut self, message: Message, in_batch: bool, out: &mut Vec<Value>) {
        match self
            .session
            .receive(message, in_batch, &self.profile, self.now)
        {
            ReceiveOutcome::Request(admitted) => {
                self.session.attach(admitted.key, ());
                self.admitted.push(admitted.key);
            }
            ReceiveOutcome::Reply { id, outcome } => out.push(match outcome {
                Ok(result) => {
                    let mut bytes = Vec::new();
                    encode::response(&mut bytes, &id, &result);
                    value(&bytes)
                }
                Err(error) => error_json(&id, &error),
            }),
            ReceiveOutcome::Subscription(listening) => {
                self.session.attach(listening.key, ());
                out.push(value(&listening.acknowledgment));
            }
            ReceiveOutcome::Initialized { id, result, .. } => {
                let mut bytes = Vec::new();
                encode::response(&mut bytes, &id, &result);
                out.push(value(&bytes));
            }
            ReceiveOutcome::Ready(held) => out.extend(held.iter().map(|held| value(&held.message))),
            ReceiveOutcome::Answer { handle, outcome } => self.answers.push((handle, outcome)),
            ReceiveOutcome::Cancelled {
                server_requests, ..
            } => {
                for (ask, cancellation) in server_requests {
                    out.extend(cancellation.map(|cancellation| value(&cancellation.message)));
                    self.answers.push((ask, Err(InputRequestError::Cancelled)));
                }
            }
            ReceiveOutcome::RootsChanged
            | ReceiveOutcome::Notification { .. }
            | ReceiveOutcome::Ignored(_) => {}
        }
    }

    fn call(&mut self, id: Value) -> Vec<Value> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                         "params": {"name": "t", "_meta": {"progressToken": "p"}}}))
    }

    fn last(&self) -> RequestKey {
        *self.admitted.last().expect("a request was admitted")
    }
}

/// Decodes a message of the session and validates it against the schema of its revision.
fn value(bytes: &[u8]) -> Value {
    let message = serde_json::from_slice(bytes).expect("we send JSON");
    TALK.with_borrow_mut(|talk| talk.server(&message));
    message
}

fn error_json(id: &mcpline_protocol::RequestId, error: &RpcError) -> Value {
    let mut bytes = Vec::new();
    encode::error(&mut bytes, Some(id), error);
    value(&bytes)
}

fn code(messages: &[Value]) -> i64 {
    messages[0]["error"]["code"].as_i64().expect("an error")
}

/// Runs a scenario with and without restarts; both must pass.
fn both(scenario: impl Fn(bool)) {
    scenario(false);
    scenario(true);
}

fn modern(id: i64, method: &str, extra: Value) -> Value {
    let mut params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}});
    for (name, value) in extra.as_object().expect("an object") {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[test]
fn negotiates_known_revisions_and_counter_offers_on_unknown_ones() {
    for (offered, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("nonsense", "2025-11-25"),
    ] {
        let mut rig = Rig::new(false);
        let answer = rig.send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": offered, "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}}}),
        );
        assert_eq!(
            answer[0]["result"]["protocolVersion"], expected,
            "{offered}"
        );
    }
}

#[test]
fn serves_only_initialize_and_ping_before_the_handshake() {
    both(|restarts| {
        let mut rig = Rig::new(restarts);
        assert_eq!(code(&rig.call(json!(1))), -32600);
        let pong = rig.send(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        assert_eq!(pong[0]["result"], json!({}));
        assert!(rig.admitted.is_empty());
    });
}

#[test]
fn refuses_a_second_initialize_and_continues_the_session() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_06_18, json!({}));
        let again = rig.send(
            json!({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}}}),
        );
        assert_eq!(code(&again), -32600);
        assert!(rig.call(json!(10)).is_empty());
        assert_eq!(rig.admitted.len(), 1);
    });
}

#[test]
fn serves_initialize_on_a_pipe_after_a_failed_discover() {
    both(|restarts| {
        let mut rig = Rig::new(restarts);
        let mut discover = modern(1, "server/discover", json!({}));
        discover["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
            "2099-01-01".into();
        let refused = rig.send(discover);
        assert_eq!(code(&refused), -32022);
        assert_eq!(refused[0]["error"]["data"]["requested"], "2099-01-01");
        let answer = rig.send(
            json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}}}),
        );
        assert_eq!(answer[0]["result"]["protocolVersion"], "2025-11-25");
    });
}

#[test]
fn both_eras_share_a_pipe() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({}));
        assert!(
            rig.send(modern(1, "tools/call", json!({"name": "t"})))
                .is_empty()
        );
        assert!(rig.call(json!(2)).is_empty());
        assert_eq!(code(&rig.send(modern(3, "ping", json!({})))), -32601);
    });
}

#[test]
fn accepts_batches_up_to_2025_03_26_but_not_before_the_handshake() {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (revision, received) in [
        (Revision::V2024_11_05, true),
        (Revision::V2025_03_26, true),
        (Revision::V2025_06_18, false),
        (Revision::V2025_11_25, false),
    ] {
        let mut rig = Rig::shaken(false, revision, json!({}));
        let answer = rig.send(json!([ping]));
        if received {
            assert_eq!(answer[0]["result"], json!({}), "{revision}");
        } else {
            assert_eq!(code(&answer), -32600, "{revision}");
        }
    }
    let mut rig = Rig::new(false);
    assert_eq!(code(&rig.send(json!([ping]))), -32600);
}

#[test]
fn rejects_an_id_in_flight_and_accepts_it_again_afterwards() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({}));
        assert!(rig.call(json!("same")).is_empty());
        assert_eq!(code(&rig.call(json!("same"))), -32600);
        let finished = rig.session.finish(rig.last()).expect("in flight");
        assert_eq!(finished.id.raw(), b"\"same\"");
        assert!(rig.call(json!("same")).is_empty());
    });
}

#[test]
fn refuses_calls_past_the_limit_but_not_pings_and_cancellations() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    for id in 0..4 {
        assert!(rig.call(json!(id)).is_empty());
    }
    assert_eq!(code(&rig.call(json!(4))), -31000);
    let pong = rig.send(json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}));
    assert_eq!(pong[0]["result"], json!({}));
    rig.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}}),
    );
    assert!(rig.call(json!(6)).is_empty());
}

#[test]
fn a_cancelled_request_gets_no_response_and_a_late_cancellation_is_harmless() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({}));
        rig.call(json!(7));
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": 7, "reason": "enough"}});
        let key = rig.last();
        rig.send(cancel.clone());
        assert!(rig.session.finish(key).is_none());
        rig.send(cancel);
        assert!(rig.call(json!(7)).is_empty());
    });
}

#[test]
fn progress_only_increases_is_rate_limited_and_delivers_its_last_value() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    rig.call(json!(1));
    let key = rig.last();
    let mut sent = Vec::new();
    for step in [1.0, 2.0, 2.0, 1.5, 3.0, 4.0] {
        let out = rig
            .session
            .progress(key, step, Some(9.0), Some("m"), rig.now);
        sent.extend(out.map(|out| value(&out.message)["params"]["progress"].clone()));
    }
    assert_eq!(sent, [json!(1), json!(2)]);
    let finished = rig.session.finish(key).expect("in flight");
    let last = value(&finished.before[0]);
    assert_eq!(last["params"]["progress"], 4);
    assert_eq!(last["params"]["progressToken"], "p");
    assert!(
        rig.session
            .progress(key, 5.0, None, None, rig.now)
            .is_none()
    );
}

#[test]
fn held_progress_is_sent_at_its_deadline() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    rig.call(json!(1));
    let key = rig.last();
    for step in [1.0, 2.0, 3.0] {
        rig.session.progress(key, step, None, None, rig.now);
    }
    let deadline = rig.session.poll_deadline().expect("one is held");
    let due = rig.session.handle_timeout(deadline);
    let [TimeoutEvent::Send(outgoing)] = due.as_slice() else {
        panic!("{due:?}");
    };
    assert_eq!(value(&outgoing.message)["params"]["progress"], 3);
    assert_eq!(outgoing.related, Some(key));
}

#[test]
fn delivers_the_last_of_a_burst_of_log_messages_before_the_response() {
    for modern_request in [false, true] {
        let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
        if modern_request {
            let mut call = modern(3, "tools/call", json!({"name": "t"}));
            call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug".into();
            rig.send(call);
        } else {
            rig.call(json!(3));
        }
        let key = rig.last();
        let mut passed = 0;
        for step in 0..5 {
            let data = Raw::string(&format!("step {step}"));
            let log = rig
                .session
                .log(Some(key), LoggingLevel::Info, None, &data, rig.now);
            passed += usize::from(log.is_some());
        }
        assert_eq!(passed, 2);
        let deadline = rig.session.poll_deadline().expect("one is held");
        assert!(deadline > rig.now);
        let finished = rig.session.finish(key).expect("in flight");
        let [last] = finished.before.as_slice() else {
            panic!("{:?}", finished.before)
        };
        assert_eq!(value(last)["params"]["data"], "step 4");
        assert!(rig.session.handle_timeout(deadline).is_empty());
    }
}

#[test]
fn sends_a_held_log_message_on_the_stream_of_its_request() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    rig.call(json!(1));
    let key = rig.last();
    for _ in 0..3 {
        rig.session.log(
            Some(key),
            LoggingLevel::Info,
            None,
            &Raw::string("x"),
            rig.now,
        );
    }
    let deadline = rig.session.poll_deadline().expect("one is held");
    let due = rig.session.handle_timeout(deadline);
    let [TimeoutEvent::Send(outgoing)] = due.as_slice() else {
        panic!("{due:?}");
    };
    assert_eq!(outgoing.related, Some(key));
}

#[test]
fn omits_progress_messages_for_2024_11_05() {
    let mut rig = Rig::shaken(false, Revision::V2024_11_05, json!({}));
    rig.call(json!(1));
    let out = rig
        .session
        .progress(rig.last(), 1.0, None, Some("m"), rig.now)
        .expect("sent");
    assert!(value(&out.message)["params"].get("message").is_none());
}

#[test]
fn the_client_log_level_applies_until_a_client_sets_its_own() {
    both(|restarts| {
        let limits = SessionLimits {
            client_log_level: Some(LoggingLevel::Error),
            ..limits()
        };
        let mut rig = Rig::limited(restarts, limits);
        rig.shake(Revision::V2025_11_25, json!({}));
        rig.call(json!(2));
        let key = rig.last();
        let data = Raw::string("x");
        let log =
            |rig: &mut Rig, key, level| rig.session.log(Some(key), level, None, &data, rig.now);
        assert!(!rig.session.wants_log(Some(key), LoggingLevel::Warning));
        assert!(log(&mut rig, key, LoggingLevel::Warning).is_none());
        assert!(log(&mut rig, key, LoggingLevel::Error).is_some());
        rig.send(
            json!({"jsonrpc": "2.0", "id": 3, "method": "logging/setLevel",
                        "params": {"level": "debug"}}),
        );
        assert!(log(&mut rig, key, LoggingLevel::Debug).is_some());

        let mut request = modern(4, "tools/call", json!({"name": "t"}));
        request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
        rig.send(request);
        let key = rig.last();
        assert!(log(&mut rig, key, LoggingLevel::Info).is_some());
    });
}

#[test]
fn the_log_level_is_set_per_session_or_since_2026_per_request() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({}));
        rig.send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
                        "params": {"level": "warning"}}),
        );
        rig.call(json!(2));
        let key = rig.last();
        let data = Raw::string("x");
        let log =
            |rig: &mut Rig, key, level| rig.session.log(Some(key), level, None, &data, rig.now);
        assert!(log(&mut rig, key, LoggingLevel::Info).is_none());
        assert!(log(&mut rig, key, LoggingLevel::Error).is_some());
        rig.session.finish(key);
        rig.send(modern(3, "tools/call", json!({"name": "t"})));
        let silent = rig.last();
        assert!(log(&mut rig, silent, LoggingLevel::Emergency).is_none());
    });
}

#[test]
fn holds_input_requests_until_the_handshake_is_complete() {
    both(|restarts| {
        let mut rig = Rig::new(restarts);
        rig.send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"}}}),
        );
        rig.call(json!(2));
        let outcome = ask(&mut rig, "roots/list");
        assert_eq!(outcome, Ok(None));
        rig.restart();
        let held = rig.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(held[0]["method"], "roots/list");
        rig.send(json!({"jsonrpc": "2.0", "id": held[0]["id"], "result": {"roots": []}}));
        assert!(
            matches!(&rig.answers[..], [(_, Ok(_))]),
            "{:?}",
            rig.answers
        );
    });
}

/// Sends a message as the driver of a session whose messages several processes receive does. Returns how many messages were
/// queued until then.
fn send_to_shared(rig: &mut Rig, message: &Value) -> usize {
    let read = read(Bytes::from(message.to_string()));
    let Ok(Incoming::Single(received)) = read else {
        panic!("one message");
    };
    let queued = rig.session.conclude_handshake(&received);
    rig.send(message.clone());
    queued.len()
}

#[test]
fn a_request_shows_that_another_process_knows_the_handshake_to_be_complete() {
    both(|restarts| {
        let mut rig = Rig::new(restarts);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"}}});
        // Nothing of this shows it.
        let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                              "params": {"progressToken": 1, "progress": 1}});
        for message in [&hello, &ping, &progress] {
            assert_eq!(send_to_shared(&mut rig, message), 0);
        }
        assert!(rig.session.notify_change(&Change::Tools).is_empty());
        assert!(!rig.session.is_ready());
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
                          "params": {"name": "t", "arguments": {}}});
        assert_eq!(send_to_shared(&mut rig, &call), 1);
        assert!(matches!(ask(&mut rig, "roots/list"), Ok(Some(_))));
        // The notification is late, but counts once.
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for is_first in [true, false] {
            let Ok(Incoming::Single(message)) = read(Bytes::from(initialized.to_string())) else {
                panic!("one message");
            };
            rig.restart();
            let received = rig.session.receive(message, false, &rig.profile, rig.now);
            let is_ready = matches!(received, ReceiveOutcome::Ready(queued) if queued.is_empty());
            assert_eq!(is_ready, is_first);
        }
    });
}

#[test]
fn input_requests_have_distinct_ids_and_keep_their_metadata() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({"sampling": {}}));
        rig.call(json!(1));
        let mut ids = Vec::new();
        for _ in 0..3 {
            let related = Some(rig.last());
            let params = json!({"messages": [], "maxTokens": 1, "_meta": {"trace": "t"}});
            let request = ServerRequest {
                method: "sampling/createMessage".into(),
                params: Some(Raw::from_serialize(&params).expect("JSON")),
                related,
                timeouts: InputRequestTimeouts {
                    idle: Duration::from_secs(10),
                    total: Duration::from_secs(30),
                },
            };
            let begun = rig.session.begin_server_request(request, "asked", rig.now);
            let (_, outgoing) = begun.expect("it can be asked");
            rig.restart();
            let input_request = value(&outgoing.expect("after the handshake").message);
            let id = input_request["id"].clone();
            assert_eq!(
                input_request["params"],
                json!({"messages": [], "maxTokens": 1,
                       "_meta": {"trace": "t", "progressToken": id}})
            );
            assert!(!ids.contains(&id), "{id} once more");
            rig.send(json!({"jsonrpc": "2.0", "id": id, "result": {
                "role": "assistant", "content": {"type": "text", "text": "t"}, "model": "m"}}));
            ids.push(id);
        }
    });
}

#[test]
fn rejects_input_requests_the_client_did_not_declare() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({"elicitation": {}}));
    rig.call(json!(1));
    assert!(matches!(
        ask(&mut rig, "roots/list"),
        Err(InputRequestError::NotSupported(_))
    ));
    assert!(matches!(ask(&mut rig, "elicitation/create"), Ok(Some(_))));
    let mut old = Rig::shaken(false, Revision::V2025_03_26, json!({"elicitation": {}}));
    old.call(json!(1));
    assert!(matches!(
        ask(&mut old, "elicitation/create"),
        Err(InputRequestError::NotSupported(_))
    ));
}

#[test]
fn progress_extends_input_requests_up_to_the_maximum() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({"roots": {}}));
        rig.call(json!(1));
        let Ok(Some(input_request)) = ask(&mut rig, "roots/list") else {
            panic!("asked");
        };
        let token = &input_request["params"]["_meta"]["progressToken"];
        assert_eq!(
            *token, input_request["id"],
            "without it no client reports any"
        );
        let begun = rig.now;
        for second in [8, 16, 24] {
            rig.now = begun + Duration::from_secs(second);
            assert!(rig.session.handle_timeout(rig.now).is_empty(), "{second}");
            rig.send(json!({"jsonrpc": "2.0", "method": "notifications/progress",
                            "params": {"progressToken": token, "progress": second}}));
        }
        rig.now = begun + Duration::from_secs(30);
        let due = rig.session.handle_timeout(rig.now);
        let [TimeoutEvent::ServerRequest { error, cancel, .. }] = due.as_slice() else {
            panic!("{due:?}");
        };
        assert_eq!(
            *error,
            InputRequestError::TimedOut {
                method: "roots/list".into(),
                waited: Duration::from_secs(30),
                in_all: true,
            }
        );
        assert_eq!(value(&cancel.message)["method"], "notifications/cancelled");
        // A late response is ignored.
        rig.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": {"roots": []}}));
        assert!(rig.answers.is_empty());
    });
}

#[test]
fn cancelling_a_request_fails_its_input_requests() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({"roots": {}}));
        rig.call(json!(1));
        assert!(ask(&mut rig, "roots/list").is_ok());
        rig.restart();
        rig.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
        assert!(matches!(
            &rig.answers[..],
            [(_, Err(InputRequestError::Cancelled))]
        ));
    });
}

#[test]
fn changes_reach_only_their_subscribers() {
    both(|restarts| {
        let mut rig = Rig::shaken(restarts, Revision::V2025_11_25, json!({}));
        let uri = |uri: &str| Change::Resource(uri.to_owned());
        assert!(rig.session.notify_change(&uri("a")).is_empty());
        rig.send(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "a"}}));
        assert_eq!(rig.session.notify_change(&uri("a")).len(), 1);
        assert!(rig.session.notify_change(&uri("b")).is_empty());
        rig.send(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": {"uri": "a"}}));
        assert!(rig.session.notify_change(&uri("a")).is_empty());
        let ack = rig.send(modern(
            3,
            "subscriptions/listen",
            json!({"notifications": {
            "promptsListChanged": true, "resourceSubscriptions": ["b"]}}),
        ));
        assert_eq!(ack[0]["method"], "notifications/subscriptions/acknowledged");
        let notifications = rig.session.notify_change(&uri("b"));
        let message = value(&notifications[0].message);
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            3
        );
        // The list of tools changed: the handshake-era session is notified, the stream is not.
        assert_eq!(rig.session.notify_change(&Change::Tools).len(), 1);
        let ended = rig.session.end_subscription_streams();
        assert_eq!(ended.len(), 1);
        assert!(rig.session.notify_change(&uri("b")).is_empty());
    });
}

#[test]
fn gives_up_on_a_silent_client_after_the_configured_ping_misses() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    let snapshot = rig.session.snapshot();
    let limits = SessionLimits {
        ping_interval: Some(Duration::from_secs(10)),
        max_missed_pings: 2,
        ..limits()
    };
    rig.session = Session::restore(&snapshot, limits, |_| None, |_| "restored");
    rig.session.start_pings(rig.now);
    let mut pings = 0;
    for _ in 0..10 {
        rig.now = rig.session.poll_deadline().expect("pings go on");
        match rig.session.handle_timeout(rig.now).as_slice() {
            [TimeoutEvent::Send(ping)] => {
                pings += 1;
                if pings == 1 {
                    let id = value(&ping.message)["id"].clone();
                    rig.send(json!({"jsonrpc": "2.0", "id": id, "result": {}}));
                }
            }
            [TimeoutEvent::ClientUnresponsive] => break,
            [] => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        pings, 3,
        "one answered, then one, and one that was the first miss"
    );
    assert_eq!(rig.session.poll_deadline(), None);
}

#[test]
fn does_not_give_up_on_a_client_without_a_stream() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    let snapshot = rig.session.snapshot();
    let limits = SessionLimits {
        ping_interval: Some(Duration::from_secs(10)),
        max_missed_pings: 1,
        ..limits()
    };
    rig.session = Session::restore(&snapshot, limits, |_| None, |_| "restored");
    rig.session.start_pings(rig.now);
    for _ in 0..5 {
        rig.now = rig.session.poll_deadline().expect("pings go on");
        rig.session.postpone_pings(rig.now);
        assert!(rig.session.handle_timeout(rig.now).is_empty());
    }
}

#[test]
fn rejects_modern_requests_without_required_metadata() {
    let mut rig = Rig::new(false);
    let without = |name: &str| {
        let mut request = modern(1, "tools/list", json!({}));
        let meta = request["params"]["_meta"]
            .as_object_mut()
            .expect("an object");
        meta.remove(&format!("io.modelcontextprotocol/{name}"));
        request
    };
    assert_eq!(code(&rig.send(without("clientCapabilities"))), -32602);
    assert_eq!(
        code(&rig.send(json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover"}))),
        -32602
    );
    let mut level = modern(3, "tools/list", json!({}));
    level["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "loud".into();
    assert_eq!(code(&rig.send(level)), -32602);
}

fn ask(rig: &mut Rig, method: &'static str) -> Result<Option<Value>, InputRequestError> {
    let related = Some(rig.last());
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let params =
        (method == "elicitation/create").then(|| Raw::from_serialize(&form).expect("JSON"));
    let request = ServerRequest {
        method: method.into(),
        params,
        related,
        timeouts: InputRequestTimeouts {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
        },
    };
    let begun = rig.session.begin_server_request(request, "asked", rig.now);
    match begun {
        Ok((_, outgoing)) => {
            rig.restart();
            Ok(outgoing.map(|outgoing| value(&outgoing.message)))
        }
        Err((error, _)) => Err(error),
    }
}

#[test]
fn accepts_repeated_subscriptions_at_the_limit() {
    let mut rig = Rig::shaken(false, Revision::V2025_11_25, json!({}));
    let subscribe = |rig: &mut Rig, id: usize, uri: &str| {
        let answers = rig.send(
            json!({"jsonrpc": "2.0", "id": id, "method": "resources/subscribe",
                                      "params": {"uri": uri}}),
        );
        answers[0]["error"]["code"].clone()
    };
    let limit = limits().max_subscriptions;
    for number in 0..limit {
        let uri = format!("test://{number}");
        assert_eq!(subscribe(&mut rig, number, &uri), Value::Null);
    }
    assert_eq!(subscribe(&mut rig, limit, "test://0"), Value::Null);
    assert_ne!(subscribe(&mut rig, limit + 1, "test://new"), Value::Null);
}
