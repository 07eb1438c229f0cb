//! Signing in: an authorization server, a server that requires its tokens, and a client that gets one.
//!
//! `cargo run -p example-weather --bin signing-in`

#![allow(clippy::print_stdout, reason = "what the example shows")]

use std::sync::Arc;

use authorization_server::{AuthorizationServer, Config};
use mcpline::auth::{Auth, FunctionUserAgent, OAuth, ResourceServer, UserAgentError};
use mcpline::client::{Address, Client, HttpSettings};
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::transport::Stop;
use mcpline::transport::http::{Http, HttpOptions};
use mcpline::{Context, Server};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The redirect URI. Nothing listens there: `consent` reads the parameters from the redirect.
const REDIRECT: &str = "http://127.0.0.1:1/callback";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let issuing = AuthorizationServer::start(Config::default()).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let resource = format!("http://{}/mcp", listener.local_addr()?);

    let auth = ResourceServer::builder(&resource)
        .issuer(issuing.issuer())
        .required_scopes(["read"])
        .build()?;
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(auth));
    let (http, stop) = (Http::from_listener(listener, options)?, Stop::new());
    let serving = tokio::spawn({
        let (server, stop) = (notes()?, stop.clone());
        async move { server.serve_until(http, stop).await }
    });

    // Use a `Loopback` in your program: it opens the system's browser, where the user consents.
    let user_agent = FunctionUserAgent::new(REDIRECT, |url| async move {
        consent(&url).await.map_err(UserAgentError::other)
    })?;
    let oauth = OAuth::builder("Example host")
        .user_agent(user_agent)
        .build();
    let mut settings = HttpSettings::default();
    settings.auth = Some(Auth::oauth(oauth));
    let client = Client::connect(Address::Url(resource, settings)).await?;
    println!(
        "signed in as {}; tools: {}",
        text(&client, "whoami").await?,
        tools(&client).await?
    );
    // The token has the scope `read` only. The server's challenge names the scope that the tool needs, and the user
    // consents again.
    println!("{}", text(&client, "publish").await?);
    println!("tools: {}", tools(&client).await?);
    client.close().await;
    stop.stop();
    serving.await??;
    Ok(())
}

fn notes() -> Result<Server, mcpline::Error> {
    let server = Server::new("notes", "1.0.0").tool(
        "whoami",
        "Who calls",
        |_: Nothing, ctx: Context| async move { caller(&ctx) },
    );
    let schema = json!({"type": "object"});
    let publish = Tool::new(
        "publish",
        serde_json::from_value(schema).unwrap_or_default(),
    )
    .with_description("Publishes everything");
    let options = ToolOptions::default().with_scopes(["publish"]);
    server.add_tool_fn(publish, options, |_: Nothing, ctx: Context| async move {
        format!("published, for {} may", caller(&ctx))
    })?;
    Ok(server)
}

fn caller(ctx: &Context) -> String {
    let caller = ctx.auth();
    let subject = caller.as_ref().and_then(|caller| caller.subject());
    subject.unwrap_or("nobody").to_owned()
}

async fn text(client: &Client, tool: &str) -> Result<String, Failure> {
    let result = client.call_tool(tool, json!({})).await?;
    let result = serde_json::to_value(&result)?;
    Ok(result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

async fn tools(client: &Client) -> Result<String, Failure> {
    let tools = client.list_tools().await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    Ok(names.join(", "))
}

/// Requests the URL as a browser would. The authorization server consents immediately; returns the target of its
/// redirect.
async fn consent(url: &str) -> Result<String, Failure> {
    let rest = url.strip_prefix("http://").ok_or("not on this machine")?;
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(place).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    Ok(location.ok_or("nobody was redirected")?)
}
