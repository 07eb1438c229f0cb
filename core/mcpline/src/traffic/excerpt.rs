//! The text of a message in a log: one line, without secrets and control characters, and of limited length.
//!
//! A message may be invalid, so this reads tokens and not values: what is not JSON is shown as it is. The text of a string is
//! read in the same way, because it may contain JSON anywhere. There a quotation mark may be of any kind, so a member's name
//! is found by what follows it.

use std::fmt::Write as _;

use crate::secret_names::{Secrecy, secrecy};

use super::free_text;
use super::limited_text::LimitedText;
use super::tokens::{has_strings, is_space, token_length, unescaped, value_length};

/// Shown in place of a secret.
const REDACTED: &str = "\"[redacted]\"";

/// Maximum length of a name that may be one of a secret, in characters.
const MAX_NAME_CHARS: usize = 4_096;

/// Maximum depth of JSON in strings of JSON. Tools return structured content as text too, whose secrets are the same.
const MAX_NESTED_TEXTS: usize = 4;

/// A message without its secrets.
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// Whether the text is the whole message. Else it ends with the length of the message.
    pub(crate) is_whole: bool,
}

/// Returns a message without its secrets. What exceeds `limit` bytes is replaced by the length of the message.
pub(crate) fn excerpt(message: &[u8], limit: usize) -> Excerpt {
    let mut shown = LimitedText::new(true, limit);
    let is_whole = write(&mut shown, message, 0);
    if !is_whole {
        // Writing to a string never fails.
        let _ = write!(shown.text, "… ({} bytes)", message.len());
    }
    Excerpt {
        text: shown.text,
        is_whole,
    }
}

/// Appends the tokens of a message, which is within `depth` texts of others. Returns `false` if not all of them fit.
fn write(shown: &mut LimitedText, message: &[u8], depth: usize) -> bool {
    let mut context = Context::default();
    let mut rest = message;
    while let Some(&first) = rest.first() {
        let (mut token, mut after) = rest.split_at(token_length(rest));
        let fits = match first {
            b'"' | b'\'' => {
                let next = after.trim_ascii_start();
                let has_value = matches!(next.first(), Some(b':' | b'='));
                let member = has_value.then(|| Member::new(token, next));
                if let Some(member) = member.as_ref().filter(|member| context.hides(member)) {
                    let value = member.value;
                    let sign = &after[..after.len() - value.len()];
                    let length = value_length(value);
                    after = &value[length..];
                    shown.push_escaped(token)
                        && write_separator(shown, sign)
                        && write_hidden(shown, &value[..length])
                } else if first == b'"' && context.starts_string() && ends_string(next) {
                    match &member {
                        Some(member) => {
                            context.enter_member(member);
                            shown.push_escaped(token)
                        }
                        None => write_text(shown, token, depth),
                    }
                } else {
                    // A quotation mark of another kind.
                    (token, after) = rest.split_at(1);
                    shown.push_escaped(token)
                }
            }
            _ if is_space(first) => shown.push_space(token),
            _ => shown.push_escaped(token),
        };
        if !fits {
            return false;
        }
        context.pass(token);
        rest = after;
    }
    true
}

/// Appends what is between the name of a secret and its value: white space and one character.
fn write_separator(shown: &mut LimitedText, sign: &[u8]) -> bool {
    let after_space = sign.trim_ascii_start();
    let (before, after) = (
        &sign[..sign.len() - after_space.len()],
        &after_space[after_space.len().min(1)..],
    );
    shown.push_space(before)
        && shown.push_escaped(&after_space[..after_space.len() - after.len()])
        && shown.push_space(after)
}

/// Appends a replacement for a secret.
fn write_hidden(shown: &mut LimitedText, value: &[u8]) -> bool {
    if matches!(value, b"" | b"null") {
        return shown.push_escaped(value);
    }
    shown.has_redacted = true;
    shown.push(REDACTED)
}

/// Appends a string, in whose text secrets are replaced.
fn write_text(shown: &mut LimitedText, token: &[u8], depth: usize) -> bool {
    if depth == MAX_NESTED_TEXTS {
        return match token.contains(&b'\\') {
            true => write_hidden(shown, token),
            false => shown.push_escaped(token),
        };
    }
    let (text, is_whole) = unescaped(token, shown.limit());
    let without_secrets = free_text::without_secrets(&text);
    let mut inner = shown.inner();
    inner.has_redacted = without_secrets.is_some();
    let text = without_secrets.unwrap_or(text);
    let fits = write(&mut inner, text.as_bytes(), depth + 1) && is_whole;
    if !inner.has_redacted {
        return shown.push_escaped(token);
    }
    shown.has_redacted = true;
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

/// Whether a string can end before this.
fn ends_string(next: &[u8]) -> bool {
    matches!(next.first(), None | Some(b':' | b',' | b'}' | b']'))
}

/// A member of an object.
struct Member<'a> {
    name: String,
    /// The value, and everything after it.
    value: &'a [u8],
}

