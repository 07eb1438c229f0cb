//! The cost of expensive schemas and values, in steps. No time is measured.

use std::sync::atomic::{AtomicBool, Ordering};

use mcpline_schema::limits::MAX_REPORTED_POINTER_BYTES;
use mcpline_schema::{
    MeasuredSchema, SchemaError, StepBudget, ValidationFailure, Validator, Violation,
    compilation_steps, validation_steps,
};
use serde_json::{Map, Value, json};

fn compile(schema: &Value) -> Validator {
    let measured = MeasuredSchema::of(schema).expect("within the limits");
    let mut budget = StepBudget::new(compilation_steps(schema), None);
    Validator::compile_within(schema, measured, &mut budget).expect("valid")
}

/// The number of steps of a validation, without a limit.
fn cost(schema: &Value, value: &Value) -> usize {
    let mut budget = StepBudget::new(usize::MAX, None);
    // Values that match and values that don't have similar costs.
    let _ = compile(schema).validate_within(value, &mut budget);
    budget.spent()
}

/// Validates a value within the budget for its size.
fn said(schema: &Value, value: &Value) -> Result<(), ValidationFailure> {
    let steps = validation_steps(value.to_string().len());
    compile(schema).validate_within(value, &mut StepBudget::new(steps, None))
}

/// `levels` levels of alternatives, each of which evaluates the level below it twice.
fn doubled(levels: usize, inner: &Value) -> Value {
    let mut defs = Map::new();
    defs.insert("0".to_owned(), inner.clone());
    for level in 1..=levels {
        let lower = json!({"$ref": format!("#/$defs/{}", level - 1)});
        let twice = json!({"anyOf": [{"allOf": [lower]}, {"allOf": [lower]}]});
        defs.insert(level.to_string(), twice);
    }
    json!({"$defs": defs, "$ref": format!("#/$defs/{levels}")})
}

#[test]
fn rules_on_a_long_string_cost_as_much_as_it_is_long() {
    let (short, long) = (json!("é".repeat(1_000)), json!("é".repeat(1_000_000)));
    for rule in [
        json!({"maxLength": 1_500_000}),
        json!({"minLength": 900_000}),
        json!({"pattern": "x"}),
        json!({"const": long}),
        json!({"enum": [long, 1]}),
    ] {
        assert!(cost(&rule, &long) >= 60_000, "{}", cost(&rule, &long));
        if rule.get("const").or(rule.get("enum")).is_none() {
            assert!(cost(&rule, &short) <= cost(&rule, &long) / 100);
        }
    }
}

#[test]
fn stops_at_repeated_passes_over_a_long_string() {
    // 2^18 passes over a megabyte.
    let schema = doubled(18, &json!({"maxLength": 300_000}));
    let value = json!("x".repeat(1_000_000));
    assert_eq!(said(&schema, &value), Err(ValidationFailure::Limit));
}

#[test]
fn equal_values_cost_as_much_as_they_are_large() {
    for schema in [json!({"uniqueItems": true}), json!({"enum": [[0], [1]]})] {
        for item in [
            json!("x".repeat(100)),
            json!([1, 2, 3]),
            json!({"name": {"x": 1}}),
        ] {
            let few = cost(&schema, &json!(vec![item.clone(); 10]));
            let many = cost(&schema, &json!(vec![item.clone(); 10_000]));
            assert!(many <= 3_000 * few, "{schema} {item}: {few} {many}");
        }
    }
    let (items, texts): (Vec<_>, Vec<_>) = (0..10_000)
        .map(|number| (json!([number, number]), json!(format!("{number:0100}"))))
        .unzip();
    for items in [items, texts] {
        let few = cost(&json!({"uniqueItems": true}), &json!(items[..100]));
        let many = cost(&json!({"uniqueItems": true}), &json!(items));
        assert!(many >= 50 * few && many <= 300 * few, "{few} {many}");
    }
}

