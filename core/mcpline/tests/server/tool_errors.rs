//! `?` in tools: what becomes an error for the model, and what remains an error of the protocol.

use anyhow::Context as _;
use mcpline::client::{Client, ClientError};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::vocabulary::CreateMessageParams;
use mcpline::{Context, Revision, Server, ToolError};
use serde_json::{Value, json};

fn broken_file() -> anyhow::Result<String> {
    let missing = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
    Err::<String, _>(missing).context("the notes cannot be read")
}

fn server() -> Server {
    Server::new("test", "1")
        .tool("read", "", |_: Value, _: Context| async {
            Ok::<_, ToolError>(broken_file()?)
        })
        .tool("parse", "", |_: Value, _: Context| async {
            let number: i32 = "x".parse()?;
            Ok::<_, ToolError>(number)
        })
        .tool("ask", "", |_: Value, ctx: Context| async move {
            let params: CreateMessageParams =
                serde_json::from_value(json!({"messages": [], "maxTokens": 1}))?;
            ctx.sample(&params).await?;
            Ok::<_, ToolError>("answered")
        })
}

#[runtimes::test]
async fn errors_of_libraries_are_for_the_model_and_those_of_the_protocol_remain() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::builder("host", "1")
            .configure(|settings| settings.revisions = vec![revision])
            .connect(&server())
            .await
            .expect("connects");
        for (tool, text) in [
            ("read", "the notes cannot be read"),
            ("parse", "invalid digit found in string"),
        ] {
            let result = client.call_tool(tool, json!({})).await.expect("a result");
            let content = serde_json::to_value(&result.content).expect("JSON");
            assert_eq!(result.is_error, Some(true));
            assert_eq!(content[0]["text"], text);
        }
        // The client declares no sampling. Earlier revisions have no error for that.
        let asked = client.call_tool("ask", json!({})).await;
        if revision.is_modern() {
            let Err(ClientError::Rpc(error)) = asked else {
                panic!("{asked:?}");
            };
            assert_eq!(error.code, ErrorCode::MISSING_CLIENT_CAPABILITY, "{error}");
        } else {
            let result = asked.expect("a result");
            let content = serde_json::to_value(&result.content).expect("JSON");
            assert_eq!(content[0]["text"], "client does not support sampling");
        }
    }
}
