//! How tokens are checked: an authorization server's keys, however it publishes them, and its word on tokens that mean
//! something to it alone. One that is hostile, broken or slow makes no token good, and no request wait for ever.

mod support;

use std::time::Duration;

use authorization_server::{
    AuthMethod, AuthorizationServer, Client, Config, Document, Endpoint, Forced, TokenFormat,
};
use mcpline::auth::{Introspection, Keys};
use mcpline::{Context, Server};
use serde_json::{Value, json};
use support::Nothing;
use support::authorized::{Answer, Rig};

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
async fn keys_are_found_wherever_the_metadata_may_be() {
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
async fn keys_are_fetched_once_for_many_requests_at_a_time() {
    let rig = signed(Config::default()).await;
    let held = rig.issuer.hold(Endpoint::Jwks);
    let token = rig.token("mcp");
    let asking: Vec<_> = (0..20).map(|_| list(&rig, &token)).collect();
    let release = async {
        rig.issuer.asked(Endpoint::Jwks, 1).await;
        drop(held);
    };
    let all = async {
        let mut asking: Vec<_> = asking.into_iter().map(Box::pin).collect();
        let mut statuses = Vec::new();
        std::future::poll_fn(|cx| {
            asking.retain_mut(|one| match one.as_mut().poll(cx) {
                std::task::Poll::Ready(answer) => {
                    statuses.push(answer.status);
                    false
                }
                std::task::Poll::Pending => true,
            });
            match asking.is_empty() {
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
async fn made_up_key_ids_do_not_have_the_keys_fetched_again_and_again() {
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
async fn a_server_whose_keys_can_not_be_had_is_no_reason_to_ask_the_user_again() {
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
        // No challenge: clients would throw a good token away.
        assert!(refused.challenges().is_empty());
        assert_eq!(refused.header("retry-after"), Some("5"));
        // A loop of redirects ends.
        assert!(rig.issuer.requests().count(Endpoint::Jwks) <= 4);
    }
}

#[runtimes::test]
async fn the_keys_of_another_issuer_are_not_used() {
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
async fn keys_are_not_fetched_where_others_could_change_them_on_the_way() {
    for place in ["http://keys.example/jwks", "ftp://127.0.0.1/jwks", "jwks"] {
        let mut config = Config::default();
        config.metadata.insert("jwks_uri".into(), place.into());
        let rig = signed(config).await;
        let refused = list(&rig, &rig.token("mcp")).await;
        assert_eq!(refused.status, 503, "{place}");
    }
}

#[runtimes::test]
async fn keys_may_be_named_by_their_url_without_metadata() {
    let rig = Rig::start(server(), |builder, issuer| {
        let keys = Keys::At(issuer.url("/jwks"));
        builder.issuer_with_keys(issuer.issuer(), keys)
    })
    .await;
    assert_eq!(list(&rig, &rig.token("mcp")).await.status, 200);
    assert_eq!(rig.issuer.requests().count(Endpoint::Metadata), 0);
    // Without an issuer the keys alone say whose tokens are good.
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

/// A server that asks about tokens, as a client of the authorization server.
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
async fn the_issuer_is_asked_about_tokens_that_say_nothing_and_its_word_is_kept() {
    let rig = opaque(|how| how).await;
    let token = rig.issuer.issue("client", "mcp", &rig.resource);
    for _ in 0..5 {
        assert_eq!(list(&rig, &token).await.status, 200);
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 1);
    let asked = rig.issuer.requests();
    let asked = asked
        .of(Endpoint::Introspection)
        .next()
        .expect("a question");
    assert_eq!(asked.parameter("token"), Some(token.as_str()));
    for _ in 0..5 {
        let unknown = list(&rig, "made-up").await;
        assert_eq!(unknown.status, 401);
        assert_eq!(unknown.bearer().get("error"), Some("invalid_token"));
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Introspection), 2);
}

#[runtimes::test]
async fn whatever_a_token_looks_like_its_issuer_alone_is_asked_where_nothing_is_verified_here() {
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
async fn a_token_that_was_taken_back_is_refused_as_soon_as_the_issuer_is_asked_again() {
    let rig = opaque(|how| how.keep_for(Duration::ZERO)).await;
    let token = rig.issuer.issue("client", "mcp", &rig.resource);
    assert_eq!(list(&rig, &token).await.status, 200);
    rig.issuer.revoke_access_tokens();
    assert_eq!(list(&rig, &token).await.status, 401);
}

#[runtimes::test]
async fn an_active_token_must_be_for_us_and_for_now_all_the_same() {
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
async fn an_issuer_may_be_trusted_to_call_active_only_what_is_for_us() {
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
async fn signed_tokens_are_verified_here_and_the_issuer_is_asked_about_others() {
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
    // A signature that is wrong isn't asked about: a signed token is judged by it.
    let forged = format!("{}x", rig.token("mcp"));
    assert_eq!(list(&rig, &forged).await.status, 401);
}
