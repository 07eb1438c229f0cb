//! How tokens are verified: with an authorization server's keys, wherever it publishes them, and by introspection of
//! opaque tokens. A hostile, broken or slow authorization server makes no token valid, and no request wait forever.

use std::time::Duration;

use crate::support::Nothing;
use crate::support::authorized::{Answer, Rig};
use authorization_server::{
    AuthMethod, AuthorizationServer, Client, Config, Document, Endpoint, Forced, TokenFormat,
};
use mcpline::auth::{Introspection, Keys};
use mcpline::{Context, Server};
use serde_json::{Value, json};

fn server() -> Server {
    Server::new("keyed", "1").tool("plain", "Answers", |_: Nothing, _: Context| async {
        "done"
    })
}

async fn signed(config: Config) -> Rig {
    Rig::start_with(config, server(), |builder, issuer| {
        builder.issuer(issuer.issuer())
    })
    .await
}

async fn list(rig: &Rig, token: &str) -> Answer {
    rig.modern(token, "tools/list", json!({})).await
}

fn forced(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Forced {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Forced {
        status,
        headers: headers.collect(),
        body: body.into(),
        ..Forced::default()
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[runtimes::test]
async fn finds_keys_at_every_metadata_location() {
    for (path, document) in [
        ("", Document::Oauth),
        ("", Document::OpenidAppended),
        ("/tenant", Document::Oauth),
        ("/tenant", Document::OpenidInserted),
        ("/tenant", Document::OpenidAppended),
    ] {
        let config = Config {
            issuer_path: path.into(),
            documents: [document].into(),
            ..Config::default()
        };
        let rig = signed(config).await;
        assert_eq!(
            list(&rig, &rig.token("mcp")).await.status,
            200,
            "{document:?}"
        );
    }
}

#[runtimes::test]
async fn concurrent_requests_fetch_the_keys_once() {
    let rig = signed(Config::default()).await;
    let held = rig.issuer.hold(Endpoint::Jwks);
    let token = rig.token("mcp");
    let pending: Vec<_> = (0..20).map(|_| list(&rig, &token)).collect();
    let release = async {
        rig.issuer.asked(Endpoint::Jwks, 1).await;
        drop(held);
    };
    let all = async {
        let mut pending: Vec<_> = pending.into_iter().map(Box::pin).collect();
        let mut statuses = Vec::new();
        std::future::poll_fn(|cx| {
            pending.retain_mut(|one| match one.as_mut().poll(cx) {
                std::task::Poll::Ready(answer) => {
                    statuses.push(answer.status);
                    false
                }
                std::task::Poll::Pending => true,
            });
            match pending.is_empty() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        statuses
    };
    let (statuses, ()) = tokio::join!(all, release);
    assert_eq!(statuses, [200; 20]);
    assert_eq!(rig.issuer.requests().count(Endpoint::Jwks), 1);
}

#[runtimes::test]
async fn unknown_key_ids_do_not_refetch_the_keys() {
    let rig = signed(Config::default()).await;
    assert_eq!(list(&rig, &rig.token("mcp")).await.status, 200);
    for number in 0..20 {
        let header = json!({"kid": format!("made-up-{number}")});
        let token = rig.issuer.mint_with(&header, &rig.claims("mcp"));
        assert_eq!(list(&rig, &token).await.status, 401);
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Jwks), 1);
}

#[runtimes::test]
async fn unavailable_keys_get_503_without_a_challenge() {
    let many = json!({"keys": vec![json!({"kty": "OKP"}); 101]}).to_string();
    let padded = json!({"keys": [], "x": "x".repeat(600 * 1024)}).to_string();
    let endless = json!({"keys": [], "x": "x".repeat(2 * 1024 * 1024)}).to_string();
    for answer in [
        forced(500, &[JSON], "{}"),
        forced(404, &[JSON], "{}"),
        forced(200, &[JSON], "not JSON"),
        forced(200, &[JSON], "{\"keys\":[],\"keys\":[]}"),
        forced(200, &[JSON], many),
        forced(200, &[JSON], padded),
        forced(200, &[JSON], endless),
        forced(302, &[("location", "/jwks")], ""),
        forced(307, &[("location", "/jwks")], ""),
        forced(307, &[("location", "http://127.0.0.1:9/jwks")], ""),
        forced(307, &[("location", "file:///etc/passwd")], ""),
    ] {
        let rig = signed(Config::default()).await;
        let token = rig.token("mcp");
        rig.issuer.force(Endpoint::Jwks, answer.clone());
        let refused = list(&rig, &token).await;
        assert_eq!(refused.status, 503, "{answer:?}");
        // No challenge: clients would discard a valid token.
        assert!(refused.challenges().is_empty());
        assert_eq!(refused.header("retry-after"), Some("5"));
        // A loop of redirects ends.
        assert!(rig.issuer.requests().count(Endpoint::Jwks) <= 4);
    }
}

#[runtimes::test]
async fn does_not_use_keys_of_another_issuer() {
    let victim = AuthorizationServer::start(Config::default());
    let victim = victim.await.expect("a port");
    let mut config = Config::default();
    config
        .metadata
        .insert("issuer".into(), victim.issuer().into());
    let rig = signed(config).await;
    let token = rig.issuer.mint(&rig.claims("mcp"));
    let refused = list(&rig, &token).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(rig.issuer.requests().count(Endpoint::Jwks), 0);
    assert_eq!(victim.requests().count(Endpoint::Jwks), 0);
}

#[runtimes::test]
async fn does_not_fetch_keys_from_insecure_urls() {
    for place in ["http://keys.example/jwks", "ftp://127.0.0.1/jwks", "jwks"] {
        let mut config = Config::default();
        config.metadata.insert("jwks_uri".into(), place.into());
        let rig = signed(config).await;
        let refused = list(&rig, &rig.token("mcp")).await;
        assert_eq!(refused.status, 503, "{place}");
    }
}

#[runtimes::test]
async fn accepts_a_configured_key_url_without_metadata() {
    let rig = Rig::start(server(), |builder, issuer| {
        let keys = Keys::At(issuer.url("/jwks"));
        builder.issuer_with_keys(issuer.issuer(), keys)
    })
    .await;
    assert_eq!(list(&rig, &rig.token("mcp")).await.status, 200);
    assert_eq!(rig.issuer.requests().count(Endpoint::Metadata), 0);
    // Without a configured issuer, the keys alone decide which tokens are valid.
    let rig = Rig::start(server(), |builder, issuer| {
        builder
            .keys(Keys::At(issuer.url("/jwks")))
            .authorization_server(issuer.issuer())
    })
    .await;
    let mut claims = rig.claims("mcp");
    claims["iss"] = "urn:somebody".into();
    assert_eq!(list(&rig, &rig.issuer.mint(&claims)).await.status, 200);
}

/// A server that introspects tokens, as a client of the authorization server.
async fn opaque(change: impl FnOnce(Introspection) -> Introspection) -> Rig {
    let config = Config {
        tokens: TokenFormat::Opaque,
        clients: vec![Client {
            client_id: "the server:with a colon".into(),
            client_secret: Some("a secret & more".into()),
            auth_method: AuthMethod::Basic,
            ..Client::default()
        }],
        ..Config::default()
    };
    Rig::start_with(config, server(), |builder, issuer| {
        let introspection = Introspection::new(issuer.url("/introspect"))
            .with_client("the server:with a colon", "a secret & more");
        builder
            .authorization_server(issuer.issuer())
            .introspection(change(introspection))
    })
    .await
}

#[runtimes::test]
async fn introspects_opaque_tokens_and_caches_the_result() {
    let rig = opaque(|how| how).await;
    let token = rig.issuer.issue("client", "mcp", &rig.resource);
    for _ in 0..5 {
        assert_eq!(list(&rig, &token).await.status, 200);
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 1);
    let requests = rig.issuer.requests();
    let requests = requests
        .of(Endpoint::Introspection)
        .next()
        .expect("a question");
    assert_eq!(requests.parameter("token"), Some(token.as_str()));
    for _ in 0..5 {
        let unknown = list(&rig, "made-up").await;
        assert_eq!(unknown.status, 401);
        assert_eq!(unknown.bearer().get("error"), Some("invalid_token"));
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 2);
}

#[runtimes::test]
async fn introspects_tokens_of_any_form_without_configured_keys() {
    let rig = opaque(|how| how).await;
    let says = json!({"active": true, "aud": rig.resource, "scope": "mcp"});
    rig.issuer.force(
        Endpoint::Introspection,
        forced(200, &[JSON], says.to_string()),
    );
    let looks = authorization_server::unsigned(&json!({"alg": "HS512"}), &json!({}), b"x");
    for token in [looks.as_str(), "a.b.c", "..", "opaque"] {
        assert_eq!(list(&rig, token).await.status, 200, "{token}");
    }
}

#[runtimes::test]
async fn rejects_a_revoked_token_at_the_next_introspection() {
    let rig = opaque(|how| how.keep_for(Duration::ZERO)).await;
    let token = rig.issuer.issue("client", "mcp", &rig.resource);
    assert_eq!(list(&rig, &token).await.status, 200);
    rig.issuer.revoke_access_tokens();
    assert_eq!(list(&rig, &token).await.status, 401);
}

#[runtimes::test]
async fn checks_audience_issuer_and_expiry_of_active_tokens() {
    let rig = opaque(|how| how.keep_for(Duration::ZERO)).await;
    let says = async |claims: Value| {
        let answer = forced(200, &[JSON], claims.to_string());
        rig.issuer.force(Endpoint::Introspection, answer);
        list(&rig, "opaque").await.status
    };
    let aud = &rig.resource;
    assert_eq!(
        says(json!({"active": true, "aud": aud, "scope": "mcp"})).await,
        200
    );
    assert_eq!(says(json!({"active": true, "aud": aud})).await, 403);
    for (answer, status) in [
        (json!({"active": true, "scope": "mcp"}), 401),
        (
            json!({"active": true, "scope": "mcp", "aud": "https://other.example"}),
            401,
        ),
        (
            json!({"active": true, "scope": "mcp", "aud": aud, "exp": 1}),
            401,
        ),
        (
            json!({"active": true, "scope": "mcp", "aud": aud, "iss": "https://other.example"}),
            401,
        ),
        (json!({"active": false, "scope": "mcp", "aud": aud}), 401),
        (json!({"active": "true", "scope": "mcp", "aud": aud}), 503),
        (json!({"scope": "mcp", "aud": aud}), 503),
        (json!([]), 503),
    ] {
        assert_eq!(says(answer.clone()).await, status, "{answer}");
    }
    for answer in [
        forced(500, &[], ""),
        forced(401, &[], ""),
        forced(200, &[], "x"),
    ] {
        rig.issuer.force(Endpoint::Introspection, answer);
        let refused = list(&rig, "opaque").await;
        assert_eq!(refused.status, 503);
        assert!(refused.challenges().is_empty());
    }
}

#[runtimes::test]
async fn the_audience_check_can_be_left_to_the_issuer() {
    let rig = opaque(Introspection::knows_audience).await;
    let answer = forced(
        200,
        &[JSON],
        json!({"active": true, "scope": "mcp"}).to_string(),
    );
    rig.issuer.force(Endpoint::Introspection, answer);
    assert_eq!(list(&rig, "opaque").await.status, 200);
}

#[runtimes::test]
async fn verifies_signed_tokens_locally_and_introspects_others() {
    let mut config = Config::default();
    config.clients.push(Client {
        client_id: "server".into(),
        client_secret: Some("secret".into()),
        auth_method: AuthMethod::Basic,
        ..Client::default()
    });
    let rig = Rig::start_with(config, server(), |builder, issuer| {
        let how = Introspection::new(issuer.url("/introspect")).with_client("server", "secret");
        builder.issuer(issuer.issuer()).introspection(how)
    })
    .await;
    assert_eq!(list(&rig, &rig.token("mcp")).await.status, 200);
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 0);
    rig.issuer
        .change(|config| config.tokens = TokenFormat::Opaque);
    let token = rig.issuer.issue("client", "mcp", &rig.resource);
    assert_eq!(list(&rig, &token).await.status, 200);
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 1);
    // A token with an invalid signature is rejected without introspection.
    let forged = format!("{}x", rig.token("mcp"));
    assert_eq!(list(&rig, &forged).await.status, 401);
}
