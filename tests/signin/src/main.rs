//! `signin-server`: a protected server, standalone and mounted under a prefix, with the authorization server of both.
//! Runs until standard input ends.
//!
//! Prints one line of JSON once all of them listen: the endpoint of each server.

use std::error::Error;
use std::io::{Write, stdout};
use std::sync::Arc;

use authorization_server::{AuthorizationServer, Config};
use axum::Router;
use mcpline::auth::{Caller, ResourceServer};
use mcpline::transport::http::{Http, HttpOptions};
use mcpline::{Context, Server};
use serde_json::json;
use tokio::io::{AsyncReadExt, stdin};
use tokio::net::TcpListener;

const PLACES: [&str; 4] = [
    "/.well-known/oauth-authorization-server",
    "/authorize",
    "/token",
    "/register",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = AuthorizationServer::start(Config {
        // Clients of that time do not know `resource`; the server adds it where it can.
        resource_required: false,
        ..Config::default()
    })
    .await?;
    let alone = TcpListener::bind(("127.0.0.1", 0)).await?;
    let endpoint = format!("http://{}/mcp", alone.local_addr()?);
    let http = Http::from_listener(alone, options(&issuer, &endpoint)?)?;
    tokio::spawn(async move { server().serve(http).await });

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let mounted = format!("http://{}/tools/mcp", listener.local_addr()?);
    let service = server().http_service(options(&issuer, &mounted)?);
    let mut router = Router::new();
    for place in PLACES {
        router = router.route_service(place, service.clone());
    }
    let router = router.nest_service("/tools", service);
    tokio::spawn(async move { axum::serve(listener, router).await });

    writeln!(
        stdout(),
        "{}",
        json!({"alone": endpoint, "mounted": mounted})
    )?;
    let mut ignored = [0; 1024];
    while stdin().read(&mut ignored).await? > 0 {}
    Ok(())
}

fn options(issuer: &AuthorizationServer, resource: &str) -> Result<HttpOptions, Box<dyn Error>> {
    let auth = ResourceServer::builder(resource)
        .issuer(issuer.issuer())
        .required_scopes(["mcp"])
        .build()?;
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(auth));
    Ok(options)
}

fn server() -> Server {
    Server::new("protected", "1").tool(
        "whoami",
        "Tells who calls, and for what",
        |_: serde_json::Map<String, serde_json::Value>, context: Context| async move {
            let auth = context.auth();
            let subject = auth.as_ref().and_then(Caller::subject).unwrap_or("nobody");
            let audience = auth.as_ref().map(Caller::audience).unwrap_or_default();
            format!("{subject} for {}", audience.join(" "))
        },
    )
}
