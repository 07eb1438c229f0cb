//! The cost of compiling a schema grows only with its size: in steps, and in allocated bytes. No time is measured.

use allocations::RecordingAllocator;
use mcpline_schema::{MeasuredSchema, StepBudget, Validator};
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator::new();

/// The number of parts of the smaller schema, and how many times more the larger one has.
const PARTS: usize = 300;
const TIMES: usize = 8;

fn properties(parts: usize, of: impl Fn(usize) -> Value) -> Value {
    let all: Map<_, _> = (0..parts)
        .map(|part| (format!("property {part}"), of(part)))
        .collect();
    Value::Object(all)
}

fn list(parts: usize, of: impl Fn(usize) -> Value) -> Value {
    (0..parts).map(of).collect()
}

type Shape = (&'static str, fn(usize) -> Value);

/// Schemas that repeat one part. The size of a part stays the same, however many there are.
const SHAPES: [Shape; 11] = [
    (
        "properties",
        |parts| json!({"properties": properties(parts, |_| json!({"type": "string"}))}),
    ),
    (
        "patternProperties",
        |parts| json!({"patternProperties": properties(parts, |_| json!({"type": "string"}))}),
    ),
    (
        "patterns",
        |parts| json!({"allOf": list(parts, |part| json!({"pattern": format!("^a{{2}}{part}[b-d]*$")}))}),
    ),
    (
        "required",
        |parts| json!({"required": list(parts, |part| json!(format!("property {part}")))}),
    ),
    (
        "dependentRequired",
        |parts| json!({"dependentRequired": properties(parts, |part| json!([format!("other {part}")]))}),
    ),
    (
        "dependentSchemas",
        |parts| json!({"dependentSchemas": properties(parts, |_| json!({"minProperties": 1}))}),
    ),
    (
        "enum",
        |parts| json!({"enum": list(parts, |part| json!({"option": part}))}),
    ),
    (
        "anyOf",
        |parts| json!({"anyOf": list(parts, |part| json!({"const": part}))}),
    ),
    (
        "prefixItems",
        |parts| json!({"prefixItems": list(parts, |_| json!({"minimum": 0.5}))}),
    ),
    ("references", |parts| {
        let defs = properties(parts, |_| json!({"type": "integer"}));
        let references = list(
            parts,
            |part| json!({"$ref": format!("#/$defs/property%20{part}")}),
        );
        json!({"$defs": defs, "allOf": references})
    }),
    ("anchors", |parts| {
        let defs = properties(
            parts,
            |part| json!({"$anchor": format!("a{part}"), "$id": format!("https://a.example/{part}")}),
        );
        let references = list(
            parts,
            |part| json!({"$ref": format!("https://a.example/{part}#a{part}")}),
        );
        json!({"$defs": defs, "allOf": references})
    }),
];

/// The steps and the allocated bytes of a compilation.
fn cost(schema: &Value) -> (usize, usize) {
    let mut budget = StepBudget::new(usize::MAX, None);
    ALLOCATOR.reset();
    let measured = MeasuredSchema::of(schema).expect("within the limits");
    let validator = Validator::compile_within(schema, measured, &mut budget).expect("valid");
    drop(validator);
    (budget.spent(), ALLOCATOR.total())
}

// A single test, because all threads share the allocator.
#[test]
fn a_compilation_costs_as_much_as_its_schema_is_large() {
    for (shape, of) in SHAPES {
        let (small, large) = (of(PARTS), of(TIMES * PARTS));
        let grown = large.to_string().len() as f64 / small.to_string().len() as f64;
        let ((steps, bytes), (more_steps, more_bytes)) = (cost(&small), cost(&large));
        let (steps, bytes) = (
            more_steps as f64 / steps as f64,
            more_bytes as f64 / bytes as f64,
        );
        // Tables double when they are full; quadratic growth would be 64 times.
        let most = 2.0 * grown;
        assert!(
            steps <= most && bytes <= most,
            "{shape}: {grown:.2} times as large, {steps:.2} times the steps, {bytes:.2} times the bytes"
        );
    }
}