impl<'a> Member<'a> {
    /// Reads the member with this name, a string. `next` begins with the sign after it.
    fn new(name: &[u8], next: &'a [u8]) -> Self {
        Self {
            name: unescaped(name, MAX_NAME_CHARS).0,
            value: next[1..].trim_ascii_start(),
        }
    }

    /// Whether the value names a secret: `{"name": "api_key", "value": …}`.
    fn names_secret(&self) -> bool {
        matches!(self.name.as_str(), "name" | "key")
            && self.value.first() == Some(&b'"')
            && secrecy(&unescaped(&self.value[..token_length(self.value)], MAX_NAME_CHARS).0)
                != Secrecy::Public
    }

    /// Whether the member after this one names a secret. Only a short look: objects within the value are not passed.
    fn precedes_name_of_secret(&self) -> bool {
        let next_member = || {
            let after = self.value[token_length(self.value)..].trim_ascii_start();
            let after = after.strip_prefix(b",")?.trim_ascii_start();
            let (name, after) = after.split_at(token_length(after));
            let next = after.trim_ascii_start();
            (name.first() == Some(&b'"') && next.first() == Some(&b':'))
                .then(|| Member::new(name, next))
        };
        next_member().is_some_and(|member| member.names_secret())
    }
}

/// Where a token is.
#[derive(Default)]
struct Context {
    /// The objects and arrays around it.
    containers: Vec<Container>,
    /// The last byte that is not white space.
    previous: Option<u8>,
    /// Whether the next object is the `properties` of a schema.
    is_before_properties: bool,
    /// How many bytes of the message follow the latest value that has no strings in it.
    after_counts: Option<usize>,
}

/// An object or array.
#[derive(Default, Clone, Copy)]
struct Container {
    /// Whether it is the `properties` of a schema: its members describe values.
    is_properties: bool,
    /// Whether its `value` belongs to a secret.
    has_secret_value: bool,
}

impl Context {
    /// Whether a string can begin here.
    fn starts_string(&self) -> bool {
        self.previous.is_none_or(|byte| b"{[(,:=".contains(&byte))
    }

    /// Whether the value of a member is not shown.
    fn hides(&mut self, member: &Member<'_>) -> bool {
        let container = self.containers.last().copied().unwrap_or_default();
        match secrecy(&member.name) {
            Secrecy::Secret => !(container.is_properties && member.value.first() == Some(&b'{')),
            Secrecy::SecretText => self.has_secret_text(member.value),
            Secrecy::Public => {
                member.name == "value"
                    && (container.has_secret_value || member.precedes_name_of_secret())
            }
        }
    }

    /// Whether a value contains text, and is not a count or an object of counts.
    fn has_secret_text(&mut self, value: &[u8]) -> bool {
        // Within such an object. It is not read again, so that the time remains linear.
        if self.after_counts.is_some_and(|after| value.len() > after) {
            return false;
        }
        let length = value_length(value);
        let is_secret = has_strings(&value[..length]);
        if !is_secret {
            self.after_counts = Some(value.len() - length);
        }
        is_secret
    }

    /// Goes on to the value of a member that is shown.
    fn enter_member(&mut self, member: &Member<'_>) {
        self.is_before_properties = member.name == "properties";
        if let Some(container) = self.containers.last_mut() {
            container.has_secret_value |= member.names_secret();
        }
    }

