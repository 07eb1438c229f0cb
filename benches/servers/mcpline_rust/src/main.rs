//! mcpline for Rust serving two echo tools over stdio, or over HTTP with `--http PORT`.

use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::stdio;
use mcpline::{Context, Server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    text: String,
}

/// Responds with one body.
async fn echo(arguments: EchoArguments, _context: Context) -> String {
    arguments.text
}

/// Responds with an event stream: progress is sent before the result.
async fn echo_stream(arguments: EchoArguments, context: Context) -> String {
    context.progress(1.0, None, None);
    arguments.text
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve())
}

/// Returns the threads that serve connections: one, which applies to all figures except those for two cores.
fn io_threads() -> std::io::Result<usize> {
    Ok(match std::thread::available_parallelism()?.get() {
        1 => 0,
        cores => cores,
    })
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bench", "1.0.0")
        .tool("echo", "Echo", echo)
        .tool(
            "echo_stream",
            "Echo after a progress notification",
            echo_stream,
        );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "--http") {
        None => server.serve(stdio()).await?,
        Some(at) => {
            let port: u16 = arguments
                .get(at + 1)
                .ok_or("--http needs a port")?
                .parse()?;
            let mut options = HttpOptions::default();
            options.io_threads = io_threads()?;
            let listener = http(("127.0.0.1", port), options).await?;
            server.serve(listener).await?;
        }
    }
    Ok(())
}
