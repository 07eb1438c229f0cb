//! OAuth of a client over real sockets, with an authorization server and a server that requires its tokens.

mod hostile;
mod misled;
mod store_faults;
mod tokens;
mod world;

use std::sync::atomic::Ordering;

use authorization_server::{
    AuthMethod, Client as Registered, Config, Document, Dpop, Endpoint, ResourceConfig,
};
use mcpline::Revision;
use mcpline::auth::{
    Auth, BoxFuture, Credentials, Enterprise, OAuth, Redirected, SignIn, UserAgent, UserAgentError,
};
use mcpline::client::{Address, Client, HttpSettings};
use world::{World, call, refusal};

#[runtimes::test]
async fn signs_in_once_and_uses_the_token_for_every_request() {
    for revision in Revision::ALL {
        let world = World::exemplary().await;
        let builder =
            Client::builder("host", "1").configure(|settings| settings.revisions = vec![*revision]);
        if *revision == Revision::V2024_11_05 {
            continue;
        }
        let client = world
            .connect_with(builder, world.oauth().build())
            .await
            .expect("connected");
        assert_eq!(
            call(&client, "look").await.expect("a result"),
            "seen",
            "{revision:?}"
        );
        client.close().await;
        assert_eq!(world.sign_ins(), 1);
        assert_eq!(world.grants("authorization_code"), 1);
        assert_eq!(world.issuer.requests().count(Endpoint::Registration), 1);
        let requests = world.resource.requests();
        let refused: Vec<_> = requests
            .iter()
            .filter(|request| request.status == 401)
            .collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
    }
}

