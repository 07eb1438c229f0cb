//! What a handler gives back, and how it is written for the client's revision.
//!
//! Parts that a handler or a binding has encoded stay bytes: they are written into the result unparsed,
//! and looked into only where an older revision can't read them.

use mcpline_protocol::adapt;
use mcpline_protocol::session::Need;
use mcpline_protocol::vocabulary::{CacheHints, CacheScope, ElicitParams, meta};
use mcpline_protocol::wire::{Kind, Raw, json_string};
use mcpline_protocol::{Revision, RpcError};

use super::asking::AskMethod;

/// A handler's result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reply {
    /// The result of a tool.
    Tool(ToolReply),
    /// The contents of a resource.
    Resource(ResourceReply),
    /// The messages of a prompt.
    Prompt(PromptReply),
    /// Candidates for a completion.
    Completion(CompletionReply),
    /// The result of a custom request: a JSON object. What its revision puts into every result is added; a `resultType` of
    /// its own stays. To ask for input return [`Reply::InputRequired`] instead of a result of that type.
    ///
    /// The handler of a tool, resource, prompt or completion may return one in place of its usual result, too: with a
    /// `resultType` of an extension of the server's ([`Extension::with_result_type`](super::Extension::with_result_type)), on
    /// 2026-07-28, to a client that declares the extension.
    Result(Raw),
    /// Questions that the handler wants answered before it is called again.
    InputRequired(InputRequired),
}

/// The result of a tool call (`CallToolResult`).
#[derive(Debug, Clone, Default)]
pub struct ToolReply {
    /// The content blocks: a JSON array. `None` for none; a client then gets the structured content as
    /// text, if there is any.
    pub content: Option<Raw>,
    /// The structured content: any JSON value.
    pub structured: Option<Raw>,
    /// Whether the tool failed in a way that the model should see.
    pub is_error: bool,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// The result of reading a resource (`ReadResourceResult`).
#[derive(Debug, Clone)]
pub struct ResourceReply {
    /// The contents: a JSON array.
    pub contents: Raw,
    /// Caching hints of 2026-07-28; the server's default where `None`.
    pub cache: Option<CacheHints>,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// The result of getting a prompt (`GetPromptResult`).
#[derive(Debug, Clone)]
pub struct PromptReply {
    /// The messages: a JSON array.
    pub messages: Raw,
    /// What the prompt is for.
    pub description: Option<String>,
    /// `_meta`: a JSON object.
    pub meta: Option<Raw>,
}

/// The result of a completion (`CompleteResult`). More than 100 values are cut, as the protocol demands.
#[derive(Debug, Clone, Default)]
pub struct CompletionReply {
    /// The candidates, best first.
    pub values: Vec<String>,
    /// How many there are in all, if known.
    pub total: Option<u64>,
    /// Whether there are more than `values` holds.
    pub has_more: Option<bool>,
}

/// Questions that a handler returns instead of a result. The handler is called again, from its start,
/// with the answers in [`Context::input_responses`](super::Context::input_responses); this works toward
/// clients of every revision.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// The questions by key: `elicitation/create`, `sampling/createMessage` or `roots/list` with
    /// parameters.
    pub requests: Vec<InputRequest>,
    /// What the handler wants to remember; it comes back in
    /// [`Context::request_state`](super::Context::request_state), unread and unchanged by the client.
    pub state: Option<String>,
}

/// One question of an [`InputRequired`].
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// Names the answer.
    pub key: String,
    /// The method.
    pub method: AskMethod,
    /// Its parameters.
    pub params: Option<Raw>,
}

/// Why a handler has no result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HandlerError {
    /// The tool failed, and the model should read why. Toward features without such results (resources,
    /// prompts, completion) it is an internal error with this text.
    Tool(String),
    /// A protocol error with code, message and data of the author's choice.
    Rpc(RpcError),
    /// The client lacks a capability that the request needs: -32021 on 2026-07-28, else as
    /// [`HandlerError::Tool`].
    Unsupported(Need),
    /// No failure: the handler wants these questions answered first. As [`Reply::InputRequired`], for
    /// handlers whose result is of another type.
    InputRequired(InputRequired),
    /// The request can't be served before the user has visited these URLs; the client tries again when that is
    /// done, which [`Server::notify_elicitation_complete`](super::Server::notify_elicitation_complete) tells it.
    ///
    /// On 2025-11-25 this is the error -32042 (`client/elicitation`, URL elicitation required). On 2026-07-28
    /// the visits are questions, as with [`HandlerError::InputRequired`]. Clients that know no visits get the
    /// URLs in words.
    UrlElicitationRequired(Vec<ElicitParams>),
    /// The handler failed in a way that the client must not learn about; the text is for the log.
    Internal(String),
}

