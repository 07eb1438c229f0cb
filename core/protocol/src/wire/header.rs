//! The header rules of Streamable HTTP in 2026-07-28 ("Request Metadata"): which headers mirror a request, how their
//! values are encoded, and whether they match the body.
//!
//! HTTP types are not needed: headers are looked up through a closure that returns a [`HeaderOccurrence`].

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::message::{Notification, Params, Request};
use crate::error::RpcError;
use crate::methods::Method;
use crate::vocabulary::meta;

mod params;

pub use params::{HeaderRule, HeaderRuleError, ParamHeader, ParamHeaders};

/// The revision of a request.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The method of a request.
pub const METHOD: &str = "Mcp-Method";
/// The tool, prompt or resource of a request.
pub const NAME: &str = "Mcp-Name";
/// The session, in the revisions that have sessions.
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The event id after which to resume a stream, in the revisions that resume.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// The prefix of the headers of parameters.
pub const PARAM_PREFIX: &str = "Mcp-Param-";

/// The values of a request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderOccurrence<'h> {
    /// No such header.
    Absent,
    /// One value, without white space around it.
    Once(&'h [u8]),
    /// Several values. Two readers may choose different ones, so they match nothing.
    Repeated,
}

impl<'h> HeaderOccurrence<'h> {
    /// Creates a lookup from all values of the header.
    pub fn from_values(values: impl IntoIterator<Item = &'h [u8]>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::Once(value),
            _ => Self::Repeated,
        }
    }
}

impl<'h> From<Option<&'h [u8]>> for HeaderOccurrence<'h> {
    fn from(value: Option<&'h [u8]>) -> Self {
        value.map_or(Self::Absent, Self::Once)
    }
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Encodes a value for `Mcp-Name` or `Mcp-Param-*` ("Value Encoding"): unchanged if that is safe, otherwise in Base64
/// between markers.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    let ambiguous = edge(bytes.first())
        || edge(bytes.last())
        || (value.starts_with(OPEN) && value.ends_with(CLOSE));
    if !ambiguous && bytes.iter().copied().all(is_field_byte) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)))
    }
}

/// A header value that no conforming client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHeaderValue {
    /// A byte that is neither visible ASCII, nor space, nor tab.
    #[error("invalid characters")]
    Characters,
    /// Marked as Base64, but not canonical Base64 with padding.
    #[error("invalid Base64")]
    Base64,
    /// Base64 of something that is not UTF-8.
    #[error("Base64 of invalid UTF-8")]
    Utf8,
}

/// Decodes a value of `Mcp-Name` or `Mcp-Param-*`.
///
/// # Errors
/// What is wrong with the value; the request must be rejected.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, InvalidHeaderValue> {
    if !value.iter().copied().all(is_field_byte) {
        return Err(InvalidHeaderValue::Characters);
    }
    let text = std::str::from_utf8(value).map_err(|_| InvalidHeaderValue::Characters)?;
    let inner = text
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE));
    let Some(inner) = inner else {
        return Ok(Cow::Borrowed(text));
    };
    let decoded = STANDARD
        .decode(inner)
        .map_err(|_| InvalidHeaderValue::Base64)?;
    String::from_utf8(decoded)
        .map(Cow::Owned)
        .map_err(|_| InvalidHeaderValue::Utf8)
}

/// Visible ASCII, space and tab (RFC 9110 §5.5).
fn is_field_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

/// The value that `Mcp-Name` mirrors, for methods that have one.
pub fn name_of<'p>(method: &Method, params: Option<&'p Params>) -> Option<Cow<'p, str>> {
    params?.get_str(method.spec()?.name_param?)
}

