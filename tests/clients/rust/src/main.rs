//! The Rust everything-client: `everything-client URL`, with the scenario's name in `MCP_CONFORMANCE_SCENARIO`.

mod authorization;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use mcpline::Revision;
use mcpline::client::{Client, ClientBuilder};
use mcpline::protocol::vocabulary::{ElicitAction, ElicitParams, ElicitResult, Tool};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: everything-client URL");
        return ExitCode::from(2);
    };
    match play(&scenario, &url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{scenario}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play(scenario: &str, url: &str) -> Outcome {
    if let Some(scenario) = scenario.strip_prefix("auth/") {
        return authorization::play(scenario, url).await;
    }
    match scenario {
        "initialize" | "json-schema-ref-no-deref" => lists_tools(url).await,
        "tools_call" => tools_call(url).await,
        "elicitation-sep1034-client-defaults" => elicitation_defaults(url).await,
        "sse-retry" => sse_retry(url).await,
        "request-metadata" => request_metadata(url).await,
        "sep-2322-client-request-state" => request_state(url).await,
        "http-standard-headers" => standard_headers(url).await,
        "http-custom-headers" => custom_headers(url).await,
        "http-invalid-tool-headers" => invalid_tool_headers(url).await,
        "json-schema-2020-12-preservation" => schema_preservation(url).await,
        other => Err(format!("no scenario is named {other:?}").into()),
    }
}

/// Creates a client that speaks the era of the scenario.
fn host() -> ClientBuilder {
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let era = Revision::parse(&revision).map(Revision::era);
    Client::builder("everything-client", env!("CARGO_PKG_VERSION")).configure(|settings| {
        if let Some(era) = era {
            settings.revisions.retain(|revision| revision.era() == era);
        }
        // Servers of the suite answer `tools/list` without declaring tools.
        settings.allow_undeclared_capabilities = true;
    })
}

async fn lists_tools(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    client.list_tools().await?;
    client.close().await;
    Ok(())
}

async fn tools_call(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    client.list_tools().await?;
    client
        .call_tool("add_numbers", json!({"a": 5, "b": 3}))
        .await?;
    client.close().await;
    Ok(())
}

/// Accepts without content, so that the form's defaults are used.
async fn elicitation_defaults(url: &str) -> Outcome {
    let client = host()
        .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Accept)) })
        .connect(url)
        .await?;
    client.list_tools().await?;
    client
        .call_tool("test_client_elicitation_defaults", json!({}))
        .await?;
    client.close().await;
    Ok(())
}

async fn sse_retry(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    client.list_tools().await?;
    client.call_tool("test_reconnection", json!({})).await?;
    client.close().await;
    Ok(())
}

async fn request_metadata(url: &str) -> Outcome {
    let client = host()
        .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Decline)) })
        .connect(url)
        .await?;
    client.list_tools().await?;
    client.close().await;
    Ok(())
}

async fn request_state(url: &str) -> Outcome {
    let client = host()
        .on_elicit(|_: ElicitParams| async {
            let content = json!({"confirmed": true});
            let content = content.as_object().cloned().unwrap_or_default();
            Ok(ElicitResult::new(ElicitAction::Accept).with_content(content))
        })
        .connect(url)
        .await?;
    client.list_tools().await?;
    for tool in [
        "test_mrtr_echo_state",
        "test_mrtr_no_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_result_type",
    ] {
        client.call_tool(tool, json!({})).await?;
    }
    client.close().await;
    Ok(())
}

async fn standard_headers(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    for tool in client.list_tools().await? {
        client.call_tool(&tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(&prompt.name, &BTreeMap::new()).await?;
    }
    client.close().await;
    Ok(())
}

async fn custom_headers(url: &str) -> Outcome {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT")?;
    let context: Value = serde_json::from_str(&context)?;
    let client = host().connect(url).await?;
    client.list_tools().await?;
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().ok_or("a call without a name")?;
        client.call_tool(name, &call["arguments"]).await?;
    }
    client.close().await;
    Ok(())
}

/// Calls all tools that are left in the list.
async fn invalid_tool_headers(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    let tools: Vec<Tool> = client.list_tools().await?;
    for tool in tools {
        client
            .call_tool(&tool.name, json!({"region": "eu"}))
            .await?;
    }
    client.close().await;
    Ok(())
}

async fn schema_preservation(url: &str) -> Outcome {
    let client = host().connect(url).await?;
    let tools = client.list_tools().await?;
    let tool = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = &tool.ok_or("the tool is not listed")?.input_schema;
    client
        .call_tool("json_schema_echo", json!({"schema": schema}))
        .await?;
    client.close().await;
    Ok(())
}
