//! A shortcut for plain schemas, which most tools have: it recognizes matching values without decoding them.
//!
//! It only ever reports a certain match. All uncertain cases, and every violation with its message, are left to the
//! full validator, so the shortcut can't change a result. A schema that it accepts is valid in 2020-12, so that the
//! full validator need not be built first.

use std::collections::HashSet;
use std::str::FromStr;

use mcpline_schema::StepBudget;
use serde_json::{Map, Value};

use crate::json::{JsonKind, RawRef};

/// Whether a keyword is an annotation, which no value can violate, with a valid value.
fn is_annotation(keyword: &str, value: &Value) -> bool {
    match keyword {
        "$comment" | "$schema" | "description" | "title" => value.is_string(),
        "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "examples" => value.is_array(),
        "default" | "x-mcp-header" => true,
        _ => false,
    }
}

/// The number of types.
const TYPES: usize = 7;

/// Integers up to this one are exact in every reader's number type.
const EXACT: i64 = 1 << 53;

/// How many bytes of a value are skipped per step.
const BYTES_PER_STEP: usize = 8;

/// How many names are compared per step: most differ in length.
const NAMES_PER_STEP: usize = 4;

/// A plain schema.
#[derive(Debug)]
pub(super) enum PlainSchema {
    /// Any value matches.
    Anything,
    /// Any string, or one of these (as JSON without escapes).
    Text(Option<Vec<String>>),
    /// An integer within bounds.
    Integer(i64, i64),
    /// Any number.
    Number,
    Boolean,
    Null,
    Array(Box<PlainSchema>),
    /// Any value that matches one of these.
    Either(Vec<PlainSchema>),
    Object {
        properties: Vec<(String, PlainSchema)>,
        required: Vec<String>,
        /// Whether other members are rejected.
        closed: bool,
    },
}

