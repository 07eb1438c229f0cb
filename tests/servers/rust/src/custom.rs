//! Custom requests and notifications, which no revision of the protocol defines.

use std::sync::Arc;

use mcpline::protocol::wire::Raw;
use mcpline::protocol::{ErrorCode, RpcError};
use mcpline::server::MethodOptions;
use mcpline::{Context, Error, HandlerError, InputRequest, InputRequestMethod, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failures::SECRET;
use crate::input_requests::{form, raw};
use crate::state::State;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Label {
    label: String,
}

/// Adds these requests.
pub(crate) fn add(server: &Server, state: &Arc<State>) -> Result<(), Error> {
    let (cancelled, gates) = (state.clone(), state.clone());
    let _ = server
        .clone()
        .on_request("acme/echo", |params: Text, ctx: Context| async move {
            ctx.progress(1.0, Some(2.0), None);
            let text = json!({"text": params.text});
            ctx.notify("acme/echoing", raw(&text).as_ref())
                .map_err(|error| HandlerError::Internal(error.to_string()))?;
            Ok::<_, HandlerError>(text)
        })
        .on_request("acme/params", |params: Value, _: Context| async move {
            Ok::<_, HandlerError>(json!({"params": params}))
        })
        .on_request("acme/ask", |_: Value, ctx: Context| async move {
            elicit_name(ctx).await
        })
        .on_request("acme/wait", move |params: Label, ctx: Context| {
            let recorded = cancelled.clone();
            ctx.on_cancel(move || recorded.cancelled.set(&params.label));
            async move {
                ctx.progress(0.0, Some(1.0), Some("waiting"));
                std::future::pending::<Result<Value, HandlerError>>().await
            }
        })
        .on_request("acme/fail", |_: Value, _: Context| async {
            let error = RpcError::new(ErrorCode(-31_050), "deliberate protocol error")
                .with_data(&json!({"reason": "fixture"}));
            Err::<Value, _>(HandlerError::Rpc(error))
        })
        .on_request("acme/exception", |_: Value, _: Context| async {
            fail(SECRET)
        })
        .on_request("acme/list", |_: Value, _: Context| async {
            Ok::<_, HandlerError>([1])
        })
        .on_request("acme/choose", |_: Value, ctx: Context| async move {
            choose(ctx).await
        })
        .on_notification("acme/note", move |note: Note, _: Context| {
            gates.gates.set(&note.name);
            async {}
        });
    add_scoped(server, state)
}

/// Adds the request and the notification that require a scope.
fn add_scoped(server: &Server, state: &Arc<State>) -> Result<(), Error> {
    let scope = || MethodOptions::default().with_scopes(["acme:write"]);
    let publish =
        |_: Value, _: Context| async { Ok::<_, HandlerError>(json!({"published": true})) };
    server.add_request_fn("acme/publish", scope(), publish)?;
    let gates = state.clone();
    server.add_notification_fn("acme/published", scope(), move |note: Note, _: Context| {
        gates.gates.set(&note.name);
        async {}
    })
}

async fn choose(ctx: Context) -> Result<Value, HandlerError> {
    let request = InputRequest::custom("acme/pick", raw(&json!({"from": [1, 2, 3]})));
    let request = request.map_err(|error| HandlerError::Internal(error.to_string()))?;
    let result: Raw = ctx.request_input(request.with_key("pick")).await?;
    let result: Value = result
        .decode()
        .map_err(|error| HandlerError::Internal(error.to_string()))?;
    Ok(json!({"picked": result["picked"]}))
}

async fn elicit_name(ctx: Context) -> Result<Value, HandlerError> {
    let params = form("Who?", json!({"name": {"type": "string"}}), &["name"]);
    let mut elicitation = InputRequest::new(InputRequestMethod::Elicit, raw(&params));
    elicitation.key = Some("user".to_owned());
    let answer: Raw = ctx.request_input(elicitation).await?;
    let answer: Value = answer
        .decode()
        .map_err(|error| HandlerError::Internal(error.to_string()))?;
    Ok(match answer["action"].as_str() {
        Some("accept") => json!({"name": answer["content"]["name"]}),
        _ => json!({}),
    })
}

fn fail(detail: &str) -> Result<Value, HandlerError> {
    panic!("{detail}")
}
