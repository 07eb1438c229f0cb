//! A server over stdio alone. It links no HTTP, no TLS, no OAuth and no client.

use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::{Context, Error, Server, transport};

#[derive(serde::Deserialize)]
struct Forecast {
    city: String,
}

fn main() -> Result<(), Error> {
    let server = Server::new("weather", "1.0.0");
    // With the feature `schemars`, `Server::tool` derives the schema from the type.
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    let mut tool = Tool::new("forecast", schema);
    tool.description = Some("Forecast for a city".into());
    server.add_tool_fn(
        tool,
        ToolOptions::default(),
        |args: Forecast, _ctx: Context| async move { format!("{}: sunny", args.city) },
    )?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(server.serve(transport::stdio()))
}
