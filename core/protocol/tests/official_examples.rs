//! Every official example message of 2026-07-28 survives a round trip through our types, and all its members are known.
//!
//! The examples are read from `../shared/spec` beside the repository. If that is absent, the tests print a note and
//! pass.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use mcpline_protocol::error::RpcError;
use mcpline_protocol::vocabulary::*;
use mcpline_protocol::wire::{Incoming, Message, Method, Params, Raw, encode, read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the name of the type and the path of each example.
fn examples() -> Option<Vec<(String, PathBuf)>> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/2026-07-28/examples");
    let Ok(folders) = fs::read_dir(root) else {
        eprintln!("skipped: no ../shared/spec beside the repository");
        return None;
    };
    let mut examples = Vec::new();
    for folder in folders {
        let folder = folder.expect("readable");
        for file in fs::read_dir(folder.path()).expect("readable") {
            let name = folder.file_name().into_string().expect("UTF-8");
            examples.push((name, file.expect("readable").path()));
        }
    }
    assert!(examples.len() > 80, "the examples are incomplete");
    Some(examples)
}

/// Converts a value to `T` and back. `T` must know every member: none may be kept as unknown.
fn through<T: Serialize + DeserializeOwned + Debug>(value: &Value) -> Value {
    let typed: T = serde_json::from_value(value.clone()).expect("fits the type");
    let shown = format!("{typed:?}");
    assert!(
        !shown.contains("extra: {\"") && !shown.contains("Other("),
        "unknown member: {shown}"
    );
    serde_json::to_value(typed).expect("JSON")
}

fn object(raw: &Raw) -> Value {
    raw.decode().expect("JSON")
}

/// Converts the parameters of a method to their type and back.
fn params(method: &Method, params: &Params) -> Value {
    let value = object(params.raw());
    match method {
        Method::ToolsCall => through::<CallToolParams>(&value),
        Method::CompletionComplete => through::<CompleteParams>(&value),
        Method::PromptsGet => through::<GetPromptParams>(&value),
        Method::ResourcesRead => through::<ReadResourceParams>(&value),
        Method::SubscriptionsListen | Method::NotificationsSubscriptionsAcknowledged => {
            through::<ListenParams>(&value)
        }
        Method::NotificationsCancelled => through::<Cancelled>(&value),
        Method::NotificationsProgress => through::<Progress>(&value),
        Method::NotificationsMessage => through::<LogMessage>(&value),
        Method::NotificationsResourcesUpdated => through::<ResourceUpdated>(&value),
        Method::ToolsList
        | Method::ResourcesList
        | Method::ResourcesTemplatesList
        | Method::PromptsList
        | Method::ServerDiscover
        | Method::NotificationsToolsListChanged
        | Method::NotificationsResourcesListChanged
        | Method::NotificationsPromptsListChanged => through::<ListParams>(&value),
        other => panic!("an example of {other}"),
    }
}

