//! Finds the schemas inside a schema.

use serde_json::Value;

use crate::SchemaError;
use crate::limits::{MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};

/// Keywords whose value is a schema, a list of schemas, or either.
pub const SUBSCHEMA_KEYWORDS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is an object of schemas, without `properties`.
pub const SUBSCHEMA_MAP_KEYWORDS: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
];

/// Checks the number of subschemas and the nesting depth.
pub(crate) fn check_size(schema: &Value) -> Result<(), SchemaError> {
    // Data in `enum` or `default` is nested, too, and all algorithms recurse into it.
    if is_deep(schema, MAX_SCHEMA_DEPTH) {
        return Err(SchemaError::Depth);
    }
    count_subschemas(schema, &mut 0)
}

fn is_deep(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(members) => {
            levels == 0 || members.values().any(|member| is_deep(member, levels - 1))
        }
        Value::Array(elements) => {
            levels == 0 || elements.iter().any(|element| is_deep(element, levels - 1))
        }
        _ => false,
    }
}

fn count_subschemas(schema: &Value, count: &mut usize) -> Result<(), SchemaError> {
    *count += 1;
    if *count > MAX_SUBSCHEMAS {
        return Err(SchemaError::Size);
    }
    let Value::Object(keywords) = schema else {
        return Ok(());
    };
    for (keyword, value) in keywords {
        subschemas(keyword, value).try_for_each(|schema| count_subschemas(schema, count))?;
    }
    Ok(())
}

/// The schemas in the value of a keyword.
fn subschemas<'a>(keyword: &str, value: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is_map = keyword == "properties" || SUBSCHEMA_MAP_KEYWORDS.contains(&keyword);
    let is_schemas = SUBSCHEMA_KEYWORDS.contains(&keyword);
    let map = value
        .as_object()
        .filter(|_| is_map)
        .into_iter()
        .flat_map(|schemas| schemas.values());
    let list = value
        .as_array()
        .filter(|_| is_schemas)
        .into_iter()
        .flatten();
    let one = (is_schemas && !value.is_array()).then_some(value);
    map.chain(list).chain(one)
}