/// The headers, besides `MCP-Protocol-Version` and those of parameters, that a client must send with a request.
pub fn standard_headers<'r>(
    method: &'r Method,
    params: Option<&'r Params>,
) -> impl Iterator<Item = (&'static str, String)> + use<'r> {
    let name = name_of(method, params).map(|name| (NAME, encode_value(&name).into_owned()));
    [(METHOD, method.as_str().to_owned())]
        .into_iter()
        .chain(name)
}

/// Checks `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` against the request in the body
/// ("Server Validation").
///
/// A body without a version, or a call without a tool name, is not checked here: such a request is malformed and gets
/// another error.
///
/// # Errors
/// A [`HEADER_MISMATCH`](crate::ErrorCode::HEADER_MISMATCH) when a header is missing, repeated, malformed or different;
/// sent with status 400.
pub fn check_standard<'h>(
    headers: impl Fn(&str) -> HeaderOccurrence<'h>,
    request: &Request,
) -> Result<(), RpcError> {
    let version = value_of(&headers, PROTOCOL_VERSION)?;
    let declared = request
        .params
        .as_ref()
        .and_then(Params::meta)
        .and_then(|meta| meta.member(meta::PROTOCOL_VERSION));
    if let Some(declared) = declared
        .as_ref()
        .and_then(|declared| declared.string_value())
    {
        check_equal(PROTOCOL_VERSION, version, &declared)?;
    }
    check_equal(METHOD, value_of(&headers, METHOD)?, request.method.as_str())?;
    // An extension's rule does not justify rejecting a request for a method that the server may not know.
    let is_optional =
        request.method.is(|spec| spec.may_be_custom) && headers(NAME) == HeaderOccurrence::Absent;
    if !is_optional && request.method.is(|spec| spec.name_param.is_some()) {
        let name = value_of(&headers, NAME)?;
        let name = decode_value(name.as_bytes()).map_err(|problem| malformed(NAME, problem))?;
        if let Some(expected) = name_of(&request.method, request.params.as_ref()) {
            check_equal(NAME, &name, &expected)?;
        }
    }
    Ok(())
}

/// Checks those standard headers that a notification has: the revision does not say which are required (2026-07-28,
/// `basic/transports/streamable-http`), but a gateway may have relied on them ("Server Validation").
///
/// # Errors
/// As for [`check_standard`].
pub fn check_notification<'h>(
    headers: impl Fn(&str) -> HeaderOccurrence<'h>,
    notification: &Notification,
) -> Result<(), RpcError> {
    match headers(METHOD) {
        HeaderOccurrence::Absent => Ok(()),
        _ => check_equal(
            METHOD,
            value_of(&headers, METHOD)?,
            notification.method.as_str(),
        ),
    }
}

fn value_of<'h>(
    headers: impl Fn(&str) -> HeaderOccurrence<'h>,
    name: &str,
) -> Result<&'h str, RpcError> {
    match headers(name) {
        HeaderOccurrence::Absent => Err(mismatch(format!("{name} header is missing"))),
        HeaderOccurrence::Repeated => Err(mismatch(format!("{name} header is repeated"))),
        HeaderOccurrence::Once(value) => {
            let text = std::str::from_utf8(value).ok();
            let text = text.filter(|text| text.bytes().all(is_field_byte));
            text.ok_or_else(|| malformed(name, InvalidHeaderValue::Characters))
        }
    }
}

fn check_equal(name: &str, value: &str, body: &str) -> Result<(), RpcError> {
    if value == body {
        return Ok(());
    }
    Err(mismatch(format!(
        "{name} header value '{value}' does not match body value '{body}'"
    )))
}

fn malformed(name: &str, problem: InvalidHeaderValue) -> RpcError {
    mismatch(format!("{name} header has {problem}"))
}

