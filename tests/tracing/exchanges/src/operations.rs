//! What the client does: every kind of request, in a span with the name that `golden.json` has.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use mcpline::Revision;
use mcpline::client::{Client, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{
    CompleteArgument, CompleteParams, LoggingLevel, PromptReference,
};
use serde_json::json;
use tokio::sync::Notify;
use tracing::Instrument as _;

type Performing<'a> = Pin<Box<dyn Future<Output = Result<(), ClientError>> + 'a>>;

/// Performs an operation, whose result does not matter.
fn only<'a, T>(operation: impl Future<Output = Result<T, ClientError>> + 'a) -> Performing<'a> {
    Box::pin(async move { operation.await.map(drop) })
}

fn call<'a>(client: &'a Client, tool: &'a str) -> Performing<'a> {
    only(client.call_tool(tool, json!({})))
}

/// Calls a tool, and drops the call when its handler runs.
async fn cancel(client: &Client) -> Result<(), ClientError> {
    let running = Arc::new(Notify::new());
    let runs = running.clone();
    let options = RequestOptions::new().on_progress(move |_| runs.notify_one());
    tokio::select! {
        outcome = client.call_tool_with("hangs", json!({}), &options) => outcome.map(drop),
        () = running.notified() => Ok(()),
    }
}

async fn get_prompt(client: &Client) -> Result<(), ClientError> {
    let arguments = BTreeMap::from([("topic".to_owned(), "code".to_owned())]);
    client.get_prompt("review", &arguments).await.map(drop)
}

async fn request_unknown(client: &Client) -> Result<(), ClientError> {
    let options = RequestOptions::new();
    client
        .request("example/missing", None, &options)
        .await
        .map(drop)
}

fn operations(client: &Client, revision: Revision) -> Vec<(&'static str, Performing<'_>)> {
    let topic = CompleteParams::new(
        PromptReference::new("review"),
        CompleteArgument::new("topic", "c"),
    );
    let mut operations = vec![
        ("tools/list", only(client.list_tools())),
        ("tools/call", call(client, "works")),
        ("tools/call, a tool error", call(client, "refuses")),
        ("tools/call, an exception", call(client, "breaks")),
        (
            "tools/call, an error of the handler",
            call(client, "rejects"),
        ),
        ("tools/call, an unknown tool", call(client, "missing")),
        ("tools/call, cancelled", Box::pin(cancel(client))),
        ("tools/call, sampling", call(client, "samples")),
        ("tools/call, roots", call(client, "lists_roots")),
        ("resources/list", only(client.list_resources())),
        (
            "resources/templates/list",
            only(client.list_resource_templates()),
        ),
        ("resources/read", only(client.read_resource("note://a"))),
        (
            "resources/read, of a template",
            only(client.read_resource("note://numbered/7")),
        ),
        (
            "resources/read, an unknown resource",
            only(client.read_resource("note://missing")),
        ),
        ("prompts/list", only(client.list_prompts())),
        ("prompts/get", Box::pin(get_prompt(client))),
        (
            "completion/complete",
            only(async move { client.complete(&topic).await }),
        ),
        ("an unknown method", Box::pin(request_unknown(client))),
    ];
    if revision != Revision::V2024_11_05 {
        operations.push(("tools/call, elicitation", call(client, "elicits")));
    }
    if revision != Revision::V2026_07_28 {
        operations.push(("ping", only(client.ping())));
        operations.push((
            "logging/setLevel",
            only(client.set_log_level(LoggingLevel::Warning)),
        ));
        operations.push(("resources/subscribe", only(client.subscribe("note://a"))));
        operations.push((
            "resources/unsubscribe",
            only(client.unsubscribe("note://a")),
        ));
    }
    operations
}

/// Performs all operations that a revision has, one after the other.
///
/// # Errors
///
/// Something else than a JSON-RPC error.
pub(crate) async fn perform(client: &Client, revision: Revision) -> Result<(), ClientError> {
    for (name, operation) in operations(client, revision) {
        let span = tracing::info_span!("operation", otel.name = name);
        match operation.instrument(span).await {
            Ok(()) | Err(ClientError::Rpc(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
