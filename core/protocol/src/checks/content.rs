//! `_meta` and annotations, of definitions and of content.

use memchr::memmem;

use crate::vocabulary::meta::check_key;
use crate::vocabulary::{Annotations, Extra, Role};
use crate::wire::{Kind, Raw};

/// Checks the keys of a `_meta` (2026-07-28, `basic`, `_meta`).
///
/// # Errors
/// It is no object, or a key is malformed or reserved.
pub fn meta(given: &Raw) -> Result<(), String> {
    match given.members() {
        Some(mut members) => members.try_for_each(|(key, _)| check_key(&key)),
        None if given.is_null() => Ok(()),
        None => Err("`_meta` must be an object".to_owned()),
    }
}

pub(super) fn extra_meta(given: Option<&Extra>) -> Result<(), String> {
    let mut keys = given.into_iter().flat_map(Extra::keys);
    keys.try_for_each(|key| check_key(key))
}

/// Checks `_meta` and annotations of content blocks, of a resource's contents or of a prompt's messages: an array, as a
/// handler gave it. What isn't of their shape is passed over.
///
/// # Errors
/// A key of `_meta` is malformed or reserved; a member of `annotations` has a value that it may not have (every revision,
/// `server/resources`, annotations).
pub fn content(blocks: &Raw) -> Result<(), String> {
    // Nearly all content has neither, and it may be large.
    let has = |name: &[u8]| memmem::find(blocks.as_bytes(), name).is_some();
    if !has(b"\"_meta\"") && !has(b"\"annotations\"") {
        return Ok(());
    }
    for block in blocks.elements().into_iter().flatten() {
        each(&block)?;
        for within in ["content", "resource"] {
            if let Some(within) = block.member(within) {
                each(&within)?;
                // An embedded resource in a prompt's message.
                if let Some(resource) = within.member("resource") {
                    each(&resource)?;
                }
            }
        }
    }
    Ok(())
}

fn each(block: &Raw) -> Result<(), String> {
    if let Some(given) = block.member("_meta") {
        meta(&given)?;
    }
    match block.member("annotations") {
        Some(given) if given.kind() == Kind::Object => {
            let given = given
                .decode()
                .map_err(|error| format!("annotations: {error}"))?;
            annotations(Some(&given))
        }
        _ => Ok(()),
    }
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
            "annotations.lastModified: {time:?} is no date or time of ISO 8601, such as 2025-01-12T15:00:58Z"
        )),
        _ => Ok(()),
    }
}

/// A date, or a date and a time, in the extended format of ISO 8601; with or without an offset, because not every system
/// that tells when a file changed tells its zone.
fn is_iso_8601(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let number = |text: &str, digits: usize| {
        let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let within = |text: &str, from: u32, to: u32| {
        number(text, 2).is_some_and(|number| (from..=to).contains(&number))
    };
    let parts: Vec<&str> = date.split('-').collect();
    let is_date = matches!(parts[..], [year, month, day]
        if number(year, 4).is_some() && within(month, 1, 12) && within(day, 1, 31));
    let is_clock = |clock: &str| {
        let (clock, fraction) = match clock.split_once(['.', ',']) {
            Some((clock, fraction)) => (clock, Some(fraction)),
            None => (clock, None),
        };
        let parts: Vec<&str> = clock.split(':').collect();
        let is_clock = match parts[..] {
            [hour, minute] => within(hour, 0, 24) && within(minute, 0, 59) && fraction.is_none(),
            [hour, minute, second] => {
                within(hour, 0, 24) && within(minute, 0, 59) && within(second, 0, 60)
            }
            _ => false,
        };
        is_clock
            && fraction.is_none_or(|fraction| {
                !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
            })
    };
    let is_offset = |offset: &str| {
        let digits = offset.replacen(':', "", 1);
        match digits.len() {
            2 => within(&digits, 0, 23),
            4 => {
                digits.is_char_boundary(2)
                    && within(&digits[..2], 0, 23)
                    && within(&digits[2..], 0, 59)
            }
            _ => false,
        }
    };
    let is_time = |time: &str| match time.strip_suffix('Z') {
        Some(clock) => is_clock(clock),
        None => match time.rsplit_once(['+', '-']) {
            Some((clock, offset)) => is_clock(clock) && is_offset(offset),
            None => is_clock(time),
        },
    };
    is_date && time.is_none_or(is_time)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(blocks: &Value) -> Result<(), String> {
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
            assert_eq!(checked(&block(fine.clone())), Ok(()), "{fine}");
        }
        for (wrong, place) in [
            (json!({"audience": ["nobody"]}), "annotations.audience"),
            (json!({"priority": 1.5}), "annotations.priority"),
            (json!({"priority": -0.1}), "annotations.priority"),
            (json!({"lastModified": "today"}), "annotations.lastModified"),
            (json!({"priority": "high"}), "annotations"),
        ] {
            let error = checked(&block(wrong)).expect_err(place);
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn meta_is_checked_wherever_content_may_have_it() {
        let bad = json!({"bad key": 1});
        for blocks in [
            json!([{"type": "text", "text": "x", "_meta": bad}]),
            json!([{"type": "resource", "resource": {"uri": "a:b", "text": "x", "_meta": bad}}]),
            json!([{"uri": "a:b", "text": "x", "_meta": bad}]),
            json!([{"role": "user", "content": {"type": "text", "text": "x", "_meta": bad}}]),
            json!([{"role": "user", "content":
                {"type": "resource", "resource": {"uri": "a:b", "text": "x", "_meta": bad}}}]),
            json!([{"type": "text", "text": "x", "_meta": 7}]),
        ] {
            assert!(checked(&blocks).is_err(), "{blocks}");
        }
        let plain =
            json!([{"type": "text", "text": "\"_meta\"", "_meta": {"example.com/a": 1}}, 7]);
        assert_eq!(checked(&plain), Ok(()));
        assert_eq!(checked(&json!("no list with \"_meta\"")), Ok(()));
    }
}
