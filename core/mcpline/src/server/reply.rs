//! Results of handlers, and their encoding for the client's revision.
//!
//! Parts that a handler or a binding has encoded stay bytes. They are written into the result without parsing, and
//! parsed only where an older revision requires a conversion.

use mcpline_protocol::adapt;
use mcpline_protocol::session::RequiredCapability;
use mcpline_protocol::vocabulary::{CacheHints, CacheScope, ElicitParams, meta};
use mcpline_protocol::wire::{JsonKind, Raw, json_string};
use mcpline_protocol::{Revision, RpcError};

use crate::sharing::SharingReply;

use super::call_kind::CallKind;
use super::input_requests::InputRequestMethod;

/// Result of a handler.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reply {
    /// The result of a tool.
    Tool(ToolReply),
    /// The contents of a resource.
    Resource(ResourceReply),
    /// The messages of a prompt.
    Prompt(PromptReply),
    /// Completion values.
    Completion(CompletionReply),
    /// The result of a custom request: a JSON object. Members that the revision requires are added; an existing
    /// `resultType` is kept. To request input, return [`Reply::InputRequired`] instead.
    ///
    /// Handlers of tools, resources, prompts and completions may return one instead of their usual result, with a
    /// `resultType` of an extension of the server
    /// ([`Extension::with_result_type`](super::Extension::with_result_type)), on 2026-07-28 and to clients that declare
    /// the extension.
    Result(Raw),
    /// Input requests to answer before the handler is called again.
    InputRequired(InputRequired),
    /// The answer of shared state in another language.
    Sharing(SharingReply),
    /// The response of a route, or what the HTTP client of another language received from an imported API. For a route, the HTTP
    /// server sets the headers that describe the connection and the form of the body.
    #[cfg(any(feature = "openapi", feature = "routes"))]
    Http(Box<http::Response<bytes::Bytes>>),
}

/// Result of a tool call (`CallToolResult`).
#[derive(Debug, Clone, Default)]
pub struct ToolReply {
    /// Content blocks: a JSON array. With `None` clients receive the structured content as text, if there is any.
    pub content: Option<Raw>,
    /// Structured content: any JSON value.
    pub structured: Option<Raw>,
    /// Whether the tool failed with an error that the model should see.
    pub is_error: bool,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// Result of reading a resource (`ReadResourceResult`).
#[derive(Debug, Clone)]
pub struct ResourceReply {
    /// Contents: a JSON array.
    pub contents: Raw,
    /// Cache hints (2026-07-28). `None`: the server's default.
    pub cache: Option<CacheHints>,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// Result of getting a prompt (`GetPromptResult`).
#[derive(Debug, Clone)]
pub struct PromptReply {
    /// Messages: a JSON array.
    pub messages: Raw,
    /// Description of the prompt.
    pub description: Option<String>,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// Result of a completion (`CompleteResult`). Only the first 100 values are sent, which is the protocol's limit.
#[derive(Debug, Clone, Default)]
pub struct CompletionReply {
    /// Values, best match first.
    pub values: Vec<String>,
    /// Total number of matching values, if known.
    pub total: Option<u64>,
    /// Whether there are more values than `values` contains.
    pub has_more: Option<bool>,
}

/// Input requests that a handler returns instead of a result.
///
/// The handler is called again from the start, with the answers in
/// [`Context::input_responses`](super::Context::input_responses). Works with clients of every revision.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// Input requests: `elicitation/create`, `sampling/createMessage` or `roots/list` with their parameters.
    pub requests: Vec<KeyedInputRequest>,
    /// State for the next run, returned by [`Context::request_state`](super::Context::request_state). The client can
    /// neither read nor change it.
    pub state: Option<String>,
}

/// One input request of an [`InputRequired`].
#[derive(Debug, Clone)]
pub struct KeyedInputRequest {
    /// Key of the answer.
    pub key: String,
    /// The method.
    pub method: InputRequestMethod,
    /// Its parameters.
    pub params: Option<Raw>,
}

/// Why a handler has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HandlerError {
    /// The tool failed, and the model should read the message. For resources, prompts and completions it becomes an
    /// internal error with this message.
    #[error("{0}")]
    Tool(String),
    /// A JSON-RPC error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The client lacks a capability: -32021 on 2026-07-28, otherwise like [`HandlerError::Tool`].
    #[error("the client does not support {}", .0.name())]
    Unsupported(RequiredCapability),
    /// The resource does not exist: its URI, or `None` for the one that the client reads.
    ///
    /// For a handler of a resource template, which matches more than exists. The client gets the same error as for a URI
    /// that no resource has: -32002 on the handshake revisions, -32602 on 2026-07-28, with the `uri` in `data`
    /// (`server/resources`, error handling). From a tool it is an error result for the model.
    #[error("{}", resource_not_found(.0.as_deref()))]
    ResourceNotFound(Option<String>),
    /// Input is required first. Like [`Reply::InputRequired`], for handlers with another result type.
    #[error("input is required")]
    InputRequired(InputRequired),
    /// The user must open these URLs first. The client tries again after
    /// [`Server::notify_elicitation_complete`](super::Server::notify_elicitation_complete).
    ///
    /// On 2025-11-25 this is error -32042 (`client/elicitation`, URL elicitation required), on 2026-07-28 input
    /// requests, as with [`HandlerError::InputRequired`]. Clients without URL elicitation receive the URLs in the
    /// message.
    #[error("the user must open a URL first")]
    UrlElicitationRequired(Vec<ElicitParams>),
    /// Like [`HandlerError::Tool`], with the sources of the error, which are sent only in debug mode
    /// ([`Settings::debug`](super::Settings::debug)).
    #[error("{message}")]
    ToolWithSources {
        /// For the model.
        message: String,
        /// The sources, the nearest first.
        sources: String,
    },
    /// The handler failed; the message is logged. Clients get it only in debug mode
    /// ([`Settings::debug`](super::Settings::debug)).
    #[error("{0}")]
    Internal(String),
    /// Like [`HandlerError::Internal`], for an exception of another language: its stack trace is logged and never sent.
    #[error("{summary}")]
    Exception {
        /// Type and message.
        summary: String,
        /// The stack trace, with type and message.
        trace: String,
    },
}

fn resource_not_found(uri: Option<&str>) -> String {
    match uri {
        Some(uri) => format!("resource not found: {uri}"),
        None => "resource not found".to_owned(),
    }
}

impl From<RpcError> for HandlerError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl Reply {
    /// Returns the kind of feature whose usual result it is; `None` for input requests, and for HTTP responses and answers of
    /// shared state, which are not sent to MCP clients.
    pub(crate) fn kind(&self) -> Option<CallKind> {
        match self {
            Self::Tool(_) => Some(CallKind::Tool),
            Self::Resource(_) => Some(CallKind::Resource),
            Self::Prompt(_) => Some(CallKind::Prompt),
            Self::Completion(_) => Some(CallKind::Completion),
            Self::Result(_) => Some(CallKind::Request),
            Self::InputRequired(_) | Self::Sharing(_) => None,
            #[cfg(any(feature = "openapi", feature = "routes"))]
            Self::Http(_) => None,
        }
    }