impl PlainSchema {
    /// The shortcut for a schema of 2020-12, if it is plain.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let members = match schema {
            Value::Bool(true) => return Some(Self::Anything),
            Value::Object(members) => members,
            _ => return None,
        };
        let Some(kind) = members.get("type") else {
            return match members.get("anyOf") {
                Some(options) => Self::either(members, options),
                None => only(members, &[]).then_some(Self::Anything),
            };
        };
        match kind {
            Value::String(kind) => Self::of_type(kind, members),
            Value::Array(kinds) => Self::of_types(kinds, members),
            _ => None,
        }
    }

    fn either(members: &Map<String, Value>, options: &Value) -> Option<Self> {
        let options = options.as_array().filter(|options| !options.is_empty())?;
        let options: Option<_> = options.iter().map(Self::of).collect();
        only(members, &["anyOf"]).then_some(Self::Either(options?))
    }

    /// Handles `type` as a list: the rest of the schema must be plain with each.
    fn of_types(kinds: &[Value], members: &Map<String, Value>) -> Option<Self> {
        let unique = |index: usize, kind: &Value| !kinds[..index].contains(kind);
        if kinds.is_empty()
            || kinds.len() > TYPES
            || !kinds.iter().enumerate().all(|(i, kind)| unique(i, kind))
        {
            return None;
        }
        let options: Option<_> = kinds
            .iter()
            .map(|kind| match kind.as_str()? {
                // `null` has no rules of its own, and those of other types don't apply to it.
                "null" => Some(Self::Null),
                kind => Self::of_type(kind, members),
            })
            .collect();
        options.map(Self::Either)
    }

    fn of_type(kind: &str, members: &Map<String, Value>) -> Option<Self> {
        match kind {
            "string" => Self::text(members),
            "integer" => Self::integer(members),
            "number" => only(members, &["type", "format"]).then_some(Self::Number),
            "boolean" => only(members, &["type"]).then_some(Self::Boolean),
            "null" => only(members, &["type"]).then_some(Self::Null),
            "array" => {
                let items = members
                    .get("items")
                    .map_or(Some(Self::Anything), Self::of)?;
                only(members, &["type", "items"]).then(|| Self::Array(Box::new(items)))
            }
            "object" => Self::object(members),
            _ => None,
        }
    }

    fn text(members: &Map<String, Value>) -> Option<Self> {
        if !only(members, &["type", "format", "enum"]) {
            return None;
        }
        let Some(choices) = members.get("enum") else {
            return Some(Self::Text(None));
        };
        let choices = choices.as_array()?.iter().map(|choice| {
            let quoted = serde_json::to_string(choice.as_str()?).ok()?;
            (!quoted.contains('\\')).then_some(quoted)
        });
        Some(Self::Text(Some(choices.collect::<Option<_>>()?)))
    }

    fn integer(members: &Map<String, Value>) -> Option<Self> {
        if !only(members, &["type", "format", "minimum", "maximum"]) {
            return None;
        }
        let bound = |name: &str, otherwise: i64| match members.get(name) {
            None => Some(otherwise),
            Some(bound) => bound.as_i64().filter(|bound| bound.abs() < EXACT),
        };
        Some(Self::Integer(
            bound("minimum", -EXACT)?,
            bound("maximum", EXACT)?,
        ))
    }

    fn object(members: &Map<String, Value>) -> Option<Self> {
        if !only(
            members,
            &["type", "properties", "required", "additionalProperties"],
        ) {
            return None;
        }
        let properties = match members.get("properties") {
            None => Vec::new(),
            Some(properties) => properties
                .as_object()?
                .iter()
                .map(|(name, schema)| Some((name.clone(), Self::of(schema)?)))
                .collect::<Option<_>>()?,
        };
        let required = match members.get("required") {
            None => Vec::new(),
            Some(required) => required
                .as_array()?
                .iter()
                .map(|name| Some(name.as_str()?.to_owned()))
                .collect::<Option<Vec<_>>>()?,
        };
        let mut known = HashSet::with_capacity(required.len());
        if !required.iter().all(|name| known.insert(name)) {
            return None;
        }
        let closed = match members.get("additionalProperties") {
            None | Some(Value::Bool(true)) => false,
            Some(Value::Bool(false)) => true,
            Some(_) => return None,
        };
        Some(Self::Object {
            properties,
            required,
            closed,
        })
    }

    /// Whether the value certainly matches; `false` if the budget doesn't suffice.
    pub(super) fn fits(&self, value: RawRef<'_>, budget: &mut StepBudget<'_>) -> bool {
        if budget.charge(1).is_none() {
            return false;
        }
        match (self, value.kind()) {
            (Self::Anything, _) | (Self::Number, JsonKind::Number) => is_plain(value),
            (Self::Either(options), _) => options.iter().any(|option| option.fits(value, budget)),
            (Self::Text(None), JsonKind::String)
            | (Self::Boolean, JsonKind::Bool)
            | (Self::Null, JsonKind::Null) => true,
            (Self::Text(Some(choices)), JsonKind::String) => {
                let compared = choices.len() + value.as_bytes().len() / BYTES_PER_STEP;
                budget.charge(compared).is_some()
                    && choices
                        .iter()
                        .any(|choice| choice.as_bytes() == value.as_bytes())
            }
            (Self::Integer(least, most), JsonKind::Number) => {
                number::<i64>(value).is_some_and(|number| (*least..=*most).contains(&number))
            }
            (Self::Array(items), JsonKind::Array) => {
                budget
                    .charge(value.as_bytes().len() / BYTES_PER_STEP)
                    .is_some()
                    && value.elements().is_some_and(|mut elements| {
                        elements.all(|element| items.fits(element, budget))
                    })
            }
            (
                Self::Object {
                    properties,
                    required,
                    closed,
                },
                JsonKind::Object,
            ) => fits_object(value, properties, required, *closed, budget),
            _ => false,
        }
    }
}

fn fits_object(
    value: RawRef<'_>,
    properties: &[(String, PlainSchema)],
    required: &[String],
    closed: bool,
    budget: &mut StepBudget<'_>,
) -> bool {
    let read = value.as_bytes().len() / BYTES_PER_STEP;
    if budget.charge(read).is_none() {
        return false;
    }
    let Some(members) = value.named_members() else {
        return false;
    };
    let mut missing = required.len();
    let compared = (properties.len() + required.len()) / NAMES_PER_STEP;
    for (name, member) in members {
        if budget.charge(compared).is_none() {
            return false;
        }
        match properties.iter().find(|(known, _)| name == **known) {
            Some((_, schema)) if schema.fits(member, budget) => {}
            None if !closed && is_plain(member) => {}
            _ => return false,
        }
        // Names are unique: the scanner rejects duplicates.
        if required.iter().any(|required| name == **required) {
            missing -= 1;
        }
    }
    missing == 0
}

