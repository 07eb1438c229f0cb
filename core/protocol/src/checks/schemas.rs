//! Checks that what an author provides as a JSON Schema is one. A validator ignores keywords that it does not know, so that
//! `{"city": {"type": "string"}}` would accept every value.

use serde_json::{Map, Value};

use crate::similar_names::nearest;

/// Keywords with rules, for which similar names are refused.
const RULES: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "patternProperties",
    "properties",
    "required",
    "type",
];

/// The other keywords of all supported dialects, and some of OpenAPI's.
const OTHERS: &[&str] = &[
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "pattern",
    "prefixItems",
    "propertyNames",
    "readOnly",
    "then",
    "title",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "xml",
];

/// Of the characters of a misspelled keyword, one in so many differs at most.
const MISSPELLED: usize = 4;

/// Checks that an author's schema has keywords of JSON Schema: no member that is like a keyword, no unknown member that is
/// a schema itself, and not only unknown members. Other unknown members are annotations.
///
/// # Errors
/// If it has such a member; the message says what to write.
pub fn author_schema(schema: &Value) -> Result<(), String> {
    schema.as_object().map_or(Ok(()), author_members)
}

/// As [`author_schema`], for a schema that is an object.
pub(super) fn author_members(members: &Map<String, Value>) -> Result<(), String> {
    let is_known = |name: &&String| {
        RULES.contains(&name.as_str()) || OTHERS.contains(&name.as_str()) || name.starts_with("x-")
    };
    let mut known = 0;
    let mut first = None;
    for (name, value) in members {
        if is_known(&name) {
            known += 1;
        } else if is_schema(value) {
            return Err(not_a_keyword(name));
        } else if let Some(meant) = misspelled(name, members) {
            return Err(format!(
                "{name:?} is not a keyword of JSON Schema; did you mean {meant:?}?"
            ));
        } else {
            first = first.or(Some(name));
        }
    }
    match first {
        Some(name) if known == 0 => Err(not_a_keyword(name)),
        _ => Ok(()),
    }
}

fn not_a_keyword(name: &str) -> String {
    format!(
        "{name:?} is not a keyword of JSON Schema; the schema of an object with this member is \
         {{\"type\": \"object\", \"properties\": {{{name:?}: …}}}}"
    )
}

/// Returns the keyword that was probably meant. One that the schema has as well was not.
fn misspelled(name: &str, members: &Map<String, Value>) -> Option<&'static str> {
    let mut missing = RULES
        .iter()
        .copied()
        .filter(|keyword| !members.contains_key(*keyword));
    nearest(name, &mut missing, MISSPELLED)
}

/// Whether a value is certainly a schema: it has a type of JSON Schema, or other schemas.
fn is_schema(value: &Value) -> bool {
    const TYPES: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    let Some(members) = value.as_object() else {
        return false;
    };
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match members.get("type") {
        Some(Value::Array(types)) => !types.is_empty() && types.iter().all(is_type),
        Some(one) => is_type(one),
        None => {
            ["anyOf", "oneOf", "allOf", "enum"]
                .iter()
                .any(|keyword| members.get(*keyword).is_some_and(Value::is_array))
                || members.get("$ref").is_some_and(Value::is_string)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refuses_members_in_place_of_properties() {
        for schema in [
            json!({"city": {"type": "string"}}),
            json!({"city": {"type": ["string", "null"]}}),
            json!({"city": {"enum": ["Oslo"]}}),
            json!({"city": {"$ref": "#/definitions/city"}}),
            json!({"city": "string"}),
            json!({"city": {}}),
            json!({"type": "object", "city": {"type": "string"}}),
            json!({"type": "object", "properties": {}, "city": {"anyOf": [{}]}}),
        ] {
            assert_eq!(
                author_schema(&schema).expect_err("no schema"),
                "\"city\" is not a keyword of JSON Schema; the schema of an object with this member is \
                 {\"type\": \"object\", \"properties\": {\"city\": …}}",
                "{schema}"
            );
        }
    }

    #[test]
    fn suggests_the_keyword_that_a_name_is_like() {
        for (name, value, meant) in [
            ("propertes", json!({"a": {"type": "string"}}), "properties"),
            ("Properties", json!({}), "properties"),
            ("requird", json!(["a"]), "required"),
            (
                "additional_properties",
                json!(false),
                "additionalProperties",
            ),
            ("any_of", json!([]), "anyOf"),
            ("item", json!(true), "items"),
            ("$def", json!({}), "$defs"),
        ] {
            let found = author_schema(&json!({"type": "object", name: value}));
            assert_eq!(
                found.expect_err("misspelled"),
                format!("{name:?} is not a keyword of JSON Schema; did you mean {meant:?}?")
            );
        }
    }

    #[test]
    fn accepts_schemas_and_annotations() {
        for schema in [
            json!(true),
            json!({}),
            json!({"type": "object"}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
            json!({"definitions": {"a": {"type": "object"}}, "properties": {"b": {"type": "string"}}}),
            json!({"type": "object", "x-order": {"type": "string"}}),
            json!({"x-mine": 1}),
            json!({"type": "object", "errorMessage": {"type": "must be an object"}}),
            json!({"type": "object", "tags": ["a"], "markdownDescription": "a", "discriminator": {"propertyName": "a"}}),
            json!({"type": "object", "nullable": true, "example": {"type": "string"}, "default": {"type": "string"}}),
            json!({"if": {"type": "object"}, "then": {"type": "object"}, "not": {"type": "string"}}),
        ] {
            assert_eq!(author_schema(&schema), Ok(()), "{schema}");
        }
    }
}
