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

/// Keywords that apply several schemas to one value, or one schema to several.
const COMPOSING: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "if",
    "not",
    "oneOf",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// What was found in a schema.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    subschemas: usize,
    /// Whether it uses composition.
    pub(crate) composed: bool,
}

/// Counts subschemas and looks for composition.
pub(crate) fn measure(schema: &Value) -> Result<Size, SchemaError> {
    // Data in `enum` or `default` is nested, too, and everything recurses into it.
    if is_deep(schema, MAX_SCHEMA_DEPTH) {
        return Err(SchemaError::Depth);
    }
    let mut size = Size::default();
    count(schema, &mut size)?;
    Ok(size)
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

fn count(schema: &Value, size: &mut Size) -> Result<(), SchemaError> {
    size.subschemas += 1;
    if size.subschemas > MAX_SUBSCHEMAS {
        return Err(SchemaError::Size);
    }
    let Value::Object(keywords) = schema else {
        return Ok(());
    };
    size.composed |= keywords
        .keys()
        .any(|keyword| COMPOSING.contains(&keyword.as_str()));
    for (keyword, value) in keywords {
        subschemas(keyword, value).try_for_each(|schema| count(schema, size))?;
    }
    Ok(())
}

/// The schemas in the value of a keyword.
fn subschemas<'a>(keyword: &str, value: &'a Value) -> impl Iterator<Item = &'a Value> {
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

/// Changes every schema within `schema`, itself included, the innermost first.
pub(crate) fn for_each_mut(
    schema: &mut Value,
    change: &mut impl FnMut(&mut serde_json::Map<String, Value>),
) {
    let Value::Object(keywords) = schema else {
        return;
    };
    for (keyword, value) in keywords.iter_mut() {
        let is_schemas = SCHEMAS.contains(&keyword.as_str());
        match value {
            Value::Object(schemas)
                if keyword == "properties" || SCHEMA_MAPS.contains(&keyword.as_str()) =>
            {
                schemas
                    .values_mut()
                    .for_each(|schema| for_each_mut(schema, change));
            }
            Value::Array(schemas) if is_schemas => {
                schemas
                    .iter_mut()
                    .for_each(|schema| for_each_mut(schema, change));
            }
            value if is_schemas => for_each_mut(value, change),
            _ => {}
        }
    }
    change(keywords);
}
