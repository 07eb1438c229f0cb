//! Which values match which schemas, and the messages for those that don't. `tests/json-schema/run` runs the official
//! test suite; here are cases that it leaves open, and enough others to work on the validator without it.

use mcpline_schema::{
    MeasuredSchema, SchemaError, StepBudget, Validator, Violation, compilation_steps,
    validation_steps,
};
use serde_json::{Value, json};

fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    let mut budget = StepBudget::new(compilation_steps(schema), None);
    Validator::compile_within(schema, MeasuredSchema::of(schema)?, &mut budget)
}

/// The message for a value; `None` if it matches.
fn said(schema: &Value, value: &Value) -> Option<String> {
    let validator = compile(schema).unwrap_or_else(|error| panic!("{error}"));
    let mut budget = StepBudget::new(validation_steps(value.to_string().len()), None);
    let result = validator.validate_within(value, &mut budget);
    result
        .err()
        .map(|failure| Violation::from(failure).to_string())
}

fn with_dialect(mut schema: Value, dialect: &str) -> Value {
    schema["$schema"] = json!(format!("http://json-schema.org/{dialect}"));
    schema
}

#[test]
fn unevaluated_members_can_be_rejected() {
    let schema = json!({
        "properties": {"kind": {"type": "string"}},
        "anyOf": [
            {"properties": {"size": {"type": "integer"}}, "required": ["size"]},
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        ],
        "unevaluatedProperties": false,
    });
    assert_eq!(said(&schema, &json!({"kind": "x", "size": 1})), None);
    assert_eq!(said(&schema, &json!({"size": 1, "name": "x"})), None);
    assert_eq!(
        said(&schema, &json!({"size": 1, "name": 5})).as_deref(),
        Some("at the root: must not have the property \"name\" (unevaluatedProperties)")
    );
    let schema = json!({
        "prefixItems": [true],
        "contains": {"type": "integer"},
        "unevaluatedItems": {"type": "string"},
    });
    assert_eq!(said(&schema, &json!([null, 1, "x"])), None);
    assert_eq!(
        said(&schema, &json!([null, 1, null])).as_deref(),
        Some("at /2: must be of type string (type)")
    );
}

#[test]
fn references_are_resolved_against_the_uris_of_the_schemas_within() {
    let schema = json!({
        "$id": "https://example.com/root.json",
        "$ref": "item",
        "$defs": {
            "item": {
                "$id": "item",
                "type": "array",
                "items": {"$ref": "#name"},
                "$defs": {"name": {"$anchor": "name", "$ref": "root.json#/$defs/text"}},
            },
            "text": {"type": "string"},
        },
    });
    assert_eq!(said(&schema, &json!(["x"])), None);
    assert_eq!(
        said(&schema, &json!([1])).as_deref(),
        Some("at /0: must be of type string (type)")
    );
}

#[test]
fn pointers_lead_through_escaped_names_lists_and_unknown_keywords() {
    let schema = json!({
        "x-parts": {"a/b ~c": [true, {"type": "integer"}]},
        "$ref": "#/x-parts/a~1b%20~0c/1",
    });
    assert_eq!(said(&schema, &json!(1)), None);
    assert!(said(&schema, &json!("x")).is_some());
    for nowhere in [
        "#/x-parts/a",
        "#/x-parts/a~1b%20~0c/01",
        "#/x-parts/a~1b%20~0c/2",
    ] {
        let error = compile(&json!({"x-parts": {"a/b ~c": [1]}, "$ref": nowhere}));
        assert!(matches!(error, Err(SchemaError::Reference(_))), "{nowhere}");
    }
    let no_schema = json!({"x-parts": {"type": 5}, "$ref": "#/x-parts"});
    assert!(matches!(
        compile(&no_schema),
        Err(SchemaError::Invalid { .. })
    ));
}

#[test]
fn resolves_references_in_unreferenced_schemas() {
    let schema = json!({"$defs": {"unused": {"$ref": "https://example.com/elsewhere"}}});
    assert!(matches!(compile(&schema), Err(SchemaError::Reference(_))));
}

