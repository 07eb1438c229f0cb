//! A client that negotiates with servers of every era and behaviour, under virtual time.

use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::client::{
    HANDSHAKE_SERVER_TTL, HandshakeError, HandshakeServers, MAX_REMEMBERED_SERVERS,
    NegotiatedSession, Negotiation, NegotiationOptions, NegotiationStep,
};
use mcpline_protocol::session::{
    ReceiveOutcome, ServerProfile, ServerSession, SessionLimits, SessionScope,
};
use mcpline_protocol::vocabulary::{
    ClientCapabilities, Implementation, ListCapability, ServerCapabilities,
};
use mcpline_protocol::wire::{Incoming, Message, read};
use mcpline_protocol::{Era, ErrorCode, Raw, RequestId, Revision, RpcError};
use serde_json::{Value, json};

/// How the server handles a request.
#[derive(Clone)]
enum Fate {
    Result(Value),
    Error(RpcError),
    Http(u16, Option<RpcError>),
    Silence,
    Gone,
}

/// The steps of a negotiation, in order: `discover 2026-07-28`, `initialize 2025-11-25`, `reconnect`, or `pair` for
/// HTTP+SSE.
type Log = Vec<String>;

fn plan() -> NegotiationOptions {
    NegotiationOptions::new(
        Implementation::new("client", "1"),
        ClientCapabilities::default(),
    )
}

/// Negotiates with a server that handles each request as `fate` returns.
fn open(
    plan: NegotiationOptions,
    fate: impl FnMut(&Value) -> Fate,
) -> (Result<NegotiatedSession, HandshakeError>, Log) {
    let (outcome, log, _) = open_timed(plan, fate);
    (outcome, log)
}

fn open_timed(
    plan: NegotiationOptions,
    mut fate: impl FnMut(&Value) -> Fate,
) -> (Result<NegotiatedSession, HandshakeError>, Log, Duration) {
    let mut opening = Negotiation::new(plan);
    let mut log = Log::new();
    let mut now = Duration::from_secs(100);
    let begun = now;
    let mut step = opening.start(now);
    for _ in 0..20 {
        step = match step {
            NegotiationStep::Complete(opened) => return (Ok(*opened), log, now - begun),
            NegotiationStep::Failed(error) => return (Err(error), log, now - begun),
            NegotiationStep::Wait => panic!("nothing is awaited after {log:?}"),
            NegotiationStep::Reconnect => {
                log.push("reconnect".into());
                opening.start(now)
            }
            NegotiationStep::UseHttpSse => {
                log.push("pair".into());
                opening.start(now)
            }
            NegotiationStep::Send { id, message, .. } => {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                log.push(summary(&message));
                match fate(&message) {
                    Fate::Result(result) => opening.receive_response(&id, Ok(raw(&result)), now),
                    Fate::Error(error) => opening.receive_response(&id, Err(error), now),
                    Fate::Http(status, error) => opening.receive_http_refusal(status, error, now),
                    Fate::Gone => opening.receive_disconnect(),
                    Fate::Silence => {
                        now = opening.poll_deadline().expect("it waits for no longer");
                        opening.handle_timeout(now)
                    }
                }
            }
        };
    }
    panic!("it goes round in circles: {log:?}");
}

fn summary(message: &Value) -> String {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("server/discover") => {
            let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
            format!("discover {}", version.as_str().expect("a version"))
        }
        _ => format!(
            "initialize {}",
            params["protocolVersion"].as_str().expect("a version")
        ),
    }
}

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("serializes")
}

fn is_discover(message: &Value) -> bool {
    message["method"] == "server/discover"
}

fn discovered(versions: &[&str]) -> Fate {
    Fate::Result(
        json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {},
        "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}}}),
    )
}

/// Accepts the offered revision.
fn shaken(message: &Value) -> Fate {
    shaken_with(
        message["params"]["protocolVersion"]
            .as_str()
            .expect("a version"),
    )
}

fn shaken_with(version: &str) -> Fate {
    Fate::Result(
        json!({"protocolVersion": version, "capabilities": {"tools": {}},
        "serverInfo": {"name": "legacy", "version": "1"}, "instructions": "Be gentle."}),
    )
}

