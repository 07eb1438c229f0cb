//! Prompts, resources and completion.

use std::sync::Arc;

use mcpline::protocol::vocabulary::{
    EmbeddedResource, ImageContent, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceContents, ResourceTemplate, Role, TextContent,
};
use mcpline::{Context, Error, Server};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::{IMAGE, Nothing};
use crate::info::WATCHED;
use crate::input_requests;
use crate::more;
use crate::state::State;

#[derive(Deserialize)]
struct Pair {
    arg1: String,
    arg2: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    resource_uri: String,
}

#[derive(Deserialize)]
struct Variables {
    id: String,
}

fn user(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new(Role::User, TextContent::new(text))
}

fn required(name: &str, description: &str) -> PromptArgument {
    PromptArgument::new(name)
        .with_description(description)
        .with_required(true)
}

/// Adds these features.
pub(crate) fn add(server: &Server, state: &Arc<State>) -> Result<(), Error> {
    add_prompts(server);
    add_resources(server, state);
    let _ = server
        .clone()
        .completion(|params: Value, _: Context| async move { complete(&params) })
        .on_roots_changed(input_requests::tell_roots);
    Ok(())
}

fn add_prompts(server: &Server) {
    let prompt = |name: &str| Prompt::new(name).with_description("A prompt of the fixture");
    let _ = server
        .clone()
        .prompt(
            prompt("test_simple_prompt"),
            |_: Nothing, _: Context| async { vec![user("This is a simple prompt for testing.")] },
        )
        .prompt(
            prompt("test_prompt_with_arguments").with_arguments(vec![
                required("arg1", "First test argument"),
                required("arg2", "Second test argument"),
            ]),
            |args: Pair, _: Context| async move {
                vec![user(format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    args.arg1, args.arg2
                ))]
            },
        )
        .prompt(
            prompt("test_prompt_with_embedded_resource").with_arguments(vec![required(
                "resourceUri",
                "URI of the resource to embed",
            )]),
            |args: Embedded, _: Context| async move {
                let contents = ResourceContents::text(
                    args.resource_uri,
                    "Embedded resource content for testing.",
                )
                .with_mime_type("text/plain");
                vec![
                    PromptMessage::new(Role::User, EmbeddedResource::new(contents)),
                    user("Please process the embedded resource above."),
                ]
            },
        )
        .prompt(
            prompt("test_prompt_with_image"),
            |_: Nothing, _: Context| async {
                vec![
                    PromptMessage::new(Role::User, ImageContent::new(IMAGE, "image/png")),
                    user("Please analyze the image above."),
                ]
            },
        )
        .prompt(
            prompt("test_prompt_conversation"),
            |_: Nothing, _: Context| async {
                vec![
                    user("What is 2 + 2?"),
                    PromptMessage::new(Role::Assistant, TextContent::new("4")),
                ]
            },
        );
}

fn add_resources(server: &Server, state: &Arc<State>) {
    let state = state.clone();
    let _ = server
        .clone()
        .resource(
            Resource::new("test://static-text", "static-text")
                .with_title("Static text")
                .with_description("A text that never changes")
                .with_mime_type("text/plain"),
            |_: Context| async { "This is the content of the static text resource." },
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .with_description("An image that never changes")
                .with_mime_type("image/png"),
            |_: Context| async {
                ResourceContents::blob("test://static-binary", IMAGE).with_mime_type("image/png")
            },
        )
        .resource(
            Resource::new(WATCHED, "watched-resource")
                .with_description("A text that can be updated")
                .with_mime_type("text/plain"),
            move |_: Context| {
                let text = format!("Watched resource, version {}", state.version());
                async move { text }
            },
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "template-data")
                .with_description("Data by id")
                .with_mime_type("application/json"),
            |variables: Variables, _: Context| async move {
                let id = variables.id;
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")})
                    .to_string()
            },
        );
}

fn complete(params: &Value) -> Vec<String> {
    let reference = params["ref"]["name"]
        .as_str()
        .or(params["ref"]["uri"].as_str());
    let candidates: Vec<String> = match (reference, params["argument"]["name"].as_str()) {
        (Some("test_prompt_with_arguments"), Some("arg1")) => ["test alpha", "test beta", "paris"]
            .map(String::from)
            .into(),
        (Some("test_prompt_with_arguments"), Some("arg2")) => {
            match params["context"]["arguments"]["arg1"].as_str() {
                Some(first) => vec![format!("{first} one"), format!("{first} two")],
                None => Vec::new(),
            }
        }
        (Some("test://template/{id}/data"), Some("id")) => {
            ["1", "12", "123", "2"].map(String::from).into()
        }
        (Some("test_described_prompt"), argument) => more::candidates(argument),
        _ => Vec::new(),
    };
    let typed = params["argument"]["value"].as_str().unwrap_or_default();
    candidates
        .into_iter()
        .filter(|candidate| candidate.starts_with(typed))
        .collect()
}
