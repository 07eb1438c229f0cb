//! The text of a message in a log: one line, without secrets and control characters, and of limited length.
//!
//! A message may be invalid, so this reads tokens and not values: what is no JSON is shown as it is.

use std::fmt::Write as _;

/// Maximum length of a message in the log in bytes: enough for most messages, and too little for an image to hide the
/// messages around it.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// Members whose values are not shown: those whose names end so, without regard to case, `_`, `-` and spaces. The guides
/// list them.
const SECRET_NAMES: [&str; 16] = [
    "accesskey",
    "apikey",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "requeststate",
    "secret",
    "secrets",
    "token",
];

/// A member of the protocol that ends like a secret and is none.
const PROGRESS_TOKEN: &str = "progresstoken";

/// Shown in place of a secret.
const REDACTED: &str = "\"[redacted]\"";

/// Maximum length of a string of a message that can be shown, with its escapes: at most twelve bytes for one character.
const MAX_ESCAPED_BYTES: usize = 12 * MAX_SHOWN_BYTES;

/// Maximum depth of JSON in strings of JSON. Tools return structured content as text too, whose secrets are the same.
const MAX_NESTED_TEXTS: usize = 4;

/// Returns a message as debug mode shows it.
pub(super) fn excerpt(message: &[u8]) -> String {
    let mut shown = Shown::new(true);
    if !write(&mut shown, message, 0) {
        // Writing to a string never fails.
        let _ = write!(shown.text, "… ({} bytes)", message.len());
    }
    shown.text
}

/// A text of limited length.
struct Shown {
    text: String,
    /// Whether control characters are escaped and white space between tokens becomes spaces. In a text within a message both
    /// follow when it is written into the message.
    escapes: bool,
}

impl Shown {
    fn new(escapes: bool) -> Self {
        Self {
            text: String::new(),
            escapes,
        }
    }

    /// Appends a part; `false` if it has no room.
    fn push(&mut self, part: &str) -> bool {
        let has_room = self.text.len() + part.len() <= MAX_SHOWN_BYTES;
        if has_room {
            self.text.push_str(part);
        }
        has_room
    }

    /// Appends text of a message with its control characters escaped; `false` if it does not fit.
    fn push_escaped(&mut self, text: &[u8]) -> bool {
        // No more than this can fit.
        let text = &text[..text.len().min(MAX_SHOWN_BYTES + 4)];
        String::from_utf8_lossy(text).chars().all(|char| {
            let mut buffer = [0; 4];
            match self.escapes && needs_escape(char) {
                true => self.push(&escaped(char)),
                false => self.push(char.encode_utf8(&mut buffer)),
            }
        })
    }
}

