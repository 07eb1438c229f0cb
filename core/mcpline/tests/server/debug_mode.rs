//! Debug mode: internal errors reach the client, and results are validated.

use crate::support::Client;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Resource, Tool};
use mcpline::server::{HandlerError, ToolOptions};
use mcpline::{Server, Settings, ToolError, ToolReply};
use serde_json::json;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the forecast")]
struct Unreadable(#[source] std::num::ParseIntError);

fn unreadable() -> Unreadable {
    Unreadable("x".parse::<i32>().expect_err("no number"))
}

/// A server whose features fail.
fn server(debug: bool) -> Server {
    let mut settings = Settings::default();
    settings.debug = Some(debug);
    settings.check_output = false;
    let builder = Server::builder("debugged", "1").settings(settings);
    let server = builder.build().expect("valid settings");
    let mut counts = Tool::new("misfit", json!({"type": "object"}));
    counts.output_schema = Some(json!({"type": "object", "required": ["count"]}));
    server
        .add_tool_fn(counts, ToolOptions::default(), async || ToolReply {
            structured: Raw::parse(&b"{}"[..]).ok(),
            ..ToolReply::default()
        })
        .expect("a tool");
    server
        .tool("internal", "Fails", async || {
            Err::<String, _>(HandlerError::Internal("the disk is full".into()))
        })
        .tool("exception", "Fails", async || {
            Err::<String, _>(HandlerError::Exception {
                summary: "OSError: the disk is full".into(),
                trace: "OSError: the disk is full\n    at secret.py:7".into(),
            })
        })
        .tool("panics", "Panics", async || -> String { panic!("oh no") })
        .tool("sources", "Fails", async || -> Result<String, ToolError> {
            Err(unreadable())?
        })
        .resource(Resource::new("a://b", "b"), async || {
            Err::<String, _>(HandlerError::Internal("the disk is full".into()))
        })
}

/// The text of each tool's result, and the message of the resource's error.
async fn texts(server: &Server) -> Vec<String> {
    let mut client = Client::modern(server);
    let mut texts = Vec::new();
    for tool in ["internal", "exception", "panics", "sources", "misfit"] {
        let result = client.call_modern(tool, json!({})).await.expect("a result");
        let text = result["content"][0]["text"].as_str().expect("a text");
        texts.push(text.to_owned());
    }
    let id = client.begin_modern("resources/read", json!({"uri": "a://b"}));
    let error = client.response(&id).await.expect_err("an error");
    texts.push(error["message"].as_str().expect("a message").to_owned());
    texts
}

#[runtimes::test]
async fn internal_errors_are_masked_by_default() {
    let expected = [
        "Error executing tool internal",
        "Error executing tool exception",
        "Error executing tool panics",
        "cannot read the forecast",
        "{}",
        "resources/read failed",
    ];
    assert_eq!(texts(&server(false)).await, expected);
}

#[runtimes::test]
async fn clients_get_internal_errors_without_stack_traces() {
    let misfit =
        "Error executing tool misfit: the structured content does not fit the output schema: ";
    let expected = [
        "Error executing tool internal: the disk is full",
        "Error executing tool exception: OSError: the disk is full",
        "Error executing tool panics: the handler panicked: oh no",
        "cannot read the forecast: invalid digit found in string",
        "resources/read failed: the disk is full",
    ];
    let mut texts = texts(&server(true)).await;
    assert_eq!(texts.remove(4).find(misfit), Some(0));
    assert_eq!(texts, expected);
}