#[test]
fn dynamic_references_resolve_in_the_outermost_scope() {
    let schema = json!({
        "$id": "https://example.com/strict-tree",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "properties": {"data": true, "children": {"items": {"$dynamicRef": "#node"}}},
        }},
    });
    assert_eq!(said(&schema, &json!({"children": [{"data": 1}]})), None);
    assert_eq!(
        said(&schema, &json!({"children": [{"daat": 1}]})).as_deref(),
        Some("at /children/0: must not have the property \"daat\" (unevaluatedProperties)")
    );
}

#[test]
fn references_to_metaschemas_validate_schemas() {
    let schema =
        json!({"properties": {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}});
    assert_eq!(
        said(
            &schema,
            &json!({"schema": {"type": "string", "minLength": 1}})
        ),
        None
    );
    assert_eq!(said(&schema, &json!({"schema": true})), None);
    assert_eq!(
        said(
            &schema,
            &json!({"schema": {"properties": {"a": {"minLength": -1}}}})
        )
        .as_deref(),
        Some("at /schema/properties/a/minLength: must be a whole number, at least 0 ($ref)")
    );
}

#[test]
fn each_dialect_has_its_own_meaning_of_keywords() {
    for (dialect, schema, fitting, unfitting) in [
        (
            "draft-04/schema#",
            json!({"maximum": 3, "exclusiveMaximum": true}),
            json!(2),
            json!(3),
        ),
        (
            "draft-04/schema#",
            json!({"type": "integer"}),
            json!(1),
            json!(1.0),
        ),
        (
            "draft-06/schema#",
            json!({"exclusiveMaximum": 3}),
            json!(2),
            json!(3),
        ),
        (
            "draft-07/schema#",
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            json!({"a": 1, "b": 1, "c": 1, "d": 1}),
            json!({"c": 1}),
        ),
        (
            "draft-07/schema#",
            json!({"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"type": "integer"}}}),
            json!(1),
            json!("x"),
        ),
        (
            "draft-07/schema#",
            json!({"format": "date"}),
            json!("2024-02-29"),
            json!("2023-02-29"),
        ),
        (
            "draft-07/schema#",
            json!({"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}),
            json!([1, "x"]),
            json!([1, 2]),
        ),
        (
            "draft/2019-09/schema",
            json!({"dependentRequired": {"a": ["b"]}, "$recursiveAnchor": true, "properties": {"a": {"$recursiveRef": "#"}}}),
            json!({"b": 1, "a": {}}),
            json!({"b": 1, "a": {"a": 1}}),
        ),
    ] {
        let schema = with_dialect(schema, dialect);
        assert_eq!(said(&schema, &fitting), None, "{schema} {fitting}");
        assert!(said(&schema, &unfitting).is_some(), "{schema} {unfitting}");
    }
}

#[test]
fn format_is_an_annotation_since_2019_09() {
    let schema = json!({"format": "date"});
    assert_eq!(said(&schema, &json!("no date")), None);
    assert_eq!(
        said(
            &with_dialect(schema, "draft/2019-09/schema"),
            &json!("no date")
        ),
        None
    );
}

#[test]
fn rejects_what_a_dialect_disallows_with_its_path() {
    for (schema, place, message) in [
        (
            json!({"anyOf": []}),
            "/anyOf",
            "must be a list of schemas, one at least",
        ),
        (
            json!({"items": [{}]}),
            "/items",
            "must be a schema: an object or a boolean",
        ),
        (
            json!({"properties": {"a": 5}}),
            "/properties/a",
            "must be a schema: an object or a boolean",
        ),
        (
            json!({"required": ["a", "a"]}),
            "/required",
            "must be a list of different strings",
        ),
        (
            json!({"multipleOf": 0}),
            "/multipleOf",
            "must be a number greater than 0",
        ),
        (
            json!({"type": ["string", "string"]}),
            "/type",
            "must be array, boolean, integer, null, number, object or string, or a list of them",
        ),
        (
            json!({"$anchor": "1st"}),
            "/$anchor",
            "must be a name of letters, digits, -, _ and .",
        ),
        (
            json!({"dependentRequired": {"a/b": "c"}}),
            "/dependentRequired/a~1b",
            "must be a list of different strings",
        ),
        (
            with_dialect(json!({"exclusiveMaximum": true}), "draft-04/schema#"),
            "",
            "must have maximum beside exclusiveMaximum",
        ),
        (
            with_dialect(json!({"not": true}), "draft-04/schema#"),
            "/not",
            "must be a schema: an object",
        ),
    ] {
        let expected = SchemaError::Invalid {
            path: place.to_owned(),
            message: message.to_owned(),
        };
        assert_eq!(compile(&schema).expect_err("not valid"), expected);
    }
    assert!(
        compile(&with_dialect(
            json!({"additionalItems": true}),
            "draft-04/schema#"
        ))
        .is_ok()
    );
}

#[test]
fn circular_references_reach_the_validation_limit() {
    let too_complex = Some(
        "at the root: the validation limit was reached before the value was checked against the whole schema (schema)"
            .to_owned(),
    );
    assert_eq!(said(&json!({"$ref": "#"}), &json!(1)), too_complex);
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}});
    assert_eq!(said(&circle, &json!(1)), too_complex);
}

#[test]
fn evaluates_long_chains_of_references() {
    let chain = |links: usize| {
        let mut links: serde_json::Map<_, _> = (1..links)
            .map(|link| {
                let next = json!({"$ref": format!("#/$defs/{}", link - 1)});
                (link.to_string(), next)
            })
            .collect();
        let first = json!({"$ref": format!("#/$defs/{}", links.len())});
        links.insert("0".to_owned(), json!({"type": "integer"}));
        json!({"$ref": first["$ref"], "$defs": links})
    };
    assert_eq!(said(&chain(100), &json!(1)), None);
    assert!(said(&chain(100), &json!("x")).is_some());
    let words = said(&chain(9_000), &json!(1)).expect("too long");
    assert!(words.contains("validation limit"), "{words}");
}

#[test]
fn values_nested_as_deeply_as_messages_allow_are_validated_by_recursive_schemas() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]}},
    });
    let nested = |inner: Value| (0..127).fold(inner, |value, _| json!([value]));
    assert_eq!(said(&schema, &nested(json!(1))), None);
    assert!(said(&schema, &nested(json!("x"))).is_some());
}