/// Whether a character could control a terminal, end the line or change how the text reads.
fn needs_escape(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

fn escaped(char: char) -> String {
    let mut units = [0; 2];
    let units = char.encode_utf16(&mut units);
    units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Appends the tokens of a message, which is within `depth` texts of others. Returns `false` if not all of them fit.
fn write(shown: &mut Shown, message: &[u8], depth: usize) -> bool {
    let mut rest = message;
    // Whether the token before was the name of a secret.
    let mut hides = false;
    while let Some(&first) = rest.first() {
        let (token, after) = rest.split_at(token_length(rest));
        let is_name = first == b'"' && next_token(after) == Some(b':');
        let fits = match first {
            b' ' | b'\t' | b'\r' | b'\n' if shown.escapes => shown.push(" "),
            b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' => shown.push_escaped(token),
            b'"' if is_name && !hides => {
                hides = is_secret(token);
                shown.push_escaped(token)
            }
            b'n' if hides && token == b"null" => {
                hides = false;
                shown.push("null")
            }
            b'}' | b']' => {
                hides = false;
                shown.push_escaped(token)
            }
            _ if hides => {
                hides = false;
                rest = &rest[value_length(rest)..];
                if !shown.push(REDACTED) {
                    return false;
                }
                continue;
            }
            b'"' => write_text(shown, token, depth),
            _ => shown.push_escaped(token),
        };
        if !fits {
            return false;
        }
        rest = after;
    }
    true
}

/// Appends a string. If it contains quotation marks, it may contain JSON, and secrets in it are replaced.
fn write_text(shown: &mut Shown, token: &[u8], depth: usize) -> bool {
    let quotes = |pair: &[u8]| pair == b"\\\"" || pair == b"\\u";
    if !token[..token.len().min(MAX_ESCAPED_BYTES)]
        .windows(2)
        .any(quotes)
    {
        return shown.push_escaped(token);
    }
    if depth == MAX_NESTED_TEXTS {
        return shown.push(REDACTED);
    }
    let (text, is_whole) = unescaped(&token[1..]);
    let mut inner = Shown::new(false);
    let fits = write(&mut inner, text.as_bytes(), depth + 1) && is_whole;
    // Serializing a string never fails.
    let quoted = serde_json::to_string(&inner.text).unwrap_or_default();
    match fits {
        true => shown.push_escaped(quoted.as_bytes()),
        false => {
            let _ = shown.push_escaped(&quoted.as_bytes()[..quoted.len() - 1]);
            false
        }
    }
}

/// Returns the length of the first token: of a string, of a structural character, of white space, or of anything up to the
/// next of these.
fn token_length(text: &[u8]) -> usize {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let ends_word = |byte: &u8| is_space(byte) || b"\"{}[]:,".contains(byte);
    let length = match text.first() {
        None => Some(0),
        Some(b'"') => Some(string_length(text)),
        Some(first) if is_space(first) => text.iter().position(|byte| !is_space(byte)),
        Some(first) if ends_word(first) => Some(1),
        Some(_) => text.iter().position(ends_word),
    };
    length.unwrap_or(text.len())
}

/// Returns the length of a string with its quotation marks; of everything if it does not end.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (index, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a value: of a token, or of an object or array with everything in it.
fn value_length(text: &[u8]) -> usize {
    let (mut length, mut depth) = (0, 0_usize);
    loop {
        match text.get(length) {
            None => return length,
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth = depth.saturating_sub(1),
            Some(_) => {}
        }
        length += token_length(&text[length..]);
        if depth == 0 {
            return length;
        }
    }
}

/// Returns the first byte after white space.
fn next_token(text: &[u8]) -> Option<u8> {
    text.trim_ascii_start().first().copied()
}

/// Returns the text of a string from the beginning of its content to its quotation mark, as far as it can fit, and whether
/// that is all of it.
fn unescaped(content: &[u8]) -> (String, bool) {
    let end = content.len() - usize::from(content.ends_with(b"\""));
    let cut = end.min(MAX_ESCAPED_BYTES);
    let mut quoted = Vec::with_capacity(cut + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(&content[..cut]);
    // A cut within a character or an escape leaves a part of it, of at most eleven bytes.
    for dropped in 0..12 {
        quoted.push(b'"');
        if let Ok(text) = serde_json::from_slice(&quoted) {
            return (text, cut == end && dropped == 0);
        }
        quoted.truncate(quoted.len().saturating_sub(2).max(1));
    }
    // An invalid string.
    (String::new(), false)
}

/// Whether the values of members with this name are not shown. `name` has quotation marks, and may have escapes.
fn is_secret(name: &[u8]) -> bool {
    let (name, _) = unescaped(&name[1..]);
    let name: String = name
        .chars()
        .filter(|char| !matches!(char, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect();
    name != PROGRESS_TOKEN && SECRET_NAMES.iter().any(|secret| name.ends_with(secret))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(message: &Value) -> Value {
        let text = excerpt(message.to_string().as_bytes());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn messages_without_secrets_are_shown_as_they_are() {
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": 7}}}),
            json!({"maxTokens": 5, "secretary": "Ann", "text": "the token is ok", "tokens": [1, 2.5e3, true, null]}),
            json!([{"id": "a\"b\\"}, {}, []]),
            json!("{ no JSON"),
        ] {
            assert_eq!(shown(&message), message);
        }
    }

    #[test]
    fn values_of_secret_members_are_replaced() {
        let secret = json!({"deep": ["s3cret", {"x": "s3cret\"}"}]});
        let message = json!({
            "password": "s3cret", "access_token": "s3cret\\", "clientSecret": 12, "X-Api-Key": secret, "requestState": "s3cret",
            "Authorization": ["s3cret"], "db password": true, "token": null, "after": "seen",
        });
        let expected = json!({
            "password": "[redacted]", "access_token": "[redacted]", "clientSecret": "[redacted]", "X-Api-Key": "[redacted]",
            "requestState": "[redacted]", "Authorization": "[redacted]", "db password": "[redacted]", "token": null,
            "after": "seen",
        });
        assert_eq!(shown(&message), expected);
        // Names may be written with escapes, and values after line breaks.
        let text = excerpt(
            br#"{"to\u006ben" :
            "s3cret","a":1}"#,
        );
        assert_eq!(text, r#"{"to\u006ben" : "[redacted]","a":1}"#);
    }

    #[test]
    fn secrets_in_json_texts_are_replaced() {
        let text = json!({"token": "s3cret", "n": 1}).to_string();
        let message = json!({"content": [{"type": "text", "text": text}]});
        let expected = json!({"token": "[redacted]", "n": 1}).to_string();
        assert_eq!(
            shown(&message),
            json!({"content": [{"type": "text", "text": expected}]})
        );
        let text = json!("It said:\n\t\u{1b} {\"token\": \"s3cret\"} and  \"so\"\r\n");
        let expected = "It said:\n\t\u{1b} {\"token\": \"[redacted]\"} and  \"so\"\r\n";
        assert_eq!(shown(&text), expected);
        let mut nested = json!({"token": "s3cret"});
        for _ in 0..10 {
            nested = json!({"text": nested.to_string()});
            let text = excerpt(nested.to_string().as_bytes());
            assert!(!text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = excerpt("{\"a\":\r\n\t\"\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028}é\"}".as_bytes());
        assert_eq!(text, r#"{"a": "\u001b[2J\u007f\u009b\u202e\u2028é"}"#);
    }

    #[test]
    fn long_messages_are_cut_and_their_length_is_stated() {
        for message in [
            json!({"text": "é".repeat(100_000)}).to_string(),
            json!({"text": format!("{{\"a\":\"{}\"}}", "é\u{1}".repeat(100_000))}).to_string(),
            json!(vec![1; 100_000]).to_string(),
            format!("{{{}", "x".repeat(100_000)),
            format!("{}\"", "\\".repeat(100_000)),
        ] {
            let text = excerpt(message.as_bytes());
            let end = format!("… ({} bytes)", message.len());
            let kept = text.strip_suffix(&end);
            let kept = kept.unwrap_or_else(|| panic!("{text}"));
            assert!(
                kept.len() <= MAX_SHOWN_BYTES && kept.len() > 1_000,
                "{}",
                kept.len()
            );
        }
        let fits = format!("\"{}\"", "x".repeat(MAX_SHOWN_BYTES - 2));
        assert_eq!(excerpt(fits.as_bytes()), fits);
    }

    #[test]
    fn a_long_secret_takes_no_room() {
        let message = json!({"token": "s3cret".repeat(100_000), "after": "seen"});
        assert_eq!(shown(&message)["after"], "seen");
    }

    #[test]
    fn invalid_messages_are_shown() {
        for (message, expected) in [
            (&b"Hello, world"[..], "Hello, world"),
            (b"", ""),
            (b"\xff\xfe{", "\u{fffd}\u{fffd}{"),
            (b"{\"token\": \"s3cret", "{\"token\": \"[redacted]\""),
            (b"{\"token\": {\"a\": [1", "{\"token\": \"[redacted]\""),
            (b"{\"token\"", "{\"token\""),
            (b"{\"text\": \"{\\u00", "{\"text\": \"{… (15 bytes)"),
            (
                b"{\"token\": \"s3cret\": 1",
                "{\"token\": \"[redacted]\": 1",
            ),
            (b"\"", "\""),
            (b"]]}\\", "]]}\\"),
        ] {
            assert_eq!(excerpt(message), expected);
        }
    }
}
