//! The JSON-RPC envelope: parses received bytes into a typed message with raw slices of those bytes.
//!
//! [`read`] is the only way from bytes to messages. It scans each byte once; `params` and `result`
//! stay slices of the received buffer, with the members of `params` already found.

use std::borrow::Cow;

use bytes::Bytes;
use smallvec::SmallVec;

use super::line::LineTooLong;
use crate::error::{ErrorCode, RpcError};
use crate::json::{
    JsonKind, Key, Member, Raw, RawRef, ScanError, ScanResult, Scanner, Span, head, scan, unescape,
};
use crate::limits::{MAX_DEPTH, MAX_METHOD, WireLimits};
use crate::methods::Method;
use crate::request_id::RequestId;

/// The content of one line or one HTTP body.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would cost every message an allocation"
)]
pub enum Incoming {
    /// One message.
    Single(Message),
    /// A JSON array of messages, at least one, each parsed separately (JSON-RPC 2.0 §6). The session decides whether
    /// the revision has batches.
    Batch(Vec<Result<Message, ReadError>>),
}

impl Incoming {
    /// Returns the messages that could be read.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        let (single, batch) = match self {
            Self::Single(message) => (Some(message), &[][..]),
            Self::Batch(entries) => (None, &entries[..]),
        };
        single.into_iter().chain(batch.iter().flatten())
    }
}

/// A JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Requires a response.
    Request(Request),
    /// Gets no response.
    Notification(Notification),
    /// Responds to a request of this side.
    Response(Response),
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id, which the response repeats.
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The parameters; an object if present. `null` is absent.
    pub params: Option<Params>,
    /// Members that JSON-RPC does not define.
    pub extra: Vec<(String, Raw)>,
}

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The method.
    pub method: Method,
    /// The parameters; an object if present.
    pub params: Option<Params>,
    /// Members that JSON-RPC does not define.
    pub extra: Vec<(String, Raw)>,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The id of the request; `None` only with an error: the peer could not read the id.
    pub id: Option<RequestId>,
    /// The result as raw JSON, or the error.
    pub outcome: Result<Raw, RpcError>,
    /// Members that JSON-RPC does not define.
    pub extra: Vec<(String, Raw)>,
}

/// The parameters of a request or notification: a raw object with its members located.
///
/// On the heap, because every step of a call moves the struct itself.
#[derive(Clone, Debug)]
pub struct Params(Box<LocatedObject>);

#[derive(Clone, Debug)]
struct LocatedObject {
    raw: Raw,
    members: Located,
}

/// The positions of members, without an allocation of their own for what most requests have: a name, arguments, `_meta`.
type Located = SmallVec<[Member; 3]>;

impl Params {
    /// Locates the members of `raw`; `None` if it is not an object.
    pub fn from_raw(raw: Raw) -> Option<Self> {
        let mut members = Located::new();
        let walk = |scanner: &mut Scanner<'_>| {
            scanner.object(1, |scanner, key| {
                members.push(Member::new(key, scanner.value(2)?));
                Ok(())
            })
        };
        scan(raw.as_bytes(), walk).ok()?;
        Some(Self::new(raw, members))
    }

    fn new(raw: Raw, members: Located) -> Self {
        Self(Box::new(LocatedObject { raw, members }))
    }

    /// The member of that name. A `null` member counts as absent: no parameter of the protocol distinguishes the two,
    /// and encoders that write every member write `null` for missing values.
    pub fn get(&self, name: &str) -> Option<Raw> {
        let value = self.find(name)?.value;
        let is_null = &self.0.raw.as_bytes()[value.range()] == b"null";
        (!is_null).then(|| Raw::slice(self.0.raw.shared(), value))
    }

    /// Like [`get`](Self::get), for a value that need not be kept.
    pub(crate) fn get_ref(&self, name: &str) -> Option<RawRef<'_>> {
        let value = &self.0.raw.as_bytes()[self.find(name)?.value.range()];
        (value != b"null").then(|| RawRef::checked(value))
    }

    /// The text of the member of that name, if it is a string.
    pub fn get_str(&self, name: &str) -> Option<Cow<'_, str>> {
        let value = &self.0.raw.as_bytes()[self.find(name)?.value.range()];
        Some(unescape(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?))
    }

    /// The `_meta` member.
    pub fn meta(&self) -> Option<Raw> {
        self.get("_meta")
    }

    /// The whole object.
    pub fn raw(&self) -> &Raw {
        &self.0.raw
    }

    fn find(&self, name: &str) -> Option<&Member> {
        self.0
            .members
            .iter()
            .find(|member| member.is_named(self.0.raw.as_bytes(), name))
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw
    }
}