#[runtimes::test]
async fn authorizes_http_sse() {
    let config = ResourceConfig {
        path: "/sse".into(),
        also: vec!["/messages".into()],
        ..ResourceConfig::default()
    };
    let world = World::start(Config::default(), config).await;
    let builder = Client::builder("host", "1")
        .configure(|settings| settings.revisions = vec![Revision::V2024_11_05]);
    let client = world
        .connect_with(builder, world.oauth().build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn finds_resource_metadata_at_the_well_known_url() {
    let config = ResourceConfig {
        names_metadata: None,
        places: vec!["/.well-known/oauth-protected-resource".into()],
        ..ResourceConfig::default()
    };
    let issuer = Config {
        issuer_path: "/tenant1".into(),
        documents: [Document::OpenidAppended].into(),
        ..Config::default()
    };
    let world = World::start(issuer, config).await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
}

#[runtimes::test]
async fn uses_the_client_authentication_that_the_server_supports() {
    for method in [AuthMethod::None, AuthMethod::Basic, AuthMethod::Post] {
        let config = Config {
            auth_methods: vec![method],
            ..Config::default()
        };
        let world = World::start(config, ResourceConfig::default()).await;
        let client = world
            .connect(world.oauth().build())
            .await
            .expect("connected");
        assert_eq!(
            call(&client, "look").await.expect("a result"),
            "seen",
            "{method:?}"
        );
        client.close().await;
    }
}

#[runtimes::test]
async fn configured_credentials_take_precedence() {
    let known = Registered {
        client_id: "known".into(),
        client_secret: Some("secret".into()),
        auth_method: AuthMethod::Basic,
        redirect_uris: vec![world::REDIRECT.into()],
        ..Registered::default()
    };
    let config = Config {
        clients: vec![known],
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let credentials = Credentials::new("known")
        .secret("secret")
        .issuer(world.issuer.issuer());
    let oauth = world
        .oauth()
        .credentials(credentials)
        .client_id_metadata_url("https://client.example/metadata.json")
        .expect("a URL");
    let client = world.connect(oauth.build()).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 0);
}

#[runtimes::test]
async fn registers_without_scopes_if_the_server_refuses_them() {
    let config = Config {
        registration_scopes: false,
        ..Config::default()
    };
    let resource = ResourceConfig {
        scope: Some("look".into()),
        needed: [("tools/call look".to_owned(), "look".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let world = World::start(config, resource).await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    let requests = world.issuer.requests();
    let scopes: Vec<_> = requests
        .of(Endpoint::Registration)
        .map(|request| request.json().expect("JSON")["scope"].clone())
        .collect();
    assert_eq!(scopes, ["look".into(), serde_json::Value::Null]);
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn a_client_id_metadata_document_replaces_registration() {
    const URL: &str = "https://client.example/metadata.json";
    let document = serde_json::json!({
        "client_id": URL, "client_name": "a test", "redirect_uris": [world::REDIRECT],
        "token_endpoint_auth_method": "none",
    });
    let config = Config {
        known_documents: [(URL.to_owned(), document)].into(),
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let oauth = world.oauth().client_id_metadata_url(URL).expect("a URL");
    let client = world.connect(oauth.build()).await.expect("connected");
    client.close().await;
    assert_eq!(world.issuer.requests().count(Endpoint::Registration), 0);
    assert_eq!(world.sign_ins(), 1);
}

#[runtimes::test]
async fn registers_if_metadata_documents_are_not_supported() {
    const URL: &str = "https://client.example/metadata.json";
    let config = Config {
        client_id_documents: false,
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let oauth = world.oauth().client_id_metadata_url(URL).expect("a URL");
    let client = world.connect(oauth.build()).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    let requests = world.issuer.requests();
    assert_eq!(requests.count(Endpoint::Registration), 1);
    assert_eq!(requests.count(Endpoint::Token), 1);
    for request in &requests.last {
        let said = format!("{:?} {}", request.query, request.body);
        assert!(!said.contains("client.example"), "{request:?}");
    }
}

#[test]
fn rejects_client_id_urls_that_are_not_https_with_a_path() {
    for url in [
        "http://client.example/metadata.json",
        "https://client.example",
        "client",
    ] {
        let refused = OAuth::builder("a test").client_id_metadata_url(url);
        assert_eq!(refused.expect_err(url).code(), "invalid_url");
    }
}

/// A custom user agent whose redirect URI is not confidential.
struct Careless;

impl UserAgent for Careless {
    fn prepare<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>> {
        Box::pin(async { Ok(Box::new(Self) as Box<dyn SignIn>) })
    }
}

impl SignIn for Careless {
    fn redirect_uri(&self) -> &'static str {
        "http://host.example/back"
    }

    fn open(self: Box<Self>, _: String) -> BoxFuture<'static, Result<Redirected, UserAgentError>> {
        Box::pin(async { Err(UserAgentError::Cancelled) })
    }
}

#[runtimes::test]
async fn an_insecure_redirect_uri_is_neither_registered_nor_sent() {
    let world = World::exemplary().await;
    let oauth = OAuth::builder("a test").user_agent(Careless);
    let error = refusal(world.connect(oauth.build()).await);
    assert_eq!(error.code(), "insecure_url");
    assert!(error.to_string().contains("host.example"), "{error}");
    let requests = world.issuer.requests();
    assert_eq!(requests.count(Endpoint::Registration), 0);
    assert_eq!(requests.count(Endpoint::Authorization), 0);
}

/// A client with the client credentials grant, at a server whose tool `edit` needs another scope than `look`.
async fn worker(grants_more: bool) -> (World, Client) {
    let known = Registered {
        client_id: "worker".into(),
        client_secret: Some("secret".into()),
        auth_method: AuthMethod::Basic,
        ..Registered::default()
    };
    let scopes = if grants_more {
        vec![]
    } else {
        vec!["look".into()]
    };
    let config = Config {
        clients: vec![known],
        scopes,
        unknown_scope_is_error: false,
        ..Config::default()
    };
    let guarded = ResourceConfig {
        scope: Some("look".into()),
        needed: [("tools/call edit".to_owned(), "edit".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let world = World::start(config, guarded).await;
    let credentials = Credentials::new("worker").secret("secret");
    let oauth = OAuth::builder("a worker")
        .credentials(credentials)
        .client_credentials();
    let client = world.connect(oauth.build()).await.expect("connected");
    (world, client)
}

#[runtimes::test]
async fn client_credentials_step_up_to_the_needed_scope() {
    let (world, client) = worker(true).await;
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    assert_eq!(call(&client, "edit").await.expect("a result"), "edited");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    let requests = world.issuer.requests();
    let scopes: Vec<_> = requests
        .of(Endpoint::Token)
        .filter_map(|request| request.parameter("scope"))
        .collect();
    assert_eq!(scopes, ["look", "look edit"]);
}

#[runtimes::test]
async fn client_credentials_give_up_on_a_scope_that_is_not_granted() {
    let (world, client) = worker(false).await;
    let error = refusal(call(&client, "edit").await);
    assert_eq!(error.code(), "insufficient_scope");
    assert_eq!(world.grants("client_credentials"), 2);
    // The rest still works.
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.grants("client_credentials"), 2);
}

#[runtimes::test]
async fn credentials_of_another_issuer_are_not_sent() {
    let config = Config {
        registration: false,
        client_id_documents: false,
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let credentials = Credentials::new("known")
        .secret("secret")
        .issuer("https://elsewhere.example");
    let error = refusal(
        world
            .connect(world.oauth().credentials(credentials).build())
            .await,
    );
    assert_eq!(error.code(), "credentials_issuer_mismatch");
    let requests = world.issuer.requests();
    assert_eq!(
        requests.count(Endpoint::Authorization) + requests.count(Endpoint::Token),
        0
    );
}

#[runtimes::test]
async fn client_credentials_authenticate_by_secret_or_by_key() {
    let entropy = ring::rand::SystemRandom::new();
    let pkcs8 = ring::signature::EcdsaKeyPair::generate_pkcs8(
        &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        &entropy,
    )
    .expect("a key");
    let pem = rcgen::KeyPair::try_from(pkcs8.as_ref())
        .expect("a key")
        .serialize_pem();
    let key = mcpline::jose::SigningKey::from_pem(pem.as_bytes(), None, &entropy).expect("a key");
    let jwk = serde_json::Value::Object(key.public_jwk().to_json());
    let clients = vec![
        Registered {
            client_id: "worker".into(),
            client_secret: Some("secret".into()),
            auth_method: AuthMethod::Basic,
            ..Registered::default()
        },
        Registered {
            client_id: "signer".into(),
            auth_method: AuthMethod::PrivateKeyJwt,
            jwks: Some(serde_json::json!({"keys": [jwk]})),
            ..Registered::default()
        },
    ];
    let config = Config {
        clients,
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let with_password = Credentials::new("worker").secret("secret");
    let with_key = Credentials::new("signer")
        .private_key(pem.as_bytes(), Some("ES256"), None)
        .expect("a key");
    for credentials in [with_password, with_key] {
        let oauth = OAuth::builder("a worker")
            .credentials(credentials)
            .client_credentials();
        let client = world.connect(oauth.build()).await.expect("connected");
        assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        client.close().await;
    }
    assert_eq!(world.grants("client_credentials"), 2);
}

#[runtimes::test]
async fn enterprise_authorization_replaces_the_sign_in() {
    let provider = authorization_server::AuthorizationServer::start(Config {
        clients: vec![Registered {
            client_id: "at-idp".into(),
            ..Registered::default()
        }],
        ..Config::default()
    })
    .await
    .expect("an identity provider");
    let trusted = authorization_server::TrustedIssuer {
        issuer: provider.issuer(),
        jwks: provider.jwks(),
    };
    let known = Registered {
        client_id: "at-idp".into(),
        client_secret: Some("secret".into()),
        auth_method: AuthMethod::Basic,
        ..Registered::default()
    };
    let config = Config {
        trusted_issuers: vec![trusted],
        clients: vec![known],
        ..Config::default()
    };
    let world = World::start(config, ResourceConfig::default()).await;
    let id_token = provider.id_token("at-idp");
    let enterprise = Enterprise::new(provider.url("/token"), "at-idp", move |_| {
        let id_token = id_token.clone();
        async move { Ok(id_token) }
    });
    let credentials = Credentials::new("at-idp").secret("secret");
    let oauth = OAuth::builder("a host")
        .credentials(credentials)
        .enterprise(enterprise);
    let client = world.connect(oauth.build()).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(
        provider
            .requests()
            .grants("urn:ietf:params:oauth:grant-type:token-exchange"),
        1
    );
    assert_eq!(
        world.grants("urn:ietf:params:oauth:grant-type:jwt-bearer"),
        1
    );
}

#[runtimes::test]
async fn sends_dpop_tokens_with_a_proof_in_each_request() {
    for nonces in [false, true] {
        let config = Config {
            dpop: Dpop::Required,
            dpop_nonces: nonces,
            ..Config::default()
        };
        let guarded = ResourceConfig {
            dpop: true,
            ..ResourceConfig::default()
        };
        let world = World::start(config, guarded).await;
        let client = world
            .connect(world.oauth().dpop(true).build())
            .await
            .expect("connected");
        for _ in 0..3 {
            assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        }
        client.close().await;
        assert_eq!(world.sign_ins(), 1);
        let shown = world.resource.requests();
        let shown = shown
            .iter()
            .filter_map(|request| request.authorization.as_deref());
        assert!(shown.clone().count() > 3 && shown.clone().all(|value| value.starts_with("DPoP ")));
    }
}

#[runtimes::test]
async fn step_up_signs_in_once_for_all_scopes() {
    let guarded = ResourceConfig {
        scope: Some("look".into()),
        needed: [("tools/call edit".to_owned(), "edit".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let world = World::start(Config::default(), guarded).await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    assert_eq!(call(&client, "edit").await.expect("a result"), "edited");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    let requests = world.issuer.requests();
    let scopes: Vec<_> = requests
        .of(Endpoint::Authorization)
        .filter_map(|request| request.parameter("scope"))
        .collect();
    assert_eq!(scopes, ["look", "look edit"]);
}

#[runtimes::test]
async fn gives_up_on_a_scope_that_is_never_granted() {
    let guarded = ResourceConfig {
        scope: Some("look".into()),
        needed: [("tools/call edit".to_owned(), "admin".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let config = Config {
        scopes: vec!["look".into()],
        unknown_scope_is_error: false,
        ..Config::default()
    };
    let world = World::start(config, guarded).await;
    let client = world
        .connect(world.oauth().build())
        .await
        .expect("connected");
    let error = refusal(call(&client, "edit").await);
    assert_eq!(error.code(), "insufficient_scope");
    // The rest still works.
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
}

#[runtimes::test]
async fn fails_without_a_user_agent() {
    let world = World::exemplary().await;
    let error = refusal(world.connect(OAuth::builder("a host").build()).await);
    assert_eq!(error.code(), "unattended");
}

#[runtimes::test]
async fn sends_a_static_bearer_token_unchanged() {
    let world = World::exemplary().await;
    let token = world.issuer.issue("host", "", &world.resource.url());
    let client = world.connect(Auth::bearer(token)).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
}

#[runtimes::test]
async fn a_token_of_the_host_that_the_server_refuses_is_an_authorization_failure() {
    let world = World::exemplary().await;
    let error = refusal(world.connect(Auth::bearer("wrong")).await);
    assert_eq!(error.code(), "token_rejected");
    let mut settings = HttpSettings::default();
    settings.headers = vec![("authorization".to_owned(), "Bearer wrong".to_owned())];
    let error = refusal(Client::connect(Address::Url(world.resource.url(), settings)).await);
    assert_eq!(error.code(), "token_rejected");
    // Without a token, the host decides what the status means.
    let outcome =
        Client::connect(Address::Url(world.resource.url(), HttpSettings::default())).await;
    assert!(matches!(
        outcome,
        Err(mcpline::client::ClientError::Http { status: 401, .. })
    ));
}

#[runtimes::test]
async fn a_token_of_the_host_that_lacks_a_scope_is_an_authorization_failure() {
    let guarded = ResourceConfig {
        needed: [("tools/call edit".to_owned(), "edit".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let world = World::start(Config::default(), guarded).await;
    let token = world.issuer.issue("host", "", &world.resource.url());
    let mut settings = HttpSettings::default();
    settings.headers = vec![("Authorization".to_owned(), format!("Bearer {token}"))];
    let with_header = Client::connect(Address::Url(world.resource.url(), settings)).await;
    let same = token.clone();
    let source = Auth::source(move |_| {
        let token = same.clone();
        async move { Ok(token.into()) }
    });
    for client in [
        with_header.expect("connected"),
        world.connect(Auth::bearer(token)).await.expect("connected"),
        world.connect(source).await.expect("connected"),
    ] {
        assert_eq!(call(&client, "look").await.expect("a result"), "seen");
        let error = refusal(call(&client, "edit").await);
        assert_eq!(error.code(), "insufficient_scope");
        assert_eq!(
            error.to_string(),
            "insufficient scope: the server requires edit"
        );
        client.close().await;
    }
}

#[runtimes::test]
async fn requests_a_new_token_from_the_source_when_the_server_refuses() {
    let world = World::exemplary().await;
    let requests = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let good = world.issuer.issue("host", "", &world.resource.url());
    let (counts, url) = (requests.clone(), world.resource.url());
    let auth = Auth::source(move |wanted| {
        let (number, good) = (counts.fetch_add(1, Ordering::Relaxed), good.clone());
        assert_eq!(
            (wanted.server.as_str(), wanted.refused),
            (url.as_str(), number > 0)
        );
        async move {
            Ok(if number == 0 {
                "stale".into()
            } else {
                good.into()
            })
        }
    });
    let client = world.connect(auth).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(requests.load(Ordering::Relaxed), 2);
    let error = refusal(
        world
            .connect(Auth::source(|_| async { Ok("stale".into()) }))
            .await,
    );
    assert_eq!(error.code(), "token_rejected");
}
