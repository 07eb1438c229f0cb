//! The lifecycle of tokens: stored, refreshed once for all requests, revoked.

use authorization_server::{Config, Endpoint, Forced, RefreshTokens, ResourceConfig};
use std::collections::BTreeSet;
use std::sync::Arc;

use mcpline::Revision;
use mcpline::auth::{FileStore, MemoryStore, TokenStore as _};
use mcpline::client::{Client, ClientError};

use super::world::{World, call, refusal};

#[runtimes::test]
async fn a_hundred_requests_with_a_revoked_token_refresh_it_once() {
    let world = World::exemplary().await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    // The server no longer accepts it, although it has not expired as far as the client knows.
    world.issuer.revoke_access_tokens();
    let held = world.issuer.hold(Endpoint::Token);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        calls.spawn(async move { call(&client, "look").await });
    }
    world.issuer.asked(Endpoint::Token, 2).await;
    drop(held);
    while let Some(outcome) = calls.join_next().await {
        assert_eq!(outcome.expect("no panic").expect("a result"), "seen");
    }
    client.close().await;
    assert_eq!(world.grants("refresh_token"), 1);
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn refreshes_an_expired_token_before_using_it() {
    let world = World::exemplary().await;
    let store = Arc::new(MemoryStore::default());
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await
        .expect("connected");
    client.close().await;
    let key = format!("tokens {}", world.resource.url());
    let kept = store.load(&key).await.expect("a store").expect("tokens");
    let mut kept: serde_json::Value = serde_json::from_slice(&kept).expect("JSON");
    kept["tokens"]["expires_at"] = 1.into();
    store
        .save(&key, kept.to_string().as_bytes())
        .await
        .expect("saved");
    let before = world.resource.requests().len();
    let client = world
        .connect(world.oauth().store(store).build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.grants("refresh_token"), 1);
    assert!(
        world.resource.requests()[before..]
            .iter()
            .all(|request| request.status != 401)
    );
}

#[runtimes::test]
async fn stored_tokens_need_no_sign_in_even_if_they_are_revoked() {
    let folder = tempfile();
    let world = World::exemplary().await;
    let first = world
        .connect(world.oauth().store(FileStore::new(&folder)).build())
        .await
        .expect("connected");
    first.close().await;
    world.issuer.revoke_access_tokens();
    let second = world
        .connect(world.oauth().store(FileStore::new(&folder)).build())
        .await
        .expect("connected");
    assert_eq!(call(&second, "look").await.expect("a result"), "seen");
    second.close().await;
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(world.sign_ins(), 1);
    assert_eq!(world.grants("refresh_token"), 1);
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 1);
}

#[runtimes::test]
async fn refreshes_tokens_each_time_they_are_revoked() {
    let world = World::exemplary().await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    for refreshes in 1..=3 {
        world.issuer.revoke_access_tokens();
        assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        assert_eq!(world.grants("refresh_token"), refreshes);
    }
    client.close().await;
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn signs_in_again_if_a_refreshed_token_is_refused() {
    let world = World::exemplary().await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    world.issuer.revoke_access_tokens();
    let body = r#"{"access_token": "unknown", "token_type": "Bearer", "refresh_token": "another"}"#;
    let forced = Forced {
        status: 200,
        body: body.into(),
        times: Some(1),
        ..Forced::default()
    };
    world.issuer.force(Endpoint::Token, forced);
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.grants("refresh_token"), 1);
    assert_eq!(world.sign_ins(), 2);
}

#[runtimes::test]
async fn clients_that_share_only_a_store_refresh_once() {
    let folder = tempfile();
    let world = World::exemplary().await;
    // Each has its own `OAuth`, as in separate processes.
    let connect = || world.connect(world.oauth().store(FileStore::new(&folder)).build());
    let first = connect().await.expect("connected");
    let second = connect().await.expect("connected");
    world.issuer.revoke_access_tokens();
    let held = world.issuer.hold(Endpoint::Token);
    let calls = [first.clone(), second.clone()]
        .map(|client| tokio::spawn(async move { call(&client, "look").await }));
    world.issuer.asked(Endpoint::Token, 2).await;
    drop(held);
    for outcome in calls {
        assert_eq!(outcome.await.expect("no panic").expect("a result"), "seen");
    }
    first.close().await;
    second.close().await;
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(world.grants("refresh_token"), 1);
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn signs_in_again_if_the_refresh_token_is_revoked() {
    let world = World::exemplary().await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    world.issuer.revoke_everything();
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    // The client is still registered.
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 1);
}

