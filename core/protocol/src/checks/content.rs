//! `_meta` and annotations, of definitions and of content.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

use crate::vocabulary::meta::{check_key, key_warning};
use crate::vocabulary::{Annotations, Extra, Role};
use crate::wire::{JsonKind, Raw};

/// Checks the keys of a `_meta` (2026-07-28, `basic`, `_meta`). `Some` is a warning about a malformed key, which is
/// sent all the same.
///
/// # Errors
/// If it is not an object, or a key is reserved.
pub fn meta(given: &Raw) -> Result<Option<String>, String> {
    match given.members() {
        Some(members) => check_keys(members.map(|(key, _)| key)),
        None if given.is_null() => Ok(None),
        None => Err("`_meta` must be an object".to_owned()),
    }
}

pub(super) fn extra_meta(given: Option<&Extra>) -> Result<Option<String>, String> {
    check_keys(given.into_iter().flat_map(Extra::keys))
}

fn check_keys(keys: impl Iterator<Item = impl AsRef<str>>) -> Result<Option<String>, String> {
    let mut warning = None;
    for key in keys {
        check_key(key.as_ref())?;
        warning = warning.or_else(|| key_warning(key.as_ref()));
    }
    Ok(warning)
}

/// Checks `_meta` and annotations of content blocks, of a resource's contents or of a prompt's messages: an array, as a
/// handler returned it. Elements of another shape are skipped.
///
/// `Some` is the first warning: a key of `_meta` is malformed, or a member of `annotations` has an invalid value (every
/// revision, `server/resources`, annotations). Neither justifies losing the result of a handler.
///
/// # Errors
/// If a key of `_meta` is reserved.
pub fn content(blocks: &Raw) -> Result<Option<String>, String> {
    let mut warning = None;
    // Nearly all content has neither, and it may be large.
    let json = blocks.as_bytes();
    if is_one_text(json) || !MEMBER_FINDERS.iter().any(|name| name.find(json).is_some()) {
        return Ok(warning);
    }
    for block in blocks.elements().into_iter().flatten() {
        check_block(&block, &mut warning)?;
        for within in ["content", "resource"] {
            if let Some(within) = block.member(within) {
                check_block(&within, &mut warning)?;
                // An embedded resource in a prompt's message.
                if let Some(resource) = within.member("resource") {
                    check_block(&resource, &mut warning)?;
                }
            }
        }
    }
    Ok(warning)
}

/// The members that are checked. The searchers are static because creating one costs more than searching a short text.
static MEMBER_FINDERS: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b"\"_meta\""), Finder::new(b"\"annotations\"")]);

/// The first bytes of the content of `ToolReply::text` of `mcpline`, which most handlers return.
const TEXT_BLOCK: &[u8] = b"[{\"type\":\"text\",\"text\":\"";

/// Whether content is one text block, without white space and without further members.
fn is_one_text(json: &[u8]) -> bool {
    let Some(text) = json.strip_prefix(TEXT_BLOCK) else {
        return false;
    };
    let is_escaped = |quote: usize| {
        let backslashes = text[..quote]
            .iter()
            .rev()
            .take_while(|&&byte| byte == b'\\');
        backslashes.count() % 2 == 1
    };
    // The first quote is nearly always the last, so an iterator would cost more than it saves.
    let mut from = 0;
    while let Some(at) = memchr(b'"', &text[from..]) {
        let quote = from + at;
        if !is_escaped(quote) {
            return text[quote..] == *b"\"}]";
        }
        from = quote + 1;
    }
    false
}

fn check_block(block: &Raw, warning: &mut Option<String>) -> Result<(), String> {
    if let Some(given) = block.member("_meta") {
        let found = meta(&given)?;
        *warning = warning.take().or(found);
    }
    if warning.is_none()
        && let Some(given) = block.member("annotations")
        && given.kind() == JsonKind::Object
    {
        *warning = match given.decode() {
            Ok(given) => annotations(Some(&given)).err(),
            Err(error) => Some(format!("annotations: {error}")),
        };
    }
    Ok(())
}