/// The error for bytes that are not a valid message or batch.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct ReadError {
    /// The error for the response.
    pub error: RpcError,
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// What the bytes seem to be.
    pub shape: ApparentMessageKind,
    /// The messages of a batch that is rejected for its length, so that callers waiting for one of them can be
    /// notified.
    pub batch: Option<Box<OversizeBatch>>,
}

/// The messages with readable ids in a batch that exceeds the limit.
///
/// Their ids stay in the received bytes: twelve bytes per message, however long the batch is.
#[derive(Clone, Debug, PartialEq)]
pub struct OversizeBatch {
    bytes: Bytes,
    messages: Vec<(ApparentMessageKind, Span)>,
}

impl OversizeBatch {
    /// What each message seems to be, with its id.
    pub fn messages(&self) -> impl Iterator<Item = (ApparentMessageKind, RequestId)> {
        self.messages.iter().filter_map(|(shape, span)| {
            let id = RequestId::from_slice(&self.bytes, *span).ok()?;
            Some((*shape, id))
        })
    }

    /// The ids of its requests.
    pub fn requests(&self) -> impl Iterator<Item = RequestId> {
        let is_request = |shape| {
            matches!(
                shape,
                ApparentMessageKind::Request | ApparentMessageKind::Bare
            )
        };
        self.messages()
            .filter_map(move |(shape, id)| is_request(shape).then_some(id))
    }
}

/// What a malformed message seems to be, which decides whether it gets a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApparentMessageKind {
    /// A request, or nothing recognizable: respond with the error.
    Request,
    /// A notification: never gets a response.
    Notification,
    /// A response: never gets a response itself, but if `id` is known, that request has failed.
    Response,
    /// An id without a method, a result or an error. From a client it is a request without content, which gets the
    /// error as its response; from a server it is a response without content, so that the request has failed.
    Bare,
}

impl ReadError {
    /// Whether to send `error` to the peer. Notifications and responses never get a response.
    pub fn is_answerable(&self) -> bool {
        matches!(
            self.shape,
            ApparentMessageKind::Request | ApparentMessageKind::Bare
        )
    }

    /// The error for bytes in which nothing can be recognized.
    pub fn unreadable(error: RpcError) -> Self {
        Self {
            error,
            id: None,
            shape: ApparentMessageKind::Request,
            batch: None,
        }
    }
}

impl From<LineTooLong> for ReadError {
    fn from(error: LineTooLong) -> Self {
        Self::unreadable(RpcError::invalid_request(error.to_string()))
    }
}

impl From<ScanError> for ReadError {
    fn from(error: ScanError) -> Self {
        Self::unreadable(RpcError::parse_error(format!("Parse error: {error}")))
    }
}

/// Parses one line or HTTP body.
///
/// # Errors
/// [`ErrorCode::PARSE_ERROR`] when the bytes are not JSON according to [`check`](super::check),
/// [`ErrorCode::INVALID_REQUEST`] when they are JSON but not a message, or an empty or too long batch. An invalid
/// message in a batch affects only itself.
pub fn read(bytes: Bytes) -> Result<Incoming, ReadError> {
    read_within(bytes, WireLimits::default())
}

/// Parses one line or HTTP body within `limits` for nesting and batch length.
///
/// # Errors
/// As for [`read`].
pub fn read_within(bytes: Bytes, limits: WireLimits) -> Result<Incoming, ReadError> {
    // The scanner stops at the maximum depth: for a smaller limit it starts deeper.
    let top = 1 + MAX_DEPTH.saturating_sub(limits.max_json_depth);
    let mut one = MessageMembers::default();
    let mut all = Vec::new();
    let mut beyond = Vec::new();
    let kind = scan(&bytes, |scanner| {
        let kind = scanner.kind();
        match kind {
            Some(JsonKind::Object) => one.scan(scanner, top)?,
            Some(JsonKind::Array) => scan_batch(
                scanner,
                top,
                limits.max_batch_messages,
                &mut all,
                &mut beyond,
            )?,
            _ => drop(scanner.value(top)?),
        }
        Ok(kind)
    })?;
    match kind {
        Some(JsonKind::Object) => one.into_message(&bytes).map(Incoming::Single),
        Some(JsonKind::Array) if all.is_empty() => {
            Err(ReadError::unreadable(invalid("an empty batch")))
        }
        Some(JsonKind::Array) if all.len() > limits.max_batch_messages => {
            let error = invalid("too many messages in a batch");
            let known = all
                .iter()
                .flatten()
                .filter_map(MessageMembers::shape_and_id);
            let messages = known.chain(beyond).collect();
            Err(ReadError {
                batch: Some(Box::new(OversizeBatch { bytes, messages })),
                ..ReadError::unreadable(error)
            })
        }
        Some(JsonKind::Array) => {
            let message = |parts: Option<MessageMembers>| match parts {
                Some(parts) => parts.into_message(&bytes),
                None => Err(ReadError::unreadable(invalid(
                    "a message must be an object",
                ))),
            };
            Ok(Incoming::Batch(all.into_iter().map(message).collect()))
        }
        _ => Err(ReadError::unreadable(invalid(
            "a message must be an object",
        ))),
    }
}

