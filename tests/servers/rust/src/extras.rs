//! What only `tests/hostile` uses: a tool that logs as much as it is told, and a template that is costly to match.

use mcpline::protocol::vocabulary::{LoggingLevel, ResourceTemplate};
use mcpline::protocol::wire::Raw;
use mcpline::{Context, Error, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
struct Flood {
    count: usize,
    size: usize,
}

/// Adds these features.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let _ = server
        .clone()
        .tool(
            "test_flood",
            "Logs a number of messages of a size",
            |args: Flood, ctx: Context| async move {
                let text = Raw::string(&"x".repeat(args.size));
                for _ in 0..args.count {
                    ctx.log(LoggingLevel::Info, None, &text);
                    // As a handler does that works meanwhile: the stream is open, and read if anybody reads.
                    tokio::task::yield_now().await;
                }
                "flooded"
            },
        )
        .resource_template(
            ResourceTemplate::new("log://{host}-{day}-{name}", "logs")
                .with_description("Logs of a host")
                .with_mime_type("application/json"),
            |variables: Value, _: Context| async move { variables.to_string() },
        );
    Ok(())
}
