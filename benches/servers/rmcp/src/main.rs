//! The official Rust SDK serving one echo tool over stdio, or over HTTP with `--http PORT`.
//!
//! Over HTTP it keeps no sessions and responds with JSON, its fastest mode; with `--sessions` it uses its defaults.

use std::error::Error;
use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ServiceExt, tool, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    text: String,
}

#[derive(Clone)]
struct Echo;

#[tool_router(server_handler)]
impl Echo {
    #[tool(description = "Echo")]
    async fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(at) = arguments.iter().position(|argument| argument == "--http") else {
        Echo.serve(rmcp::transport::stdio())
            .await?
            .waiting()
            .await?;
        return Ok(());
    };
    let port: u16 = arguments
        .get(at + 1)
        .ok_or("--http needs a port")?
        .parse()?;
    let mut config = StreamableHttpServerConfig::default();
    if !arguments.iter().any(|argument| argument == "--sessions") {
        config.legacy_session_mode = false;
        config.json_response = true;
    }
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
    // Like the other servers: a response in two packets would wait for the client's delayed acknowledgment.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = listener.tap_io(|stream| {
        // On failure the figures would be slow, but not wrong.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