/// Collects the messages of a batch, `None` for elements that are not objects. One more than `most` stands for any
/// larger number; of those after it only the ids are collected.
fn scan_batch(
    scanner: &mut Scanner<'_>,
    depth: usize,
    most: usize,
    all: &mut Vec<Option<MessageMembers>>,
    beyond: &mut Vec<(ApparentMessageKind, Span)>,
) -> ScanResult<()> {
    let message = |scanner: &mut Scanner<'_>| {
        let mut parts = None;
        if scanner.kind() == Some(JsonKind::Object) {
            parts
                .get_or_insert_with(MessageMembers::default)
                .scan(scanner, depth + 1)?;
        } else {
            scanner.value(depth + 1)?;
        }
        if all.len() <= most {
            all.push(parts);
        } else if let Some(message) = parts.as_ref().and_then(MessageMembers::shape_and_id) {
            beyond.push(message);
        }
        Ok(())
    };
    scanner.array(depth, message).map(drop)
}

fn invalid(problem: &str) -> RpcError {
    RpcError::invalid_request(format!("Invalid request: {problem}"))
}

/// The positions of a message's members.
#[derive(Default)]
struct MessageMembers {
    jsonrpc: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    members: Located,
    result: Option<Span>,
    error: Option<Span>,
    extra: Vec<Member>,
}

// All names that JSON-RPC defines are shorter than eight bytes, so their heads identify them.
const JSONRPC: u64 = head(b"jsonrpc");
const ID: u64 = head(b"id");
const METHOD: u64 = head(b"method");
const PARAMS: u64 = head(b"params");
const RESULT: u64 = head(b"result");
const ERROR: u64 = head(b"error");

/// The head of a member's name; zero, which is never the head of a name, if the head does not identify it.
fn name_head(scanner: &Scanner<'_>, key: Key) -> u64 {
    if !key.escaped {
        return key.head;
    }
    let name = unescape(scanner.text(key));
    if name.contains('\0') {
        0
    } else {
        head(name.as_bytes())
    }
}

impl MessageMembers {
    /// Locates the members of the next message.
    fn scan(&mut self, scanner: &mut Scanner<'_>, depth: usize) -> ScanResult<()> {
        scanner
            .object(depth, |scanner, key| self.member(scanner, key, depth + 1))
            .map(drop)
    }

    fn member(&mut self, scanner: &mut Scanner<'_>, key: Key, depth: usize) -> ScanResult<()> {
        let known = match name_head(scanner, key) {
            JSONRPC => &mut self.jsonrpc,
            ID => &mut self.id,
            METHOD => &mut self.method,
            PARAMS => {
                self.params = Some(self.scan_params(scanner, depth)?);
                return Ok(());
            }
            RESULT => &mut self.result,
            ERROR => &mut self.error,
            _ => {
                self.extra.push(Member::new(key, scanner.value(depth)?));
                return Ok(());
            }
        };
        *known = Some(scanner.value(depth)?);
        Ok(())
    }

    fn scan_params(&mut self, scanner: &mut Scanner<'_>, depth: usize) -> ScanResult<Span> {
        if scanner.kind() != Some(JsonKind::Object) {
            return scanner.value(depth);
        }
        let members = &mut self.members;
        // A second `params` is rejected, but only at the end of the message.
        members.clear();
        let span = scanner.object(depth, |scanner, key| {
            members.push(Member::new(key, scanner.value(depth + 1)?));
            Ok(())
        })?;
        members
            .iter_mut()
            .for_each(|member| *member = member.relative_to(span));
        Ok(span)
    }

