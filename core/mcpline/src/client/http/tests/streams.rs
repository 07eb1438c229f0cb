//! Event streams of requests: their format, and what follows when they break.

use std::sync::Arc;

use tokio::sync::Notify;

use super::peer::{
    Peer, Reply, Seen, Step, answer, chunk, events, json as json_answer, last_chunk, stream,
};
use super::*;

/// Returns the parsed messages of a stream with this text, sent in chunks of this size.
async fn messages(text: &'static str, size: usize) -> Vec<Value> {
    let peer = Peer::new(move |_, _| {
        let mut reply = vec![Step::Send(events())];
        let pieces = text.as_bytes().chunks(size);
        let texts = pieces.map(|piece| std::str::from_utf8(piece).expect("ASCII pieces"));
        reply.extend(texts.map(|piece| Step::Send(chunk(piece))));
        reply.push(Step::Send(last_chunk()));
        reply
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    let mut messages = Vec::new();
    loop {
        let message = receiver.message().await;
        let last = message["id"] == 1;
        messages.push(message);
        if last {
            close(&link).await;
            assert_eq!(receiver.rest(), []);
            return messages;
        }
    }
}

/// Returns the error of a request whose only response consists of these steps.
async fn failure(revision: Revision, script: impl Fn() -> Reply + Send + 'static) -> ClientError {
    let peer = Peer::new(move |_, _| script()).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, revision));
    loop {
        if let Report::Failed(1, error) = receiver.next().await {
            return error;
        }
    }
}

