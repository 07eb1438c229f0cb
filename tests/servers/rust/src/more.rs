//! Features of `--more 1`, which most tests do not need.

use mcpline::protocol::vocabulary::{
    Annotations, Icon, Prompt, PromptArgument, PromptMessage, Resource, ResourceTemplate, Role,
    TextContent,
};
use mcpline::{Context, Error, HandlerError, InputRequestMethod, InputRequired, Server};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::{AUDIO, IMAGE, Nothing, static_text_link};
use crate::failures::SECRET;
use crate::input_requests::{form, get_weather, request_input, sampled_blocks, sampled_text};
use crate::returned_input_requests::{InputRequests, accepted_text};

#[derive(Deserialize)]
struct Variables {
    id: String,
}

/// The icon of described features.
fn icons() -> Vec<Icon> {
    vec![
        Icon::new("https://example.com/icon.png")
            .with_mime_type("image/png")
            .with_sizes(vec!["48x48".to_owned()]),
    ]
}

/// Describes the model's answer: its first block and why it stopped.
fn described(answer: &Value) -> String {
    let block = sampled_blocks(answer).into_iter().next();
    let block = block.unwrap_or_default();
    let kind = block["type"].as_str().unwrap_or_default();
    let data = match kind {
        "text" => &block["text"],
        _ => &block["data"],
    };
    let reason = answer["stopReason"].as_str().unwrap_or("none");
    format!(
        "{kind} {}, stopped by {reason}",
        data.as_str().unwrap_or_default()
    )
}

/// Returns the result of a use of `get_weather`, with the metadata of the use.
fn weather_result(tool_use: &Value) -> Value {
    let city = tool_use["input"]["city"].as_str().unwrap_or_default();
    let mut result = json!({
        "type": "tool_result",
        "toolUseId": tool_use["id"],
        "content": [{"type": "text", "text": format!("{city} is sunny")}]
    });
    if let Some(meta) = tool_use.get("_meta") {
        result["_meta"] = meta.clone();
    }
    result
}

async fn sample_in_rounds(ctx: &Context) -> Result<String, HandlerError> {
    let prompt = json!({"type": "text", "text": "What is the weather in Oslo and Rome?"});
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for round in 1_u32.. {
        let params = json!({
            "messages": messages,
            "maxTokens": 100,
            "tools": [get_weather()],
            "toolChoice": {"mode": "auto"}
        });
        let key = format!("sample{round}");
        let answer = request_input(ctx, InputRequestMethod::Sample, &key, Some(&params)).await?;
        let blocks = sampled_blocks(&answer);
        let uses = blocks.iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> = uses.map(weather_result).collect();
        if results.is_empty() {
            return Ok(format!("LLM response: {}", sampled_text(&answer)));
        }
        messages.push(json!({"role": "assistant", "content": blocks}));
        messages.push(json!({"role": "user", "content": results}));
    }
    Ok(String::new())
}

/// Adds these features.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    add_tools(server);
    add_prompts(server);
    add_resources(server);
    Ok(())
}

fn add_tools(server: &Server) {
    let _ = server
        .clone()
        .tool(
            "test_sampling_with_media",
            "Samples with an image and a recording",
            |_: Nothing, ctx: Context| async move {
                let params = json!({
                    "messages": [
                        {"role": "user", "content": {"type": "image", "data": IMAGE, "mimeType": "image/png"}},
                        {"role": "user", "content": {"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}}
                    ],
                    "maxTokens": 100
                });
                let answer = request_input(&ctx, InputRequestMethod::Sample, "sample", Some(&params)).await?;
                Ok::<_, HandlerError>(described(&answer))
            },
        )
        .tool(
            "test_sampling_in_rounds",
            "Samples until no tool is used",
            |_: Nothing, ctx: Context| async move { sample_in_rounds(&ctx).await },
        );
}

fn add_prompts(server: &Server) {
    let described = Prompt::new("test_described_prompt")
        .with_title("Described prompt")
        .with_description("A prompt with everything a definition can have")
        .with_icons(icons())
        .with_arguments(
            ["many", "broken"]
                .map(|name| PromptArgument::new(name).with_description("Completed"))
                .to_vec(),
        );
    let _ = server
        .clone()
        .prompt(described, |_: Value, _: Context| async {
            let annotations = Annotations::default()
                .with_audience(vec![Role::Assistant])
                .with_priority(0.5);
            vec![
                PromptMessage::new(
                    Role::User,
                    TextContent::new("described").with_annotations(annotations),
                ),
                PromptMessage::new(Role::User, static_text_link()),
            ]
        })
        .prompt(
            Prompt::new("test_failing_prompt").with_description("Fails unexpectedly"),
            |_: Nothing, _: Context| async { fail() },
        );
}

fn add_resources(server: &Server) {
    let resource = |name: &str, description: &str| {
        Resource::new(format!("test://{name}"), name)
            .with_description(description)
            .with_mime_type("text/plain")
    };
    let _ = server
        .clone()
        .resource(
            resource("described-resource", "A text with its size and an icon")
                .with_title("Described resource")
                .with_size(9_u64)
                .with_icons(icons()),
            |_: Context| async { "described" },
        )
        .resource(
            resource("asking-resource", "Asks the user in mid-handler"),
            |ctx: Context| async move {
                let params = form(
                    "Which version?",
                    json!({"version": {"type": "string"}}),
                    &["version"],
                );
                let answer =
                    request_input(&ctx, InputRequestMethod::Elicit, "user", Some(&params)).await?;
                let version = answer["content"]["version"].as_str().unwrap_or("none");
                Ok::<_, HandlerError>(format!("Version {version}"))
            },
        )
        .resource(
            resource("failing-resource", "Fails unexpectedly"),
            |_: Context| async { fail() },
        )
        .resource_template(
            ResourceTemplate::new("test://asking/{id}", "asking-template")
                .with_title("Asking template")
                .with_description("Returns a question to the user")
                .with_mime_type("text/plain")
                .with_icons(icons()),
            |variables: Variables, ctx: Context| async move {
                let id = variables.id;
                match accepted_text(&ctx, "user", "reason") {
                    Some(reason) => Ok(format!("{id}: {reason}")),
                    None => Err(HandlerError::InputRequired(InputRequired::from(
                        InputRequests::new().elicit(
                            "user",
                            &format!("Why {id}?"),
                            "reason",
                            "string",
                        ),
                    ))),
                }
            },
        );
}

/// The candidates of an argument of `test_described_prompt`.
pub(crate) fn candidates(argument: Option<&str>) -> Vec<String> {
    match argument {
        Some("many") => (1..=150).map(|number| format!("c{number}")).collect(),
        Some("broken") => panic!("{SECRET}"),
        _ => Vec::new(),
    }
}

fn fail() -> String {
    panic!("{SECRET}")
}