pub(super) fn annotations(given: Option<&Annotations>) -> Result<(), String> {
    let Some(given) = given else { return Ok(()) };
    for role in given.audience.iter().flatten() {
        if let Role::Other(word) = role {
            return Err(format!(
                "annotations.audience: {word:?} is neither `user` nor `assistant`"
            ));
        }
    }
    if let Some(priority) = given.priority
        && !(0.0..=1.0).contains(&priority)
    {
        return Err(format!(
            "annotations.priority: {priority} is not between 0 and 1"
        ));
    }
    match &given.last_modified {
        Some(time) if !is_iso_8601(time) => Err(format!(
            "annotations.lastModified: {time:?} is not an ISO 8601 date or time such as 2025-01-12T15:00:58Z"
        )),
        _ => Ok(()),
    }
}

/// Whether a text is a date, or a date and time, in ISO 8601 or RFC 3339: extended or basic format, by calendar, week
/// or day of the year, with or without an offset, because not every source of a modification time knows its time zone.
fn is_iso_8601(text: &str) -> bool {
    const DAYS: [&str; 6] = ["y-m-d", "ymd", "y-o", "yo", "y-Ww-e", "yWwe"];
    const LONGER: [&str; 4] = ["y", "y-m", "y-Ww", "yWw"];
    const CLOCKS: [&str; 5] = ["h:n:s", "hns", "h:n", "hn", "h"];
    const OFFSETS: [&str; 3] = ["h:n", "hn", "h"];
    let is_any =
        |patterns: &[&str], text: &str| patterns.iter().any(|it| matches_date_pattern(it, text));
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return is_any(&DAYS, text) || is_any(&LONGER, text);
    };
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, None),
        None => match time.rsplit_once(['+', '-']) {
            Some((clock, offset)) => (clock, Some(offset)),
            None => (time, None),
        },
    };
    let (clock, fraction) = match clock.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_any(&DAYS, date)
        && is_any(&CLOCKS, clock)
        && fraction.is_none_or(is_number)
        && offset.is_none_or(|offset| is_any(&OFFSETS, offset))
}

