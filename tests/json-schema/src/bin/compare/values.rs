//! Values from a small vocabulary, so that schemas apply to them.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Property names.
pub(crate) const NAMES: &[&str] = &["a", "b", "c", "ab", "x-1", "é", "", "$ref", "a/b", "a~b"];

/// Numbers around the limits of the types that hold them, and equal numbers in different notations.
const NUMBERS: &[&str] = &[
    "0",
    "-0.0",
    "1",
    "1.0",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "10",
    "0.5",
    "1.5",
    "-2.5",
    "0.1",
    "0.3",
    "100",
    "1e2",
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.0",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e20",
    "1e-7",
    "1e300",
];

/// Texts, some of them in a format.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "abc",
    "aab",
    "A",
    "é",
    "e\u{301}",
    "😀",
    "👨‍👩‍👧",
    "a\nb",
    " a ",
    "0",
    "12",
    "a1",
    "_",
    "x-1",
    "\u{2028}",
    "\u{a0}",
    "\u{130}",
    "ſ",
    "2024-02-29",
    "2023-02-29",
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00",
    "1.2.3.4",
    "1.2.3.04",
    "::1",
    "1::2::3",
    "a@b.example",
    "@b",
    "https://a.example/b?c#d",
    "//a.example/b",
    "a b",
    "/a~1b",
    "~2",
    "12:00:00Z",
    "23:59:60Z",
    "[a",
];

/// Returns any value.
pub(crate) fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 => Value::Bool(random.once_in(2)),
        2 | 3 => number(random),
        4 | 5 => text(random),
        6 | 7 => (0..random.below(4))
            .map(|_| value(random, depth - 1))
            .collect(),
        _ => object(random, depth - 1),
    }
}

pub(crate) fn number(random: &mut Random) -> Value {
    serde_json::from_str(random.pick(NUMBERS)).expect("a number")
}

pub(crate) fn text(random: &mut Random) -> Value {
    random.pick(TEXTS).into()
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..random.below(5) {
        members.insert(name(random), value(random, depth));
    }
    members.into()
}

/// Returns a property name, mostly one of the first.
pub(crate) fn name(random: &mut Random) -> String {
    let common = if random.once_in(4) { NAMES.len() } else { 4 };
    NAMES[random.below(common)].to_owned()
}

/// Returns a value for this schema: one that it contains, or one of the type that its keywords apply to.
pub(crate) fn for_schema(random: &mut Random, schema: &Value, depth: usize) -> Value {
    let keyword = |name: &str| schema.get(name);
    if let Some(expected) = keyword("const").filter(|_| !random.once_in(3)) {
        return expected.clone();
    }
    if let Some(options) = keyword("enum").and_then(Value::as_array)
        && !options.is_empty()
        && !random.once_in(3)
    {
        return options[random.below(options.len())].clone();
    }
    let about_objects = [
        "properties",
        "required",
        "patternProperties",
        "unevaluatedProperties",
    ];
    let about_arrays = [
        "items",
        "prefixItems",
        "contains",
        "uniqueItems",
        "unevaluatedItems",
    ];
    if depth > 0 && !random.once_in(4) {
        if about_objects.iter().any(|it| keyword(it).is_some()) {
            return object_for(random, schema, depth - 1);
        }
        if about_arrays.iter().any(|it| keyword(it).is_some()) {
            let items = keyword("items").cloned().unwrap_or_default();
            let first = keyword("prefixItems").or(keyword("items"));
            let first = first.and_then(Value::as_array).cloned().unwrap_or_default();
            return (0..random.below(5))
                .map(|index| for_schema(random, first.get(index).unwrap_or(&items), depth - 1))
                .collect();
        }
    }
    for list in ["allOf", "anyOf", "oneOf"] {
        if let Some(schemas) = keyword(list).and_then(Value::as_array)
            && !schemas.is_empty()
            && random.once_in(2)
        {
            let one = random.below(schemas.len());
            return for_schema(random, &schemas[one], depth);
        }
    }
    match keyword("type").and_then(Value::as_str) {
        Some("string") => text(random),
        Some("number" | "integer") => number(random),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("object") if depth > 0 => object(random, depth - 1),
        _ => value(random, depth),
    }
}

fn object_for(random: &mut Random, schema: &Value, depth: usize) -> Value {
    let mut members = Map::new();
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, schema) in properties {
            if !random.once_in(3) {
                members.insert(name.clone(), for_schema(random, schema, depth));
            }
        }
    }
    if let Some(required) = schema.get("required").and_then(Value::as_array) {
        for name in required.iter().filter_map(Value::as_str) {
            if !members.contains_key(name) && !random.once_in(4) {
                members.insert(name.to_owned(), value(random, depth));
            }
        }
    }
    for _ in 0..random.below(3) {
        members.insert(name(random), value(random, depth));
    }
    members.into()
}
