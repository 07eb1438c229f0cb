//! Describes how two definitions of a tool differ, for people.

use std::fmt::Write as _;

use mcpline_protocol::Printable;
use serde_json::Value;

/// Maximum number of differences that are described.
const MAX_DIFFERENCES: usize = 10;

/// Maximum number of characters of a value: a description may be long, and its beginning is known.
const MAX_VALUE_CHARS: usize = 200;

/// Maximum number of characters of a place.
const MAX_PLACE_CHARS: usize = 100;

/// Returns what has changed, such as `description: "Adds" → "Deletes"; inputSchema.properties.path: added {"type":"string"}`.
pub(super) fn difference(before: &Value, after: &Value) -> String {
    let mut found = Differences::default();
    found.collect(&mut String::new(), Some(before), Some(after));
    let mut text = found.described.join("; ");
    if found.more > 0 {
        let _ = write!(text, "; and {} more", found.more);
    }
    text
}

#[derive(Default)]
struct Differences {
    described: Vec<String>,
    /// Number of those that are only counted.
    more: usize,
}

impl Differences {
    fn collect(&mut self, place: &mut String, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let added = new.keys().filter(|name| !old.contains_key(*name));
                for name in old.keys().chain(added) {
                    let length = place.len();
                    if length > 0 {
                        place.push('.');
                    }
                    place.push_str(name);
                    self.collect(place, old.get(name), new.get(name));
                    place.truncate(length);
                }
            }
            (Some(old), Some(new)) if old == new => {}
            _ if self.described.len() == MAX_DIFFERENCES => self.more += 1,
            (Some(old), Some(new)) => {
                let (old, new) = shown_from_difference(old, new);
                self.add(place, format_args!("{old} → {new}"));
            }
            (Some(old), None) => self.add(place, format_args!("removed {}", shown(old))),
            (None, Some(new)) => self.add(place, format_args!("added {}", shown(new))),
            (None, None) => {}
        }
    }

    fn add(&mut self, place: &str, what: std::fmt::Arguments<'_>) {
        self.described
            .push(format!("{}: {what}", shown_place(place)));
    }
}

fn shown_place(place: &str) -> String {
    Printable(place.chars().take(MAX_PLACE_CHARS).collect::<String>()).to_string()
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 0)
}

/// Returns both values, from a little before the first difference if they are long.
fn shown_from_difference(old: &Value, new: &Value) -> (String, String) {
    let (old, new) = (old.to_string(), new.to_string());
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(old, new)| old == new)
        .count();
    let from = match same > MAX_VALUE_CHARS / 2 {
        true => same - MAX_VALUE_CHARS / 4,
        false => 0,
    };
    (shortened(&old, from), shortened(&new, from))
}

fn shortened(text: &str, from: usize) -> String {
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    shown.extend(text.chars().skip(from).take(MAX_VALUE_CHARS));
    if text.chars().count() > from + MAX_VALUE_CHARS {
        shown.push('…');
    }
    Printable(shown).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_have_place_and_values() {
        let before = json!({"name": "add", "description": "Adds", "inputSchema": {"type": "object", "required": ["a"]}});
        let after = json!({"name": "add", "description": "Deletes",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}});
        assert_eq!(
            difference(&before, &after),
            r#"description: "Adds" → "Deletes"; inputSchema.required: removed ["a"]; inputSchema.properties: added {"path":{"type":"string"}}"#
        );
        assert_eq!(difference(&before, &before), "");
    }

    #[test]
    fn the_end_of_a_long_text_is_shown_where_it_differs() {
        let (before, after) = ("x".repeat(5_000) + "good", "x".repeat(5_000) + "bad");
        let text = difference(
            &json!({"description": before}),
            &json!({"description": after}),
        );
        assert!(text.contains("good") && text.contains("bad"), "{text}");
        assert!(text.len() < 600, "{text}");
    }

    #[test]
    fn many_differences_and_hostile_names_are_bounded() {
        let of = |value: i32| -> Value {
            let name = |index: usize| format!("{index:03}\u{1b}[2J\n{}", "n".repeat(1_000));
            Value::Object((0..100).map(|index| (name(index), json!(value))).collect())
        };
        let text = difference(&of(1), &of(2));
        assert!(text.ends_with("; and 90 more"), "{text}");
        assert!(text.len() < 2_000, "{}", text.len());
        assert!(!text.contains('\u{1b}') && !text.contains('\n'), "{text}");
    }
}