    /// Returns the array of content blocks, contents or messages, and `_meta`. Not for custom results.
    pub(crate) fn content_and_meta(&self) -> (Option<&Raw>, Option<&Raw>) {
        match self {
            Self::Tool(reply) => (reply.content.as_ref(), reply.meta.as_ref()),
            Self::Resource(reply) => (Some(&reply.contents), reply.meta.as_ref()),
            Self::Prompt(reply) => (Some(&reply.messages), reply.meta.as_ref()),
            Self::Completion(_) | Self::Result(_) | Self::InputRequired(_) | Self::Sharing(_) => {
                (None, None)
            }
            #[cfg(any(feature = "openapi", feature = "routes"))]
            Self::Http(_) => (None, None),
        }
    }

    /// Returns about how many bytes it takes when it is encoded.
    pub(crate) fn encoded_length_hint(&self) -> usize {
        // Around the content: the envelope, and `_meta` of the server.
        const OVERHEAD: usize = 128;
        // Quotes and a comma, besides a short value.
        const PER_VALUE: usize = 24;
        let length = |raw: &Option<Raw>| raw.as_ref().map_or(0, |raw| raw.as_bytes().len());
        OVERHEAD
            + match self {
                // Structured content is sent as text as well.
                Self::Tool(reply) => length(&reply.content) + length(&reply.structured) * 2,
                Self::Resource(reply) => reply.contents.as_bytes().len(),
                Self::Prompt(reply) => reply.messages.as_bytes().len(),
                Self::Completion(reply) => reply.values.len() * PER_VALUE,
                Self::Result(result) => result.as_bytes().len(),
                Self::InputRequired(_) | Self::Sharing(_) => 0,
                #[cfg(any(feature = "openapi", feature = "routes"))]
                Self::Http(response) => response.body().len(),
            }
    }

    /// Returns the approximate size in bytes of what it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let of = |raw: &Option<Raw>| raw.as_ref().map_or(0, |raw| raw.as_bytes().len());
        match self {
            Self::Tool(reply) => of(&reply.content) + of(&reply.structured) + of(&reply.meta),
            Self::Resource(reply) => reply.contents.as_bytes().len() + of(&reply.meta),
            Self::Prompt(reply) => {
                let description = reply.description.as_ref().map_or(0, String::len);
                reply.messages.as_bytes().len() + description + of(&reply.meta)
            }
            Self::Completion(reply) => reply.values.iter().map(String::len).sum(),
            Self::Result(result) => result.as_bytes().len(),
            Self::InputRequired(asked) => {
                let requests = asked.requests.iter();
                let params: usize = requests.map(|request| of(&request.params)).sum();
                params + asked.state.as_ref().map_or(0, String::len)
            }
            Self::Sharing(reply) => reply.bytes(),
            #[cfg(any(feature = "openapi", feature = "routes"))]
            Self::Http(response) => response.body().len(),
        }
    }
}

