//! A resource in front of another service: which requests are admitted, and the challenges of the others.

mod client;

use authorization_server::{AuthorizationServer, Config, ProtectedResource, ResourceConfig};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;
use client::{Answer, get, send};
use serde_json::json;

async fn start(config: ResourceConfig) -> (AuthorizationServer, ProtectedResource) {
    let server = AuthorizationServer::start(Config::default()).await.unwrap();
    let router = Router::new().route("/mcp", post(async |body: String| body));
    let resource = server.protect(config, router).await.unwrap();
    (server, resource)
}

async fn call(resource: &ProtectedResource, token: Option<&str>, tool: &str) -> Answer {
    let mut request = Request::post(resource.url());
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let message = json!({"method": "tools/call", "params": {"name": tool}});
    send(request.body(Body::from(message.to_string())).unwrap()).await
}

#[tokio::test]
async fn admits_only_tokens_of_the_server_for_the_resource_with_the_scopes() {
    let (server, resource) = start(ResourceConfig {
        scope: Some("read".into()),
        needed: [("tools/call edit".to_owned(), "read write".to_owned())].into(),
        ..ResourceConfig::default()
    })
    .await;
    let without_token = call(&resource, None, "look").await;
    let place = format!(
        "{}/.well-known/oauth-protected-resource/mcp",
        resource.origin()
    );
    let challenge = format!("Bearer scope=\"read\", resource_metadata=\"{place}\"");
    assert_eq!(
        (
            without_token.status,
            without_token.header("www-authenticate")
        ),
        (401, Some(&*challenge))
    );
    let metadata = get(&place).await.json();
    assert_eq!(metadata["resource"], resource.url());
    assert_eq!(metadata["authorization_servers"], json!([server.issuer()]));

    let token = server.issue("client", "read", &resource.url());
    assert_eq!(call(&resource, Some(&token), "look").await.status, 200);
    let refused = call(&resource, Some(&token), "edit").await;
    assert_eq!(refused.status, 403);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer error=\"insufficient_scope\", scope=\"read write\""));
    for bad in [
        server.issue("client", "read", "https://example.com/mcp"),
        "nonsense".into(),
    ] {
        let refused = call(&resource, Some(&bad), "look").await;
        assert_eq!(refused.status, 401);
        assert!(
            refused
                .header("www-authenticate")
                .unwrap()
                .contains("error=\"invalid_token\"")
        );
    }
    server.revoke_access_tokens();
    assert_eq!(call(&resource, Some(&token), "look").await.status, 401);
    let calls = resource.requests();
    assert_eq!(calls.iter().filter(|call| call.status == 200).count(), 2);
    assert_eq!(calls[0].message.as_deref(), Some("tools/call"));
}
