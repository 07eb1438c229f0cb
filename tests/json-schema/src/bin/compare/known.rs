//! Known differences between the two validators, and why they stay.

use serde_json::Value;

use crate::Dialect;
use crate::verdict::Verdict;

/// A known difference.
pub(crate) struct Known {
    pub(crate) reason: &'static str,
    /// A schema and a value that show it. If the two agree about them, remove the difference from the table.
    pub(crate) dialect: Dialect,
    pub(crate) schema: &'static str,
    pub(crate) value: &'static str,
    /// Whether a small schema, a value and both verdicts show this difference.
    pub(crate) explains: fn(&Value, &Value, (Verdict, Verdict)) -> bool,
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        reason: "`multipleOf`: theirs divides numbers beyond 2^53 as floats, ours by the digits that they have",
        dialect: Dialect::Draft202012,
        // 2^64 - 1 is a multiple of 3.
        schema: r#"{"multipleOf": 1.5}"#,
        value: "18446744073709551615",
        explains: |schema, value, _| names_keyword(schema, "multipleOf") && has_large_number(value),
    },
    Known {
        reason: "`pattern` with a lookahead: theirs reads \\w and its kin as Unicode's then, ours always as ECMA-262's",
        dialect: Dialect::Draft202012,
        schema: r#"{"pattern": "(?!b)\\W"}"#,
        value: "\"é\"",
        explains: |schema, _, _| {
            let text = schema.to_string();
            text.contains("(?")
                && ["w", "W", "d", "D", "s", "S"]
                    .iter()
                    .any(|it| text.contains(&format!("\\\\{it}")))
        },
    },
];

/// Whether a keyword, or a property of this name, occurs anywhere in a schema.
fn names_keyword(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| name == keyword || names_keyword(member, keyword)),
        Value::Array(elements) => elements.iter().any(|it| names_keyword(it, keyword)),
        _ => false,
    }
}

/// Whether the value has a number that a float may not represent exactly.
fn has_large_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|float| float.abs() > 9e15),
        Value::Array(elements) => elements.iter().any(has_large_number),
        Value::Object(members) => members.values().any(has_large_number),
        _ => false,
    }
}