impl ToolReply {
    /// Creates a result with one text block.
    pub fn text(text: &str) -> Self {
        const BEFORE: &[u8] = b"[{\"type\":\"text\",\"text\":";
        const AFTER: &[u8] = b"}]";
        // With the exact capacity for text without escapes, `Bytes` takes over the full buffer without another
        // allocation.
        let quotes = 2;
        let mut content = Vec::with_capacity(BEFORE.len() + quotes + text.len() + AFTER.len());
        content.extend_from_slice(BEFORE);
        json_string(&mut content, text);
        content.extend_from_slice(AFTER);
        Self {
            content: Some(Raw::from_trusted(content)),
            ..Self::default()
        }
    }

    /// Creates a result with an error message for the model.
    pub fn error(text: &str) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// The common members of every result of 2026-07-28.
pub(crate) struct ResultEnvelope<'a> {
    /// The client's revision.
    pub(crate) revision: Revision,
    /// `Implementation` of this server, as JSON.
    pub(crate) server_info: &'a [u8],
}

impl ResultEnvelope<'_> {
    /// Opens a result: writes the brace and the members that the revision puts first. Returns whether a comma must
    /// follow.
    pub(crate) fn open(&self, out: &mut Vec<u8>, result_type: &str) -> bool {
        out.push(b'{');
        if !self.revision.features().result_type {
            return false;
        }
        out.extend_from_slice(b"\"resultType\":");
        json_string(out, result_type);
        true
    }

    /// Closes a non-empty result: writes `_meta`, with the server's name where the revision requires it, and the brace.
    pub(crate) fn close(&self, out: &mut Vec<u8>, meta: Option<&Raw>) {
        self.close_after(out, meta, true);
    }

    fn close_after(&self, out: &mut Vec<u8>, meta: Option<&Raw>, is_comma_due: bool) {
        let begin_meta: &[u8] = match is_comma_due {
            true => b",\"_meta\":",
            false => b"\"_meta\":",
        };
        let meta = meta.filter(|meta| meta.kind() == JsonKind::Object);
        let own = meta
            .map(Raw::as_bytes)
            .filter(|meta| !is_empty_object(meta));
        if self.revision.features().meta_server_info {
            let named = meta.is_some_and(|meta| meta.member(meta::SERVER_INFO).is_some());
            out.extend_from_slice(begin_meta);
            match own {
                Some(own) if named => out.extend_from_slice(own),
                _ => {
                    out.extend_from_slice(b"{\"");
                    out.extend_from_slice(meta::SERVER_INFO.as_bytes());
                    out.extend_from_slice(b"\":");
                    out.extend_from_slice(self.server_info);
                    match own {
                        Some(own) => {
                            out.push(b',');
                            out.extend_from_slice(own[1..].trim_ascii_start());
                        }
                        None => out.push(b'}'),
                    }
                }
            }
        } else if let Some(own) = own {
            out.extend_from_slice(begin_meta);
            out.extend_from_slice(own);
        }
        out.push(b'}');
    }

    /// Writes cache hints, where the revision has them.
    pub(crate) fn cache(&self, out: &mut Vec<u8>, cache: &CacheHints) {
        if !self.revision.features().cache_hints {
            return;
        }
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(b",\"ttlMs\":");
        out.extend_from_slice(digits.format(cache.ttl_ms.unwrap_or(0)).as_bytes());
        out.extend_from_slice(b",\"cacheScope\":\"");
        out.extend_from_slice(
            cache
                .cache_scope
                .as_ref()
                .unwrap_or(&CacheScope::Private)
                .as_str()
                .as_bytes(),
        );
        out.push(b'"');
    }
}

fn is_empty_object(object: &[u8]) -> bool {
    object.first() == Some(&b'{') && object[1..].trim_ascii_start().first() == Some(&b'}')
}

