//! Writes messages: envelopes around results and parameters that are JSON bytes already.
//!
//! Each function appends one message, without a line break, to a buffer that the caller reuses.

use crate::error::RpcError;
use crate::json::json_string;
use crate::request_id::RequestId;

/// Appends a response with a result, which must be valid JSON.
pub fn response(out: &mut Vec<u8>, id: &RequestId, result: &[u8]) {
    let id = id.raw();
    out.reserve(result.len() + id.len() + 40);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result);
    out.push(b'}');
}

/// Appends a response with an error. Without an id `"id":null` is written, as JSON-RPC 2.0 §5 requires if the id of the
/// request could not be read.
pub fn error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.map_or(b"null", RequestId::raw));
    error_member(out, error);
}

/// Appends a response with an error and without an `id` member, as revisions since 2025-11-25 require if the id of the
/// request could not be read.
pub fn error_without_id(out: &mut Vec<u8>, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    error_member(out, error);
}

fn error_member(out: &mut Vec<u8>, error: &RpcError) {
    out.extend_from_slice(br#","error":"#);
    error_object(out, error);
    out.push(b'}');
}

/// Appends the error object alone.
pub fn error_object(out: &mut Vec<u8>, error: &RpcError) {
    out.extend_from_slice(br#"{"code":"#);
    out.extend_from_slice(itoa::Buffer::new().format(error.code.0).as_bytes());
    out.extend_from_slice(br#","message":"#);
    json_string(out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.as_bytes());
    }
    out.push(b'}');
}

/// Appends a notification; `params` must be a JSON object.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&[u8]>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    call(out, method, params);
}

/// Appends a request; `params` must be a JSON object.
pub fn request(out: &mut Vec<u8>, id: &RequestId, method: &str, params: Option<&[u8]>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.raw());
    call(out, method, params);
}

/// Replaces the line breaks in JSON text with spaces, so that it fits on one line of the stdio transport.
///
/// In valid JSON they can only occur between tokens, where encoders write them for indentation.
pub fn one_line(json: &mut [u8]) {
    let mut rest = json;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
}

fn call(out: &mut Vec<u8>, method: &str, params: Option<&[u8]>) {
    out.extend_from_slice(br#","method":"#);
    json_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::wire::{Incoming, Message, Method, read};

    fn reread(out: Vec<u8>) -> Message {
        match read(out.into()) {
            Ok(Incoming::Single(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_round_trip() {
        let id = RequestId::string("a\"b");
        let mut out = Vec::new();
        request(&mut out, &id, "tools/call", Some(br#"{"name":"x"}"#));
        let Message::Request(read) = reread(out) else {
            panic!("no request")
        };
        assert_eq!((read.id, read.method), (id.clone(), Method::ToolsCall));

        let mut out = Vec::new();
        notification(&mut out, "notifications/initialized", None);
        assert_eq!(
            out,
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
        );

        let mut out = Vec::new();
        response(&mut out, &id, b"{}");
        let Message::Response(read) = reread(out) else {
            panic!("no response")
        };
        assert_eq!(
            (read.id, read.outcome.expect("result").as_str()),
            (Some(id), "{}")
        );
    }

    #[test]
    fn indented_json_is_put_on_one_line() {
        let mut json = b"{\r\n  \"a\": \"x\\n\",\n  \"b\": 1\n}".to_vec();
        one_line(&mut json);
        assert_eq!(json, b"{    \"a\": \"x\\n\",   \"b\": 1 }");
    }

    #[test]
    fn errors_keep_code_message_and_data() {
        let failure = RpcError::new(ErrorCode(7), "line\nbreak").with_data(&[1, 2]);
        let mut out = Vec::new();
        error(&mut out, Some(&RequestId::number(1)), &failure);
        let Message::Response(read) = reread(out) else {
            panic!("no response")
        };
        assert_eq!(read.outcome, Err(failure.clone()));

        let mut out = Vec::new();
        error(&mut out, None, &RpcError::parse_error("x"));
        assert_eq!(
            out,
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#
        );
        let mut out = Vec::new();
        error_without_id(&mut out, &RpcError::parse_error("x"));
        assert_eq!(
            out,
            br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#
        );
    }
}
