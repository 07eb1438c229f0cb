//! `browser-visit NAME`: a client with this name, which sends its user to an authorization server with a consent page.
//!
//! Prints one line of JSON with the URL to open, `{"open": URL}`, and one with the outcome: `{"called": TEXT}` or
//! `{"refused": CODE}`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use authorization_server::{AuthorizationServer, Config, Consent, ResourceConfig};
use axum::Router;
use mcpline::auth::{Auth, Loopback, OAuth};
use mcpline::client::{Address, Client, ClientError, HttpSettings};
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Server};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("browser-visit: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: browser-visit NAME")?;
    let config = Config {
        consent: Consent::Page,
        ..Config::default()
    };
    let issuer = AuthorizationServer::start(config).await?;
    let server =
        Server::new("guarded", "1")
            .tool("look", "Looks", |_: Nothing, _: Context| async { "seen" });
    let router = Router::new().fallback_service(server.http_service(HttpOptions::default()));
    let resource = ResourceConfig {
        scope: Some("look listen".into()),
        ..ResourceConfig::default()
    };
    let resource = issuer.protect(resource, router).await?;
    let user = Loopback::new()
        .client_name(&name)
        .without_browser()
        .when_unopened(|url, _| say(&json!({"open": url})));
    let mut settings = HttpSettings::default();
    settings.auth = Some(Auth::oauth(OAuth::builder(&name).user_agent(user).build()));
    let called = async {
        let client = Client::connect(Address::Url(resource.url(), settings)).await?;
        let result = client.call_tool("look", json!({})).await?;
        client.close().await;
        Ok::<_, ClientError>(result)
    };
    match called.await {
        Ok(result) => say(&json!({"called": serde_json::to_value(&result.content)?[0]["text"]})),
        Err(ClientError::AuthorizationFailed(error)) => say(&json!({"refused": error.code()})),
        Err(other) => return Err(other.into()),
    }
    // The final page can still be fetched until the caller closes stdin.
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn say(line: &Value) {
    let mut out = stdout();
    // If this fails, the caller is gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
