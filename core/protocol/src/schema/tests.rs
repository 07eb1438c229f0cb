use serde_json::json;

use super::*;
use crate::limits::{MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};

fn compile(schema: Value) -> Result<CompiledSchema, SchemaError> {
    CompiledSchema::compile(&schema)
}

fn check(schema: Value, value: Value) -> Option<String> {
    let compiled = compile(schema).expect("a valid schema");
    let value = Raw::from_serialize(&value).expect("JSON");
    compiled
        .validate(&value)
        .err()
        .map(|violation| violation.to_string())
}

#[test]
fn a_violation_names_path_rule_and_demand() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {}, "days": {"type": "integer", "minimum": 1}, "a/b": {"items": {"enum": ["x", 1]}}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let compiled = compile(schema.clone()).expect("valid");
    let violation = compiled
        .validate(&Raw::from_trusted(r#"{"city":"Oslo","days":"3"}"#))
        .expect_err("a string");
    assert_eq!(
        violation,
        Violation {
            path: "/days".into(),
            rule: "type".into(),
            message: "must be of type integer".into()
        }
    );
    for (value, expected) in [
        (json!({"city": "Oslo", "days": 3, "a/b": ["x", 1]}), None),
        (
            json!({"city": "Oslo", "days": 0}),
            Some("at /days: must be at least 1 (minimum)"),
        ),
        (
            json!({"days": 1}),
            Some("at the root: must have the property \"city\" (required)"),
        ),
        (
            json!([]),
            Some("at the root: must be of type object (type)"),
        ),
        (
            json!({"city": 1, "x": 2}),
            Some("at the root: must not have the property \"x\" (additionalProperties)"),
        ),
        (
            json!({"city": 1, "a/b": ["x", 2]}),
            Some("at /a~1b/1: must be \"x\" or 1 (enum)"),
        ),
    ] {
        assert_eq!(
            check(schema.clone(), value.clone()).as_deref(),
            expected,
            "{value}"
        );
    }
}

#[test]
fn each_rule_has_its_message() {
    for (schema, value, expected) in [
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            json!("x"),
            "must be of type integer or null (anyOf)",
        ),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            "must be of type null or string (type)",
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "string", "minLength": 3}]}),
            json!("x"),
            "must fit one of the alternatives: must be of type integer; or must be at least 3 characters long (oneOf)",
        ),
        (
            json!({"oneOf": [{}, {}]}),
            json!(1),
            "must fit exactly one of the alternatives, but fits several (oneOf)",
        ),
        (
            json!({"const": {"a": 1}}),
            json!(1),
            "must be {\"a\":1} (const)",
        ),
        (
            json!({"maxLength": 1}),
            json!("ab"),
            "must be at most 1 character long (maxLength)",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "must have at most 1 item (maxItems)",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1]),
            "must not have equal items (uniqueItems)",
        ),
        (
            json!({"pattern": "^a$"}),
            json!("b"),
            "must match the pattern ^a$ (pattern)",
        ),
        (
            json!({"multipleOf": 2}),
            json!(3),
            "must be a multiple of 2 (multipleOf)",
        ),
        (
            json!({"not": {}}),
            json!(3),
            "must not fit the excluded schema (not)",
        ),
        (json!(false), json!(3), "must not be present (falseSchema)"),
    ] {
        let expected = format!("at the root: {expected}");
        assert_eq!(check(schema.clone(), value), Some(expected), "{schema}");
    }
}

#[test]
fn messages_do_not_repeat_the_value() {
    let secret = json!({"password": "hunter2"});
    for schema in [
        json!({"type": "string"}),
        json!({"properties": {"password": {"type": "integer"}}}),
        json!({"properties": {"password": {"pattern": "^x"}}}),
        json!({"anyOf": [{"type": "integer"}, {"properties": {"password": {"const": 1}}}]}),
        json!({"not": {}}),
        json!({"enum": [1]}),
    ] {
        let words = check(schema, secret.clone()).expect("a violation");
        assert!(!words.contains("hunter2"), "{words}");
    }
}

