//! Output schemas for revisions in which structured content is an object: any other schema becomes
//! that of an object with the one member `result`.

use serde_json::{Value, json};

use crate::limits::MAX_DEPTH;

/// Where the wrapped schema stands.
const WRAPPED_SCHEMA_POINTER: &str = "/properties/result";

/// Whether a tool with this output schema has its structured content wrapped in `{"result": …}` for
/// peers before 2026-07-28: its root does not say `"type": "object"`.
pub fn wraps_output(output_schema: &Value) -> bool {
    output_schema.get("type").and_then(Value::as_str) != Some("object")
}

/// The schema of `{"result": …}` whose value matches `schema`.
///
/// References within the schema are moved along; `$schema` stays at the root.
pub(super) fn wrap_schema(schema: &Value) -> Value {
    let mut inner = schema.clone();
    // A schema with its own `$id` resolves its references against that, wherever it is placed.
    if inner.get("$id").is_none() {
        move_references(&mut inner, 0);
    }
    let dialect = inner
        .as_object_mut()
        .and_then(|keywords| keywords.shift_remove("$schema"));
    let mut outer =
        json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
    if let (Some(dialect), Some(keywords)) = (dialect, outer.as_object_mut()) {
        keywords.shift_insert(0, "$schema".to_owned(), dialect);
    }
    outer
}

/// Rewrites `#` and `#/…` in references to the new place of the schema.
fn move_references(schema: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut() {
                let keyword = keyword.as_str();
                // `const` and the like hold data, not schemas.
                if matches!(keyword, "const" | "enum" | "default" | "examples")
                    || value.get("$id").is_some_and(Value::is_string)
                {
                    continue;
                }
                match value {
                    Value::String(reference) => {
                        let local = reference == "#" || reference.starts_with("#/");
                        if local && matches!(keyword, "$ref" | "$dynamicRef") {
                            reference.insert_str(1, WRAPPED_SCHEMA_POINTER);
                        }
                    }
                    nested => move_references(nested, depth + 1),
                }
            }
        }
        Value::Array(schemas) => {
            schemas
                .iter_mut()
                .for_each(|schema| move_references(schema, depth + 1));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_another_type_is_wrapped() {
        assert!(!wraps_output(&json!({"type": "object"})));
        for schema in [
            json!({"type": "array"}),
            json!({}),
            json!({"type": ["object", "null"]}),
            json!(true),
        ] {
            assert!(wraps_output(&schema), "{schema}");
        }
        assert_eq!(
            wrap_schema(
                &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array"})
            ),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"result": {"type": "array"}},
                "required": ["result"],
            })
        );
    }

    #[test]
    fn references_keep_their_targets() {
        let schema = json!({
            "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}, {"$ref": "#anchor"}, {"$ref": "other"}],
            "$defs": {"a": {"const": {"$ref": "#/x"}}, "b": {"$id": "urn:b", "items": {"$ref": "#/y"}}},
        });
        let wrapped = wrap_schema(&schema);
        let inner = &wrapped["properties"]["result"];
        assert_eq!(
            inner["anyOf"],
            json!([
                {"$ref": "#/properties/result/$defs/a"},
                {"$ref": "#/properties/result"},
                {"$ref": "#anchor"},
                {"$ref": "other"},
            ])
        );
        assert_eq!(inner["$defs"], schema["$defs"]);
    }
}
