//! Converts the serialized outcome of a handler to the core's reply.

use mcpline::foreign::results;
use mcpline::protocol::vocabulary::ElicitParams;
use mcpline::protocol::wire::Raw;
use mcpline::server::CallKind;
use mcpline::{HandlerError, Reply, RpcError, ToolReply};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text::may_be_ill_formed;

/// The end of a call.
pub(crate) type Outcome = Result<Reply, HandlerError>;

/// The kind of a serialized outcome. The numbers are those of `lib/hub.ts`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutcomeKind {
    /// The only text block of a tool's result.
    Text = 0,
    /// A tool's content: a JSON array.
    Content = 1,
    /// A tool's structured content: any JSON value.
    Structured = 2,
    /// The complete result of the called method, as the specification defines it. Of a middleware, that of a tool.
    Complete = 3,
    /// `requests`, an array of key, method and parameters, and `state`.
    InputRequired = 4,
    /// A failure that the model should read.
    ToolFailure = 5,
    /// A JSON-RPC error.
    RpcFailure = 6,
    /// A failure that is not disclosed to the client.
    InternalFailure = 7,
    /// `message` and `required`: a capability that the client lacks.
    Unsupported = 8,
    /// URL elicitations that the user must complete first: an array of elicitation parameters in URL mode.
    UrlElicitations = 9,
    /// The result of a custom request, or one of an extension's type.
    Result = 10,
    /// A resource that does not exist: its URI, or empty for the requested one.
    ResourceNotFound = 11,
    /// `summary` and `trace`: an error of a handler. Clients get the summary in debug mode only.
    Exception = 12,
    /// A result that a middleware passes on as it got it: JSON of the core.
    Unchanged = 13,
}

impl OutcomeKind {
    pub(crate) fn of(number: f64) -> Option<Self> {
        const ALL: [OutcomeKind; 14] = [
            OutcomeKind::Text,
            OutcomeKind::Content,
            OutcomeKind::Structured,
            OutcomeKind::Complete,
            OutcomeKind::InputRequired,
            OutcomeKind::ToolFailure,
            OutcomeKind::RpcFailure,
            OutcomeKind::InternalFailure,
            OutcomeKind::Unsupported,
            OutcomeKind::UrlElicitations,
            OutcomeKind::Result,
            OutcomeKind::ResourceNotFound,
            OutcomeKind::Exception,
            OutcomeKind::Unchanged,
        ];
        ALL.into_iter().find(|kind| *kind as u8 as f64 == number)
    }
}

/// Returns the outcome that a text of this kind represents for the `called` feature.
pub(crate) fn outcome(called: CallKind, kind: OutcomeKind, text: &[u8]) -> Outcome {
    read(called, kind, text).unwrap_or_else(|reason| {
        // The package wrote it, so this is a bug; the call still ends.
        Err(HandlerError::Internal(format!(
            "bug in mcpline: cannot decode the handler's result: {reason}"
        )))
    })
}

fn read(called: CallKind, kind: OutcomeKind, text: &[u8]) -> Result<Outcome, String> {
    let tool = |reply| Ok(Ok(Reply::Tool(reply)));
    match kind {
        OutcomeKind::Text => tool(ToolReply::text(string(text)?)),
        OutcomeKind::Content => tool(ToolReply {
            content: Some(parse_stringified(text)?),
            ..ToolReply::default()
        }),
        OutcomeKind::Structured => tool(ToolReply {
            structured: Some(parse_stringified(text)?),
            ..ToolReply::default()
        }),
        OutcomeKind::Complete => {
            let called = match called {
                CallKind::Middleware => CallKind::Tool,
                called => called,
            };
            replied(results::complete(called, &parse_stringified(text)?))
        }
        OutcomeKind::InputRequired => replied(results::input_required(text)),
        OutcomeKind::Result => Ok(Ok(Reply::Result(parse_stringified(text)?))),
        // Its escapes may be pairs of surrogates, which `parse_stringified` does not expect.
        OutcomeKind::Unchanged => Ok(Ok(Reply::Result(Raw::from_trusted(text.to_vec())))),
        OutcomeKind::ToolFailure => Ok(Err(HandlerError::Tool(string(text)?.to_owned()))),
        OutcomeKind::RpcFailure => {
            let failure: RpcFailure = decoded(text)?;
            let code = mcpline::protocol::ErrorCode(failure.code);
            let mut error = RpcError::new(code, failure.message);
            error.data = failure.data.as_ref().map(|data| {
                // Serializing a JSON value never fails.
                Raw::from_serialize(data).unwrap_or(Raw::EMPTY_ARRAY)
            });
            Ok(Err(HandlerError::Rpc(error)))
        }
        OutcomeKind::ResourceNotFound => {
            let uri = string(text)?;
            let uri = (!uri.is_empty()).then(|| uri.to_owned());
            Ok(Err(HandlerError::ResourceNotFound(uri)))
        }
        OutcomeKind::InternalFailure => Ok(Err(HandlerError::Internal(string(text)?.to_owned()))),
        OutcomeKind::Exception => {
            let Exception { summary, trace } = decoded(text)?;
            Ok(Err(HandlerError::Exception { summary, trace }))
        }
        OutcomeKind::Unsupported => {
            let failure: MissingCapability = decoded(text)?;
            Ok(Err(results::unsupported(
                &failure.required,
                failure.message,
            )))
        }
        OutcomeKind::UrlElicitations => {
            let url_elicitations: Vec<ElicitParams> = decoded(text)?;
            Ok(Err(HandlerError::UrlElicitationRequired(url_elicitations)))
        }
    }
}

#[derive(Deserialize)]
struct Exception {
    summary: String,
    trace: String,
}

#[derive(Deserialize)]
struct RpcFailure {
    code: i64,
    message: String,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct MissingCapability {
    message: String,
    required: Value,
}

fn replied(reply: Result<Reply, mcpline::Error>) -> Result<Outcome, String> {
    reply.map(Ok).map_err(|error| error.to_string())
}

fn string(text: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(text).map_err(|error| error.to_string())
}

/// Decodes JSON that `JSON.stringify` wrote, whose lone surrogates become U+FFFD.
fn decoded<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let decoded = match may_be_ill_formed(text) {
        true => serde_json::from_slice(&without_lone_surrogates(text)),
        false => serde_json::from_slice(text),
    };
    decoded.map_err(|error| error.to_string())
}

/// Parses JSON that `JSON.stringify` wrote. It writes lone surrogates as escapes, which parsers may reject: they become
/// U+FFFD, like in all strings that come from JavaScript.
pub(crate) fn parse_stringified(text: &[u8]) -> Result<Raw, String> {
    if may_be_ill_formed(text) {
        return Raw::parse(without_lone_surrogates(text)).map_err(|error| error.to_string());
    }
    Ok(Raw::from_trusted(text.to_vec()))
}

/// Replaces the escapes of lone surrogates. `JSON.stringify` writes paired surrogates as they are, and lone ones as
/// lower-case escapes; a backslash before such an escape would itself be escaped.
fn without_lone_surrogates(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'\\', [b'u', b'd', b'8'..=b'9' | b'a'..=b'f', _, _, tail @ ..]) => {
                out.extend_from_slice(b"\\ufffd");
                rest = tail;
            }
            (b'\\', [escaped, tail @ ..]) => {
                out.extend_from_slice(&[b'\\', *escaped]);
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}
