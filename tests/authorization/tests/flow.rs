//! The code flow from the client's side: registration, consent, tokens and refresh.

mod client;

use authorization_server::{
    Algorithm, AuthMethod, AuthorizationServer, Client, Config, Consent, Document, Endpoint,
    IssParameter, Key, RefreshTokens,
};
use axum::{Router, routing};
use client::{REDIRECT, RESOURCE, get, post_form, post_json, query_of};
use serde_json::json;
use tokio::net::TcpListener;

#[tokio::test]
async fn a_registered_client_gets_tokens_for_a_code_and_refreshes_them() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let metadata = get(&format!(
        "{}/.well-known/oauth-authorization-server",
        server.issuer()
    ))
    .await;
    assert_eq!(metadata.json()["issuer"], server.issuer());
    assert_eq!(metadata.json()["token_endpoint"], server.url("/token"));

    let id = client::register(&server).await;
    let back = client::authorize(&server, &id, &[("scope", "a b")]).await;
    assert_eq!(back.get("state"), Some("some state"));
    assert_eq!(back.get("iss"), Some(server.issuer().as_str()));
    let given = client::redeem(&server, &id, back.get("code").unwrap()).await;
    assert_eq!(given.status, 200, "{}", given.body);
    let given = given.json();
    assert_eq!(given["scope"], "a b");
    assert_eq!(given["token_type"], "Bearer");
    let token = given["access_token"].as_str().unwrap();
    let (header, claims) = authorization_server::read_unverified(token).unwrap();
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(claims["aud"], RESOURCE);
    assert_eq!(claims["client_id"], id.as_str());
    assert!(server.active_claims(token).is_some());

    let refreshed = client::refresh(&server, &id, &given["refresh_token"]).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);
    assert_ne!(refreshed.json()["refresh_token"], given["refresh_token"]);
    assert_eq!(server.requests().grants("refresh_token"), 1);
    assert_eq!(server.requests().count(Endpoint::Token), 2);
}

#[tokio::test]
async fn using_a_refresh_token_twice_revokes_all_tokens_of_its_consent() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let (id, given) = client::tokens(&server, &[]).await;
    let second = client::refresh(&server, &id, &given["refresh_token"])
        .await
        .json();
    let again = client::refresh(&server, &id, &given["refresh_token"]).await;
    assert_eq!(
        (again.status, again.json()["error"].as_str()),
        (400, Some("invalid_grant"))
    );
    let last = client::refresh(&server, &id, &second["refresh_token"]).await;
    assert_eq!(last.json()["error"], "invalid_grant");
    assert!(
        server
            .active_claims(second["access_token"].as_str().unwrap())
            .is_none()
    );
}

#[tokio::test]
async fn a_code_is_valid_once_and_only_with_its_verifier_and_redirect_uri() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let id = client::register(&server).await;
    for (name, value) in [
        (
            "code_verifier",
            "another-verifier-that-is-just-as-long-as-it-has-to-be",
        ),
        ("redirect_uri", "http://127.0.0.1:2/callback"),
        ("client_id", "somebody else"),
        ("resource", "https://example.com/other"),
    ] {
        let code = client::authorize(&server, &id, &[]).await;
        let refused =
            client::redeem_with(&server, &id, code.get("code").unwrap(), &[(name, value)]).await;
        assert!(
            (400..=401).contains(&refused.status),
            "{name}: {}",
            refused.body
        );
    }
    let code = client::authorize(&server, &id, &[]).await;
    let code = code.get("code").unwrap();
    let first = client::redeem(&server, &id, code).await;
    assert_eq!(first.status, 200);
    assert_eq!(
        client::redeem(&server, &id, code).await.json()["error"],
        "invalid_grant"
    );
    let token = first.json()["access_token"].as_str().unwrap().to_owned();
    assert!(
        server.active_claims(&token).is_none(),
        "a code used twice takes back what it gave"
    );
}

#[tokio::test]
async fn never_redirects_to_an_unregistered_uri() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let id = client::register(&server).await;
    for (name, value) in [
        ("client_id", "nobody"),
        ("redirect_uri", "https://example.com/elsewhere"),
    ] {
        let answer = get(&client::authorization_url(&server, &id, &[(name, value)])).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.header("location"), None);
    }
}