impl From<RpcError> for HandlerError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl Reply {
    /// About how many bytes it holds.
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
        }
    }
}

impl ToolReply {
    /// A reply of one text.
    pub fn text(text: &str) -> Self {
        const BEFORE: &[u8] = b"[{\"type\":\"text\",\"text\":";
        const AFTER: &[u8] = b"}]";
        // Exactly as long as a text without escapes: `Bytes` takes a full buffer over without a further allocation.
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

    /// A failure that the model should read.
    pub fn error(text: &str) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// What every result of 2026-07-28 carries beside its own members.
pub(crate) struct Envelope<'a> {
    /// The client's revision.
    pub(crate) revision: Revision,
    /// `Implementation` of this server, as JSON.
    pub(crate) server_info: &'a [u8],
}

impl Envelope<'_> {
    /// Begins a result: the brace, and what the revision puts first. Returns whether a comma is due.
    pub(crate) fn open(&self, out: &mut Vec<u8>, result_type: &str) -> bool {
        out.push(b'{');
        if !self.revision.features().result_type {
            return false;
        }
        out.extend_from_slice(b"\"resultType\":");
        json_string(out, result_type);
        true
    }

    /// Ends a result that has a member: `_meta` with the server's name where the revision wants it, and the brace.
    pub(crate) fn close(&self, out: &mut Vec<u8>, meta: Option<&Raw>) {
        self.close_after(out, meta, true);
    }

    fn close_after(&self, out: &mut Vec<u8>, meta: Option<&Raw>, is_comma_due: bool) {
        let begin_meta: &[u8] = match is_comma_due {
            true => b",\"_meta\":",
            false => b"\"_meta\":",
        };
        let meta = meta.filter(|meta| meta.kind() == Kind::Object);
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

    /// Writes caching hints, where the revision has them.
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

/// Writes the result of a tool call. `wrapped` says that the tool's output schema is not an object's, so
/// that revisions before 2026-07-28 get the structured content as `{"result": …}`.
pub(crate) fn write_tool(
    out: &mut Vec<u8>,
    reply: &ToolReply,
    wrapped: bool,
    envelope: &Envelope<'_>,
) {
    let adapted = adapt::tool_output(
        reply.content.clone().unwrap_or(Raw::EMPTY_ARRAY),
        reply.structured.clone(),
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

/// Writes the result of reading a resource.
pub(crate) fn write_resource(
    out: &mut Vec<u8>,
    reply: &ResourceReply,
    cache: &CacheHints,
    envelope: &Envelope<'_>,
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
pub(crate) fn write_prompt(out: &mut Vec<u8>, reply: &PromptReply, envelope: &Envelope<'_>) {
    if envelope.open(out, "complete") {
        out.push(b',');
    }
    if let Some(description) = &reply.description {
        out.extend_from_slice(b"\"description\":");
        json_string(out, description);
        out.push(b',');
    }
    let messages = adapt::prompt_messages(reply.messages.clone(), envelope.revision);
    out.extend_from_slice(b"\"messages\":");
    out.extend_from_slice(messages.as_bytes());
    envelope.close(out, reply.meta.as_ref());
}

/// Writes the result of a custom request.
pub(crate) fn write_result(out: &mut Vec<u8>, result: &Raw, envelope: &Envelope<'_>) {
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

/// The most values a completion may carry (every revision, `server/utilities/completion`).
const COMPLETION_VALUES: usize = 100;

/// Writes the result of a completion.
pub(crate) fn write_completion(
    out: &mut Vec<u8>,
    reply: &CompletionReply,
    envelope: &Envelope<'_>,
) {
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
