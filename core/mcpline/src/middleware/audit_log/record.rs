//! A record of an audit log, as JSON on one line. `docs/observability.md` specifies it.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use mcpline_protocol::wire::{Method, Raw, json_string};
use mcpline_protocol::{ErrorCode, RpcError};

use crate::secret_names::{Secrecy, secrecy};
use crate::timestamp::Rfc3339;

use super::super::json_redaction::{REDACTED, RedactionRules, has_strings, redacted_json};
use super::super::{MessageKind, MiddlewareOutcome, MiddlewareRequest};

/// Maximum length of arguments and of a result in a record, in bytes: enough for what people read and write, and little enough
/// to be redacted on the thread that serves the connection.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// Maximum length of other texts that clients choose, in bytes: names, URIs and ids.
const MAX_TEXT_BYTES: usize = 1024;

/// What a record contains.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordOptions {
    pub(super) arguments: bool,
    pub(super) results: bool,
    /// Names of members whose values are replaced, in lower case.
    pub(super) redacted: Vec<String>,
}

/// How a request ended.
pub(super) enum Ending<'o> {
    Outcome(&'o MiddlewareOutcome),
    Cancelled,
    Panicked,
}

impl RedactionRules for RecordOptions {
    fn replacement(&self) -> &str {
        REDACTED
    }

    fn hides<'v>(&self, name: &str, value: impl FnOnce() -> &'v str) -> bool {
        match secrecy(name) {
            Secrecy::Secret => true,
            Secrecy::SecretText if has_strings(value()) => true,
            _ => !self.redacted.is_empty() && self.redacted.contains(&name.to_lowercase()),
        }
    }

    fn replaced(&self, _: &str) -> Option<String> {
        None
    }
}

impl RecordOptions {
    /// Writes a record, with its line feed.
    pub(super) fn line(
        &self,
        request: &MiddlewareRequest,
        time: SystemTime,
        duration: Duration,
        ending: &Ending<'_>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        // Writing to a vector never fails.
        let _ = write!(out, "{{\"time\":\"{}\"", Rfc3339(time));
        if request.kind() != MessageKind::Request {
            text(&mut out, "kind", request.kind().name());
        }
        text(&mut out, "method", request.method());
        if let Some(name) = request.name() {
            text(&mut out, "name", name);
        }
        match request.request_id() {
            id if id.len() <= MAX_TEXT_BYTES => json(&mut out, "request_id", id.as_bytes()),
            id => text(&mut out, "request_id", id),
        }
        if let Some(caller) = request.auth() {
            for (name, value) in [
                ("issuer", caller.issuer()),
                ("subject", caller.subject()),
                ("client_id", caller.client_id()),
            ] {
                if let Some(value) = value {
                    text(&mut out, name, value);
                }
            }
        } else if request.principal().is_empty() {
            // Otherwise it may contain the digest of a token.
            text(&mut out, "client", request.client());
        }
        text(&mut out, "transport", request.transport());
        text(&mut out, "revision", request.revision().as_str());
        let micros = duration.as_micros();
        let _ = write!(
            out,
            ",\"duration_ms\":{}.{:03}",
            micros / 1000,
            micros % 1000
        );
        let (outcome, code) = outcome_of(request.protocol_method(), ending);
        text(&mut out, "outcome", outcome);
        if let Some(code) = code {
            let _ = write!(out, ",\"code\":{}", code.0);
        }
        if self.arguments
            && let Some(arguments) = request.arguments()
        {
            self.value(&mut out, "arguments", &arguments);
        }
        if self.results
            && let Ending::Outcome(Ok(result)) = ending
        {
            self.value(&mut out, "result", result);
        }
        out.extend_from_slice(b"}\n");
        visible(out)
    }

    /// Appends a value without its secrets, or its size if it is too large.
    fn value(&self, out: &mut Vec<u8>, name: &str, value: &Raw) {
        let bytes = value.as_bytes().len();
        if bytes > MAX_VALUE_BYTES {
            let _ = write!(out, ",\"{name}_bytes\":{bytes}");
            return;
        }
        match redacted_json(value.as_str(), self) {
            Some(redacted) => json(out, name, redacted.as_bytes()),
            None => json(out, name, value.as_bytes()),
        }
    }
}

/// Returns a record whose characters that are no text are escaped: line separators that are none of JSON, control characters and those
/// that change the direction of a text, which could deceive a reader. All are within strings, because JSON has none elsewhere.
fn visible(record: Vec<u8>) -> Vec<u8> {
    let is_hidden = |character: char| matches!(character, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = String::from_utf8_lossy(&record);
    if !text.contains(is_hidden) {
        return record;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        match is_hidden(character) {
            // All are in the basic plane.
            true => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => out.push(character),
        }
    }
    out.into_bytes()
}

fn outcome_of(method: &Method, ending: &Ending<'_>) -> (&'static str, Option<ErrorCode>) {
    let result = match ending {
        Ending::Cancelled => return ("cancelled", None),
        Ending::Panicked => return ("error", Some(ErrorCode::INTERNAL_ERROR)),
        Ending::Outcome(Err(RpcError { code, .. })) => return ("error", Some(*code)),
        Ending::Outcome(Ok(result)) => result,
    };
    let is = |name: &str, value: &[u8]| {
        let member = result.member(name);
        member.is_some_and(|member| member.as_bytes() == value)
    };
    if is("resultType", b"\"input_required\"") {
        ("input_required", None)
    } else if *method == Method::ToolsCall && is("isError", b"true") {
        ("tool_error", None)
    } else {
        ("ok", None)
    }
}

/// Appends a member with a text, which is cut if it is too long.
fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    let _ = write!(out, ",\"{name}\":");
    if value.len() <= MAX_TEXT_BYTES {
        return json_string(out, value);
    }
    let end = (0..=MAX_TEXT_BYTES)
        .rev()
        .find(|end| value.is_char_boundary(*end));
    json_string(out, &format!("{}…", &value[..end.unwrap_or(0)]));
}

/// Appends a member with a JSON value on one line: line breaks outside of strings are spaces, and there are none in strings.
fn json(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let _ = write!(out, ",\"{name}\":");
    out.extend(value.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    }));
}
