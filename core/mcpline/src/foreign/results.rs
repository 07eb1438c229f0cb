//! Converts the results of handlers in other languages into replies of the core, by the kind of the called feature.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::methods::check_custom_result_type;
use mcpline_protocol::session::RequiredCapability;
use mcpline_protocol::vocabulary::{CacheHints, CacheScope};
use mcpline_protocol::wire::{JsonKind, Raw};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Error;
use crate::server::{
    CallKind, CompletionReply, HandlerError, InputRequestMethod, InputRequired, KeyedInputRequest,
    PromptReply, Reply, ResourceReply, ToolReply,
};

use super::options::read;

/// Returns the reply for a result of an extension's type; `None` if its type is the protocol's, or it has none.
fn extended_reply(result: &Raw) -> Option<Reply> {
    let own_type = result.member("resultType")?;
    let own_type = own_type.string_value()?;
    check_custom_result_type(&own_type).ok()?;
    Some(Reply::Result(result.clone()))
}

/// What was called, as far as a reply depends on it.
#[derive(Debug, Clone)]
pub struct CallTarget<'a> {
    /// The kind of feature.
    pub kind: CallKind,
    /// The URI of a resource.
    pub uri: String,
    /// The MIME type in the definition of a resource.
    pub mime_type: Option<&'a str>,
}

/// Returns the reply for a text: a text block of a tool, a message of the user for a prompt, or the text of a resource.
/// The text of an event or a notification is ignored.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the feature is of another kind.
pub fn text(target: &CallTarget<'_>, text: &str) -> Result<Reply, Error> {
    match target.kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply::text(text))),
        CallKind::Event | CallKind::Notification => Ok(empty_reply()),
        CallKind::Resource => {
            let mime_type = target.mime_type.unwrap_or("text/plain");
            let contents = json!([{"uri": target.uri, "mimeType": mime_type, "text": text}]);
            content(target.kind, to_raw(&contents))
        }
        CallKind::Prompt => {
            let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
            content(target.kind, to_raw(&messages))
        }
        kind => Err(wrong_reply_error(kind, "a text")),
    }
}

/// Returns the reply for bytes: the blob of a resource, or an image or audio block of a tool.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the feature is of another kind, or the bytes for a tool are of another
/// MIME type.
pub fn bytes(
    target: &CallTarget<'_>,
    bytes: &[u8],
    mime_type: Option<&str>,
) -> Result<Reply, Error> {
    let data = STANDARD.encode(bytes);
    let mime_type = mime_type
        .or(target.mime_type)
        .unwrap_or("application/octet-stream");
    let array = match target.kind {
        CallKind::Tool => {
            let block = match mime_type.split_once('/') {
                Some((block @ ("image" | "audio"), _)) => block,
                _ => {
                    return Err(Error::usage(format!(
                        "a tool can return bytes only as an image or audio, not as {mime_type}: return an embedded resource"
                    )));
                }
            };
            json!([{"type": block, "data": data, "mimeType": mime_type}])
        }
        CallKind::Resource => json!([{"uri": target.uri, "mimeType": mime_type, "blob": data}]),
        kind => return Err(wrong_reply_error(kind, "bytes")),
    };
    content(target.kind, to_raw(&array))
}

/// Returns the reply for the main array of a result: the content of a tool, the contents of a resource, the messages of a
/// prompt, or the resources that a template lists.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it is not an array, or the feature is of another kind.
pub fn content(kind: CallKind, array: Raw) -> Result<Reply, Error> {
    if array.kind() != JsonKind::Array {
        return Err(Error::usage("the content must be a JSON array"));
    }
    match kind {
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
        CallKind::ResourceList => Ok(Reply::Result(Raw::EMPTY_OBJECT.with("resources", &array))),
        kind => Err(wrong_reply_error(kind, "content")),
    }
}

/// Returns the reply for a tool's structured content.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the feature is not a tool.
pub fn structured(kind: CallKind, json: Raw) -> Result<Reply, Error> {
    match kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply {
            structured: Some(json),
            ..ToolReply::default()
        })),
        kind => Err(wrong_reply_error(kind, "structured content")),
    }
}

/// Returns the reply for the values of a completion, or for the URIs of the resources that a template lists.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the feature is of another kind.
pub fn values(kind: CallKind, values: Vec<String>) -> Result<Reply, Error> {
    match kind {
        CallKind::Completion => Ok(Reply::Completion(CompletionReply {
            values,
            ..CompletionReply::default()
        })),
        CallKind::ResourceList => content(kind, to_raw(&json!(values))),
        kind => Err(wrong_reply_error(kind, "values")),
    }
}