fn unsupported(versions: &[&str]) -> RpcError {
    RpcError::new(
        ErrorCode::UNSUPPORTED_VERSION,
        "Unsupported protocol version",
    )
    .with_data(&json!({"supported": versions, "requested": "2026-07-28"}))
}

#[test]
fn discovers_a_modern_server() {
    let (opened, log) = open(plan(), |_| discovered(&["2026-07-28", "2025-11-25"]));
    let opened = opened.expect("opens");
    assert_eq!(opened.revision, Revision::V2026_07_28);
    assert_eq!(opened.info.expect("a name").name, "modern");
    assert_eq!(opened.initialized, None);
    assert_eq!(opened.next_id, 2);
    assert_eq!(log, ["discover 2026-07-28"]);
}

#[test]
fn falls_back_to_the_handshake_after_any_legacy_answer_to_the_probe() {
    let answers = [
        Fate::Error(RpcError::new(
            ErrorCode::METHOD_NOT_FOUND,
            "Method not found",
        )),
        Fate::Error(RpcError::new(
            ErrorCode::INVALID_PARAMS,
            "before initialize",
        )),
        Fate::Error(RpcError::new(ErrorCode(-32000), "not initialized")),
        Fate::Error(RpcError::new(ErrorCode(7), "no")),
        Fate::Result(json!({})),
        Fate::Result(json!({"tools": []})),
        Fate::Silence,
        Fate::Http(400, None),
        Fate::Http(400, Some(RpcError::new(ErrorCode(-32000), "no session"))),
        Fate::Http(403, None),
        Fate::Http(404, None),
        Fate::Http(405, None),
        Fate::Http(409, None),
        Fate::Http(422, None),
        Fate::Http(422, Some(RpcError::invalid_params("method"))),
        Fate::Http(426, None),
        Fate::Http(429, None),
        Fate::Http(500, None),
        Fate::Http(501, None),
        Fate::Http(503, None),
    ];
    for answer in answers {
        let (opened, log) = open(plan(), |message| match is_discover(message) {
            true => answer.clone(),
            false => shaken(message),
        });
        let opened = opened.expect("opens");
        assert_eq!(opened.revision, Revision::V2025_11_25);
        assert_eq!(opened.instructions.as_deref(), Some("Be gentle."));
        let initialized = opened.initialized.expect("it is owed");
        let initialized: Value = serde_json::from_slice(&initialized).expect("JSON");
        assert_eq!(initialized["method"], "notifications/initialized");
        assert_eq!(log, ["discover 2026-07-28", "initialize 2025-11-25"]);
    }
}

