//! HTTP sessions of handshake revisions: their ids, their own stream, their end.

use std::sync::Arc;

use mcpline_protocol::Revision;
use tokio::sync::Notify;

use super::peer::{Peer, Reply, Seen, Step, answer, chunk, events, stream};
use super::*;

/// The default script of a server with sessions; `get` answers all requests except POST.
fn session(mut get: impl FnMut(&Seen) -> Reply + Send) -> impl FnMut(usize, &Seen) -> Reply + Send {
    move |_, seen| {
        if seen.method != "POST" {
            return get(seen);
        }
        let body: Value = serde_json::from_str(&seen.body).expect("JSON");
        if body["id"].is_null() {
            return vec![Step::Send(answer("202 Accepted", &[], ""))];
        }
        let id = body["id"].as_u64().expect("a number");
        let headers = [
            ("content-type", "application/json"),
            ("Mcp-Session-Id", "s-1"),
        ];
        vec![Step::Send(answer("200 OK", &headers, &result(id)))]
    }
}

fn refused(_: &Seen) -> Reply {
    vec![Step::Send(answer("405 Method Not Allowed", &[], ""))]
}

/// Completes the handshake as a client does.
async fn open(link: &HttpLink, receiver: &mut ReportReceiver, revision: Revision) {
    link.send(initialize(1));
    receiver.message().await;
    link.set_session_open(revision);
    link.send(initialized());
}

/// Returns the next request with this method, whatever precedes it.
async fn next(peer: &mut Peer, method: &str) -> Seen {
    loop {
        let seen = peer.seen().await;
        if seen.method == method {
            return seen;
        }
    }
}