fn mismatch(problem: String) -> RpcError {
    RpcError::header_mismatch(format!("Header mismatch: {problem}"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::{Incoming, Message, read};

    pub(super) fn lookup<'h>(
        pairs: &'h [(&'h str, &'h str)],
    ) -> impl Fn(&str) -> HeaderOccurrence<'h> {
        move |name| {
            let named = pairs
                .iter()
                .filter(|(key, _)| key.eq_ignore_ascii_case(name));
            HeaderOccurrence::from_values(named.map(|(_, value)| value.as_bytes()))
        }
    }

    fn request(text: &str) -> Request {
        match read(Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Incoming::Single(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wetter-öl",
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

    #[test]
    fn values_are_encoded_as_in_the_table_of_the_specification() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?open", "=?base64?open"),
            ("", ""),
        ] {
            assert_eq!(encode_value(value), encoded);
            assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(value));
        }
    }

    #[test]
    fn tasks_of_the_extension_are_named_by_their_id() {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"taskId":"t-1"}}}}"#
            );
            let request = request(&text);
            let sent = standard_headers(&request.method, request.params.as_ref());
            let sent: Vec<_> = sent.collect();
            let expected = [(METHOD, method.to_owned()), (NAME, "t-1".to_owned())];
            assert_eq!(sent, expected);
            let given = [(PROTOCOL_VERSION, "2026-07-28"), (METHOD, method)];
            let check = |name: Option<&str>| {
                let name = name.map(|name| (NAME, name));
                let all: Vec<_> = given.into_iter().chain(name).collect();
                check_standard(lookup(&all), &request)
            };
            check(Some("t-1")).expect("as in the body");
            check(None).expect("the rule is the extension's");
            check(Some("t-2")).expect_err("another task");
        }
    }

    #[test]
    fn base64_must_be_canonical_and_padded() {
        for bad in [
            "SGVsbG8",
            "SGVsbG9=",
            "SGV sbG8=",
            "SGVsbG8_",
            "====",
            "SGVsbG8==",
        ] {
            let value = format!("=?base64?{bad}?=");
            assert_eq!(
                decode_value(value.as_bytes()),
                Err(InvalidHeaderValue::Base64),
                "{bad}"
            );
        }
        assert_eq!(
            decode_value(b"=?base64?/w==?="),
            Err(InvalidHeaderValue::Utf8)
        );
        assert_eq!(
            decode_value("ö".as_bytes()),
            Err(InvalidHeaderValue::Characters)
        );
        assert_eq!(decode_value(b"a\x01"), Err(InvalidHeaderValue::Characters));
        assert_eq!(
            decode_value(b"=?BASE64?YQ==?=").as_deref(),
            Ok("=?BASE64?YQ==?=")
        );
    }

    #[test]
    fn headers_that_mirror_the_body_are_accepted() {
        let request = request(CALL);
        let mut pairs: Vec<_> =
            standard_headers(&request.method, request.params.as_ref()).collect();
        pairs.push((PROTOCOL_VERSION, "2026-07-28".to_owned()));
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(pairs[1], (NAME, "=?base64?d2V0dGVyLcO2bA==?="));
        assert_eq!(check_standard(lookup(&pairs), &request), Ok(()));
    }

    #[test]
    fn missing_repeated_and_different_headers_are_refused() {
        let request = request(CALL);
        let good = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?d2V0dGVyLcO2bA==?="),
        ];
        assert_eq!(check_standard(lookup(&good), &request), Ok(()));
        for at in 0..good.len() {
            let mut missing = good.to_vec();
            missing.remove(at);
            let mut repeated = good.to_vec();
            repeated.push(good[at]);
            let mut different = good.to_vec();
            different[at].1 = "other";
            let mut upper = good.to_vec();
            upper[at].1 = "TOOLS/CALL";
            for headers in [missing, repeated, different, upper] {
                let error = check_standard(lookup(&headers), &request).expect_err("refused");
                assert_eq!(error.code.0, -32020);
                assert!(error.message.starts_with("Header mismatch: M"), "{error}");
            }
        }
    }

    #[test]
    fn a_name_is_demanded_only_where_the_method_has_one() {
        let list = request(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ];
        assert_eq!(check_standard(lookup(&headers), &list), Ok(()));
        let read = request(
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x"}}"#,
        );
        let mut headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "resources/read"),
            ("mcp-name", "file:///x"),
        ];
        assert_eq!(check_standard(lookup(&headers), &read), Ok(()));
        headers[2].1 = "file:///y";
        assert!(check_standard(lookup(&headers), &read).is_err());
    }
}
