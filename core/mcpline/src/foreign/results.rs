//! Converts results of handlers in other languages, as JSON in the protocol's form, into replies of the core.

use mcpline_protocol::methods::check_custom_result_type;
use mcpline_protocol::session::RequiredCapability;
use mcpline_protocol::vocabulary::{CacheHints, CacheScope};
use mcpline_protocol::wire::Raw;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::server::{
    AskMethod, CompletionReply, HandlerError, InputRequest, InputRequired, PromptReply, Reply,
    ResourceReply, ToolReply,
};

use super::options::read;

/// Returns the reply for a result of an extension's type; `None` if its type is the protocol's, or it has none.
fn extended(result: &Raw) -> Option<Reply> {
    let own_type = result.member("resultType")?;
    let own_type = own_type.string_value()?;
    check_custom_result_type(&own_type).ok()?;
    Some(Reply::Result(result.clone()))
}

/// Returns the reply for a `CallToolResult`, or a result of an extension's type.
pub fn tool_result(result: &Raw) -> Reply {
    if let Some(extended) = extended(result) {
        return extended;
    }
    Reply::Tool(ToolReply {
        content: result.member("content"),
        structured: result.member("structuredContent"),
        is_error: result
            .member("isError")
            .is_some_and(|flag| flag.as_bytes() == b"true"),
        meta: result.member("_meta"),
    })
}

/// Returns the reply for a `ReadResourceResult`, or a result of an extension's type.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it has another form.
pub fn resource_result(result: &Raw) -> Result<Reply, Error> {
    if let Some(extended) = extended(result) {
        return Ok(extended);
    }
    let contents = result.member("contents");
    Ok(Reply::Resource(ResourceReply {
        contents: contents.ok_or_else(|| Error::usage("contents are missing"))?,
        cache: cache(result)?,
        meta: result.member("_meta"),
    }))
}

/// Returns the reply for a `GetPromptResult`, or a result of an extension's type.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it has another form.
pub fn prompt_result(result: &Raw) -> Result<Reply, Error> {
    if let Some(extended) = extended(result) {
        return Ok(extended);
    }
    let messages = result.member("messages");
    Ok(Reply::Prompt(PromptReply {
        messages: messages.ok_or_else(|| Error::usage("messages are missing"))?,
        description: result
            .member("description")
            .and_then(|text| text.string_value().map(Into::into)),
        meta: result.member("_meta"),
    }))
}

/// Returns the reply for the `completion` of a `CompleteResult`: `values`, `total` and `hasMore`.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it has another form.
pub fn completion(json: &[u8]) -> Result<Reply, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Completion {
        values: Vec<String>,
        total: Option<u64>,
        has_more: Option<bool>,
    }
    let completion: Completion = read("the completion", json)?;
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
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): they have another form.
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
            Ok(InputRequest {
                key,
                method: AskMethod::parse(&method)?,
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
