//! Tools about the caller and the server.

use std::sync::Arc;

use mcpline::protocol::vocabulary::{Prompt, PromptMessage, Resource, Role, TextContent};
use mcpline::server::ToolOptions;
use mcpline::{Context, Error, Json, Server};
use schemars::JsonSchema;
use serde::Serialize;

use crate::content::{Nothing, plain};
use crate::state::State;

/// The resource whose subscribers are notified.
pub(crate) const WATCHED: &str = "test://watched-resource";

#[derive(Serialize, JsonSchema)]
struct RequestInfo {
    revision: String,
    client: String,
    capabilities: String,
    header: String,
}

/// Adds or removes a feature, and returns whether it was added.
type Toggle = fn(&Server) -> Result<bool, Error>;

fn request_info(ctx: &Context) -> RequestInfo {
    let peer = ctx.peer();
    let text = |name: &str| {
        let info = peer.info.as_ref()?.member(name)?;
        Some(info.string_value()?.into_owned())
    };
    let client = match (text("name"), text("version")) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        _ => "none".to_owned(),
    };
    let mut capabilities: Vec<String> = peer
        .capabilities
        .members()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.into_owned())
        .collect();
    capabilities.sort();
    RequestInfo {
        revision: ctx.revision().as_str().to_owned(),
        client,
        capabilities: capabilities.join(","),
        header: ctx
            .http()
            .and_then(|http| http.header("x-fixture").map(str::to_owned))
            .unwrap_or_else(|| "none".to_owned()),
    }
}

/// Adds these tools.
pub(crate) fn add(server: &Server, state: &Arc<State>) -> Result<(), Error> {
    let (own, state) = (server.clone(), state.clone());
    let server = server
        .clone()
        .tool(
            "test_request_info",
            "Tells who asks",
            |_: Nothing, ctx: Context| async move { Json(request_info(&ctx)) },
        )
        .tool(
            "test_update_resource",
            "Updates a resource",
            move |_: Nothing, _: Context| {
                let version = state.raise();
                own.notify_resource_updated(WATCHED);
                async move { format!("version {version}") }
            },
        );
    let changer = |toggle: Toggle| {
        let own = server.clone();
        move |_: Nothing, _: Context| {
            let changed = toggle(&own);
            async move { changed.map(|added| if added { "added" } else { "removed" }) }
        }
    };
    let changes: [(&str, Toggle); 3] = [
        ("test_trigger_tool_change", toggle_tool),
        ("test_trigger_prompt_change", toggle_prompt),
        ("test_trigger_resource_change", toggle_resource),
    ];
    for (name, toggle) in changes {
        let tool = plain(name, "Changes a list");
        let run = changer(toggle);
        server.add_tool_fn(
            tool,
            ToolOptions::default(),
            move |args: Nothing, ctx: Context| {
                let changed = run(args, ctx);
                async move { changed.await.map_err(mcpline::ToolError::from) }
            },
        )?;
    }
    Ok(())
}

fn toggle_tool(server: &Server) -> Result<bool, Error> {
    if server.remove_tool("test_dynamic_tool") {
        return Ok(false);
    }
    let tool = plain("test_dynamic_tool", "Comes and goes");
    server.add_tool_fn(
        tool,
        ToolOptions::default(),
        |_: Nothing, _: Context| async { "dynamic" },
    )?;
    Ok(true)
}

fn toggle_prompt(server: &Server) -> Result<bool, Error> {
    if server.remove_prompt("test_dynamic_prompt") {
        return Ok(false);
    }
    let prompt = Prompt::new("test_dynamic_prompt").with_description("Comes and goes");
    let _ = server
        .clone()
        .prompt(prompt, |_: Nothing, _: Context| async {
            vec![PromptMessage::new(Role::User, TextContent::new("dynamic"))]
        });
    Ok(true)
}

fn toggle_resource(server: &Server) -> Result<bool, Error> {
    let uri = "test://dynamic-resource";
    if server.remove_resource(uri) {
        return Ok(false);
    }
    let resource = Resource::new(uri, "dynamic-resource")
        .with_description("Comes and goes")
        .with_mime_type("text/plain");
    let _ = server
        .clone()
        .resource(resource, |_: Context| async { "dynamic" });
    Ok(true)
}