/// Whether a text matches a pattern, in which each lower-case letter stands for a digit and everything else for itself.
fn matches_date_pattern(pattern: &str, text: &str) -> bool {
    let mut rest = text.as_bytes();
    for part in pattern.bytes() {
        let (digits, numbers) = match part {
            b'y' => (4, 0..=9999),
            b'm' => (2, 1..=12),
            b'd' => (2, 1..=31),
            b'o' => (3, 1..=366),
            b'w' => (2, 1..=53),
            b'e' => (1, 1..=7),
            b'h' => (2, 0..=24),
            b'n' => (2, 0..=59),
            b's' => (2, 0..=60),
            other => match rest.split_first() {
                Some((first, after)) if *first == other => {
                    rest = after;
                    continue;
                }
                _ => return false,
            },
        };
        let Some((number, after)) = rest.split_at_checked(digits) else {
            return false;
        };
        if !number.iter().all(u8::is_ascii_digit) {
            return false;
        }
        let number = number
            .iter()
            .fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        if !numbers.contains(&number) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(blocks: &Value) -> Result<Option<String>, String> {
        content(&Raw::from_serialize(blocks).expect("JSON"))
    }

    #[test]
    fn dates_and_times_of_iso_8601_are_known() {
        for text in [
            "2025-01-12T15:00:58Z",
            "2025-01-12",
            "2025-01-12T15:00:58.123456",
            "2025-01-12T15:00+01:00",
            "2025-01-12T15:00:58-0330",
            "2025-01-12t15:00:58z",
            "20250112T150058Z",
            "20250112T150058,5+01",
            "20250112",
            "2025-01-12T15",
            "2025-01",
            "2025",
            "2025-W02-7",
            "2025W027T1500Z",
            "2025-W02",
            "2025-012",
            "2025012",
        ] {
            assert!(is_iso_8601(text), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2025-13-01",
            "2025-01-32",
            "25-01-12",
            "2025-01-12 15:00:58",
            "202501",
            "2025-W54",
            "2025-W02-8",
            "2025-367",
            "2025-01T15:00",
            "2025-01-12T15:0",
            "2025-01-12T15:00+",
            "2025-01-12T",
            "2025-01-12T25:00",
            "2025-01-12T15:00:58.Z",
            "2025-01-12T15:00:58+1:0é",
            "Sun, 12 Jan 2025 15:00:58 GMT",
        ] {
            assert!(!is_iso_8601(text), "{text}");
        }
    }

    #[test]
    fn annotations_of_content_have_their_values() {
        let block =
            |annotations: Value| json!([{"type": "text", "text": "x", "annotations": annotations}]);
        for fine in [
            json!({}),
            json!({"audience": ["user", "assistant"], "priority": 0, "lastModified": "2025-01-12"}),
            json!({"priority": 1.0, "other": 7}),
            Value::Null,
        ] {
            assert_eq!(checked(&block(fine.clone())), Ok(None), "{fine}");
        }
        for (wrong, place) in [
            (json!({"audience": ["nobody"]}), "annotations.audience"),
            (json!({"audience": "user"}), "annotations"),
            (json!({"priority": 1.5}), "annotations.priority"),
            (json!({"priority": -0.1}), "annotations.priority"),
            (json!({"lastModified": "today"}), "annotations.lastModified"),
            (json!({"priority": "high"}), "annotations"),
        ] {
            let warning = checked(&block(wrong)).expect("a warning").expect(place);
            assert!(warning.starts_with(place), "{warning}");
        }
    }

    #[test]
    fn recognizes_a_single_text_block() {
        for text in ["", "x", "\"", "\\", "\\\"", "\"}]", "\"_meta\""] {
            let block = json!([{"type": "text", "text": text}]).to_string();
            assert!(is_one_text(block.as_bytes()), "{block}");
        }
        for other in [
            json!([]),
            json!([{"type": "text", "text": "x", "_meta": 7}]),
            json!([{"type": "text", "text": "\\", "_meta": 7}]),
            json!([{"type": "text", "text": "x"}, {"type": "text", "text": "\"}]"}]),
            json!([{"type": "text", "text": 7}]),
        ] {
            assert!(!is_one_text(other.to_string().as_bytes()), "{other}");
        }
        for cut in [
            r#"[{"type":"text","text":""#,
            r#"[{"type":"text","text":"x\""#,
        ] {
            assert!(!is_one_text(cut.as_bytes()), "{cut}");
        }
    }

    #[test]
    fn meta_is_checked_wherever_content_may_have_it() {
        let blocks = |bad: Value| {
            [
                json!([{"type": "text", "text": "x", "_meta": bad}]),
                json!([{"type": "resource", "resource": {"uri": "a:b", "text": "x", "_meta": bad}}]),
                json!([{"uri": "a:b", "text": "x", "_meta": bad}]),
                json!([{"role": "user", "content": {"type": "text", "text": "x", "_meta": bad}}]),
                json!([{"role": "user", "content":
                {"type": "resource", "resource": {"uri": "a:b", "text": "x", "_meta": bad}}}]),
            ]
        };
        for malformed in blocks(json!({"bad key": 1})) {
            let warning = checked(&malformed).expect("a warning");
            assert!(
                warning.is_some_and(|it| it.contains("bad key")),
                "{malformed}"
            );
        }
        for reserved in blocks(json!({"bad key": 1, "dev.mcp/x": 1})) {
            assert!(checked(&reserved).is_err(), "{reserved}");
        }
        let no_object = json!([{"type": "text", "text": "x", "_meta": 7}]);
        assert!(checked(&no_object).is_err());
        let plain =
            json!([{"type": "text", "text": "\"_meta\"", "_meta": {"example.com/a": 1}}, 7]);
        assert_eq!(checked(&plain), Ok(None));
        assert_eq!(checked(&json!("no list with \"_meta\"")), Ok(None));
    }
}