    fn shape(&self) -> ApparentMessageKind {
        match (self.method, self.id) {
            (None, _) if self.result.is_some() || self.error.is_some() => {
                ApparentMessageKind::Response
            }
            (Some(_), None) => ApparentMessageKind::Notification,
            (None, Some(_)) => ApparentMessageKind::Bare,
            _ => ApparentMessageKind::Request,
        }
    }

    fn shape_and_id(&self) -> Option<(ApparentMessageKind, Span)> {
        Some((self.shape(), self.id?))
    }

    fn into_message(self, bytes: &Bytes) -> Result<Message, ReadError> {
        let shape = self.shape();
        let id = self
            .id
            .map(|span| RequestId::from_raw(&Raw::slice(bytes, span)));
        let fault = |error: RpcError| ReadError {
            error,
            id: id.clone().and_then(Result::ok),
            shape,
            batch: None,
        };
        if self
            .jsonrpc
            .is_none_or(|span| &bytes[span.range()] != b"\"2.0\"")
        {
            return Err(fault(invalid("\"jsonrpc\" must be \"2.0\"")));
        }
        if shape == ApparentMessageKind::Response {
            return self.into_response(bytes).map_err(fault);
        }
        let method = self
            .method
            .ok_or_else(|| fault(invalid("`method` is missing")))?;
        let method = method_of(bytes, method).map_err(fault)?;
        if self.result.is_some() || self.error.is_some() {
            return Err(fault(invalid("a request has no result and no error")));
        }
        let id = match &id {
            Some(Err(error)) => return Err(fault(invalid(&error.to_string()))),
            Some(Ok(id)) => Some(id.clone()),
            None => None,
        };
        let params = match self.params {
            Some(span) if &bytes[span.range()] == b"null" => None,
            Some(span) if bytes[span.start as usize] != b'{' => {
                return Err(fault(RpcError::invalid_params(
                    "Invalid params: params must be an object",
                )));
            }
            Some(span) => Some(Params::new(Raw::slice(bytes, span), self.members)),
            None => None,
        };
        let extra = extra(bytes, &self.extra);
        Ok(match id {
            Some(id) => Message::Request(Request {
                id,
                method,
                params,
                extra,
            }),
            None => Message::Notification(Notification {
                method,
                params,
                extra,
            }),
        })
    }

    fn into_response(self, bytes: &Bytes) -> Result<Message, RpcError> {
        let id = match self.id {
            Some(span) if &bytes[span.range()] == b"null" => None,
            Some(span) => {
                let id = RequestId::from_slice(bytes, span);
                Some(id.map_err(|error| invalid(&error.to_string()))?)
            }
            None => None,
        };
        let outcome = match (self.result, self.error) {
            (Some(_), Some(_)) => {
                return Err(invalid("a response has a result or an error, not both"));
            }
            (Some(_), None) if id.is_none() => return Err(invalid("a result has no id")),
            (Some(result), None) => Ok(Raw::slice(bytes, result)),
            (None, error) => Err(error_of(error.map(|span| Raw::slice(bytes, span)))?),
        };
        Ok(Message::Response(Response {
            id,
            outcome,
            extra: extra(bytes, &self.extra),
        }))
    }
}

fn method_of(bytes: &Bytes, span: Span) -> Result<Method, RpcError> {
    let text = &bytes[span.range()];
    let inner = text
        .strip_prefix(b"\"")
        .and_then(|text| text.strip_suffix(b"\""));
    let inner = inner.ok_or_else(|| invalid("\"method\" must be a string"))?;
    if inner.len() > MAX_METHOD {
        return Err(invalid("the method name is too long"));
    }
    Ok(Method::known(inner).unwrap_or_else(|| Method::parse(&unescape(inner))))
}

fn error_of(raw: Option<Raw>) -> Result<RpcError, RpcError> {
    let raw = raw.ok_or_else(|| invalid("there is neither result nor error"))?;
    let code = raw.member("code").and_then(|code| code.decode().ok());
    let message = raw
        .member("message")
        .and_then(|text| Some(text.string_value()?.into_owned()));
    match (code, message) {
        (Some(code), Some(message)) => Ok(RpcError {
            code: ErrorCode(code),
            message: message.into(),
            data: raw.member("data"),
        }),
        _ => Err(invalid("an error has an integer code and a message")),
    }
}

fn extra(bytes: &Bytes, members: &[Member]) -> Vec<(String, Raw)> {
    let pair = |member: &Member| {
        let key = unescape(&bytes[member.key.range()]).into_owned();
        (key, Raw::slice(bytes, member.value))
    };
    members.iter().map(pair).collect()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