/// Writes the result of a tool call. `wrapped`: the tool's output schema is not an object's, so revisions before
/// 2026-07-28 get the structured content as `{"result": …}`.
pub(crate) fn write_tool(
    out: &mut Vec<u8>,
    reply: &ToolReply,
    wrapped: bool,
    envelope: &ResultEnvelope<'_>,
) {
    let nothing = Raw::EMPTY_ARRAY;
    let adapted = adapt::tool_output(
        reply.content.as_ref().unwrap_or(&nothing),
        reply.structured.as_ref(),
        wrapped,
        envelope.revision,
    );
    if envelope.open(out, "complete") {
        out.push(b',');
    }
    out.extend_from_slice(b"\"content\":");
    out.extend_from_slice(adapted.content.as_bytes());
    if let Some(structured) = &adapted.structured {
        out.extend_from_slice(b",\"structuredContent\":");
        out.extend_from_slice(structured.as_bytes());
    }
    if reply.is_error {
        out.extend_from_slice(b",\"isError\":true");
    }
    envelope.close(out, reply.meta.as_ref());
}

/// Writes a result. `is_wrapped` is about a tool (`ToolEntry::wrapped`); `cache` returns the cache hints of a resource.
pub(crate) fn write(
    out: &mut Vec<u8>,
    reply: &Reply,
    is_wrapped: bool,
    cache: impl FnOnce(&ResourceReply) -> CacheHints,
    envelope: &ResultEnvelope<'_>,
) {
    match reply {
        Reply::Tool(tool) => write_tool(out, tool, is_wrapped, envelope),
        Reply::Resource(resource) => write_resource(out, resource, &cache(resource), envelope),
        Reply::Prompt(prompt) => write_prompt(out, prompt, envelope),
        Reply::Completion(completion) => write_completion(out, completion, envelope),
        Reply::Result(result) => write_result(out, result, envelope),
        // `finish_call::complete` handles returned input requests.
        Reply::InputRequired(_) => out.extend_from_slice(b"{}"),
        // Answers of shared state are not sent to clients.
        Reply::Sharing(_) => out.extend_from_slice(b"{}"),
        // Only routes and HTTP clients have responses, which are not written here.
        #[cfg(any(feature = "openapi", feature = "routes"))]
        Reply::Http(_) => out.extend_from_slice(b"{}"),
    }
}

/// Writes the result of reading a resource.
fn write_resource(
    out: &mut Vec<u8>,
    reply: &ResourceReply,
    cache: &CacheHints,
    envelope: &ResultEnvelope<'_>,
) {
    if envelope.open(out, "complete") {
        out.push(b',');
    }
    out.extend_from_slice(b"\"contents\":");
    out.extend_from_slice(reply.contents.as_bytes());
    envelope.cache(out, cache);
    envelope.close(out, reply.meta.as_ref());
}

/// Writes the result of getting a prompt.
fn write_prompt(out: &mut Vec<u8>, reply: &PromptReply, envelope: &ResultEnvelope<'_>) {
    if envelope.open(out, "complete") {
        out.push(b',');
    }
    if let Some(description) = &reply.description {
        out.extend_from_slice(b"\"description\":");
        json_string(out, description);
        out.push(b',');
    }
    let messages = adapt::prompt_messages(&reply.messages, envelope.revision);
    out.extend_from_slice(b"\"messages\":");
    out.extend_from_slice(messages.as_bytes());
    envelope.close(out, reply.meta.as_ref());
}

/// Writes the result of a custom request.
fn write_result(out: &mut Vec<u8>, result: &Raw, envelope: &ResultEnvelope<'_>) {
    let typed = envelope.revision.features().result_type;
    let own_type = result.member("resultType").filter(|_| typed);
    let own_type = own_type.as_ref().and_then(Raw::string_value);
    let mut is_comma_due = envelope.open(out, own_type.as_deref().unwrap_or("complete"));
    for (name, value) in result.members().into_iter().flatten() {
        if name == "_meta" || (typed && name == "resultType") {
            continue;
        }
        if is_comma_due {
            out.push(b',');
        }
        json_string(out, &name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
        is_comma_due = true;
    }
    let meta = result.member("_meta");
    envelope.close_after(out, meta.as_ref(), is_comma_due);
}

/// Maximum number of values in a completion (every revision, `server/utilities/completion`).
const COMPLETION_VALUES: usize = 100;

/// Writes the result of a completion.
fn write_completion(out: &mut Vec<u8>, reply: &CompletionReply, envelope: &ResultEnvelope<'_>) {
    if envelope.open(out, "complete") {
        out.push(b',');
    }
    out.extend_from_slice(b"\"completion\":{\"values\":[");
    for (index, value) in reply.values.iter().take(COMPLETION_VALUES).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json_string(out, value);
    }
    out.push(b']');
    let cut = reply.values.len() > COMPLETION_VALUES;
    let total = reply.total.or(cut.then_some(reply.values.len() as u64));
    if let Some(total) = total {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(b",\"total\":");
        out.extend_from_slice(digits.format(total).as_bytes());
    }
    if let Some(has_more) = reply.has_more.or(cut.then_some(true)) {
        out.extend_from_slice(if cut || has_more {
            b",\"hasMore\":true"
        } else {
            b",\"hasMore\":false"
        });
    }
    out.push(b'}');
    envelope.close(out, None);
}
