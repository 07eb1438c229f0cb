//! Realistic schemas and values (a tool's arguments, a large document, texts with patterns, recursive references), and
//! hostile ones.

use serde_json::{Value, json};

/// A schema with a value that is valid and one that is not.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) valid: Value,
    pub(crate) invalid: Value,
}

pub(crate) fn all() -> Vec<Case> {
    vec![
        arguments(),
        document(),
        patterns(),
        references(),
        doubling(),
        different(),
    ]
}

/// The arguments of a tool.
fn arguments() -> Case {
    let value = |days: i64| {
        json!({
            "city": "Zürich", "days": days, "units": "metric", "tags": ["rain", "wind"],
            "near": {"latitude": 47.37, "longitude": 8.54}, "verbose": false
        })
    };
    Case {
        name: "tool arguments",
        schema: json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "maxLength": 100},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "units": {"enum": ["metric", "imperial"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10, "uniqueItems": true},
                "near": {
                    "type": "object",
                    "properties": {
                        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
                        "longitude": {"type": "number", "minimum": -180, "maximum": 180}
                    },
                    "required": ["latitude", "longitude"]
                },
                "verbose": {"type": "boolean"}
            },
            "required": ["city", "days"],
            "additionalProperties": false
        }),
        valid: value(3),
        invalid: value(15),
    }
}

/// A thousand records, some 250 KB; in the invalid document, the last one has the error.
fn document() -> Case {
    let record = |index: usize| {
        json!({
            "id": index, "name": format!("record {index}"), "price": 12.5, "tags": ["a", "b", "c"],
            "size": {"width": 1, "height": 2, "depth": 3}, "state": "open",
            "history": [{"at": 1, "by": "alice"}, {"at": 2, "by": "bob"}]
        })
    };
    let valid: Value = (0..1_000).map(record).collect();
    let mut invalid = valid.clone();
    invalid[999]["history"][1]["at"] = "yesterday".into();
    Case {
        name: "1,000 records",
        schema: json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "minimum": 0},
                    "name": {"type": "string", "maxLength": 200},
                    "price": {"type": "number", "exclusiveMinimum": 0},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "size": {
                        "type": "object",
                        "properties": {"width": {"type": "number"}, "height": {"type": "number"}, "depth": {"type": "number"}},
                        "required": ["width", "height"],
                        "additionalProperties": false
                    },
                    "state": {"enum": ["open", "closed", "lost"]},
                    "history": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"at": {"type": "integer"}, "by": {"type": "string"}},
                            "required": ["at", "by"]
                        }
                    }
                },
                "required": ["id", "name", "price"],
                "additionalProperties": false
            }
        }),
        valid,
        invalid,
    }
}

/// A hundred records of texts in given formats.
fn patterns() -> Case {
    let valid: Value = (0..100)
        .map(|index| {
            json!({
                "uuid": format!("3f2504e0-4f89-41d3-9a0c-0305e82c{:04x}", 0x1000 + index),
                "date": "2026-11-23",
                "version": format!("1.{index}.0-rc.1"),
                "mail": format!("user.{index}@mail.example.com"),
                "host": "a.very.long.host.name.example.com",
                "color": "#00ffcc",
                "x-note": "anything"
            })
        })
        .collect();
    let mut invalid = valid.clone();
    invalid[99]["color"] = "#00ffcg".into();
    let label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
    Case {
        name: "patterns",
        schema: json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "uuid": {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
                    "date": {"pattern": "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$"},
                    "version": {"pattern": "^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?$"},
                    "mail": {"pattern": "^[\\w.+-]+@[\\w-]+(\\.[\\w-]+)+$"},
                    "host": {"pattern": format!("^({label}\\.)*{label}$")},
                    "color": {"pattern": "^#([0-9a-f]{3}){1,2}$"}
                },
                "patternProperties": {"^x-": {"type": "string"}},
                "additionalProperties": false
            }
        }),
        valid,
        invalid,
    }
}

/// An expression of some 1,000 nodes under a schema that refers to itself.
fn references() -> Case {
    fn tree(depth: usize) -> Value {
        if depth == 0 {
            return json!({"kind": "number", "value": 1});
        }
        json!({"kind": "sum", "left": tree(depth - 1), "right": tree(depth - 1)})
    }
    let valid = tree(9);
    let mut invalid = valid.clone();
    let mut leaf = &mut invalid;
    while leaf.get("right").is_some() {
        leaf = &mut leaf["right"];
    }
    leaf["value"] = "one".into();
    Case {
        name: "references",
        schema: json!({
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {"if": {"properties": {"kind": {"const": "number"}}}, "then": {"$ref": "#/$defs/number"},
                    "else": {"$ref": "#/$defs/operation"}},
                "number": {"type": "object", "properties": {"kind": true, "value": {"$ref": "#/$defs/value"}},
                    "required": ["value"]},
                "operation": {
                    "type": "object",
                    "properties": {
                        "kind": {"enum": ["sum", "product"]},
                        "left": {"$ref": "#/$defs/node"},
                        "right": {"$ref": "#/$defs/node"}
                    },
                    "required": ["left", "right"]
                },
                "value": {"type": "number"}
            }
        }),
        valid,
        invalid,
    }
}

/// Each definition references the next one twice: 2^14 evaluations.
fn doubling() -> Case {
    let mut definitions = serde_json::Map::new();
    for level in 0..14 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(
            format!("d{level}"),
            json!({"allOf": [next, {"allOf": [next]}]}),
        );
    }
    definitions.insert("d14".into(), json!({"type": "integer"}));
    Case {
        name: "doubling references",
        schema: json!({"$ref": "#/$defs/d0", "$defs": definitions}),
        valid: json!(1),
        invalid: json!("1"),
    }
}

/// Two thousand objects that must be unique: all are, or all except for the last two.
fn different() -> Case {
    let valid: Value = (0..2_000)
        .map(|index| json!({"id": index, "name": "x"}))
        .collect();
    let mut invalid = valid.clone();
    invalid[1_999] = invalid[1_998].clone();
    Case {
        name: "2,000 unique items",
        schema: json!({"type": "array", "uniqueItems": true}),
        valid,
        invalid,
    }
}
