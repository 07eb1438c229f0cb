//! Replaces values within JSON, in one pass and without decoding numbers, so that all other values stay as they are written.

use std::borrow::Cow;

use mcpline_protocol::wire::json_string;
use serde::de::IgnoredAny;

/// Shown in place of a value.
pub(super) const REDACTED: &str = "[redacted]";

/// Maximum depth of JSON in strings of JSON. Tools return structured content as text too, whose values are the same.
const MAX_NESTED_TEXTS: usize = 4;

/// What is replaced.
pub(super) trait RedactionRules {
    /// Returns what takes the place of a hidden value.
    fn replacement(&self) -> &str;

    /// Returns whether the value of a member is hidden. `value` finds it, which takes time.
    fn hides<'v>(&self, name: &str, value: impl FnOnce() -> &'v str) -> bool;

    /// Returns a text in which parts are replaced; `None` if there are none.
    fn replaced(&self, text: &str) -> Option<String>;
}

/// Returns a valid JSON value whose hidden members and texts are replaced; `None` if there is nothing to replace.
pub(super) fn redacted_json(json: &str, rules: &impl RedactionRules) -> Option<String> {
    json_at(json, rules, 0)
}

/// Returns a text in which parts are replaced, and hidden members if it is a JSON object, array or string; `None` if there is
/// nothing to replace.
#[cfg(any(feature = "redaction", test))]
pub(super) fn redacted_text(text: &str, rules: &impl RedactionRules) -> Option<String> {
    text_at(text, rules, 0)
}

fn text_at(text: &str, rules: &impl RedactionRules, depth: usize) -> Option<String> {
    let as_json = match depth < MAX_NESTED_TEXTS && may_have_members(text) {
        true => json_at(text, rules, depth + 1),
        false => None,
    };
    // Numbers and names of members of such a text are text, too.
    let replaced = rules.replaced(as_json.as_deref().unwrap_or(text));
    replaced.or(as_json)
}

