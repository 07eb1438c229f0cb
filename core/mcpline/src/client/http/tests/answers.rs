//! Responses to single POST requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method};
use mcpline_auth::fetch::FetchRequest;
use mcpline_protocol::{ErrorCode, Revision};
use serde_json::json;
use tokio::sync::Notify;

use crate::http_client::target::Target;
use crate::http_client::{ConnectionReuse, Fetcher};

use super::peer::{Peer, Step, answer, json as json_answer};
use super::*;

/// Returns the error of request 1 if it is answered with these bytes, after which the connection closes.
async fn failure(bytes: impl Into<Vec<u8>>) -> ClientError {
    let bytes = bytes.into();
    let peer = Peer::new(move |_, _| vec![Step::Send(bytes.clone()), Step::Close]).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    let error = receiver.failure().await;
    assert_eq!(receiver.rest(), []);
    error
}

fn invalid(error: ClientError) -> String {
    match error {
        ClientError::InvalidResponse { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn a_json_body_is_the_answer() {
    let peer = Peer::always(json_answer(&result(1))).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn a_json_body_may_come_in_pieces_and_with_parameters_of_its_type() {
    let body = result(1);
    let (one, two) = body.split_at(7);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: Application/JSON; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    let pieces = [
        head.as_bytes(),
        &peer::chunk(one),
        &peer::chunk(two),
        &peer::last_chunk(),
    ]
    .map(<[u8]>::to_vec);
    let peer = Peer::new(move |_, _| pieces.iter().cloned().map(Step::Send).collect()).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    assert_eq!(receiver.next().await, Report::Message(body, Some(1)));
}

#[runtimes::test]
async fn a_modern_request_has_the_headers_of_its_own_revision_and_the_users() {
    let mut peer = Peer::always(json_answer(&result(1))).await;
    let mut settings = settings();
    settings.headers = vec![("X-Team".into(), "blue".into())];
    let (link, mut receiver) = link_with(&peer.url(), settings);
    let mut head = head(1, MODERN);
    head.headers = vec![
        ("Mcp-Method".into(), "tools/call".into()),
        ("Mcp-Param-A".into(), "=?base64?w6Q=?=".into()),
    ];
    link.send(with_head(head, "tools/call", json!({})));
    receiver.message().await;
    let seen = peer.seen().await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp"));
    for (name, value) in [
        ("host", peer.address.to_string().as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-param-a", "=?base64?w6Q=?="),
        ("x-team", "blue"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
}

#[runtimes::test]
async fn connections_are_reused_even_by_the_next_link() {
    let mut peer = Peer::always(json_answer(&result(1))).await;
    let client = http_client(settings());
    for _ in 0..3 {
        let (link, mut receiver) = link_of(&client, &peer.url());
        for _ in 0..3 {
            link.send(call(1, MODERN));
            receiver.message().await;
        }
        close(&link).await;
    }
    for seen in peer.rest() {
        assert_eq!(seen.connection, 0);
    }
}

#[runtimes::test]
async fn a_connection_that_the_server_closed_while_idle_costs_nothing() {
    let peer = Peer::new(|_, _| vec![Step::Send(json_answer(&result(1))), Step::Close]).await;
    let client = http_client(settings());
    let (link, mut receiver) = link_of(&client, &peer.url());
    for _ in 0..5 {
        link.send(call(1, MODERN));
        receiver.message().await;
        idle(&client, 0).await;
    }
}

/// Sends a request over a used connection that the server closes when the request arrives. Returns the outcome.
async fn by_closing_connection(method: Method, reuse: ConnectionReuse) -> Result<u16, ClientError> {
    let mut used = HashSet::new();
    let closed = Arc::new(AtomicUsize::new(0));
    let closing = closed.clone();
    let peer = Peer::new(move |_, seen| {
        if used.insert(seen.connection) {
            return vec![Step::Send(json_answer(&result(1)))];
        }
        closing.fetch_add(1, Ordering::Relaxed);
        vec![Step::Close]
    })
    .await;
    let client = http_client(settings());
    let target = Target::parse(&peer.url()).expect("a URL");
    let send = async |method| {
        let body = Bytes::new();
        let sent = client.send(method, &target, &HeaderMap::new, &body, reuse);
        let answer = guarded(sent).await?;
        let status = answer.head.status.as_u16();
        answer.drain().await;
        Ok(status)
    };
    assert_eq!(send(Method::POST).await, Ok(200));
    idle(&client, 1).await;
    // While no connection is ready for another request, each gets a new one.
    loop {
        let outcome = send(method.clone()).await;
        if closed.load(Ordering::Relaxed) > 0 {
            return outcome;
        }
        assert_eq!(outcome, Ok(200));
    }
}

#[runtimes::test]
async fn repeatable_requests_are_sent_again_if_a_used_connection_closes_without_a_response() {
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(
            by_closing_connection(method, ConnectionReuse::Yes).await,
            Ok(200)
        );
    }
    let repeated = by_closing_connection(Method::POST, ConnectionReuse::Repeatable).await;
    assert_eq!(repeated, Ok(200));
    let lost = by_closing_connection(Method::POST, ConnectionReuse::Yes).await;
    assert!(
        matches!(lost, Err(ClientError::ConnectionLost { .. })),
        "{lost:?}"
    );
}

/// The server closes every connection at its second request.
#[runtimes::test]
async fn a_request_is_repeated_once_over_a_new_connection_with_headers_of_its_own() {
    const IDLE: usize = 4;
    let mut used = HashSet::new();
    let peer = Peer::new(move |_, seen| match used.insert(seen.connection) {
        true => vec![Step::Send(json_answer(&result(1)))],
        false => vec![Step::Close],
    });
    let mut peer = peer.await;
    let client = http_client(settings());
    let target = Target::parse(&peer.url()).expect("a URL");
    let body = Bytes::new();
    for _ in 0..IDLE {
        let sent = client.send(
            Method::POST,
            &target,
            &HeaderMap::new,
            &body,
            ConnectionReuse::No,
        );
        guarded(sent).await.expect("an answer").drain().await;
    }
    idle(&client, IDLE).await;
    peer.rest();
    // While no connection is ready for another request, each gets a new one.
    loop {
        let made = AtomicUsize::new(0);
        let headers = || {
            let mut headers = HeaderMap::new();
            let number = made.fetch_add(1, Ordering::Relaxed);
            headers.insert("x-number", number.into());
            headers
        };
        let sent = client.send(Method::GET, &target, &headers, &body, ConnectionReuse::Yes);
        let answer = guarded(sent).await.expect("an answer");
        assert_eq!(answer.head.status, 200);
        answer.drain().await;
        let seen = peer.rest();
        let numbers: Vec<_> = seen.iter().map(|seen| seen.header("x-number")).collect();
        if numbers.len() > 1 {
            assert_eq!(numbers, [Some("0"), Some("1")]);
            return;
        }
    }
}

#[runtimes::test]
async fn a_status_error_contains_body_challenge_and_jsonrpc_error() {
    let error = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#;
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "405 Method Not Allowed",
        "421 Misdirected Request",
        "500 Internal Server Error",
    ] {
        let code: u16 = status[..3].parse().expect("a number");
        let headers = [
            ("content-type", "application/json"),
            ("www-authenticate", "Bearer realm=\"x\""),
        ];
        match failure(answer(status, &headers, error)).await {
            ClientError::Http {
                status,
                body,
                challenge,
                error: Some(rpc),
            } => {
                assert_eq!((status, body.as_str()), (code, error));
                assert_eq!(challenge.as_deref(), Some("Bearer realm=\"x\""));
                assert_eq!(rpc.code, ErrorCode::UNSUPPORTED_VERSION);
                assert!(rpc.data.is_some());
            }
            other => panic!("{other:?}"),
        }
        let plain = ClientError::Http {
            status: code,
            body: "nope".into(),
            challenge: None,
            error: None,
        };
        assert_eq!(failure(answer(status, &[], "nope")).await, plain);
        let empty = ClientError::Http {
            status: code,
            body: String::new(),
            challenge: None,
            error: None,
        };
        assert_eq!(failure(answer(status, &[], "")).await, empty);
    }
}

#[runtimes::test]
async fn keeps_the_beginning_of_a_long_page() {
    let page = "ä".repeat(50_000);
    match failure(answer(
        "502 Bad Gateway",
        &[("content-type", "text/html")],
        &page,
    ))
    .await
    {
        ClientError::Http {
            status: 502, body, ..
        } => {
            assert_eq!(body.len(), crate::client::MAX_KEPT_BODY);
        }
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn an_answer_without_a_message_is_invalid() {
    for status in ["202 Accepted", "204 No Content", "200 OK"] {
        let reason = invalid(failure(answer(status, &[], "")).await);
        assert!(reason.contains(&status[..3]), "{reason}");
    }
    let empty = answer("200 OK", &[("content-type", "application/json")], "");
    assert!(invalid(failure(empty).await).contains("no message"));
}

#[runtimes::test]
async fn names_an_invalid_content_type() {
    let page = answer(
        "200 OK",
        &[("content-type", "text/html; charset=utf-8")],
        "<html>",
    );
    assert!(invalid(failure(page).await).contains("text/html"));
    let none = answer("200 OK", &[], &result(1));
    assert!(invalid(failure(none).await).contains("content type"));
}

#[runtimes::test]
async fn a_body_that_is_no_answer_fails_the_request() {
    for body in [
        "{\"jsonrpc\":",
        "[]",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
    ] {
        let peer = Peer::always(json_answer(body)).await;
        let (link, mut receiver) = link(&peer.url());
        link.send(call(1, MODERN));
        assert_eq!(receiver.next().await, Report::Message(body.into(), Some(1)));
        assert!(invalid(receiver.failure().await).contains("not a response to the request"));
    }
}

#[runtimes::test]
async fn a_body_beyond_the_limit_is_not_held() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2_000));
    let chunked = [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
        peer::chunk(&long[..900]),
        peer::chunk(&long[900..]),
        peer::last_chunk(),
    ];
    for bytes in [json_answer(&long), chunked.concat()] {
        let peer = Peer::always(bytes).await;
        let mut settings = settings();
        settings.max_body_bytes = 1_000;
        let (link, mut receiver) = link_with(&peer.url(), settings);
        link.send(call(1, MODERN));
        assert!(invalid(receiver.failure().await).contains("1000 bytes"));
    }
}

#[runtimes::test]
async fn a_missing_server_is_unreachable_and_retry_safe() {
    let peer = Peer::always(Vec::new()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", free.local_addr().expect("an address"));
    drop((free, peer));
    let (link, mut receiver) = link(&url);
    link.send(call(1, MODERN));
    let error = receiver.failure().await;
    assert!(
        matches!(error, ClientError::ServerUnreachable { .. }),
        "{error:?}"
    );
    assert!(error.is_retry_safe());
}

#[runtimes::test]
async fn a_connection_that_breaks_before_the_answer_leaves_the_outcome_unknown() {
    type Script = fn() -> Vec<Step>;
    let scripts: [Script; 4] = [
        || vec![Step::Reset],
        || vec![Step::Close],
        || {
            vec![
                Step::Send(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()),
                Step::Reset,
            ]
        },
        || {
            let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"jsonrpc\"";
            vec![Step::Send(half.into()), Step::Close]
        },
    ];
    for script in scripts {
        let peer = Peer::new(move |_, _| script()).await;
        let (link, mut receiver) = link(&peer.url());
        link.send(call(1, MODERN));
        let error = receiver.failure().await;
        assert!(
            matches!(error, ClientError::ConnectionLost { .. }),
            "{error:?}"
        );
        assert!(error.is_outcome_unknown());
    }
}

#[runtimes::test]
async fn a_response_that_is_not_http_fails_the_request() {
    let error = failure("rubbish rubbish rubbish\r\n\r\n").await;
    assert!(
        matches!(error, ClientError::ConnectionLost { .. }),
        "{error:?}"
    );
}

#[runtimes::test]
async fn an_abandoned_request_closes_its_connection_and_reports_nothing() {
    let gone = Arc::new(Notify::new());
    let silence = gone.clone();
    let mut peer = Peer::new(move |_, _| vec![Step::Silence(silence.clone())]).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    peer.seen().await;
    link.abandon(1);
    guarded(gone.notified()).await;
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn a_modern_cancellation_closes_the_stream_and_sends_no_message() {
    let gone = Arc::new(Notify::new());
    let silence = gone.clone();
    let mut peer = Peer::new(move |_, _| vec![Step::Silence(silence.clone())]).await;
    let (link, _receiver) = link(&peer.url());
    link.set_session_open(MODERN);
    link.send(call(1, MODERN));
    peer.seen().await;
    link.send(notification("notifications/cancelled", Some(1)));
    guarded(gone.notified()).await;
    close(&link).await;
    assert_eq!(peer.rest(), []);
}

#[runtimes::test]
async fn closing_and_dropping_end_requests_in_flight() {
    for drops in [false, true] {
        let gone = Arc::new(Notify::new());
        let silence = gone.clone();
        let mut peer = Peer::new(move |_, _| vec![Step::Silence(silence.clone())]).await;
        let (link, mut receiver) = link(&peer.url());
        link.send(call(1, MODERN));
        peer.seen().await;
        if drops {
            drop(link);
        } else {
            close(&link).await;
            close(&link).await;
            link.send(call(2, MODERN));
            assert_eq!(
                receiver.next().await,
                Report::Failed(2, ClientError::Closed)
            );
        }
        guarded(gone.notified()).await;
        assert_eq!(receiver.rest(), []);
    }
}

#[runtimes::test]
async fn a_refused_notification_is_a_warning() {
    let peer = Peer::always(answer("400 Bad Request", &[], "what?")).await;
    let (link, mut receiver) = link(&peer.url());
    link.set_session_open(Revision::V2025_11_25);
    link.send(notification("notifications/roots/list_changed", None));
    match receiver.next().await {
        Report::Warning(text) => assert!(text.contains("400") && text.contains("what?"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Returns a client with one idle connection, and a notification that the connection was closed.
async fn with_idle_connection() -> (Arc<HttpClient>, Arc<Notify>) {
    let gone = Arc::new(Notify::new());
    let silence = gone.clone();
    let peer = Peer::new(move |_, _| {
        vec![
            Step::Send(json_answer(&result(1))),
            Step::Silence(silence.clone()),
        ]
    })
    .await;
    let client = http_client(settings());
    let (link, mut receiver) = link_of(&client, &peer.url());
    link.send(call(1, MODERN));
    receiver.message().await;
    close(&link).await;
    idle(&client, 1).await;
    (client, gone)
}

#[runtimes::test]
async fn a_closed_client_keeps_no_connection_while_it_is_referenced() {
    let (client, gone) = with_idle_connection().await;
    client.close();
    guarded(gone.notified()).await;
    assert_eq!(client.pool.open(), 0);
}

#[runtimes::test]
async fn connections_end_with_their_client() {
    let (client, gone) = with_idle_connection().await;
    drop(client);
    guarded(gone.notified()).await;
}

#[tokio::test]
async fn idle_connections_are_closed_after_a_while() {
    let (_client, gone) = with_idle_connection().await;
    // From here on the paused clock advances to each deadline at once.
    tokio::time::pause();
    gone.notified().await;
}

#[runtimes::test]
async fn a_request_that_wants_a_fresh_connection_leaves_the_idle_one_open() {
    let peer = Peer::new(|_, _| {
        let silence = Arc::new(Notify::new());
        vec![Step::Send(json_answer(&result(1))), Step::Silence(silence)]
    })
    .await;
    let client = http_client(settings());
    let target = Target::parse(&peer.url()).expect("a URL");
    for reuse in [ConnectionReuse::Yes, ConnectionReuse::No] {
        let body = Bytes::new();
        let sent = client.send(Method::POST, &target, &HeaderMap::new, &body, reuse);
        guarded(sent).await.expect("an answer").drain().await;
    }
    assert_eq!(client.pool.open(), 2);
}

#[runtimes::test]
async fn authorization_never_posts_over_an_idle_connection() {
    let mut peer = Peer::always(json_answer("{}")).await;
    let fetcher = Fetcher::new(&settings(), Handle::current(), true).expect("usable settings");
    // Each leaves an idle connection.
    for connection in 0..3 {
        let form = "application/x-www-form-urlencoded";
        let request = FetchRequest::post(peer.url(), form, b"grant_type=none".to_vec());
        let response = guarded(fetcher.fetch(request)).await.expect("an answer");
        assert_eq!(response.status, 200);
        assert_eq!(peer.seen().await.connection, connection);
    }
}