#[tokio::test]
async fn reports_request_errors_to_the_client() {
    let server = AuthorizationServer::start(Config {
        scopes: vec!["a".into()],
        ..Config::default()
    })
    .await
    .unwrap();
    let id = client::register(&server).await;
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("resource", "", "invalid_target"),
        (
            "resource",
            "https://example.com/#fragment",
            "invalid_target",
        ),
        ("scope", "a b", "invalid_scope"),
    ] {
        let back = client::authorize(&server, &id, &[(name, value)]).await;
        assert_eq!(back.get("error"), Some(error), "{name}={value}");
        assert_eq!(back.get("state"), Some("some state"));
        assert_eq!(back.get("iss"), Some(server.issuer().as_str()));
        assert_eq!(back.get("code"), None);
    }
}

#[tokio::test]
async fn metadata_is_served_only_at_the_configured_locations() {
    let server = AuthorizationServer::start(Config {
        issuer_path: "/tenant".into(),
        ..Config::default()
    })
    .await
    .unwrap();
    let issuer = server.issuer();
    let origin = issuer.strip_suffix("/tenant").unwrap();
    let places = [
        (
            Document::Oauth,
            format!("{origin}/.well-known/oauth-authorization-server/tenant"),
        ),
        (
            Document::OpenidInserted,
            format!("{origin}/.well-known/openid-configuration/tenant"),
        ),
        (
            Document::OpenidAppended,
            format!("{origin}/tenant/.well-known/openid-configuration"),
        ),
    ];
    for (document, _) in &places {
        server.change(|config| config.documents = [*document].into());
        for (other, place) in &places {
            let expected = if document == other { 200 } else { 404 };
            assert_eq!(get(place).await.status, expected, "{place}");
        }
        let root = format!("{origin}/.well-known/oauth-authorization-server");
        assert_eq!(get(&root).await.status, 404);
    }
    server.change(|config| {
        config.metadata = json!({"issuer": "https://example.com", "jwks_uri": null})
            .as_object()
            .cloned()
            .unwrap();
    });
    let metadata = get(&places[2].1).await.json();
    assert_eq!(metadata["issuer"], "https://example.com");
    assert_eq!(metadata.get("jwks_uri"), None);
}

#[tokio::test]
async fn iss_of_the_response_is_as_configured() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let id = client::register(&server).await;
    server.change(|config| config.iss = IssParameter::Missing);
    assert_eq!(client::authorize(&server, &id, &[]).await.get("iss"), None);
    server.change(|config| config.iss = IssParameter::Wrong("https://example.com".into()));
    assert_eq!(
        client::authorize(&server, &id, &[]).await.get("iss"),
        Some("https://example.com")
    );
}

#[tokio::test]
async fn reads_clients_from_their_metadata_documents() {
    let url = "https://client.example/about.json";
    let document = |uri: &str| {
        json!({"client_id": uri, "client_name": "A client", "redirect_uris": [REDIRECT],
               "grant_types": ["authorization_code", "refresh_token"]})
    };
    let server = AuthorizationServer::start(Config {
        registration: false,
        known_documents: [
            (url.to_owned(), document(url)),
            (
                "https://client.example/other.json".to_owned(),
                document(url),
            ),
        ]
        .into(),
        ..Config::default()
    })
    .await
    .unwrap();
    let refused = get(&client::authorization_url(
        &server,
        "https://client.example/other.json",
        &[],
    ))
    .await;
    assert_eq!(refused.status, 400, "a document about another client");
    let back = client::authorize(&server, url, &[]).await;
    let given = client::redeem(&server, url, back.get("code").unwrap()).await;
    assert_eq!(given.status, 200, "{}", given.body);
    assert!(given.json()["refresh_token"].is_string());
    assert_eq!(
        post_json(&server.url("/register"), &json!({})).await.status,
        404
    );
}

