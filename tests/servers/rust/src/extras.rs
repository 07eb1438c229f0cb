//! Features of `--extras 1`, for `tests/hostile` and some vectors: a tool that logs as many messages as requested, one
//! that makes the mistakes of an author, a template that is costly to match, and one for files.

use mcpline::protocol::vocabulary::{LoggingLevel, Resource, ResourceTemplate};
use mcpline::protocol::wire::Raw;
use mcpline::protocol::{ErrorCode, RpcError};
use mcpline::server::resource_list_handler;
use mcpline::{Context, Error, HandlerError, InputRequest, InputRequestMethod, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Flood {
    count: usize,
    size: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Mistake {
    kind: String,
}

/// Makes a mistake that mcpline rejects.
async fn mistake(kind: &str, ctx: &Context) -> Result<&'static str, HandlerError> {
    let say = |content: Value| json!({"messages": [{"role": "user", "content": content}], "maxTokens": 1});
    let hi = || say(json!({"type": "text", "text": "hi"}));
    let (method, params) = match kind {
        "reserved code" => {
            return Err(RpcError::new(ErrorCode(-32_050), "secret-detail-7c1f").into());
        }
        "nested form" => {
            let fields = json!({"address": {"type": "object", "properties": {}}});
            let form = json!({"type": "object", "properties": fields});
            (
                InputRequestMethod::Elicit,
                json!({"message": "Where?", "requestedSchema": form}),
            )
        }
        "bad url" => {
            let elicitation = json!({"mode": "url", "message": "Go", "url": "not a url"});
            (InputRequestMethod::Elicit, elicitation)
        }
        "lonely result" => {
            let result = json!({"type": "tool_result", "toolUseId": "a", "content": []});
            (InputRequestMethod::Sample, say(json!([result])))
        }
        "priority" => {
            let mut params = hi();
            params["modelPreferences"] = json!({"costPriority": 2});
            (InputRequestMethod::Sample, params)
        }
        "context" => {
            let mut params = hi();
            params["includeContext"] = "thisServer".into();
            (InputRequestMethod::Sample, params)
        }
        other => return Err(RpcError::invalid_params(format!("no mistake: {other}")).into()),
    };
    let params = Raw::from_serialize(&params).ok();
    ctx.request_input(InputRequest::new(method, params).with_key("wrong"))
        .await?;
    Ok("answered")
}

/// Adds these features.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let _ = server
        .clone()
        .tool(
            "test_flood",
            "Logs a number of messages of a size",
            |args: Flood, ctx: Context| async move {
                for _ in 0..args.count {
                    // Not kept while other handlers run, because this memory does not belong to the server.
                    ctx.log(LoggingLevel::Info, None, "x".repeat(args.size));
                    // Yields like a handler that does other work, so that the stream opens and a client can read it.
                    tokio::task::yield_now().await;
                }
                "flooded"
            },
        )
        .tool(
            "test_mistake",
            "Does what its author must not",
            |args: Mistake, ctx: Context| async move { mistake(&args.kind, &ctx).await },
        )
        .resource_template(
            ResourceTemplate::new("log://{host}-{day}-{name}", "logs")
                .with_description("Logs of a host")
                .with_mime_type("application/json"),
            |variables: Value, _: Context| async move { variables.to_string() },
        )
        .resource_template(
            ResourceTemplate::new("file:///extras/{name}", "extras")
                .with_description("Files by their names")
                .with_mime_type("application/json"),
            |variables: Value, _: Context| async move { variables.to_string() },
        );
    let list = || async {
        vec![
            Resource::new("file:///extras/one", "file:///extras/one"),
            Resource::new("file:///extras/two", "two").with_description("The second file"),
            Resource::new("file:///other/three", "file:///other/three"),
        ]
    };
    server.set_resource_template_list("file:///extras/{name}", resource_list_handler(list))?;
    Ok(())
}