#[test]
fn lookups_by_long_names_are_charged_by_length() {
    let name = "n".repeat(100_000);
    let value = json!({name.as_str(): 1});
    for schema in [
        json!({"required": [name]}),
        json!({"properties": {name.as_str(): {}, "other": {}}}),
        json!({"dependentRequired": {name.as_str(): []}}),
        json!({"dependentSchemas": {name.as_str(): {}}}),
        json!({"propertyNames": {"type": "string"}}),
        json!({"patternProperties": {"x": {}}}),
    ] {
        assert!(cost(&schema, &value) >= 6_000, "{schema}");
    }
}

#[test]
fn keeps_only_as_many_failed_alternatives_as_a_message_shows() {
    let name = "n".repeat(1_000_000);
    let value = json!({name.as_str(): 1});
    let alternatives: Vec<_> = (0..1_000)
        .map(|number| json!({"additionalProperties": {"const": number + 2}}))
        .collect();
    let schema = json!({"oneOf": alternatives, "not": {"required": [name]}});
    let mut budget = StepBudget::new(usize::MAX, None);
    let failure = compile(&schema).validate_within(&value, &mut budget);
    let Err(ValidationFailure::Broken(violation)) = failure else {
        panic!("{failure:?}")
    };
    assert!(
        violation.message.len() < 20_000,
        "{}",
        violation.message.len()
    );
    let within = json!({"additionalProperties": {"type": "string"}});
    let Err(ValidationFailure::Broken(violation)) = said(&within, &value) else {
        panic!("broken")
    };
    assert!(
        violation.path.len() <= MAX_REPORTED_POINTER_BYTES + 4 && violation.path.ends_with('…')
    );
}

#[test]
fn reason_is_determined_within_the_remaining_budget() {
    // Only the last alternative is evaluated twice, and reasons have a cost.
    let schema = doubled(12, &json!({"type": "string"}));
    let mut budget = StepBudget::new(usize::MAX, None);
    let outcome = compile(&schema).validate_within(&json!(1), &mut budget);
    assert!(matches!(outcome, Err(ValidationFailure::Broken(_))));
    let enough_to_refuse = StepBudget::new(budget.spent() / 2, None);
    let outcome = compile(&schema).validate_within(&json!(1), &mut { enough_to_refuse });
    assert_eq!(outcome, Err(ValidationFailure::Unexplained));
    let words = Violation::from(ValidationFailure::Unexplained).to_string();
    assert!(
        words.contains("does not match the schema; the validation limit was reached"),
        "{words}"
    );
}

#[test]
fn an_interrupt_ends_a_validation_and_a_compilation() {
    let flag = AtomicBool::new(false);
    let schema = json!({"items": {"pattern": "^(a|b)*c"}});
    let validator = compile(&schema);
    flag.store(true, Ordering::Relaxed);
    let mut budget = StepBudget::new(usize::MAX, Some(&flag));
    let outcome = validator.validate_within(&json!(["ab"]), &mut budget);
    assert_eq!(outcome, Err(ValidationFailure::Limit));
    assert!(budget.is_interrupted());
    let measured = MeasuredSchema::of(&schema).expect("within the limits");
    let compiled = Validator::compile_within(&schema, measured, &mut budget);
    assert_eq!(compiled.expect_err("interrupted"), SchemaError::Limit);
}

#[test]
fn references_to_a_long_uri_are_charged_when_a_schema_is_compiled() {
    let references = vec![json!({"$ref": "#"}); 9_000];
    let schema =
        json!({"$id": format!("https://a.example/{}", "x".repeat(1_000_000)), "anyOf": references});
    let measured = MeasuredSchema::of(&schema).expect("within the limits");
    let mut budget = StepBudget::new(compilation_steps(&schema), None);
    let error = Validator::compile_within(&schema, measured, &mut budget).expect_err("too much");
    assert_eq!(error, SchemaError::Limit);
}

#[test]
fn compiles_large_legitimate_schemas() {
    let properties: Map<_, _> = (0..5_000)
        .map(|number| {
            let schema = json!({"type": "string", "pattern": "^[a-z]{1,63}$", "description": "d".repeat(100)});
            (format!("property{number}"), schema)
        })
        .collect();
    compile(&json!({"type": "object", "properties": properties}));
    let options: Vec<_> = (0..100_000)
        .map(|number| json!(format!("option {number}")))
        .collect();
    compile(&json!({"enum": options}));
}