#[runtimes::test]
async fn a_session_id_is_sent_with_every_message_and_ended_by_delete() {
    let mut peer = Peer::new(session(refused)).await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    // The session id must not appear in logs.
    let heads = format!("{:?}", link.heads());
    assert!(
        heads.contains("mcp-session-id") && !heads.contains("s-1"),
        "{heads}"
    );
    link.send(call(2, LEGACY));
    receiver.message().await;
    close(&link).await;
    let seen = peer.rest();
    let methods: Vec<_> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "GET", "POST", "DELETE"]);
    assert_eq!(seen[0].header("mcp-session-id"), None);
    assert_eq!(seen[0].header("mcp-protocol-version"), None);
    assert!(seen[1].body.contains("notifications/initialized"));
    assert_eq!(seen[2].header("accept"), Some("text/event-stream"));
    for seen in &seen[1..] {
        assert_eq!(seen.header("mcp-session-id"), Some("s-1"), "{seen:?}");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn each_revision_gets_the_headers_and_the_stream_that_it_has() {
    for (revision, names_itself) in [
        (Revision::V2025_03_26, false),
        (Revision::V2025_06_18, true),
        (Revision::V2025_11_25, true),
    ] {
        let mut peer = Peer::new(session(refused)).await;
        let (link, mut receiver) = link(&peer.url());
        open(&link, &mut receiver, revision).await;
        let seen = next(&mut peer, "GET").await;
        assert_eq!(
            seen.header("mcp-protocol-version"),
            names_itself.then_some(revision.as_str())
        );
        close(&link).await;
    }
}

#[runtimes::test]
async fn a_session_id_that_a_modern_server_sends_is_ignored() {
    let mut peer = Peer::new(session(refused)).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    receiver.message().await;
    link.set_session_open(MODERN);
    link.send(call(2, MODERN));
    receiver.message().await;
    close(&link).await;
    let seen = peer.rest();
    assert_eq!(seen.len(), 2, "no stream, and no session to end");
    assert!(
        seen.iter()
            .all(|seen| seen.header("mcp-session-id").is_none())
    );
}

#[runtimes::test]
async fn a_request_waits_for_the_end_of_the_handshake() {
    let go_on = Arc::new(Notify::new());
    let wait = go_on.clone();
    let mut rest = session(refused);
    let mut peer = Peer::new(move |count, seen: &Seen| {
        let mut reply = rest(count, seen);
        if seen.body.contains("notifications/initialized") {
            reply.insert(0, Step::Wait(wait.clone()));
        }
        reply
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    link.send(call(2, LEGACY));
    peer.seen().await;
    assert!(peer.seen().await.body.contains("notifications/initialized"));
    // Nothing else may be sent before this response, however long it takes.
    tokio::task::yield_now().await;
    assert_eq!(peer.rest(), []);
    go_on.notify_one();
    assert_eq!(peer.seen().await.method, "GET");
    assert!(peer.seen().await.body.contains("tools/call"));
    receiver.message().await;
}

#[runtimes::test]
async fn the_stream_opens_even_if_the_handshake_ends_before_the_link_knows_the_revision() {
    let mut peer = Peer::new(session(refused)).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(initialize(1));
    receiver.message().await;
    link.send(initialized());
    link.set_session_open(LEGACY);
    next(&mut peer, "GET").await;
    link.send(call(2, LEGACY));
    receiver.message().await;
}

#[runtimes::test]
async fn a_lost_session_fails_requests_as_retry_safe() {
    let not_found =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let mut rest = session(refused);
    let peer = Peer::new(move |count, seen: &Seen| {
        if seen.body.contains("tools/call") {
            return vec![Step::Send(answer(
                "404 Not Found",
                &[("content-type", "application/json")],
                not_found,
            ))];
        }
        rest(count, seen)
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    link.send(call(1, LEGACY));
    let error = receiver.failure().await;
    assert_eq!(error, ClientError::SessionExpired);
    assert!(error.is_retry_safe());
}

#[runtimes::test]
async fn receives_unsolicited_messages_of_the_server() {
    let event = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let peer = Peer::new(session(|seen| match seen.method.as_str() {
        "GET" => vec![
            Step::Send(events()),
            Step::Send(chunk(event)),
            Step::Silence(Arc::default()),
        ],
        _ => refused(seen),
    }))
    .await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    match receiver.next().await {
        Report::Message(text, None) => assert!(text.contains("list_changed")),
        other => panic!("{other:?}"),
    }
    close(&link).await;
}

#[runtimes::test]
async fn the_sessions_stream_is_opened_again_after_its_last_event() {
    let mut gets = 0;
    let mut peer = Peer::new(session(move |seen| {
        if seen.method != "GET" {
            return refused(seen);
        }
        gets += 1;
        match gets {
            1 => vec![Step::Send(stream("id: e-1\nretry: 3\ndata: {\"a\":1}\n\n"))],
            2 => vec![
                Step::Send(events()),
                Step::Send(chunk("data: {\"a\":2}\n\n")),
                Step::Close,
            ],
            3 => vec![Step::Send(answer("503 Service Unavailable", &[], ""))],
            4 => vec![Step::Send(stream("id: e-2\ndata: {\"a\":3}\n\n"))],
            _ => vec![Step::Send(answer("404 Not Found", &[], ""))],
        }
    }))
    .await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    let mut asked_after = Vec::new();
    for _ in 0..5 {
        let seen = next(&mut peer, "GET").await;
        asked_after.push(seen.header("last-event-id").map(str::to_owned));
    }
    let ids: Vec<_> = asked_after.iter().map(Option::as_deref).collect();
    assert_eq!(
        ids,
        [None, Some("e-1"), Some("e-1"), Some("e-1"), Some("e-2")]
    );
    for number in 1..=3 {
        assert_eq!(receiver.message().await["a"], number);
    }
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn warns_about_unexpected_get_responses_but_not_about_a_missing_stream() {
    for (status, warns) in [
        ("405 Method Not Allowed", false),
        ("404 Not Found", false),
        ("400 Bad Request", true),
        ("200 OK", true),
    ] {
        let reply = move |_: &Seen| vec![Step::Send(answer(status, &[], ""))];
        let peer = Peer::new(session(reply)).await;
        let (link, mut receiver) = link(&peer.url());
        open(&link, &mut receiver, LEGACY).await;
        link.send(call(2, LEGACY));
        let mut reports = vec![receiver.next().await];
        reports.extend(receiver.rest());
        let warnings = reports
            .iter()
            .filter(|report| matches!(report, Report::Warning(_)));
        assert_eq!(
            warnings.count(),
            usize::from(warns),
            "{status}: {reports:?}"
        );
        close(&link).await;
    }
}

#[runtimes::test]
async fn a_pending_get_does_not_delay_requests() {
    let peer = Peer::new(session(|seen| match seen.method.as_str() {
        "GET" => vec![Step::Silence(Arc::default())],
        _ => refused(seen),
    }))
    .await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    link.send(call(2, LEGACY));
    assert_eq!(receiver.message().await["id"], 2);
    close(&link).await;
}

#[runtimes::test]
async fn closing_does_not_wait_for_a_server_that_ignores_delete() {
    let peer = Peer::new(session(|_| vec![Step::Reset])).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(initialize(1));
    receiver.message().await;
    close(&link).await;
}

#[runtimes::test]
async fn a_second_handshake_sends_no_session_id() {
    let mut peer = Peer::new(session(refused)).await;
    let (link, mut receiver) = link(&peer.url());
    for number in [1, 2] {
        link.send(initialize(number));
        receiver.message().await;
        assert_eq!(peer.seen().await.header("mcp-session-id"), None);
    }
}

#[runtimes::test]
async fn a_cancelled_probe_does_not_end_the_handshake() {
    let mut rest = session(refused);
    let mut peer = Peer::new(
        move |count, seen: &Seen| match seen.body.contains("tools/call") {
            true => vec![Step::Silence(Arc::default())],
            false => rest(count, seen),
        },
    )
    .await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(7, MODERN));
    peer.seen().await;
    link.send(notification("notifications/cancelled", Some(7)));
    open(&link, &mut receiver, LEGACY).await;
    peer.seen().await;
    assert!(peer.seen().await.body.contains("notifications/initialized"));
    assert_eq!(peer.seen().await.method, "GET");
}

#[runtimes::test]
async fn a_cancellation_within_a_session_is_a_message() {
    let mut peer = Peer::new(session(refused)).await;
    let (link, mut receiver) = link(&peer.url());
    open(&link, &mut receiver, LEGACY).await;
    link.send(notification("notifications/cancelled", Some(7)));
    while !peer.seen().await.body.contains("notifications/cancelled") {}
}