/// Whether every reader understands the value in the same way: it contains no number out of range.
fn is_plain(value: RawRef<'_>) -> bool {
    match value.kind() {
        JsonKind::String | JsonKind::Bool | JsonKind::Null => true,
        JsonKind::Number => number::<f64>(value).is_some_and(f64::is_finite),
        JsonKind::Array | JsonKind::Object => false,
    }
}

/// Parses a JSON number of this type; `None` if it does not fit.
fn number<T: FromStr>(value: RawRef<'_>) -> Option<T> {
    std::str::from_utf8(value.as_bytes()).ok()?.parse().ok()
}

/// Whether a schema has only these keywords and annotations.
fn only(members: &Map<String, Value>, known: &[&str]) -> bool {
    members.iter().all(|(name, value)| match name.as_str() {
        "format" if known.contains(&"format") => value.is_string(),
        name => known.contains(&name) || is_annotation(name, value),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::Raw;

    fn raw(value: &Value) -> Raw {
        Raw::from_serialize(value).expect("serializes")
    }

    fn is_seen_to_fit(quick: &PlainSchema, value: &Raw) -> bool {
        quick.fits(value.borrowed(), &mut StepBudget::new(10_000, None))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "title": "Where",
            "properties": {
                "city": {"type": "string", "description": "A city"},
                "days": {"type": "integer", "minimum": 1, "maximum": 7, "format": "uint8"},
                "unit": {"type": "string", "enum": ["c", "f"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "any": {},
                "maybe": {"type": ["string", "null"], "default": null},
                "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
            },
            "required": ["city"],
            "additionalProperties": false
        })
    }

    #[test]
    fn recognizes_only_plain_matches() {
        let quick = PlainSchema::of(&schema()).expect("plain");
        let full = super::super::CompiledSchema::compile(&schema()).expect("compiles");
        for (value, fits) in [
            (json!({"city": "Oslo"}), true),
            (
                json!({"city": "Oslo", "days": 7, "unit": "c", "tags": ["a", "b"], "any": 1}),
                true,
            ),
            (json!({"city": "Oslo", "maybe": null, "either": true}), true),
            (json!({"city": "Oslo", "maybe": "x", "either": 1}), true),
            (json!({"city": "Oslo", "maybe": 1}), false),
            (json!({"city": "Oslo", "either": "x"}), false),
            (json!({"city": "Oslo", "days": 8}), false),
            (json!({"city": "Oslo", "days": "7"}), false),
            (json!({"city": 1}), false),
            (json!({"city": "Oslo", "unit": "k"}), false),
            (json!({"city": "Oslo", "tags": ["a", 1]}), false),
            (json!({"city": "Oslo", "other": 1}), false),
            (json!({"days": 1}), false),
            (json!([]), false),
        ] {
            assert_eq!(is_seen_to_fit(&quick, &raw(&value)), fits, "{value}");
            assert_eq!(full.validate(&raw(&value)).is_ok(), fits, "{value}");
        }
    }

    #[test]
    fn an_integral_float_is_left_to_the_full_validator() {
        let quick = PlainSchema::of(&json!({"type": "integer"})).expect("plain");
        assert!(!is_seen_to_fit(
            &quick,
            &Raw::parse(&b"1.0"[..]).expect("JSON")
        ));
    }

    #[test]
    fn schemas_that_are_not_plain_have_no_shortcut() {
        for schema in [
            json!({"type": "string", "minLength": 1}),
            json!({"anyOf": [{"type": "string", "minLength": 1}]}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "integer", "minimum": 0.5}),
            json!(false),
        ] {
            assert!(PlainSchema::of(&schema).is_none(), "{schema}");
        }
    }

    #[test]
    fn schemas_that_are_invalid_have_no_shortcut() {
        for schema in [
            json!({"type": "string", "title": 1}),
            json!({"type": "string", "deprecated": "yes"}),
            json!({"type": "string", "format": 1}),
            json!({"type": "string", "examples": "x"}),
            json!({"type": "string", "enum": "x"}),
            json!({"type": "integer", "minimum": "1"}),
            json!({"type": "object", "required": ["a", "a"]}),
            json!({"type": "object", "required": [1]}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a": 1}}),
            json!({"type": "array", "items": 1}),
            json!({"type": ["string", "string"]}),
            json!({"type": []}),
            json!({"type": "text"}),
            json!({"anyOf": []}),
        ] {
            assert!(PlainSchema::of(&schema).is_none(), "{schema}");
            assert!(
                super::super::CompiledSchema::compile(&schema).is_err(),
                "{schema}"
            );
        }
    }
}
