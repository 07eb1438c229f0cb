//! A record of an audit log, as JSON on one line. `docs/observability.md` specifies it.

use std::borrow::Cow;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use mcpline_protocol::wire::{Method, Raw, json_string};
use mcpline_protocol::{ErrorCode, Revision};

use crate::secret_names::{Secrecy, secrecy};
use crate::timestamp::Rfc3339;

use super::super::json_redaction::{REDACTED, RedactionRules, has_strings, redacted_json};

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

/// A request as a record shows it.
pub(crate) trait RecordedRequest: Send + Sync + 'static {
    /// What it is, if it is not a request that a server has received.
    fn kind(&self) -> Option<&'static str>;
    fn method(&self) -> &str;
    /// The target.
    fn name(&self) -> Option<Cow<'_, str>>;
    /// The id of the JSON-RPC request, as JSON.
    fn request_id(&self) -> Option<Cow<'_, str>>;
    /// Members of the record that say with whom the message is exchanged.
    fn peer(&self) -> Vec<(&'static str, Cow<'_, str>)>;
    fn transport(&self) -> Option<&'static str>;
    fn revision(&self) -> Option<Revision>;
    fn arguments(&self) -> Option<Raw>;
}

/// How a request ended.
pub(crate) enum Ending<'o> {
    Result(&'o Raw),
    Error {
        /// The kind, of errors of clients.
        kind: Option<&'static str>,
        /// The code of the JSON-RPC error.
        code: Option<ErrorCode>,
    },
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
        request: &dyn RecordedRequest,
        time: SystemTime,
        duration: Duration,
        ending: &Ending<'_>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        // Writing to a vector never fails.
        let _ = write!(out, "{{\"time\":\"{}\"", Rfc3339(time));
        if let Some(kind) = request.kind() {
            text(&mut out, "kind", kind);
        }
        text(&mut out, "method", request.method());
        if let Some(name) = request.name() {
            text(&mut out, "name", &name);
        }
        match request.request_id() {
            Some(id) if id.len() <= MAX_TEXT_BYTES => json(&mut out, "request_id", id.as_bytes()),
            Some(id) => text(&mut out, "request_id", &id),
            None => {}
        }
        for (name, value) in request.peer() {
            text(&mut out, name, &value);
        }
        if let Some(transport) = request.transport() {
            text(&mut out, "transport", transport);
        }
        if let Some(revision) = request.revision() {
            text(&mut out, "revision", revision.as_str());
        }
        let micros = duration.as_micros();
        let _ = write!(
            out,
            ",\"duration_ms\":{}.{:03}",
            micros / 1000,
            micros % 1000
        );
        text(&mut out, "outcome", outcome_of(request.method(), ending));
        let (kind, code) = match *ending {
            Ending::Error { kind, code } => (kind, code),
            Ending::Panicked => (None, Some(ErrorCode::INTERNAL_ERROR)),
            _ => (None, None),
        };
        if let Some(kind) = kind {
            text(&mut out, "error_kind", kind);
        }
        if let Some(code) = code {
            let _ = write!(out, ",\"code\":{}", code.0);
        }
        if self.arguments
            && let Some(arguments) = request.arguments()
        {
            self.value(&mut out, "arguments", &arguments);
        }
        if self.results
            && let Ending::Result(result) = ending
        {
            self.value(&mut out, "result", result);
        }
        out.extend_from_slice(b"}\n");
        escape_invisible(out)
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
fn escape_invisible(record: Vec<u8>) -> Vec<u8> {
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

fn outcome_of(method: &str, ending: &Ending<'_>) -> &'static str {
    let result = match ending {
        Ending::Cancelled => return "cancelled",
        Ending::Panicked | Ending::Error { .. } => return "error",
        Ending::Result(result) => result,
    };
    let is = |name: &str, value: &[u8]| {
        let member = result.member(name);
        member.is_some_and(|member| member.as_bytes() == value)
    };
    if is("resultType", b"\"input_required\"") {
        "input_required"
    } else if method == Method::ToolsCall.as_str() && is("isError", b"true") {
        "tool_error"
    } else {
        "ok"
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
