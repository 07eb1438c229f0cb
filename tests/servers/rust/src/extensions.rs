//! Features of `--extensions 1`: two extensions of the protocol with their methods, tools, prompt and resource.

use std::sync::Arc;

use mcpline::protocol::vocabulary::{JsonObject, Prompt, Resource, Tool};
use mcpline::server::{Extension, Reply, ServerBuilder, ToolOptions};
use mcpline::{Context, Error, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::Nothing;
use crate::input_requests::raw;
use crate::state::State;

const STAMPS: &str = "com.example/stamps";
const RECEIPTS: &str = "com.example/receipts";
const RECEIPT: &str = "acme/receipt";

#[derive(Deserialize, JsonSchema)]
struct Issue {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Used {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Redeem {
    token: String,
}

/// Declares the extensions, with their methods.
pub(crate) fn declare(builder: ServerBuilder, state: &Arc<State>) -> ServerBuilder {
    let gates = state.clone();
    let settings = JsonObject::from_iter([("colors".to_owned(), json!(3))]);
    let stamps = Extension::new(STAMPS)
        .with_settings(settings)
        .on_request("acme/issue", |issue: Issue, ctx: Context| async move {
            let settings = ctx.client_extension(STAMPS);
            let settings = settings.and_then(|settings| settings.decode::<Value>().ok());
            Ok::<_, HandlerError>(json!({"stamp": issue.color, "for": settings}))
        })
        .on_notification("acme/used", move |used: Used, _: Context| {
            gates.gates.set(&used.name);
            async {}
        });
    let receipts = Extension::new(RECEIPTS)
        .with_result_type(RECEIPT)
        .on_request("acme/redeem", |redeem: Redeem, _: Context| async move {
            Ok::<_, HandlerError>(match &*redeem.token {
                "endless" => json!({"resultType": RECEIPT, "token": "endless"}),
                token => {
                    json!({"content": [{"type": "text", "text": format!("redeemed {token}")}]})
                }
            })
        });
    builder.extension(stamps).extension(receipts)
}

/// Returns a result whose type is defined by an extension.
fn result(result_type: &str) -> Result<Reply, HandlerError> {
    let result = json!({"resultType": result_type, "token": "t-1"});
    let result = raw(&result).ok_or_else(|| HandlerError::Internal("no JSON".to_owned()))?;
    Ok(Reply::Result(result))
}

/// Adds the tools, the prompt and the resource.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let schema = json!({"type": "object"});
    server.add_tool_fn(
        Tool::new("test_extension", schema.clone())
            .with_description("Needs an extension that the client declares"),
        ToolOptions::default(),
        |_: Nothing, ctx: Context| async move {
            ctx.require_extension(STAMPS)?;
            Ok::<_, HandlerError>("stamps declared")
        },
    )?;
    for (name, result_type, description) in [
        ("test_receipt", RECEIPT, "Returns a receipt"),
        (
            "test_stray_type",
            "acme/none",
            "Returns a result of a type that no extension has",
        ),
    ] {
        server.add_tool_fn(
            Tool::new(name, schema.clone()).with_description(description),
            ToolOptions::default(),
            move |_: Nothing, _: Context| async move { result(result_type) },
        )?;
    }
    let _ = server
        .clone()
        .prompt(
            Prompt::new("test_receipt_prompt").with_description("Returns a receipt"),
            |_: Nothing, _: Context| async { result(RECEIPT) },
        )
        .resource(
            Resource::new("test://receipt", "receipt").with_description("Returns a receipt"),
            || async { result(RECEIPT) },
        );
    Ok(())
}
