//! A server that requires tokens, mounted under a prefix of an axum application, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::authorized::{Answer, ask};
use crate::support::{self, Nothing};
use authorization_server::{AuthorizationServer, Config};
use axum::Router;
use mcpline::auth::{ResourceServer, ResourceServerBuilder};
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Server};
use mcpline_auth::url::Url;
use mcpline_auth::well_known;
use serde_json::Value;
use tokio::net::TcpListener;

struct Application {
    issuer: AuthorizationServer,
    address: SocketAddr,
    resource: String,
}

/// Starts an application with a server below `/tools`. With `well_known`, the application serves its metadata document.
async fn application(
    well_known: bool,
    change: impl FnOnce(ResourceServerBuilder, &str) -> ResourceServerBuilder,
) -> Application {
    let issuer = AuthorizationServer::start(Config::default());
    let issuer = issuer.await.expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let resource = format!("http://{address}/tools/mcp");
    let builder = ResourceServer::builder(&resource).issuer(issuer.issuer());
    let origin = format!("http://{address}");
    let auth = change(builder, &origin).build().expect("usable options");
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(auth));
    let service = Server::new("mounted", "1")
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .http_service(options);
    let mut router = Router::new();
    if well_known {
        let document = service.well_known().expect("there is authorization");
        router = router.route_service(document.path(), document.clone());
    }
    let router = router.nest_service("/tools", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Application {
        issuer,
        address,
        resource,
    }
}

impl Application {
    async fn begin(&self, token: Option<&str>) -> Answer {
        let bearer = format!("Bearer {}", token.unwrap_or_default());
        let headers = [("Authorization", bearer.as_str())];
        let body = support::requests::initialize("2025-11-25");
        ask(self.address, "POST", "/tools/mcp", &headers, &body).await
    }

    async fn read(&self, url: &str) -> Answer {
        let path = url.strip_prefix(&format!("http://{}", self.address));
        let path = path.expect("of this origin");
        ask(self.address, "GET", path, &[], &Value::Null).await
    }
}

#[runtimes::test]
async fn the_application_serves_the_metadata_that_challenges_point_to() {
    let application = application(true, |builder, _| builder).await;
    let refused = application.begin(None).await;
    assert_eq!(refused.status, 401);
    let challenge = refused.bearer();
    let url = challenge.get("resource_metadata").expect("a place");
    let resource = Url::parse("resource", &application.resource).expect("a URL");
    assert_eq!(url, well_known::resource_metadata(&resource)[0]);
    assert!(url.ends_with("/.well-known/oauth-protected-resource/tools/mcp"));
    let document = application.read(url).await;
    assert_eq!(document.status, 200);
    assert_eq!(document.body["resource"], application.resource);
    let claims = application
        .issuer
        .claims("client", "", &application.resource);
    let token = application.issuer.mint(&claims);
    assert_eq!(application.begin(Some(&token)).await.status, 200);
}

#[runtimes::test]
async fn a_mount_can_serve_its_metadata_under_its_own_prefix() {
    let application = application(false, |builder, origin| {
        builder.metadata_url(format!(
            "{origin}/tools/.well-known/oauth-protected-resource"
        ))
    })
    .await;
    let refused = application.begin(None).await;
    let challenge = refused.bearer();
    let document = application
        .read(challenge.get("resource_metadata").expect("a place"))
        .await;
    assert_eq!(document.status, 200);
    assert_eq!(document.body["resource"], application.resource);
    for (path, status) in [
        ("/tools/.well-known/oauth-protected-resource/tools/mcp", 200),
        ("/tools/.well-known/oauth-protected-resource2", 404),
        ("/tools/.well-known/other", 404),
    ] {
        let answer = ask(application.address, "GET", path, &[], &Value::Null).await;
        assert_eq!(answer.status, status, "{path}");
    }
}

#[runtimes::test]
async fn accepts_the_host_of_the_resource() {
    let auth = ResourceServer::builder("https://mcp.example.com/mcp")
        .issuer("https://auth.example.com")
        .build()
        .expect("usable options");
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(auth));
    let service = Server::new("named", "1").http_service(options);
    for (host, status) in [("mcp.example.com", 401), ("other.example.com", 403)] {
        let body = support::requests::initialize("2025-11-25");
        let request = support::requests::request(http::Method::POST, &[("host", host)], body);
        assert_eq!(service.handle(request).await.status(), status, "{host}");
    }
}

#[test]
fn rejects_unusable_options() {
    let builder = || ResourceServer::builder("https://mcp.example.com/mcp");
    let verified = || {
        builder().verifier(|_| async { Err(mcpline::auth::VerifyError::Invalid(String::new())) })
    };
    for (builder, part) in [
        (builder(), "no authorization server is configured"),
        (
            builder().authorization_server("https://auth.example.com"),
            "no token verification",
        ),
        (
            verified().metadata_url("https://mcp.example.com/about"),
            "no authorization server is configured",
        ),
        (
            verified().issuer("https://auth.example.com"),
            "set either a verifier",
        ),
        (
            builder().issuer("http://auth.example.com"),
            "must use https",
        ),
        (builder().issuer("auth"), "is not a valid URL"),
        (
            ResourceServer::builder("mcp.example.com").issuer("https://a.example"),
            "resource",
        ),
        (
            ResourceServer::builder("https://a.example/#x").issuer("https://a.example"),
            "fragment",
        ),
    ] {
        let error = builder.build().expect_err(part).to_string();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}
