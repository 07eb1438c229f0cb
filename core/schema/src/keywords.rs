//! Where schemas stand within a schema.

use serde_json::Value;

use crate::SchemaError;
use crate::limits::{MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};

/// Keywords whose value is a schema, a list of schemas, or either.
pub const SCHEMAS: &[&str] = &[
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

/// Keywords whose value is an object of schemas, `properties` left out.
pub const SCHEMA_MAPS: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
];

/// Counts subschemas, and looks how deeply they are nested.
pub(crate) fn measure(schema: &Value) -> Result<(), SchemaError> {
    // Data in `enum` or `default` is nested, too, and everything recurses into it.
    if is_deep(schema, MAX_SCHEMA_DEPTH) {
        return Err(SchemaError::Depth);
    }
    count(schema, &mut 0)
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

fn count(schema: &Value, subschemas: &mut usize) -> Result<(), SchemaError> {
    *subschemas += 1;
    if *subschemas > MAX_SUBSCHEMAS {
        return Err(SchemaError::Size);
    }
    let Value::Object(keywords) = schema else {
        return Ok(());
    };
    for (keyword, value) in keywords {
        within(keyword, value).try_for_each(|schema| count(schema, subschemas))?;
    }
    Ok(())
}

/// The schemas in the value of a keyword.
fn within<'a>(keyword: &str, value: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is_map = keyword == "properties" || SCHEMA_MAPS.contains(&keyword);
    let is_schemas = SCHEMAS.contains(&keyword);
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