/// Converts a value to the named type and back, be it a result, a block or a schema.
fn named(name: &str, value: &Value) -> Value {
    match name {
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => {
            through::<ContentBlock>(value)
        }
        "ToolResultContent" | "ToolUseContent" => through::<SamplingContent>(value),
        "BlobResourceContents" | "TextResourceContents" => through::<ResourceContents>(value),
        "CallToolRequestParams" => through::<CallToolParams>(value),
        "CallToolResult" => through::<CallToolResult>(value),
        "CancelledNotificationParams" => through::<Cancelled>(value),
        "ClientCapabilities" => through::<ClientCapabilities>(value),
        "CompleteRequestParams" => through::<CompleteParams>(value),
        "CompleteResult" => through::<CompleteResult>(value),
        "CreateMessageRequest" | "ElicitRequest" => through::<InputRequest>(value),
        "CreateMessageRequestParams" => through::<CreateMessageParams>(value),
        "CreateMessageResult" => through::<CreateMessageResult>(value),
        "DiscoverResult" => through::<DiscoverResult>(value),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => through::<ElicitParams>(value),
        "ElicitResult" => through::<ElicitResult>(value),
        "GetPromptRequestParams" => through::<GetPromptParams>(value),
        "GetPromptResult" => through::<GetPromptResult>(value),
        "InputRequests" => through::<BTreeMap<String, InputRequest>>(value),
        "InputRequiredResult" => {
            let typed: InputRequiredResult = serde_json::from_value(value.clone()).expect("fits");
            for (_, input_request) in typed.decode_input_requests().expect("input requests") {
                assert!(!format!("{input_request:?}").contains("Other("));
            }
            through::<InputRequiredResult>(value)
        }
        "InputResponses" => {
            let answers = value.as_object().expect("an object").iter();
            let answers = answers.map(|(key, answer)| {
                let typed = match answer.get("action") {
                    Some(_) => through::<ElicitResult>(answer),
                    None => through::<CreateMessageResult>(answer),
                };
                (key.clone(), typed)
            });
            answers.collect()
        }
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => {
            through::<RpcError>(value)
        }
        "ListPromptsResult" => through::<ListPromptsResult>(value),
        "ListResourceTemplatesResult" => through::<ListResourceTemplatesResult>(value),
        "ListResourcesResult" => through::<ListResourcesResult>(value),
        "ListRootsResult" => through::<ListRootsResult>(value),
        "ListToolsResult" => through::<ListToolsResult>(value),
        "LoggingMessageNotificationParams" => through::<LogMessage>(value),
        "ModelPreferences" => through::<ModelPreferences>(value),
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => through::<FieldSchema>(value),
        "PaginatedRequestParams" => through::<ListParams>(value),
        "ProgressNotificationParams" => through::<Progress>(value),
        "ReadResourceResult" => through::<ReadResourceResult>(value),
        "Resource" => through::<Resource>(value),
        "ResourceUpdatedNotificationParams" => through::<ResourceUpdated>(value),
        "Root" => through::<Root>(value),
        "SamplingMessage" => through::<SamplingMessage>(value),
        "ServerCapabilities" => through::<ServerCapabilities>(value),
        "SubscriptionsListenResult" => through::<ListenResult>(value),
        "Tool" => through::<Tool>(value),
        // This example has an id, unlike the other input requests and unlike its schema.
        "ListRootsRequest" => serde_json::to_value(
            serde_json::from_value::<InputRequest>(value.clone()).expect("fits"),
        )
        .expect("JSON"),
        other => panic!("no type for {other}"),
    }
}

/// Converts a whole message through the wire layer and the types of its contents.
fn message(name: &str, json: &[u8]) -> Value {
    let Ok(Incoming::Single(message)) = read(json.to_vec().into()) else {
        panic!("no message")
    };
    let mut out = Vec::new();
    match message {
        Message::Request(request) => {
            let params = request
                .params
                .map(|found| params(&request.method, &found).to_string());
            let params = params.as_ref().map(String::as_bytes);
            encode::request(&mut out, &request.id, request.method.as_str(), params);
        }
        Message::Notification(notification) => {
            let params = notification
                .params
                .map(|found| params(&notification.method, &found).to_string());
            let params = params.as_ref().map(String::as_bytes);
            encode::notification(&mut out, notification.method.as_str(), params);
        }
        Message::Response(response) => match response.outcome {
            Ok(result) => {
                let result = named(
                    name.strip_suffix("Response").expect("a response"),
                    &object(&result),
                );
                encode::response(
                    &mut out,
                    &response.id.expect("an id"),
                    result.to_string().as_bytes(),
                );
            }
            Err(error) => encode::error(&mut out, response.id.as_ref(), &error),
        },
    }
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn every_official_example_survives_a_round_trip_without_loss() {
    for (name, path) in examples().unwrap_or_default() {
        let json = fs::read(&path).expect("readable");
        let value: Value = serde_json::from_slice(&json).expect("JSON");
        eprintln!("{}", path.display());
        let back = if value.get("jsonrpc").is_some() {
            message(&name, &json)
        } else {
            named(&name, &value)
        };
        assert_eq!(back, value, "{name}");
    }
}

#[test]
fn every_official_example_passes_the_strict_scan() {
    for (_, path) in examples().unwrap_or_default() {
        let json = fs::read(&path).expect("readable");
        Raw::parse(json).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