#[runtimes::test]
async fn signs_in_again_if_there_is_no_refresh_token() {
    let config = Config {
        refresh: RefreshTokens::Never,
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let store = Arc::new(MemoryStore::default());
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    // The server no longer accepts the token, although it has not expired as far as the client knows.
    world.issuer.revoke_access_tokens();
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    // The next token has expired by the clock.
    let key = format!("tokens {}", world.resource.url());
    let kept = store.load(&key).await.expect("a store").expect("tokens");
    let mut kept: serde_json::Value = serde_json::from_slice(&kept).expect("JSON");
    assert!(kept["tokens"]["refresh_token"].is_null());
    kept["tokens"]["expires_at"] = 1.into();
    let kept = kept.to_string();
    store.save(&key, kept.as_bytes()).await.expect("saved");
    let client = world
        .connect(world.oauth().store(store).build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 3);
    assert_eq!(world.grants("refresh_token"), 0);
}

#[runtimes::test]
async fn tokens_appear_in_no_url() {
    for revision in Revision::ALL {
        let config = match revision {
            // HTTP+SSE.
            Revision::V2024_11_05 => ResourceConfig {
                path: "/sse".into(),
                also: vec!["/messages".into()],
                ..ResourceConfig::default()
            },
            _ => ResourceConfig::default(),
        };
        let world = World::start(Config::default(), config).await;
        let oauth = world.oauth().build();
        let builder =
            Client::builder("host", "1").configure(|settings| settings.revisions = vec![*revision]);
        let client = world.connect_with(builder, oauth.clone()).await;
        let client = client.expect("connected");
        assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        world.issuer.revoke_access_tokens();
        assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        client.close().await;
        let settings = mcpline::client::HttpSettings::default();
        let signed_out = oauth.sign_out(&world.resource.url(), &settings).await;
        signed_out.expect("signed out");
        let resource = world.resource.requests();
        let issuer = world.issuer.requests();
        let access = resource.iter().filter_map(|request| {
            let authorization = request.authorization.as_deref()?;
            authorization.strip_prefix("Bearer ").map(str::to_owned)
        });
        let others = issuer.last.iter().flat_map(|request| {
            let named = ["refresh_token", "token"].into_iter();
            named.filter_map(|name| request.form.get(name).map(str::to_owned))
        });
        let tokens: BTreeSet<String> = access.chain(others).collect();
        // Two access tokens, and the refresh tokens that were sent.
        assert!(tokens.len() >= 4, "{revision}: {tokens:?}");
        let urls = resource
            .iter()
            .map(|request| (&request.path, &request.query));
        let urls = urls.chain(
            issuer
                .last
                .iter()
                .map(|request| (&request.path, &request.query)),
        );
        for (path, query) in urls {
            let in_query = |token: &String| query.0.iter().any(|(_, value)| value.contains(token));
            let shown = tokens
                .iter()
                .find(|&token| path.contains(token) || in_query(token));
            assert_eq!(shown, None, "{revision}: {path}");
            assert_eq!(query.get("access_token"), None, "{revision}: {path}");
        }
    }
}

#[runtimes::test]
async fn an_outage_of_the_token_endpoint_loses_no_tokens() {
    let world = World::exemplary().await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    world.issuer.revoke_access_tokens();
    world.issuer.force(
        Endpoint::Token,
        Forced {
            status: 503,
            times: Some(1),
            ..Forced::default()
        },
    );
    let error = refusal(call(&client, "look").await);
    assert_eq!(error.code(), "invalid_response");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn registers_again_if_the_server_forgot_the_client() {
    let world = World::exemplary().await;
    let store = Arc::new(MemoryStore::default());
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await
        .expect("connected");
    client.close().await;
    world.issuer.revoke_everything();
    world.issuer.forget_clients();
    let client = world
        .connect(world.oauth().store(store).build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 2);
}

#[runtimes::test]
async fn signing_out_revokes_and_forgets_the_tokens() {
    let world = World::exemplary().await;
    let oauth = world.oauth().build();
    let client = world.connect(oauth.clone()).await.expect("connected");
    let settings = mcpline::client::HttpSettings::default();
    oauth
        .sign_out(&world.resource.url(), &settings)
        .await
        .expect("signed out");
    let revocations = world.issuer.requests();
    let hints = revocations
        .of(Endpoint::Revocation)
        .map(|request| request.parameter("token_type_hint"));
    assert_eq!(hints.collect::<Vec<_>>(), [Some("refresh_token")]);
    // A client that continues signs in again.
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    assert_eq!(world.grants("refresh_token"), 0);
}

#[runtimes::test]
async fn a_new_authorization_server_gets_nothing_from_the_first() {
    let world = World::exemplary().await;
    let other = authorization_server::AuthorizationServer::start(Config::default())
        .await
        .expect("another");
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    world.issuer.revoke_everything();
    let issuers = serde_json::json!([other.issuer()]);
    world.resource.change(|config| {
        config
            .metadata
            .insert("authorization_servers".into(), issuers);
    });
    // The resource still validates with the first, so it rejects the other one's token. The test is about which server
    // received which requests.
    let error = call(&client, "look").await.expect_err("refused");
    assert!(
        matches!(error, ClientError::AuthorizationFailed(_)),
        "{error:?}"
    );
    client.close().await;
    assert_eq!(other.requests().count(Endpoint::Registration), 1);
    let first = world.issuer.requests();
    let first: Vec<_> = first
        .of(Endpoint::Authorization)
        .filter_map(|request| request.parameter("client_id"))
        .collect();
    let others = other.requests();
    for request in others
        .of(Endpoint::Authorization)
        .chain(others.of(Endpoint::Token))
    {
        let shown = request.parameter("client_id");
        assert!(
            shown.is_none_or(|shown| !first.contains(&shown)),
            "{shown:?}"
        );
    }
}

#[runtimes::test]
async fn aborting_a_connection_attempt_ends_the_sign_in() {
    let world = World::exemplary().await;
    let (opened, mut is_open) = tokio::sync::mpsc::unbounded_channel();
    let oauth = world.oauth_with(move |_| {
        let opened = opened.clone();
        async move {
            let (ended, is_over) = tokio::sync::oneshot::channel::<()>();
            let _ = opened.send(is_over);
            // Dropped with the sign-in.
            let _ended = ended;
            std::future::pending().await
        }
    });
    let url = world.resource.url();
    let connecting = tokio::spawn({
        let oauth = oauth.build();
        async move {
            let mut settings = mcpline::client::HttpSettings::default();
            settings.auth = Some(oauth.into());
            mcpline::client::Client::connect(mcpline::client::Address::Url(url, settings)).await
        }
    });
    let is_over = is_open.recv().await.expect("opened");
    connecting.abort();
    is_over.await.expect_err("the visit was given up");
}

fn tempfile() -> std::path::PathBuf {
    let unique = format!(
        "mcpline-auth-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    std::env::temp_dir().join(unique.replace(['(', ')'], ""))
}