#[runtimes::test]
async fn parses_event_streams_as_the_standard_specifies() {
    const STREAMS: [&str; 4] = [
        ": a comment\n\nid: 1\ndata:\n\ndata: {\"jsonrpc\": \"2.0\",\ndata: \"method\": \"x\"}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
        ":\r\n\r\ndata: {\"jsonrpc\": \"2.0\",\r\ndata: \"method\": \"x\"}\r\n\r\nretry: 10\r\ndata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\r\n",
        "data: {\"jsonrpc\": \"2.0\",\rdata: \"method\": \"x\"}\r\rdata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\r",
        "\u{feff}event: other\ndata: not ours\n\ndata: {\"jsonrpc\": \"2.0\",\ndata: \"method\": \"x\"}\n\nfoo: bar\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    ];
    for text in STREAMS {
        for size in [3, 17, 1_000] {
            let messages = messages(text, size).await;
            assert_eq!(messages.len(), 2, "{text}");
            assert_eq!(messages[0]["method"], "x");
        }
    }
}

#[runtimes::test]
async fn reuses_the_connection_of_a_stream_that_ends_with_its_response() {
    let data = format!("data: {}\n\n", result(1));
    // The stream ends by itself.
    let mut peer = Peer::new(move |_, _| {
        vec![
            Step::Send(events()),
            Step::Send(chunk(&data)),
            Step::Send(last_chunk()),
        ]
    })
    .await;
    let client = http_client(settings());
    let (link, mut receiver) = link_of(&client, &peer.url());
    for _ in 0..5 {
        link.send(call(1, MODERN));
        receiver.message().await;
        idle(&client, 1).await;
    }
    assert!(peer.rest().iter().all(|seen| seen.connection == 0));
}

#[runtimes::test]
async fn closes_a_stream_that_continues_after_its_response() {
    let gone = Arc::new(Notify::new());
    let silence = gone.clone();
    let data = format!("data: {}\n\n", result(1));
    let peer = Peer::new(move |_, _| {
        vec![
            Step::Send(events()),
            Step::Send(chunk(&data)),
            Step::Silence(silence.clone()),
        ]
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    receiver.message().await;
    guarded(gone.notified()).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn a_stream_without_the_answer_leaves_the_outcome_unknown() {
    let other = || stream("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n");
    for revision in [LEGACY, MODERN] {
        let scripts: [fn() -> Reply; 4] = [
            || vec![Step::Send(stream(""))],
            || vec![Step::Send(stream(": nothing\n\n"))],
            || {
                vec![
                    Step::Send(events()),
                    Step::Send(chunk("data: {\"a\"")),
                    Step::Reset,
                ]
            },
            || {
                vec![
                    Step::Send(events()),
                    Step::Send(b"zz\r\n".to_vec()),
                    Step::Close,
                ]
            },
        ];
        for script in scripts {
            let error = failure(revision, script).await;
            assert!(
                matches!(error, ClientError::ConnectionLost { .. }),
                "{error:?}"
            );
        }
        let error = failure(revision, move || vec![Step::Send(other())]).await;
        assert!(
            matches!(error, ClientError::ConnectionLost { .. }),
            "{error:?}"
        );
    }
}

#[runtimes::test]
async fn a_modern_stream_is_never_resumed() {
    let mut peer = Peer::always(stream("id: 1\nretry: 1\ndata:\n\n")).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    let error = receiver.failure().await;
    assert!(
        matches!(error, ClientError::ConnectionLost { .. }),
        "{error:?}"
    );
    peer.seen().await;
    assert_eq!(peer.rest(), []);
}

/// Starts a server that answers a POST with a stream that stops after its first event, and each GET with the steps of
/// `get`.
async fn polled(mut get: impl FnMut(usize) -> Reply + Send + 'static) -> Peer {
    let mut gets = 0;
    Peer::new(move |_, seen: &Seen| {
        if seen.method == "POST" {
            return vec![Step::Send(stream("id: p-1\nretry: 2\ndata:\n\n"))];
        }
        gets += 1;
        get(gets)
    })
    .await
}

#[runtimes::test]
async fn a_lost_stream_is_resumed_after_its_last_event_until_the_answer_is_there() {
    let answer_event = format!("id: p-3\ndata: {}\n\n", result(1));
    let mut peer = polled(move |get| match get {
        1 => vec![Step::Send(stream("id: p-2\ndata: {\"method\":\"x\"}\n\n"))],
        2 => vec![Step::Send(answer(
            "503 Service Unavailable",
            &[],
            "starting",
        ))],
        3 => vec![Step::Reset],
        4 => vec![Step::Send(stream(""))],
        _ => vec![Step::Send(stream(&answer_event))],
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, LEGACY));
    assert_eq!(
        receiver.next().await,
        Report::Message("{\"method\":\"x\"}".into(), Some(1))
    );
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
    close(&link).await;
    assert_eq!(receiver.rest(), []);
    let seen = peer.rest();
    let ids: Vec<_> = seen
        .iter()
        .map(|seen| seen.header("last-event-id"))
        .collect();
    let expected = [
        None,
        Some("p-1"),
        Some("p-2"),
        Some("p-2"),
        Some("p-2"),
        Some("p-2"),
    ];
    assert_eq!(ids, expected);
    assert!(seen[1..].iter().all(|seen| seen.method == "GET"));
}

#[runtimes::test]
async fn a_polling_server_may_close_streams_any_number_of_times() {
    let data = format!("data: {}\n\n", result(1));
    let peer = polled(move |get| {
        let data = if get < 20 { "retry: 1\n\n" } else { &data };
        vec![Step::Send(stream(data))]
    })
    .await;
    let mut settings = settings();
    settings.resume_max_delay = Duration::from_millis(4);
    let (link, mut receiver) = link_with(&peer.url(), settings);
    link.send(call(1, LEGACY));
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
}

#[runtimes::test]
async fn resuming_ends_after_the_attempts_that_the_settings_allow() {
    let mut peer = polled(|_| vec![Step::Send(answer("503 Service Unavailable", &[], ""))]).await;
    let mut settings = settings();
    settings.reconnect_attempts = 3;
    let (link, mut receiver) = link_with(&peer.url(), settings);
    link.send(call(1, LEGACY));
    let error = receiver.failure().await;
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert_eq!(peer.rest().len(), 1 + 3);
}

#[runtimes::test]
async fn a_server_that_refuses_to_resume_leaves_the_outcome_unknown() {
    // The server may have performed the request although the session is gone by now.
    for status in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request"] {
        let mut peer = polled(move |_| vec![Step::Send(answer(status, &[], ""))]).await;
        let (link, mut receiver) = link(&peer.url());
        link.send(call(1, LEGACY));
        let error = receiver.failure().await;
        assert!(
            error.is_outcome_unknown() && !error.is_retry_safe(),
            "{error:?}"
        );
        assert_eq!(peer.rest().len(), 2);
    }
}

#[runtimes::test]
async fn an_event_beyond_the_limit_fails_the_request() {
    let long = format!("data: {}\n\n", "x".repeat(2_000));
    let peer = Peer::always(stream(&long)).await;
    let mut settings = settings();
    settings.max_body_bytes = 1_000;
    let (link, mut receiver) = link_with(&peer.url(), settings);
    link.send(call(1, LEGACY));
    match receiver.failure().await {
        ClientError::InvalidResponse { reason } => {
            assert!(reason.contains("1000 bytes"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn a_server_request_is_answered_while_its_stream_is_open() {
    let answered = Arc::new(Notify::new());
    let wait = answered.clone();
    let request = "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n";
    let rest = format!("data: {}\n\n", result(1));
    let peer = Peer::new(move |_, seen: &Seen| {
        if seen.body.contains("tools/call") {
            let reply = [events(), chunk(request)].concat();
            let rest = [chunk(&rest), last_chunk()].concat();
            return vec![
                Step::Send(reply),
                Step::Wait(wait.clone()),
                Step::Send(rest),
            ];
        }
        answered.notify_one();
        vec![Step::Send(answer("202 Accepted", &[], ""))]
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, LEGACY));
    assert_eq!(receiver.message().await["method"], "ping");
    link.send(Outgoing {
        message: r#"{"jsonrpc":"2.0","id":"q","result":{}}"#.into(),
        purpose: OutgoingKind::Answer,
    });
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
}

#[runtimes::test]
async fn many_requests_are_in_flight_at_once() {
    let go_on = Arc::new(Notify::new());
    let wait = go_on.clone();
    let mut peer = Peer::new(move |_, seen: &Seen| {
        let body: Value = serde_json::from_str(&seen.body).expect("JSON");
        let id = body["id"].as_u64().expect("a number");
        vec![
            Step::Wait(wait.clone()),
            Step::Send(json_answer(&result(id))),
        ]
    })
    .await;
    let (link, mut receiver) = link(&peer.url());
    for number in 0..64 {
        link.send(call(number, MODERN));
    }
    for _ in 0..64 {
        peer.seen().await;
    }
    let mut answered = Vec::new();
    for _ in 0..64 {
        go_on.notify_one();
        answered.push(receiver.message().await["id"].as_u64().expect("a number"));
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..64));
}
