//! A server of a request of its own, `acme/echo`.
//!
//! `cargo run -p example-weather --bin custom-methods` serves stdio, `… -- --http 8000` HTTP.

use mcpline::protocol::Raw;
use mcpline::transport::{self, http::HttpOptions};
use mcpline::{Context, Error, HandlerError, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Text {
    text: String,
}

/// Returns the text, after progress and a notification of our own.
async fn echo(params: Text, ctx: Context) -> Result<Text, HandlerError> {
    ctx.progress(1.0, Some(2.0), None);
    let note = Raw::from_serialize(&params).map_err(internal)?;
    ctx.notify("acme/echoing", Some(&note)).map_err(internal)?;
    Ok(params)
}

fn internal(error: impl ToString) -> HandlerError {
    HandlerError::Internal(error.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let server = Server::new("custom-methods", "1.0.0").on_request("acme/echo", echo);
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--http"), Some(port)) => {
            let port = port.parse().unwrap_or(8000);
            let http = transport::http::http(("127.0.0.1", port), HttpOptions::default()).await?;
            server.serve(http).await
        }
        _ => server.serve(transport::stdio()).await,
    }
}