/// Returns the reply for a complete result, as the specification defines it for the called method, or for a result of an
/// extension's type. That of an event or a notification is ignored.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it is not an object, or a member is missing or has another form.
pub fn complete(kind: CallKind, result: &Raw) -> Result<Reply, Error> {
    if result.kind() != JsonKind::Object {
        return Err(Error::usage("the result must be a JSON object"));
    }
    match kind {
        CallKind::Event | CallKind::Notification => return Ok(empty_reply()),
        CallKind::Request | CallKind::Middleware | CallKind::ResourceList => {
            return Ok(Reply::Result(result.clone()));
        }
        _ => {}
    }
    if let Some(extended) = extended_reply(result) {
        return Ok(extended);
    }
    match kind {
        CallKind::Tool => Ok(Reply::Tool(ToolReply {
            content: result.member("content"),
            structured: result.member("structuredContent"),
            is_error: result
                .member("isError")
                .is_some_and(|flag| flag.as_bytes() == b"true"),
            meta: result.member("_meta"),
        })),
        CallKind::Resource => Ok(Reply::Resource(ResourceReply {
            contents: required_member(result, "contents")?,
            cache: cache(result)?,
            meta: result.member("_meta"),
        })),
        CallKind::Prompt => Ok(Reply::Prompt(PromptReply {
            messages: required_member(result, "messages")?,
            description: result
                .member("description")
                .and_then(|text| text.string_value().map(Into::into)),
            meta: result.member("_meta"),
        })),
        CallKind::Completion => completion(&required_member(result, "completion")?),
        kind => Err(wrong_reply_error(kind, "a whole result")),
    }
}

/// Returns the reply for the `completion` of a `CompleteResult`.
fn completion(json: &Raw) -> Result<Reply, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Completion {
        values: Vec<String>,
        total: Option<u64>,
        has_more: Option<bool>,
    }
    let completion: Completion = read("the completion", json.as_bytes())?;
    Ok(Reply::Completion(CompletionReply {
        values: completion.values,
        total: completion.total,
        has_more: completion.has_more,
    }))
}

/// Returns the reply for input requests that a handler returns: `requests`, an array of key, method and parameters, and
/// `state`.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the JSON has another form.
pub fn input_required(json: &[u8]) -> Result<Reply, Error> {
    #[derive(Deserialize)]
    struct InputRequiredReply {
        requests: Vec<(String, String, Option<Value>)>,
        state: Option<String>,
    }
    let input_required: InputRequiredReply = read("the questions", json)?;
    let requests = input_required
        .requests
        .into_iter()
        .map(|(key, method, params)| {
            let params = params.as_ref().map(Raw::from_serialize).transpose();
            Ok(KeyedInputRequest {
                key,
                method: InputRequestMethod::parse(&method)?,
                params: params.map_err(|error| Error::usage(error.to_string()))?,
            })
        });
    Ok(Reply::InputRequired(InputRequired {
        requests: requests.collect::<Result<_, Error>>()?,
        state: input_required.state,
    }))
}

/// Returns the error of a handler whose client lacks the `required` capability. The message is for capabilities that
/// the core does not know.
pub fn unsupported(required: &Value, message: String) -> HandlerError {
    let need = [
        RequiredCapability::ElicitForm,
        RequiredCapability::ElicitUrl,
        RequiredCapability::Sampling,
        RequiredCapability::SamplingTools,
        RequiredCapability::Roots,
    ]
    .into_iter()
    .find(|need| need.required() == *required);
    match need {
        Some(need) => HandlerError::Unsupported(need),
        None => HandlerError::Tool(message),
    }
}

/// Returns the reply of a handler whose result is ignored.
fn empty_reply() -> Reply {
    Reply::Tool(ToolReply::default())
}

fn to_raw(json: &Value) -> Raw {
    Raw::from_trusted(json.to_string())
}

fn required_member(result: &Raw, member: &str) -> Result<Raw, Error> {
    result
        .member(member)
        .ok_or_else(|| Error::usage(format!("{member} is missing")))
}

fn wrong_reply_error(kind: CallKind, reply: &str) -> Error {
    let kind = match kind {
        CallKind::Event => "an event".to_owned(),
        CallKind::Middleware => "a request".to_owned(),
        CallKind::ResourceList => "the list of a template".to_owned(),
        CallKind::Request | CallKind::Notification => format!("a custom {}", kind.name()),
        kind => format!("a {}", kind.name()),
    };
    Error::usage(format!("the handler of {kind} cannot reply with {reply}"))
}

fn cache(result: &Raw) -> Result<Option<CacheHints>, Error> {
    let Some(ttl) = result.member("ttlMs") else {
        return Ok(None);
    };
    let ttl: u64 = read("ttlMs", ttl.as_bytes())?;
    let scope = match result.member("cacheScope") {
        Some(scope) if scope.as_bytes() == b"\"public\"" => CacheScope::Public,
        _ => CacheScope::Private,
    };
    Ok(Some(CacheHints::new(ttl, scope)))
}