/// Whether a text is a JSON object, array or string. Its depth does not matter: values are skipped without recursion.
fn may_have_members(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn json_at(json: &str, rules: &impl RedactionRules, depth: usize) -> Option<String> {
    let bytes = json.as_bytes();
    let mut out = Vec::new();
    // Everything before is in `out`, or would be if something had been replaced.
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let end = string_end(bytes, at);
        let (start, string) = (at, decoded(&json[at..end]));
        at = end;
        let next = skip_space(bytes, end);
        let replacement = if bytes.get(next) == Some(&b':') {
            let value = skip_space(bytes, next + 1);
            let is_hidden = rules.hides(&string, || &json[value..value_end(bytes, value)]);
            at = value;
            is_hidden.then(|| {
                let replacement = Cow::Borrowed(rules.replacement());
                (value, value_end(bytes, value), replacement)
            })
        } else {
            text_at(&string, rules, depth).map(|text| (start, end, Cow::Owned(text)))
        };
        if let Some((from, to, text)) = replacement {
            out.extend_from_slice(&bytes[copied..from]);
            json_string(&mut out, &text);
            (copied, at) = (to, to);
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[copied..]);
    String::from_utf8(out).ok()
}

/// Whether a JSON value is a string or has strings in it that are not names.
pub(super) fn has_strings(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(quote) = bytes[at..].iter().position(|byte| *byte == b'"') {
        at = string_end(bytes, at + quote);
        if bytes.get(skip_space(bytes, at)) != Some(&b':') {
            return true;
        }
    }
    false
}

/// Returns the end of the string that begins at a quotation mark.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

fn skip_space(json: &[u8], start: usize) -> usize {
    let is_space = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\r' | b'\n');
    start + json[start..].iter().take_while(is_space).count()
}

/// Returns the end of the value that begins here.
fn value_end(json: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' => break,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the text of a string with its quotation marks. A half of a surrogate pair is a replacement character.
fn decoded(string: &str) -> Cow<'_, str> {
    let content = string.get(1..string.len() - 1).unwrap_or_default();
    if !content.contains('\\') {
        return Cow::Borrowed(content);
    }
    let decoded = serde_json::from_str(string);
    let decoded = decoded.or_else(|_| serde_json::from_str(&without_halves(string)));
    decoded.map_or(Cow::Borrowed(content), Cow::Owned)
}

/// Returns a string as it is written, with `\ufffd` in place of each half of a surrogate pair.
fn without_halves(string: &str) -> String {
    let mut out = String::with_capacity(string.len());
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            // The escaped character is ASCII.
            (None, _) => 2,
        };
        let (whole, after) = escape.split_at(length.min(escape.len()));
        out.push_str(whole);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the code unit of an escape at the beginning of a text, if it is half of a surrogate pair.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hides `pin`, and replaces `ann`.
    struct Rules;

    impl RedactionRules for Rules {
        fn replacement(&self) -> &str {
            "#"
        }

        fn hides<'v>(&self, name: &str, _: impl FnOnce() -> &'v str) -> bool {
            name == "pin"
        }

        fn replaced(&self, text: &str) -> Option<String> {
            text.contains("ann").then(|| text.replace("ann", "#"))
        }
    }

    #[test]
    fn texts_with_halves_of_surrogate_pairs_are_read() {
        for (string, text) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (
                r#""a\ud83d\n\ud83d\ude00 \\ud83d""#,
                "a\u{fffd}\n\u{1f600} \\ud83d",
            ),
            (r#""\ude00\ud83d\ud83d\ude00""#, "\u{fffd}\u{fffd}\u{1f600}"),
        ] {
            assert_eq!(decoded(string), text, "{string}");
        }
        let within = r#"["{\"pin\": 1, \"a\": \"\\ud83d\"}", "\"[{\\\"pin\\\":1}]\""]"#;
        let redacted = redacted_json(within, &Rules).expect("replaced");
        assert!(!redacted.contains('1'), "{redacted}");
    }

    #[test]
    fn hidden_members_and_texts_are_replaced_and_nothing_else() {
        for (json, expected) in [
            (
                r#"{"pin": 12 , "a": 1e400}"#,
                r##"{"pin": "#" , "a": 1e400}"##,
            ),
            (
                r#"{"pin":{"a":["}",{"pin":1}]},"b":-0.0}"#,
                r##"{"pin":"#","b":-0.0}"##,
            ),
            (
                r#"[{"pin":null},{"pin" : "x\"}"},[true,false]]"#,
                r##"[{"pin":"#"},{"pin" : "#"},[true,false]]"##,
            ),
            (r#"{"p\u0069n":true}"#, r##"{"p\u0069n":"#"}"##),
            (
                r#"{"ann":"ann","b":["\u0061nn\n"]}"#,
                r##"{"ann":"#","b":["#\n"]}"##,
            ),
            (r#""ann""#, r##""#""##),
            // JSON in a string, and in a string of that.
            (r#"{"t":"{\"pin\":1}"}"#, r##"{"t":"{\"pin\":\"#\"}"}"##),
            (
                r#"["[\"{\\\"pin\\\":1}\"]"]"#,
                r##"["[\"{\\\"pin\\\":\\\"#\\\"}\"]"]"##,
            ),
        ] {
            assert_eq!(redacted_json(json, &Rules).as_deref(), Some(expected));
        }
    }

    #[test]
    fn values_without_anything_to_replace_are_left_alone() {
        for json in [
            "{}",
            "[]",
            "1",
            "\"\"",
            r#"{"a":["pin","{\"pin"],"b":{"pins":1}}"#,
        ] {
            assert_eq!(redacted_json(json, &Rules), None, "{json}");
        }
        assert_eq!(redacted_text("pin: 1", &Rules), None);
        assert_eq!(redacted_text("{\"pin\": 1", &Rules), None);
    }

    #[test]
    fn texts_are_replaced_also_where_they_are_json() {
        assert_eq!(
            redacted_text("ann and bob", &Rules).as_deref(),
            Some("# and bob")
        );
        assert_eq!(
            redacted_text(" {\"ann\": 1, \"pin\": 2}\n", &Rules).as_deref(),
            Some(" {\"#\": 1, \"pin\": \"#\"}\n")
        );
    }

    #[test]
    fn deep_values_need_no_stack() {
        let deep = format!(
            "{}{{\"pin\":1}}{}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let redacted = redacted_text(&deep, &Rules).expect("something is replaced");
        assert!(redacted.contains(r##"{"pin":"#"}"##));
    }

    #[test]
    fn strings_are_told_from_names() {
        for (json, expected) in [
            ("5", false),
            (r#"{"a":5}"#, false),
            (r#"["a"]"#, true),
            (r#"{"a":"b"}"#, true),
        ] {
            assert_eq!(has_strings(json), expected, "{json}");
        }
    }
}