#[test]
fn the_default_dialect_is_2020_12_and_older_ones_are_understood() {
    // `prefixItems` exists in 2020-12 only; before, `items` could be a list.
    let prefix = json!({"prefixItems": [{"type": "string"}]});
    let items = json!({"items": [{"type": "string"}]});
    assert!(check(prefix.clone(), json!([1])).is_some());
    for dialect in [
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    ] {
        let declare = |schema: &Value| {
            let mut schema = schema.clone();
            schema["$schema"] = json!(dialect);
            schema
        };
        assert_eq!(check(declare(&prefix), json!([1])), None, "{dialect}");
        assert!(check(declare(&items), json!([1])).is_some(), "{dialect}");
    }
}

#[test]
fn an_unknown_dialect_is_an_error_that_names_it() {
    for dialect in [
        "https://example.com/my-dialect",
        "http://json-schema.org/draft-03/schema#",
        "",
    ] {
        let error = compile(json!({"$schema": dialect})).expect_err("unknown");
        assert_eq!(error, SchemaError::Dialect(dialect.into()));
    }
    assert!(matches!(
        compile(json!({"$schema": 5})),
        Err(SchemaError::Dialect(_))
    ));
}

#[test]
fn a_reference_out_of_the_schema_is_an_error_and_never_fetched() {
    for target in [
        "https://example.com/schema.json",
        "http://localhost:1/x",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/missing",
        "#missing",
    ] {
        let error = compile(json!({"properties": {"a": {"$ref": target}}})).expect_err(target);
        assert!(
            matches!(error, SchemaError::Reference(_)),
            "{target}: {error:?}"
        );
        let name = target.trim_start_matches('#');
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn references_within_the_schema_are_followed() {
    let schema = json!({
        "$defs": {"name": {"type": "string"}, "here": {"$anchor": "here", "type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/name"}, "b": {"$ref": "#here"}, "next": {"$ref": "#"}},
    });
    assert_eq!(
        check(
            schema.clone(),
            json!({"a": "x", "b": 1, "next": {"next": {"a": "y"}}})
        ),
        None
    );
    assert_eq!(
        check(schema, json!({"next": {"next": {"a": 1}}})).as_deref(),
        Some("at /next/next/a: must be of type string (type)")
    );
}

#[test]
fn a_schema_that_is_invalid_in_its_dialect_is_refused() {
    for (schema, place) in [
        (json!({"type": "nonsense"}), "/type"),
        (
            json!({"properties": {"a": {"minLength": -1}}}),
            "/properties/a/minLength",
        ),
        (json!({"required": "a"}), "/required"),
    ] {
        let Err(SchemaError::Invalid { path: found, .. }) = compile(schema.clone()) else {
            panic!("{schema}")
        };
        assert_eq!(found, place);
    }
    assert!(compile(json!({"pattern": "("})).is_err());
    for schema in [json!([]), json!("x"), json!(null)] {
        assert!(matches!(compile(schema), Err(SchemaError::NotASchema)));
    }
}

#[test]
fn size_and_depth_of_a_schema_are_limited() {
    let mut deep = json!({});
    for _ in 1..MAX_SCHEMA_DEPTH {
        deep = json!({ "not": deep });
    }
    assert!(compile(deep.clone()).is_ok());
    assert!(matches!(
        compile(json!({ "not": deep })),
        Err(SchemaError::Depth)
    ));
    assert!(matches!(
        compile(json!({"default": nested(MAX_SCHEMA_DEPTH)})),
        Err(SchemaError::Depth)
    ));
    let many = |count| json!({"anyOf": vec![json!(true); count]});
    assert!(compile(many(MAX_SUBSCHEMAS - 1)).is_ok());
    assert!(matches!(
        compile(many(MAX_SUBSCHEMAS)),
        Err(SchemaError::Size)
    ));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn stops_at_schemas_with_exponential_work() {
    // Each level of the value doubles the work: 2^40 steps without a bound.
    let half = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    let schema = json!({"anyOf": [half, half, {"const": 1}]});
    let mut value = json!(2);
    for _ in 0..40 {
        value = json!({ "a": value });
    }
    let words = check(schema, value).expect("not valid");
    assert!(words.contains("validation limit"), "{words}");
}

#[test]
fn references_that_double_at_one_place_are_cut_off() {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".into(), json!({"type": "integer"}));
    for level in 1..60 {
        let target = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        defs.insert(
            format!("d{level}"),
            json!({"anyOf": [{"allOf": [target]}, {"allOf": [target]}]}),
        );
    }
    let words =
        check(json!({"$defs": defs, "$ref": "#/$defs/d59"}), json!("x")).expect("not valid");
    assert!(words.contains("validation limit"), "{words}");
}

#[test]
fn large_values_have_a_budget_to_match() {
    let schema = json!({
        "items": {"$ref": "#/$defs/item"},
        "$defs": {"item": {"oneOf": [{"properties": {"k": {"const": "a"}}}, {"properties": {"k": {"const": "b"}}}]}},
    });
    let value: Vec<_> = (0..100_000)
        .map(|number| json!({"k": if number % 2 == 0 { "a" } else { "b" }}))
        .collect();
    assert_eq!(check(schema, json!(value)), None);
}

#[test]
fn matches_backtracking_patterns_in_linear_time() {
    let words = check(
        json!({"pattern": "^(?=(a+)+$)(a|aa)+$(?!x)"}),
        json!("a".repeat(60) + "!"),
    );
    assert!(words.expect("not valid").ends_with("(pattern)"));
}

#[test]
fn rejects_numbers_that_parsers_read_differently() {
    let compiled = compile(json!({})).expect("valid");
    let violation = compiled
        .validate(&Raw::parse("1e999").expect("JSON"))
        .expect_err("out of range");
    assert_eq!(violation.rule, "number");
}

#[test]
fn a_recursive_schema_is_explained_while_that_is_cheap() {
    let schema = json!({"anyOf": [
        {"type": "integer"},
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
    ]});
    let words = check(schema, json!({"next": {"next": {"last": 1}}})).expect("not valid");
    assert!(
        words.ends_with("(anyOf)") && words.contains("must be of type integer"),
        "{words}"
    );
}

#[test]
fn small_values_are_validated_inline_and_others_are_not() {
    let plain =
        compile(json!({"type": "object", "properties": {"a": {"type": "string"}}})).expect("valid");
    let full = compile(json!({"properties": {"a": {"type": "string", "maxLength": 1_000_000}}}))
        .expect("valid");
    let small = Raw::from_serialize(&json!({"a": "x"})).expect("JSON");
    let large = Raw::from_serialize(&json!({"a": "x".repeat(600_000)})).expect("JSON");
    assert_eq!(plain.validate_inline(&small), Some(Ok(())));
    assert_eq!(full.validate_inline(&small), Some(Ok(())));
    assert_eq!(plain.validate_inline(&large), None);
    assert_eq!(full.validate_inline(&large), None);
    assert_eq!(full.validate(&large), Ok(()));
    let wrong = Raw::from_serialize(&json!({"a": 1})).expect("JSON");
    assert!(matches!(plain.validate_inline(&wrong), Some(Err(_))));
}

#[test]
fn a_large_schema_is_not_built_inline() {
    let properties: serde_json::Map<_, _> = (0..5_000)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let schema = compile(json!({"type": "object", "properties": properties})).expect("valid");
    let wrong = Raw::from_serialize(&json!({"p1": 1})).expect("JSON");
    assert_eq!(schema.validate_inline(&wrong), None);
    assert!(schema.validate(&wrong).is_err());
    assert!(matches!(schema.validate_inline(&wrong), Some(Err(_))));
}

#[test]
fn plain_alternatives_within_alternatives_are_left_to_the_full_validator() {
    // Each level of arrays would be read once per alternative.
    let mut schema = json!({"type": "integer"});
    for _ in 0..11 {
        schema = json!({"anyOf": [{"type": "array", "items": schema}, {"type": "array", "items": schema}]});
    }
    let schema = compile(schema).expect("valid");
    let value = Raw::from_serialize(&nested(12)).expect("JSON");
    let mut budget = StepBudget::new(usize::MAX, None);
    assert!(!schema.fits_plainly(&value, &mut budget));
    assert!(budget.spent() <= MAX_INLINE_STEPS + 8 * value.as_bytes().len());
}

#[test]
fn an_interrupted_validation_can_be_repeated() {
    let schema = compile(json!({"type": "integer"})).expect("valid");
    let wrong = Raw::from_trusted("\"x\"");
    let interrupt = AtomicBool::new(true);
    let violation = schema.validate_until(&wrong, Some(&interrupt));
    assert_eq!(violation.expect_err("interrupted").rule, "schema");
    assert_eq!(schema.validate(&wrong).expect_err("a string").rule, "type");
}
