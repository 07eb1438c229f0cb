//! The authorization endpoints that clients of 2025-03-26 expect at the server's origin: they lead to its issuer.

use std::sync::Arc;

use crate::support::authorized::{Answer, Rig, ask};
use authorization_server::{AuthorizationServer, Config, Endpoint};
use axum::Router;
use mcpline::auth::ResourceServer;
use mcpline::server::Settings;
use mcpline::transport::http::HttpOptions;
use mcpline::{Revision, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const METADATA: &str = "/.well-known/oauth-authorization-server";

async fn rig() -> Rig {
    Rig::start(Server::new("protected", "1"), |builder, issuer| {
        builder.issuer(issuer.issuer())
    })
    .await
}

async fn get(rig: &Rig, path: &str) -> Answer {
    rig.ask("GET", path, &[], &Value::Null).await
}

fn location(answer: &Answer) -> &str {
    answer
        .header("location")
        .unwrap_or_else(|| panic!("{answer:?}"))
}

#[runtimes::test]
async fn the_origin_serves_metadata_that_point_to_the_issuer() {
    let rig = rig().await;
    let answer = get(&rig, METADATA).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let issuer = rig.issuer.issuer();
    assert_eq!(
        answer.body,
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("http://{}/authorize", rig.address),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "scopes_supported": ["mcp"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            // Methods that the official clients of that time do not know are omitted.
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        })
    );
    let preflight = rig.ask("OPTIONS", METADATA, &[], &Value::Null).await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-headers"), Some("*"));
}

#[runtimes::test]
async fn redirects_users_to_the_issuer_with_the_resource_and_its_scopes() {
    let rig = rig().await;
    let answer = get(&rig, "/authorize?state=a%26b&client_id=c").await;
    assert_eq!(answer.status, 302);
    let issuer = rig.issuer.issuer();
    let resource: String = form_urlencoded::byte_serialize(rig.resource.as_bytes()).collect();
    let expected =
        format!("{issuer}/authorize?state=a%26b&client_id=c&resource={resource}&scope=mcp");
    assert_eq!(location(&answer), expected);
    let own = get(&rig, "/authorize?scope=x&resource=y").await;
    assert_eq!(
        location(&own),
        format!("{issuer}/authorize?scope=x&resource=y"),
        "what the client says itself stays"
    );
}

#[runtimes::test]
async fn redirects_token_and_registration_requests_with_method_and_body() {
    let rig = rig().await;
    for (path, endpoint) in [
        ("/token", Endpoint::Token),
        ("/register", Endpoint::Registration),
    ] {
        let answer = rig.ask("POST", path, &[], &json!({})).await;
        assert_eq!(answer.status, 307, "{path}");
        let issuer = rig.issuer.issuer();
        assert_eq!(location(&answer), format!("{issuer}{path}"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let read = get(&rig, path).await;
        assert_eq!(
            (read.status, read.header("allow")),
            (405, Some("POST, OPTIONS"))
        );
        assert_eq!(
            rig.issuer.requests().count(endpoint),
            0,
            "nothing passes through us"
        );
    }
}

#[runtimes::test]
async fn offers_no_registration_if_the_issuer_has_none() {
    let config = Config {
        registration: false,
        ..Config::default()
    };
    let server = Server::new("protected", "1");
    let rig = Rig::start_with(config, server, |builder, issuer| {
        builder.issuer(issuer.issuer())
    });
    let rig = rig.await;
    let answer = get(&rig, METADATA).await;
    assert_eq!(answer.body.get("registration_endpoint"), None);
    assert_eq!(
        rig.ask("POST", "/register", &[], &json!({})).await.status,
        404
    );
}

/// Asserts that the four endpoints do not exist.
async fn assert_nothing(rig: &Rig, why: &str) {
    for path in [METADATA, "/authorize", "/token", "/register"] {
        let method = if path == METADATA || path == "/authorize" {
            "GET"
        } else {
            "POST"
        };
        assert_eq!(
            rig.ask(method, path, &[], &Value::Null).await.status,
            404,
            "{why}: {path}"
        );
    }
}

#[runtimes::test]
async fn servers_unusable_for_such_clients_have_no_endpoints() {
    let several = Rig::start(Server::new("protected", "1"), |builder, issuer| {
        builder
            .issuer(issuer.issuer())
            .authorization_server("https://other.example.com")
    });
    assert_nothing(&several.await, "several issuers").await;
    let bound = Rig::start(Server::new("protected", "1"), |builder, issuer| {
        builder.issuer(issuer.issuer()).demand_proof_of_possession()
    });
    assert_nothing(&bound.await, "tokens bound to a key").await;
    let same_origin = Rig::start(Server::new("protected", "1"), |_, issuer| {
        let resource = format!("{}/mcp", issuer.issuer());
        ResourceServer::builder(resource).issuer(issuer.issuer())
    });
    assert_nothing(&same_origin.await, "an issuer at the server's own origin").await;
    let mut settings = Settings::default();
    settings.revisions = vec![Revision::V2025_06_18];
    let later = Server::builder("protected", "1").settings(settings);
    let later = later.build().expect("a server");
    let later = Rig::start(later, |builder, issuer| builder.issuer(issuer.issuer()));
    assert_nothing(&later.await, "another revision").await;
}

#[runtimes::test]
async fn fetches_the_issuers_metadata_once_for_many_requests() {
    let rig = rig().await;
    for _ in 0..20 {
        assert_eq!(get(&rig, METADATA).await.status, 200);
        assert_eq!(get(&rig, "/authorize?x=y").await.status, 302);
    }
    assert_eq!(rig.issuer.requests().count(Endpoint::Metadata), 1);
}

#[runtimes::test]
async fn answers_503_with_retry_after_while_the_issuer_is_down() {
    let config = Config {
        documents: [].into(),
        ..Config::default()
    };
    let server = Server::new("protected", "1");
    let rig = Rig::start_with(config, server, |builder, issuer| {
        builder.issuer(issuer.issuer())
    });
    let rig = rig.await;
    for path in [METADATA, "/authorize", METADATA] {
        let answer = get(&rig, path).await;
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.header("retry-after").is_some());
    }
    // One request at each of the two well-known URLs of an issuer without a path.
    assert_eq!(rig.issuer.requests().count(Endpoint::Metadata), 2);
}

#[runtimes::test]
async fn a_mounted_service_serves_the_same_endpoints() {
    let issuer = AuthorizationServer::start(Config::default())
        .await
        .expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let auth = ResourceServer::builder(format!("http://{address}/tools/mcp"))
        .issuer(issuer.issuer())
        .build()
        .expect("usable options");
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(auth));
    let service = Server::new("mounted", "1").http_service(options);
    // The application routes these paths to the service itself, next to the mount.
    let mut router = Router::new();
    for path in [METADATA, "/authorize", "/token", "/register"] {
        router = router.route_service(path, service.clone());
    }
    let router = router.nest_service("/tools", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let metadata = ask(address, "GET", METADATA, &[], &Value::Null).await;
    assert_eq!(metadata.body["issuer"], issuer.issuer());
    let sent = ask(address, "GET", "/authorize?a=b", &[], &Value::Null).await;
    assert!(location(&sent).starts_with(&issuer.issuer()), "{sent:?}");
    let token = ask(address, "POST", "/token", &[], &json!({})).await;
    assert_eq!(token.status, 307);
    let endpoint = ask(address, "POST", "/tools/mcp", &[], &json!({})).await;
    assert_eq!(endpoint.status, 401);
}