#[tokio::test]
async fn a_client_authenticates_only_by_its_registered_method() {
    let of = |id: &str, auth_method| Client {
        client_id: id.into(),
        client_secret: Some("a secret: 100%".into()),
        auth_method,
        redirect_uris: vec![REDIRECT.into()],
        ..Client::default()
    };
    let server = AuthorizationServer::start(Config {
        clients: vec![
            of("poster", AuthMethod::Post),
            of("basic", AuthMethod::Basic),
        ],
        ..Config::default()
    })
    .await
    .unwrap();
    let asking = [("grant_type", "client_credentials"), ("resource", RESOURCE)];
    let in_body = |id, secret| {
        [
            asking.as_slice(),
            &[("client_id", id), ("client_secret", secret)],
        ]
        .concat()
    };
    let url = server.url("/token");
    let secret = "a secret: 100%";
    assert_eq!(
        post_form(&url, &in_body("poster", secret), None)
            .await
            .status,
        200
    );
    assert_eq!(
        post_form(&url, &in_body("poster", "wrong"), None)
            .await
            .status,
        401
    );
    assert_eq!(
        post_form(&url, &in_body("basic", secret), None)
            .await
            .status,
        401
    );
    let encoded = "a+secret%3A+100%25";
    assert_eq!(
        post_form(&url, &asking, Some(("basic", encoded)))
            .await
            .status,
        200
    );
    assert_eq!(
        post_form(&url, &asking, Some(("basic", secret)))
            .await
            .status,
        401
    );
    assert_eq!(
        post_form(&url, &asking, Some(("poster", encoded)))
            .await
            .status,
        401
    );
    let both = post_form(&url, &in_body("basic", secret), Some(("basic", encoded))).await;
    assert_eq!(both.json()["error"], "invalid_request");
}

#[tokio::test]
async fn the_user_allows_or_denies_on_the_consent_page() {
    let server = AuthorizationServer::start(Config {
        consent: Consent::Page,
        ..Config::default()
    })
    .await
    .unwrap();
    let id = client::register(&server).await;
    for (decision, answer) in [("allow", "code"), ("deny", "error")] {
        let page = get(&client::authorization_url(
            &server,
            &id,
            &[("scope", "<b>")],
        ))
        .await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("&lt;b&gt;") && !page.body.contains("<li><b>"));
        let ticket = page.body.split("name=\"ticket\" value=\"").nth(1).unwrap();
        let ticket = ticket.split('"').next().unwrap();
        let form = [("ticket", ticket), ("decision", decision)];
        let back = post_form(&server.url("/decision"), &form, None).await;
        assert!(
            query_of(back.header("location").unwrap())
                .get(answer)
                .is_some()
        );
        assert_eq!(
            post_form(&server.url("/decision"), &form, None)
                .await
                .status,
            400
        );
    }
}

#[tokio::test]
async fn refresh_tokens_are_issued_as_configured() {
    let server = AuthorizationServer::start(Config {
        refresh: RefreshTokens::OfflineAccess,
        ..Config::default()
    })
    .await
    .unwrap();
    let (_, given) = client::tokens(&server, &[("scope", "a")]).await;
    assert_eq!(given.get("refresh_token"), None);
    let (_, given) = client::tokens(&server, &[("scope", "a offline_access")]).await;
    assert!(given["refresh_token"].is_string());
}

#[tokio::test]
async fn requests_wait_while_an_endpoint_is_held() {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let held = server.hold(Endpoint::Jwks);
    let url = server.url("/jwks");
    let waiting = tokio::spawn(async move { get(&url).await.status });
    server.asked(Endpoint::Jwks, 1).await;
    assert_eq!(
        server.requests().of(Endpoint::Jwks).next().unwrap().status,
        None
    );
    drop(held);
    assert_eq!(waiting.await.unwrap(), 200);
    assert_eq!(
        server.requests().of(Endpoint::Jwks).next().unwrap().status,
        Some(200)
    );
}

#[tokio::test]
async fn fetches_the_documents_and_keys_of_clients() {
    let key = Key::generate(Algorithm::EdDsa, 0);
    let keys = json!({"keys": [key.public_jwk()]});
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let id = format!("{origin}/about.json");
    let document = json!({"client_id": id, "client_name": "A client", "redirect_uris": [REDIRECT],
                          "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": format!("{origin}/keys.json")});
    let router = Router::new()
        .route(
            "/about.json",
            routing::get(async move || document.to_string()),
        )
        .route("/keys.json", routing::get(async move || keys.to_string()));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let back = client::authorize(&server, &id, &[]).await;
    let expires = server.claims("", "", "")["exp"].clone();
    let assertion = key.sign(
        &json!({}),
        &json!({"iss": id, "sub": id, "aud": server.issuer(), "exp": expires, "jti": "one"}),
    );
    let proof = [
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
        ("client_assertion", assertion.as_str()),
    ];
    let code = back.get("code").unwrap();
    let given = client::redeem_with(&server, &id, code, &proof).await;
    assert_eq!(given.status, 200, "{}", given.body);
    let missing = get(&client::authorization_url(
        &server,
        &format!("{origin}/none.json"),
        &[],
    ))
    .await;
    assert_eq!(missing.status, 400);
}