#[test]
fn reasons_of_nested_alternatives_stay_readable() {
    let mut schema = json!({"const": 0});
    for level in 0..12 {
        let long = format!("{level}").repeat(90);
        schema = json!({"anyOf": [{"const": long}, schema, {"const": level}]});
    }
    let words = said(&schema, &json!("x")).expect("not valid");
    assert!(words.ends_with("(anyOf)"), "{words}");
    assert!(words.len() < 1_000, "{}", words.len());
}

#[test]
fn patterns_are_bounded_in_size_together() {
    let schema = |patterns: usize| {
        let pattern = |number: usize| json!({"pattern": format!("^(?:ab|{number}c){{1000}}$")});
        json!({"allOf": (0..patterns).map(pattern).collect::<Vec<_>>()})
    };
    assert!(compile(&schema(1)).is_ok());
    let error = compile(&schema(100)).expect_err("too large");
    assert!(error.to_string().contains("too large together"), "{error}");
}

#[test]
fn pattern_over_the_budget_is_reported() {
    let schema = json!({"pattern": "(?:a?b?){500}c"});
    let words = said(&schema, &json!("a".repeat(10_000))).expect("not valid");
    assert!(words.contains("validation limit"), "{words}");
}

#[test]
fn lookups_in_every_object_are_charged() {
    let lists: serde_json::Map<_, _> = (0..100_000)
        .map(|name| (name.to_string(), json!([])))
        .collect();
    let schema = json!({"items": {"dependentRequired": lists}});
    let objects = vec![json!({}); 10_000];
    let words = said(&schema, &json!(objects)).expect("too much");
    assert!(words.contains("validation limit"), "{words}");
    assert_eq!(said(&schema, &json!([{}, {}])), None);
}