#[test]
fn reconnects_once_to_a_server_that_leaves_after_the_probe() {
    let (opened, log) = open(plan(), |message| match is_discover(message) {
        true => Fate::Gone,
        false => shaken(message),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2025_11_25);
    assert_eq!(
        log,
        ["discover 2026-07-28", "reconnect", "initialize 2025-11-25"]
    );
    let (failed, log) = open(plan(), |_| Fate::Gone);
    let method = "initialize";
    assert_eq!(failed, Err(HandshakeError::Gone { method }));
    assert_eq!(log.len(), 3);
}

#[test]
fn retries_an_unsupported_version_with_one_the_server_supports() {
    let (opened, log) = open(plan(), |message| match is_discover(message) {
        true => Fate::Error(unsupported(&["2025-06-18", "2025-03-26"])),
        false => shaken(message),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2025_06_18);
    assert_eq!(log, ["discover 2026-07-28", "initialize 2025-06-18"]);

    let (failed, log) = open(plan(), |_| Fate::Error(unsupported(&["2099-01-01"])));
    let Err(HandshakeError::NoCommonRevision { server, .. }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(server, ["2099-01-01"]);
    // A modern error means a modern server: no handshake is tried.
    assert_eq!(log, ["discover 2026-07-28"]);

    // A server that keeps refusing its own versions is not retried forever.
    let (failed, log) = open(plan(), |_| Fate::Error(unsupported(&["2026-07-28"])));
    assert!(matches!(
        failed,
        Err(HandshakeError::NoCommonRevision { .. })
    ));
    assert_eq!(log, ["discover 2026-07-28", "discover 2026-07-28"]);
}

#[test]
fn accepts_a_counter_offer_that_the_client_supports() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let (opened, _) = open(plan(), |message| match is_discover(message) {
            true => Fate::Error(RpcError::method_not_found("server/discover")),
            false => shaken_with(version),
        });
        assert_eq!(opened.expect("opens").revision.as_str(), version);
    }
    for version in ["2026-07-28", "1999-01-01", "draft"] {
        let (failed, _) = open(plan(), |message| match is_discover(message) {
            true => Fate::Error(RpcError::method_not_found("server/discover")),
            false => shaken_with(version),
        });
        let Err(HandshakeError::NoCommonRevision { server, .. }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(server, [version]);
    }
}

#[test]
fn retries_a_refused_handshake_with_a_supported_version() {
    let refusal = RpcError::invalid_params("Unsupported protocol version")
        .with_data(&json!({"supported": ["2024-11-05"], "requested": "2025-11-25"}));
    let (opened, log) = open(plan(), |message| match summary(message).as_str() {
        "initialize 2024-11-05" => shaken(message),
        _ => Fate::Error(refusal.clone()),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2024_11_05);
    assert_eq!(
        log.last().map(String::as_str),
        Some("initialize 2024-11-05")
    );
    assert!(log.len() <= 3, "{log:?}");
}

#[test]
fn tries_http_sse_at_an_endpoint_that_refuses_both_eras() {
    let mut uses_http_sse = false;
    let (opened, log) = open(plan(), |message| {
        let fate = match (uses_http_sse, is_discover(message)) {
            (true, false) => shaken_with("2024-11-05"),
            _ => Fate::Http(405, None),
        };
        uses_http_sse = !is_discover(message);
        fate
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2024_11_05);
    assert_eq!(
        log,
        [
            "discover 2026-07-28",
            "initialize 2025-11-25",
            "pair",
            "initialize 2025-11-25"
        ]
    );
    let (failed, _) = open(plan(), |_| Fate::Http(404, None));
    let (status, error) = (404, None);
    assert_eq!(failed, Err(HandshakeError::Http { status, error }));
}

#[test]
fn any_4xx_to_initialize_leads_to_http_sse_once() {
    let whole = [
        "discover 2026-07-28",
        "initialize 2025-11-25",
        "pair",
        "initialize 2025-11-25",
    ];
    for status in [400, 403, 404, 405, 406, 409, 415, 421, 422, 426, 501] {
        let mut requests = 0;
        let (opened, log) = open(plan(), |message| {
            requests += 1;
            match requests {
                3 => shaken_with("2024-11-05"),
                _ => {
                    assert!(is_discover(message) || requests == 2);
                    Fate::Http(status, None)
                }
            }
        });
        assert_eq!(opened.expect("opens").revision, Revision::V2024_11_05);
        assert_eq!(log, whole, "{status}");
        let (failed, log) = open(plan(), |_| Fate::Http(status, None));
        let error = None;
        assert_eq!(failed, Err(HandshakeError::Http { status, error }));
        assert_eq!(log, whole, "{status}");
    }
    for status in [429, 500, 502, 503] {
        let (failed, log) = open(plan(), |_| Fate::Http(status, None));
        let error = None;
        assert_eq!(failed, Err(HandshakeError::Http { status, error }));
        assert_eq!(log, whole[..2], "{status}");
    }
}

#[test]
fn reports_every_failed_attempt() {
    let mut opening = Negotiation::new(plan());
    let now = Duration::ZERO;
    assert!(matches!(opening.start(now), NegotiationStep::Send { .. }));
    assert!(matches!(
        opening.receive_http_refusal(500, None, now),
        NegotiationStep::Send { .. }
    ));
    assert!(matches!(
        opening.receive_http_refusal(422, None, now),
        NegotiationStep::UseHttpSse
    ));
    assert!(matches!(opening.start(now), NegotiationStep::Send { .. }));
    assert!(matches!(
        opening.receive_disconnect(),
        NegotiationStep::Failed(_)
    ));
    let attempts: Vec<_> = opening
        .attempts()
        .iter()
        .map(|attempt| (attempt.method, attempt.over_http_sse, attempt.error.clone()))
        .collect();
    let http = |status| HandshakeError::Http {
        status,
        error: None,
    };
    let gone = HandshakeError::Gone {
        method: "initialize",
    };
    assert_eq!(
        attempts,
        [
            ("server/discover", false, http(500)),
            ("initialize", false, http(422)),
            ("initialize", true, gone),
        ]
    );
}

#[test]
fn finds_a_modern_server_when_the_handshake_is_tried_first() {
    let mut handshake = plan();
    handshake.era = Some(Era::Legacy);
    // The last one refuses the GET of HTTP+SSE, too.
    for (refusal, middle) in [
        (Fate::Http(500, None), None),
        (
            Fate::Http(404, Some(RpcError::method_not_found("initialize"))),
            None,
        ),
        (
            Fate::Http(422, None),
            Some(["pair", "initialize 2025-11-25", "reconnect"]),
        ),
    ] {
        let mut requests = 0;
        let (opened, log) = open(handshake.clone(), |message| {
            requests += 1;
            match (is_discover(message), requests) {
                (true, _) => discovered(&["2026-07-28"]),
                (false, 1) => refusal.clone(),
                (false, _) => Fate::Gone,
            }
        });
        assert_eq!(opened.expect("opens").revision, Revision::V2026_07_28);
        assert_eq!(
            log.first().map(String::as_str),
            Some("initialize 2025-11-25")
        );
        assert_eq!(log.last().map(String::as_str), Some("discover 2026-07-28"));
        assert_eq!(
            log[1..log.len() - 1],
            middle.into_iter().flatten().collect::<Vec<_>>()
        );
    }
}

#[test]
fn does_not_treat_an_overloaded_modern_server_as_legacy() {
    let mut modern = plan();
    modern.era = Some(Era::Modern);
    for status in [429, 500, 502, 503] {
        let (failed, log) = open(modern.clone(), |_| Fate::Http(status, None));
        let error = None;
        assert_eq!(failed, Err(HandshakeError::Http { status, error }));
        assert_eq!(log.len(), 1, "{status}");
    }
    let (opened, _) = open(modern, |message| match is_discover(message) {
        true => Fate::Http(422, None),
        false => shaken(message),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2025_11_25);
}

#[test]
fn does_not_try_the_other_era_when_credentials_or_capabilities_are_missing() {
    for status in [401, 407] {
        let (failed, log) = open(plan(), |_| Fate::Http(status, None));
        let error = None;
        assert_eq!(failed, Err(HandshakeError::Http { status, error }));
        assert_eq!(log.len(), 1, "{status}");
    }
    let missing = RpcError::missing_capability(&json!({"sampling": {}}));
    let (failed, log) = open(plan(), |_| Fate::Http(400, Some(missing.clone())));
    assert_eq!(failed, Err(HandshakeError::Refused(missing.clone())));
    assert_eq!(log.len(), 1);
}

#[test]
fn gives_up_on_a_silent_server_after_the_configured_timeouts() {
    let timeouts = plan().timeouts;
    let (failed, log, took) = open_timed(plan(), |_| Fate::Silence);
    assert!(
        matches!(failed, Err(HandshakeError::TimedOut { method, .. }) if method == "initialize")
    );
    assert_eq!(log.len(), 2);
    assert_eq!(took, timeouts.probe + timeouts.answer);
}

#[test]
fn uses_a_late_probe_response_when_the_handshake_fails() {
    let mut opening = Negotiation::new(plan());
    let mut now = Duration::ZERO;
    let NegotiationStep::Send { id: probe, .. } = opening.start(now) else {
        panic!("it probes");
    };
    now = opening.poll_deadline().expect("it waits");
    let NegotiationStep::Send { id: hello, .. } = opening.handle_timeout(now) else {
        panic!("it shakes hands");
    };
    let Fate::Result(found) = discovered(&["2026-07-28"]) else {
        unreachable!()
    };
    assert!(matches!(
        opening.receive_response(&probe, Ok(raw(&found)), now),
        NegotiationStep::Wait
    ));
    let refusal = RpcError::method_not_found("initialize");
    let NegotiationStep::Complete(opened) = opening.receive_response(&hello, Err(refusal), now)
    else {
        panic!("it opens");
    };
    assert_eq!(opened.revision, Revision::V2026_07_28);
}

#[test]
fn ignores_responses_to_unknown_ids() {
    let mut opening = Negotiation::new(plan());
    let NegotiationStep::Send { id, .. } = opening.start(Duration::ZERO) else {
        panic!("it probes");
    };
    for other in [RequestId::number(99), RequestId::string("1")] {
        assert_ne!(other, id);
        let step = opening.receive_response(&other, Ok(raw(&json!({}))), Duration::ZERO);
        assert!(matches!(step, NegotiationStep::Wait));
    }
    assert!(opening.poll_deadline().is_some());
}

#[test]
fn tries_the_remembered_era_first_and_the_other_if_it_fails() {
    let mut remembered = plan();
    remembered.era = Some(Era::Legacy);
    let (opened, log) = open(remembered.clone(), shaken);
    assert_eq!(opened.expect("opens").revision, Revision::V2025_11_25);
    assert_eq!(log, ["initialize 2025-11-25"]);
    let (opened, log) = open(remembered, |message| match is_discover(message) {
        true => discovered(&["2026-07-28"]),
        false => Fate::Error(RpcError::method_not_found("initialize")),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2026_07_28);
    assert_eq!(log, ["initialize 2025-11-25", "discover 2026-07-28"]);

    let mut modern = plan();
    modern.era = Some(Era::Modern);
    let timeouts = modern.timeouts;
    let (_, _, took) = open_timed(modern, |_| Fate::Silence);
    assert_eq!(took, timeouts.answer * 2);
}

#[test]
fn selects_a_common_version_of_the_discover_result_or_fails() {
    // A handshake-era version is negotiated by the handshake.
    let (opened, log) = open(plan(), |message| match is_discover(message) {
        true => discovered(&["2031-01-01", "2025-06-18", "2024-11-05"]),
        false => shaken(message),
    });
    assert_eq!(opened.expect("opens").revision, Revision::V2025_06_18);
    assert_eq!(log, ["discover 2026-07-28", "initialize 2025-06-18"]);
    for versions in [&["2031-01-01", "rubbish"][..], &[]] {
        let (failed, log) = open(plan(), |_| discovered(versions));
        let Err(HandshakeError::NoCommonRevision { server, client }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(server, versions);
        assert_eq!(client, plan().revisions);
        assert_eq!(log, ["discover 2026-07-28"], "nothing else is tried");
    }
    // A version that the client does not allow is not used either.
    let mut modern = plan();
    modern.revisions = vec![Revision::V2026_07_28];
    let (failed, log) = open(modern, |_| discovered(&["2025-11-25"]));
    assert!(matches!(
        failed,
        Err(HandshakeError::NoCommonRevision { .. })
    ));
    assert_eq!(log.len(), 1);
}

#[test]
fn remembers_only_handshake_era_servers_and_for_a_limited_time() {
    let (second, mut servers) = (Duration::from_secs(1), HandshakeServers::default());
    servers.record(1, Era::Legacy, second);
    servers.record(2, Era::Modern, second);
    assert!(servers.contains(1, second) && !servers.contains(2, second));
    // Recording a known server does not extend its time: only a probe shows whether the server was upgraded.
    let last = HANDSHAKE_SERVER_TTL;
    servers.record(1, Era::Legacy, last);
    assert!(servers.contains(1, last) && !servers.contains(1, second + last));
    servers.record(1, Era::Legacy, second + last);
    assert!(servers.contains(1, last + last));
    // A server that turns out to be upgraded is forgotten.
    servers.record(1, Era::Modern, last + last);
    assert!(!servers.contains(1, last + last) && servers.is_empty());
}

#[test]
fn bounds_the_remembered_servers_and_evicts_the_oldest() {
    let mut servers = HandshakeServers::default();
    let now = Duration::from_secs;
    for server in 0..2 * MAX_REMEMBERED_SERVERS as u64 {
        servers.record(server, Era::Legacy, now(server));
        assert!(servers.contains(server, now(server)));
        assert!(servers.len() <= MAX_REMEMBERED_SERVERS);
    }
    let end = now(2 * MAX_REMEMBERED_SERVERS as u64);
    assert!(!servers.contains(0, end));
    assert!(servers.contains(MAX_REMEMBERED_SERVERS as u64, end));
}

#[test]
fn uses_only_the_revisions_that_the_options_allow() {
    let mut pinned = plan();
    pinned.revisions = vec![Revision::V2025_03_26];
    let (opened, log) = open(pinned.clone(), shaken);
    assert_eq!(opened.expect("opens").revision, Revision::V2025_03_26);
    assert_eq!(log, ["initialize 2025-03-26"]);
    let (failed, _) = open(pinned, |_| shaken_with("2025-06-18"));
    assert!(matches!(
        failed,
        Err(HandshakeError::NoCommonRevision { .. })
    ));

    let mut modern = plan();
    modern.revisions = vec![Revision::V2026_07_28];
    let refusal = RpcError::method_not_found("server/discover");
    let (failed, log) = open(modern, |_| Fate::Error(refusal.clone()));
    assert_eq!(failed, Err(HandshakeError::Refused(refusal.clone())));
    assert_eq!(log.len(), 1);

    let mut nothing = plan();
    nothing.revisions.clear();
    assert_eq!(open(nothing, shaken).0, Err(HandshakeError::NoRevision));
}

#[test]
fn our_server_accepts_every_set_of_revisions() {
    let profile = ServerProfile {
        info: Implementation::new("ours", "1"),
        capabilities: ServerCapabilities::default().with_tools(ListCapability::default()),
        revisions: Revision::ALL.to_vec(),
        ..ServerProfile::default()
    };
    for revisions in Revision::ALL
        .iter()
        .map(|one| vec![*one])
        .chain([Revision::ALL.to_vec()])
    {
        let newest = *revisions.last().expect("one at least");
        let mut session =
            ServerSession::<(), ()>::new(SessionScope::Connection, SessionLimits::default());
        let mut plan = plan();
        plan.revisions = revisions;
        let (opened, log) = open(plan, |message| {
            let Ok(Incoming::Single(message @ Message::Request(_))) =
                read(Bytes::from(message.to_string()))
            else {
                panic!("a request");
            };
            let result = match session.receive(message, false, &profile, Duration::ZERO) {
                ReceiveOutcome::Reply { outcome, .. } => outcome.expect("a result"),
                ReceiveOutcome::Initialized { result, .. } => result,
                other => panic!("{other:?}"),
            };
            Fate::Result(serde_json::from_slice(&result).expect("JSON"))
        });
        let opened = opened.expect("opens");
        assert_eq!(opened.revision, newest);
        assert_eq!(opened.info.expect("a name").name, "ours");
        assert!(opened.capabilities.tools.is_some());
        assert_eq!(log.len(), 1);
    }
}

#[test]
fn a_paused_probe_does_not_time_out() {
    let second = Duration::from_secs(1);
    let mut opening = Negotiation::new(plan());
    let NegotiationStep::Send { id, .. } = opening.start(second) else {
        panic!("a probe");
    };
    opening.pause_timeout();
    assert_eq!(opening.poll_deadline(), None);
    assert!(matches!(
        opening.handle_timeout(900 * second),
        NegotiationStep::Wait
    ));
    opening.resume_timeout(900 * second);
    let due = 900 * second + plan().timeouts.probe;
    assert_eq!(opening.poll_deadline(), Some(due));
    // The response is handled like that to any probe.
    let refusal = RpcError::method_not_found("server/discover");
    let step = opening.receive_response(&id, Err(refusal), due);
    assert!(matches!(step, NegotiationStep::Send { .. }), "{step:?}");
}