    /// Goes on after a token.
    fn pass(&mut self, token: &[u8]) {
        match token {
            b"{" | b"[" => self.containers.push(Container {
                is_properties: std::mem::take(&mut self.is_before_properties) && token == b"{",
                has_secret_value: false,
            }),
            b"}" | b"]" => drop(self.containers.pop()),
            _ => {}
        }
        if let Some(last) = token.last().filter(|byte| !is_space(**byte)) {
            self.previous = Some(*last);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    const MAX_SHOWN_BYTES: usize = 3_840;

    fn excerpt(message: &[u8]) -> String {
        super::excerpt(message, MAX_SHOWN_BYTES).text
    }

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
    fn odd_quotation_marks_do_not_reveal_secrets() {
        for text in [
            r#"5" disk: {"token":"s3cret"}"#,
            r#"say: "x {"token":"s3cret"}"#,
            r#"He said "hi\" {"token":"s3cret"}"#,
            r#"x"token": "s3cret""#,
            r#"5" {":token":"s3cret"}"#,
            r#"{"token": Some("a", "s3cret")}"#,
            r#"{"token": b"s3cret"}"#,
            "{\"token\":\u{c}\"s3cret\"}",
            "{\"token\":\u{a0}\"s3cret\"}",
            r#"{"token":/*x*/"s3cret"}"#,
            r#"{"token":"a" + "s3cret"}"#,
            r#""token" = "s3cret""#,
            "don't {'token': 's3cret'}",
            "see https://u:s3cret@h/?access_token=s3cret \"",
        ] {
            let message = json!({"text": text, "after": "seen"});
            let shown = shown(&message);
            assert!(!shown.to_string().contains("s3cret"), "{shown}");
            assert_eq!(shown["after"], "seen");
        }
    }

    #[test]
    fn text_with_quotation_marks_is_shown_as_it_is() {
        for text in [
            "5\" disk and 3' cable: \"a\": 'b', \\\"c\\\"",
            "it's [\"token\", 'x'] (\"key\": 1)",
            "\"\"\"\\",
            "\u{fffd}",
        ] {
            let message = json!({"text": text});
            assert_eq!(shown(&message), message);
        }
        let surrogate = r#"{"text":"a \ud800 {\"x\":1}\/","after":"seen"}"#;
        assert_eq!(excerpt(surrogate.as_bytes()), surrogate);
        let surrogate = r#"{"text":"a \ud800 {\"token\":1}","\ud800pwd":1}"#;
        assert_eq!(
            excerpt(surrogate.as_bytes()),
            r#"{"text":"a � {\"token\":\"[redacted]\"}","\ud800pwd":"[redacted]"}"#
        );
    }

    #[test]
    fn values_next_to_names_of_secrets_are_replaced() {
        let message = json!({
            "argument": {"name": "api_key", "value": "s3cret"},
            "headers": [{"key": "Authorization", "value": ["s3cret"], "x": 1}, {"name": "Accept", "value": "seen"}],
            "env": ["API_KEY=s3cret", "Authorization: Bearer s3cret"],
            "uri": "https://u:s3cret@h/",
        });
        let expected = json!({
            "argument": {"name": "api_key", "value": "[redacted]"},
            "headers": [{"key": "Authorization", "value": "[redacted]", "x": 1}, {"name": "Accept", "value": "seen"}],
            "env": ["API_KEY=[redacted]", "Authorization: Bearer [redacted]"],
            "uri": "https://[redacted]@h/",
        });
        assert_eq!(shown(&message), expected);
        assert_eq!(
            excerpt(br#"{"value": "s3cret", "name": "pin"}"#),
            r#"{"value": "[redacted]", "name": "pin"}"#
        );
    }

    #[test]
    fn plural_tokens_are_secret_if_they_are_texts() {
        let message = json!({"tokens": ["s3cret"], "accessTokens": {"a": "s3cret"}, "usage": {"tokens": {"in": 5}}});
        let expected = json!({"tokens": "[redacted]", "accessTokens": "[redacted]", "usage": {"tokens": {"in": 5}}});
        assert_eq!(shown(&message), expected);
    }

    #[test]
    fn schemas_of_secrets_are_shown() {
        let message = json!({"properties": {"password": {"type": "string", "token": "s3cret"}, "token": "s3cret"}});
        let expected = json!({
            "properties": {"password": {"type": "string", "token": "[redacted]"}, "token": "[redacted]"},
        });
        assert_eq!(shown(&message), expected);
    }

    #[test]
    fn repeated_tokens_take_linear_time_and_limited_room() {
        for unit in [
            "\"",
            "'",
            "\\\"",
            "\"\\\"",
            "\"a\":",
            "\"tokens\":{",
            "\"tokens\":[1],",
            "{\"value\":\"\",",
            "\"token\":(\"",
            "\"' \\\"",
            "\"a\"  ",
            "\"name\":\"",
            "token=\"",
            "\"value\":{",
            "' \" ",
        ] {
            let text = unit.repeat(100_000 / unit.len());
            for message in [text.clone(), json!(text).to_string()] {
                let length = excerpt(message.as_bytes()).len();
                assert!(length < MAX_SHOWN_BYTES + 40, "{unit}: {length}");
            }
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = excerpt("{\"a\":\r\n\t\"\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028}\u{ad}\u{200b}\u{feff}\u{e0041}é\"}".as_bytes());
        assert_eq!(
            text,
            r#"{"a": "\u001b[2J\u007f\u009b\u202e\u2028\u00ad\u200b\ufeff\udb40\udc41é"}"#
        );
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
            (b"{\"text\": \"{\\u00", "{\"text\": \"{\\u00"),
            (b"{\"token\": \"s3cret\": 1", "{\"token\": \"[redacted]\""),
            (
                b"{\"password\":\"a\" \"s3cret\", \"a\": 1}",
                "{\"password\":\"[redacted]\", \"a\": 1}",
            ),
            (b"\"", "\""),
            (b"]]}\\", "]]}\\"),
        ] {
            assert_eq!(excerpt(message), expected);
        }
    }
}
