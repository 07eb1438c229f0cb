//! Redirects: which ones are followed, and what is sent along.

use super::peer::{Peer, Step, answer, json as json_answer};
use super::*;

/// Starts a server that redirects `/mcp` and answers all other requests.
async fn redirecting(status: &'static str, location: &'static str) -> Peer {
    Peer::new(move |_, seen| {
        if seen.path == "/mcp" {
            return vec![Step::Send(answer(
                status,
                &[("location", location)],
                "moved",
            ))];
        }
        vec![Step::Send(json_answer(&result(1)))]
    })
    .await
}

async fn refused(status: &'static str, location: &'static str) -> String {
    let mut peer = redirecting(status, location).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    match receiver.failure().await {
        ClientError::Http {
            status: code,
            body,
            error: None,
            challenge: None,
        } => {
            assert_eq!(code.to_string(), status[..3]);
            assert!(body.contains(location), "{body}");
            assert_eq!(peer.rest().len(), 1);
            body
        }
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn a_redirect_that_keeps_the_method_is_followed_with_body_and_headers() {
    for (status, location, path) in [
        ("307 Temporary Redirect", "/mcp/", "/mcp/"),
        ("308 Permanent Redirect", "other?a=b", "/other?a=b"),
    ] {
        let mut peer = redirecting(status, location).await;
        let mut settings = settings();
        settings.headers = vec![("authorization".into(), "Bearer t".into())];
        let (link, mut receiver) = link_with(&peer.url(), settings);
        link.send(call(1, MODERN));
        receiver.message().await;
        let (first, second) = (peer.seen().await, peer.seen().await);
        assert_eq!(second.path, path);
        assert_eq!((&second.body, &second.method), (&first.body, &first.method));
        assert_eq!(second.header("authorization"), Some("Bearer t"));
        assert_eq!(second.connection, 0);
    }
}

#[runtimes::test]
async fn a_permanent_redirect_is_remembered_and_a_temporary_one_is_not() {
    for (status, paths) in [
        (
            "307 Temporary Redirect",
            ["/mcp", "/other", "/mcp", "/other"].as_slice(),
        ),
        (
            "308 Permanent Redirect",
            ["/mcp", "/other", "/other"].as_slice(),
        ),
    ] {
        let mut peer = redirecting(status, "/other").await;
        let (link, mut receiver) = link(&peer.url());
        for _ in 0..2 {
            link.send(call(1, MODERN));
            receiver.message().await;
        }
        let seen = peer.rest();
        let seen: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
        assert_eq!(seen, paths, "{status}");
    }
}

#[runtimes::test]
async fn a_redirect_that_would_turn_the_post_into_a_get_is_an_error_that_says_so() {
    for status in ["301 Moved Permanently", "302 Found", "303 See Other"] {
        assert!(refused(status, "/other").await.contains("GET"));
    }
}

#[runtimes::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    for location in [
        "http://example.invalid/mcp",
        "//127.0.0.1:1/mcp",
        "http://127.0.0.2/x",
        "https://localhost/mcp",
    ] {
        assert!(
            refused("307 Temporary Redirect", location)
                .await
                .contains("origin")
        );
    }
}

#[runtimes::test]
async fn a_redirect_to_an_invalid_url_is_an_error() {
    refused("307 Temporary Redirect", "ftp://127.0.0.1/mcp").await;
    refused("307 Temporary Redirect", "http://[/").await;
}

#[runtimes::test]
async fn circular_redirects_end() {
    let mut peer = Peer::always(answer(
        "307 Temporary Redirect",
        &[("location", "/mcp")],
        "",
    ))
    .await;
    let mut settings = settings();
    settings.max_redirects = 3;
    let (link, mut receiver) = link_with(&peer.url(), settings);
    link.send(call(1, MODERN));
    assert!(matches!(
        receiver.failure().await,
        ClientError::Http { status: 307, .. }
    ));
    assert_eq!(peer.rest().len(), 4);
}

#[runtimes::test]
async fn a_redirect_without_a_location_is_an_ordinary_status() {
    let peer = Peer::always(answer("307 Temporary Redirect", &[], "where?")).await;
    let (link, mut receiver) = link(&peer.url());
    link.send(call(1, MODERN));
    match receiver.failure().await {
        ClientError::Http {
            status: 307, body, ..
        } => assert_eq!(body, "where?"),
        other => panic!("{other:?}"),
    }
}
