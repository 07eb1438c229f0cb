//! HTTP+SSE of 2024-11-05.

use std::sync::Arc;

use mcpline_protocol::Revision;
use tokio::sync::Notify;

use super::super::HttpSseLink;
use super::peer::{Peer, Reply, Seen, Step, answer, chunk, events};
use super::*;

const REVISION: Revision = Revision::V2024_11_05;

fn pair(url: &str) -> (Arc<HttpSseLink>, ReportReceiver) {
    let (recorder, receiver) = ReportReceiver::new();
    let link = HttpSseLink::open(url, &http_client(settings()), recorder).expect("a URL");
    (link, receiver)
}

/// Starts a server whose stream begins with this endpoint event and continues with `then`. It accepts every POST.
async fn serving(endpoint: &str, mut then: impl FnMut() -> Reply + Send + 'static) -> Peer {
    let first = format!("event: endpoint\ndata: {endpoint}\n\n");
    Peer::new(move |_, seen: &Seen| {
        if seen.method == "POST" {
            return vec![Step::Send(answer("202 Accepted", &[], "Accepted"))];
        }
        let mut reply = vec![Step::Send(events()), Step::Send(chunk(&first))];
        reply.extend(then());
        reply
    })
    .await
}

fn silence() -> Reply {
    vec![Step::Silence(Arc::default())]
}

#[runtimes::test]
async fn messages_go_to_the_endpoint_and_answers_come_by_the_stream() {
    for endpoint in ["/messages?session=1", "messages?session=1", "?session=1"] {
        let go_on = Arc::new(Notify::new());
        let wait = go_on.clone();
        let data = format!("event: message\ndata: {}\n\n", result(1));
        let mut peer = serving(endpoint, move || {
            vec![
                Step::Wait(wait.clone()),
                Step::Send(chunk(&data)),
                Step::Silence(Arc::default()),
            ]
        })
        .await;
        let (link, mut receiver) = pair(&peer.url());
        link.send(initialize(1));
        let seen = peer.seen().await;
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/mcp"));
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        let seen = peer.seen().await;
        assert_eq!(seen.method, "POST");
        assert!(seen.path.ends_with("?session=1"), "{}", seen.path);
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert!(seen.body.contains("initialize"));
        go_on.notify_one();
        assert_eq!(receiver.next().await, Report::Message(result(1), None));
        close(&link).await;
        assert_eq!(receiver.rest(), []);
    }
}

#[runtimes::test]
async fn accepts_absolute_endpoints_of_the_same_origin_only() {
    let mut own = Peer::new(|_, seen: &Seen| {
        let host = seen.header("host").expect("a host");
        let first = format!("event: endpoint\ndata: http://{host}/x\n\n");
        vec![
            Step::Send(events()),
            Step::Send(chunk(&first)),
            Step::Silence(Arc::default()),
        ]
    })
    .await;
    let (link, _receiver) = pair(&own.url());
    link.send(initialize(1));
    own.seen().await;
    assert_eq!(own.seen().await.path, "/x");
    for endpoint in ["http://example.invalid/x", "//127.0.0.1:1/x", "http://["] {
        let mut peer = serving(endpoint, silence).await;
        let (link, mut receiver) = pair(&peer.url());
        link.send(initialize(1));
        match (receiver.next().await, receiver.next().await) {
            (Report::Ended(ClientError::InvalidResponse { reason }), Report::Failed(1, _))
            | (Report::Failed(1, _), Report::Ended(ClientError::InvalidResponse { reason })) => {
                assert!(reason.contains(endpoint), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(peer.rest().len(), 1);
    }
}

#[runtimes::test]
async fn the_end_of_the_stream_ends_the_link() {
    for end in [|| vec![Step::Close], || vec![Step::Reset]] {
        let peer = serving("/x", end).await;
        let (link, mut receiver) = pair(&peer.url());
        match receiver.next().await {
            Report::Ended(ClientError::ConnectionLost { .. }) => {}
            other => panic!("{other:?}"),
        }
        link.send(call(1, REVISION));
        assert!(matches!(
            receiver.failure().await,
            ClientError::ConnectionLost { .. }
        ));
    }
}

#[runtimes::test]
async fn a_missing_stream_is_reported_by_status_or_content_type() {
    let peer = Peer::always(answer("404 Not Found", &[], "no")).await;
    let (_link, mut receiver) = pair(&peer.url());
    let error = ClientError::Http {
        status: 404,
        body: "no".into(),
        challenge: None,
        error: None,
    };
    assert_eq!(receiver.next().await, Report::Ended(error));
    let peer = Peer::always(answer("200 OK", &[("content-type", "text/html")], "<html>")).await;
    let (_link, mut receiver) = pair(&peer.url());
    assert!(matches!(
        receiver.next().await,
        Report::Ended(ClientError::InvalidResponse { .. })
    ));
}

#[runtimes::test]
async fn a_refused_post_fails_its_request_and_no_other() {
    let peer = Peer::new(|_, seen: &Seen| {
        if seen.method == "POST" {
            return vec![Step::Send(answer("500 Internal Server Error", &[], "oh"))];
        }
        let first = "event: endpoint\ndata: /x\n\n";
        vec![
            Step::Send(events()),
            Step::Send(chunk(first)),
            Step::Silence(Arc::default()),
        ]
    })
    .await;
    let (link, mut receiver) = pair(&peer.url());
    link.send(call(1, REVISION));
    assert!(matches!(
        receiver.failure().await,
        ClientError::Http { status: 500, .. }
    ));
    link.send(notification("notifications/cancelled", Some(1)));
    assert!(matches!(receiver.next().await, Report::Warning(_)));
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn a_post_to_an_unknown_session_reports_that_the_session_has_ended() {
    let unknown =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"unknown session"}}"#;
    let peer = Peer::new(move |_, seen: &Seen| {
        if seen.method == "POST" {
            let is_request = seen.body.contains("\"id\"");
            return vec![Step::Send(match is_request {
                true => answer("404 Not Found", &[], unknown),
                false => answer("202 Accepted", &[], ""),
            })];
        }
        let first = "event: endpoint\ndata: /x\n\n";
        vec![
            Step::Send(events()),
            Step::Send(chunk(first)),
            Step::Silence(Arc::default()),
        ]
    })
    .await;
    let (link, mut receiver) = pair(&peer.url());
    // During the handshake there is no session yet.
    link.send(call(1, REVISION));
    let failure = receiver.failure().await;
    assert!(
        matches!(failure, ClientError::Http { status: 404, .. }),
        "{failure:?}"
    );
    link.send(initialized());
    link.send(call(1, REVISION));
    assert_eq!(receiver.failure().await, ClientError::SessionExpired);
    close(&link).await;
}

#[runtimes::test]
async fn closing_closes_the_stream() {
    let gone = Arc::new(Notify::new());
    let silence = gone.clone();
    let mut peer = serving("/x", move || vec![Step::Silence(silence.clone())]).await;
    let (link, mut receiver) = pair(&peer.url());
    peer.seen().await;
    close(&link).await;
    guarded(gone.notified()).await;
    link.send(call(1, REVISION));
    assert_eq!(receiver.failure().await, ClientError::Closed);
}
