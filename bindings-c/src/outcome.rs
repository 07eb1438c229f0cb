//! Converts the values that C ends a call with to the core's replies, depending on the kind of call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcpline::foreign::results;
use mcpline::protocol::wire::Raw;
use mcpline::server::{CallKind, CompletionReply, PromptReply, ResourceReply};
use mcpline::{Reply, ToolReply};
use serde_json::{Value, json};

use crate::status::{Done, Fault};

/// The called feature, as far as a reply depends on it.
pub(crate) struct CallTarget<'a> {
    pub(crate) kind: CallKind,
    /// The URI of a resource.
    pub(crate) name: String,
    pub(crate) mime_type: Option<&'a str>,
}

/// Converts a text.
pub(crate) fn text(called: &CallTarget<'_>, text: &str) -> Done<Reply> {
    match called.kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply::text(text))),
        // No response is sent.
        CallKind::Event | CallKind::Notification => Ok(Reply::Tool(ToolReply::default())),
        CallKind::Resource => {
            let mime_type = called.mime_type.unwrap_or("text/plain");
            Ok(contents(
                json!([{"uri": called.name, "mimeType": mime_type, "text": text}]),
            ))
        }
        CallKind::Prompt => Ok(messages(
            json!([{"role": "user", "content": {"type": "text", "text": text}}]),
        )),
        _ => Err(misfit(called, "a text")),
    }
}

/// Converts bytes: a blob for a resource, an image or audio block for a tool.
pub(crate) fn bytes(called: &CallTarget<'_>, bytes: &[u8], mime_type: Option<&str>) -> Done<Reply> {
    let data = STANDARD.encode(bytes);
    let mime_type = mime_type
        .or(called.mime_type)
        .unwrap_or("application/octet-stream");
    match called.kind {
        CallKind::Tool => {
            let item = match mime_type.split_once('/') {
                Some(("image", _)) => json!({"type": "image", "data": data, "mimeType": mime_type}),
                Some(("audio", _)) => json!({"type": "audio", "data": data, "mimeType": mime_type}),
                _ => {
                    let text = format!(
                        "a tool gives images and sounds as bytes, not {mime_type}: embed it by content"
                    );
                    return Err(Fault::invalid(text));
                }
            };
            let content = Raw::from_trusted(json!([item]).to_string());
            Ok(Reply::Tool(ToolReply {
                content: Some(content),
                ..ToolReply::default()
            }))
        }
        CallKind::Resource => Ok(contents(
            json!([{"uri": called.name, "mimeType": mime_type, "blob": data}]),
        )),
        _ => Err(misfit(called, "bytes")),
    }
}

/// Converts the main array of a result.
pub(crate) fn content(called: &CallTarget<'_>, array: Raw) -> Done<Reply> {
    if array.kind() != mcpline::protocol::wire::Kind::Array {
        return Err(Fault::invalid("the content is no JSON array"));
    }
    match called.kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply {
            content: Some(array),
            ..ToolReply::default()
        })),
        CallKind::Resource => Ok(Reply::Resource(ResourceReply {
            contents: array,
            cache: None,
            meta: None,
        })),
        CallKind::Prompt => Ok(Reply::Prompt(PromptReply {
            messages: array,
            description: None,
            meta: None,
        })),
        _ => Err(misfit(called, "content")),
    }
}

/// Converts structured content.
pub(crate) fn structured(called: &CallTarget<'_>, json: Raw) -> Done<Reply> {
    match called.kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply {
            structured: Some(json),
            ..ToolReply::default()
        })),
        _ => Err(misfit(called, "structured content")),
    }
}

/// Converts a complete result.
pub(crate) fn result(called: &CallTarget<'_>, json: &Raw) -> Done<Reply> {
    if json.kind() != mcpline::protocol::wire::Kind::Object {
        return Err(Fault::invalid("the result is no JSON object"));
    }
    Ok(match called.kind {
        CallKind::Tool => results::tool_result(json),
        CallKind::Resource => results::resource_result(json)?,
        CallKind::Prompt => results::prompt_result(json)?,
        CallKind::Completion => {
            let completion = json.member("completion");
            let completion = completion.ok_or_else(|| Fault::invalid("completion is missing"))?;
            results::completion(completion.as_bytes())?
        }
        CallKind::Request => Reply::Result(json.clone()),
        // The result is ignored.
        CallKind::Event | CallKind::Notification => Reply::Tool(ToolReply::default()),
        _ => return Err(misfit(called, "a whole result")),
    })
}

/// Converts completion values.
pub(crate) fn values(called: &CallTarget<'_>, values: Vec<String>) -> Done<Reply> {
    match called.kind {
        CallKind::Completion => Ok(Reply::Completion(CompletionReply {
            values,
            ..CompletionReply::default()
        })),
        _ => Err(misfit(called, "values")),
    }
}

fn contents(contents: Value) -> Reply {
    Reply::Resource(ResourceReply {
        contents: Raw::from_trusted(contents.to_string()),
        cache: None,
        meta: None,
    })
}

fn messages(messages: Value) -> Reply {
    Reply::Prompt(PromptReply {
        messages: Raw::from_trusted(messages.to_string()),
        description: None,
        meta: None,
    })
}

fn misfit(called: &CallTarget<'_>, given: &str) -> Fault {
    let kind = match called.kind {
        CallKind::Tool => "a tool",
        CallKind::Resource => "a resource",
        CallKind::Prompt => "a prompt",
        CallKind::Completion => "a completion",
        CallKind::Event => "an event",
        CallKind::Request => "a custom request",
        CallKind::Notification => "a custom notification",
        _ => "this call",
    };
    Fault::invalid(format!("the handler of {kind} cannot reply with {given}"))
}
