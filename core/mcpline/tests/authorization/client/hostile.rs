//! Malicious authorization servers, servers and redirects: each is refused and gets no secrets.

use authorization_server::{Config, Endpoint, Forced, IssParameter, ResourceConfig};
use serde_json::json;

use super::world::{REDIRECT, World, follow, refusal};

/// Expects that connecting fails with this error and that no code was redeemed.
async fn refused(world: &World, code: &str) {
    let error = refusal(world.connect(world.oauth().build()).await);
    assert_eq!(error.code(), code, "{error}");
    assert_eq!(world.issuer.requests().count(Endpoint::Token), 0);
}

#[runtimes::test]
async fn does_not_redeem_a_response_of_another_issuer() {
    let issuers = [
        (Some(true), IssParameter::Missing),
        (
            Some(true),
            IssParameter::Wrong("https://evil.example".into()),
        ),
        (None, IssParameter::Wrong("https://evil.example".into())),
    ];
    for (promised, iss) in issuers {
        let config = Config {
            iss_promised: promised,
            iss,
            ..Config::default()
        };
        let world = World::start(config, ResourceConfig::default()).await;
        refused(&world, "authorization_response_mismatch").await;
        assert_eq!(world.sign_ins(), 1);
    }
    let world = World::exemplary().await;
    let normalized = IssParameter::Wrong(format!("{}/", world.issuer.issuer()));
    world.issuer.change(|config| config.iss = normalized);
    refused(&world, "authorization_response_mismatch").await;
}

#[runtimes::test]
async fn rejects_metadata_of_another_resource() {
    let metadata = json!({"resource": "https://evil.example/mcp"});
    let config = ResourceConfig {
        metadata: metadata.as_object().expect("an object").clone(),
        ..ResourceConfig::default()
    };
    let world = World::start(Config::default(), config).await;
    refused(&world, "resource_mismatch").await;
    assert_eq!(world.issuer.requests().count(Endpoint::Metadata), 0);
}

#[runtimes::test]
async fn rejects_metadata_of_another_issuer() {
    let metadata = json!({"issuer": "https://honest.example"});
    let config = Config {
        metadata: metadata.as_object().expect("an object").clone(),
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    refused(&world, "metadata_issuer_mismatch").await;
    assert_eq!(world.sign_ins(), 0);
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 0);
}

#[runtimes::test]
async fn endpoints_without_https_get_no_secrets() {
    for member in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
    ] {
        let metadata = json!({member: "http://auth.example/x"});
        let config = Config {
            metadata: metadata.as_object().expect("an object").clone(),
            ..Config::default()
        };
        let world = World::start(config, ResourceConfig::default()).await;
        refused(&world, "insecure_url").await;
        assert_eq!(world.sign_ins(), 0);
    }
}

#[runtimes::test]
async fn refuses_an_authorization_server_without_pkce_unless_allowed() {
    let metadata = json!({"code_challenge_methods_supported": null});
    let config = Config {
        metadata: metadata.as_object().expect("an object").clone(),
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    refused(&world, "pkce_unsupported").await;
    let client = world
        .connect(world.oauth().require_pkce(false).build())
        .await
        .expect("connected");
    client.close().await;
}

#[runtimes::test]
async fn does_not_follow_metadata_redirects_to_another_host() {
    let elsewhere = authorization_server::AuthorizationServer::start(Config::default())
        .await
        .expect("a server");
    let world = World::exemplary().await;
    let location = elsewhere.url("/.well-known/oauth-authorization-server");
    let headers = [("location".to_owned(), location)].into();
    world.issuer.force(
        Endpoint::Metadata,
        Forced {
            status: 302,
            headers,
            ..Forced::default()
        },
    );
    refused(&world, "fetch_failed").await;
    assert_eq!(elsewhere.requests().count(Endpoint::Metadata), 0);
}

#[runtimes::test]
async fn rejects_oversized_and_malformed_metadata() {
    for (body, code) in [
        ("x".repeat(2 * 1024 * 1024), "fetch_failed"),
        ("[]".to_owned(), "invalid_response"),
    ] {
        let world = World::exemplary().await;
        world.issuer.force(
            Endpoint::Metadata,
            Forced {
                status: 200,
                body,
                ..Forced::default()
            },
        );
        refused(&world, code).await;
    }
}

#[runtimes::test]
async fn rejects_redirects_that_do_not_match_the_request() {
    let world = World::exemplary().await;
    for change in [
        |url: String| url.replace("state=", "state=x"),
        |url: String| url.replace(REDIRECT, "https://evil.example/callback"),
        |url: String| url.replace("code=", "kode="),
        |_: String| format!("{REDIRECT}?code=stolen&state="),
        |_: String| String::new(),
    ] {
        let oauth = world.oauth_with(move |url| async move { Ok(change(follow(&url).await)) });
        let error = refusal(world.connect(oauth.build()).await);
        assert_eq!(error.code(), "authorization_response_mismatch", "{error}");
    }
    assert_eq!(world.issuer.requests().count(Endpoint::Token), 0);
}

#[runtimes::test]
async fn rejects_a_replayed_redirect() {
    let world = World::exemplary().await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None::<String>));
    let first = seen.clone();
    let oauth = world.oauth_with(move |url| {
        let first = first.clone();
        async move {
            let location = follow(&url).await;
            let mut first = first.lock().expect("unpoisoned");
            // The second sign-in gets the redirect of the first.
            Ok(first.get_or_insert(location).clone())
        }
    });
    let client = world.connect(oauth.build()).await.expect("connected");
    world.issuer.revoke_everything();
    let error = refusal(super::call(&client, "look").await);
    assert_eq!(error.code(), "authorization_response_mismatch");
    client.close().await;
}

#[runtimes::test]
async fn reports_that_the_user_refused() {
    let world = World::exemplary().await;
    world
        .issuer
        .change(|config| config.consent = authorization_server::Consent::Denied);
    let error = refusal(world.connect(world.oauth().build()).await);
    assert_eq!(error.code(), "authorization_server_error");
    assert!(error.to_string().contains("access_denied"), "{error}");
}
