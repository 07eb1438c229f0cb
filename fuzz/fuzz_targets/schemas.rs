//! JSON Schema: no schema and no value makes validation slow, large or panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_fuzz::Cost;
use mcpline_protocol::schema::{CompiledSchema, StepBudget};
use mcpline_protocol::wire::Raw;

/// The largest cost per byte of a schema or a value.
const EACH: Cost = Cost {
    steps: 0,
    bytes: 4_096,
};

fuzz_target!(|data: &[u8]| {
    // A schema and a value, on one line each.
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default().to_vec();
    let source = next();
    let (Ok(schema), Ok(value)) = (serde_json::from_slice(&source), Raw::parse(next())) else {
        return;
    };
    let (compiled, compilation) = Cost::of(|| CompiledSchema::compile(&schema));
    let base = Cost {
        steps: 0,
        bytes: 32 * 1024 * 1024,
    };
    compilation.is_at_most(base, EACH, source.len());
    let Ok(compiled) = compiled else {
        return;
    };
    let mut budget = StepBudget::new(usize::MAX / 2, None);
    // References may lead to the same schema repeatedly, and a pattern has more operations than bytes.
    let source = String::from_utf8_lossy(&source);
    let is_product = !["ef\"", "attern", "regex", "\\u"]
        .iter()
        .any(|it| source.contains(it));
    if is_product {
        let (_, validation) = Cost::of(|| compiled.validate_within(&value, &mut budget).is_ok());
        let product = (source.len() + 1) * (value.as_bytes().len() + 1);
        assert!(
            budget.spent() <= 100_000 + 64 * product,
            "{} steps for {} and {} bytes",
            budget.spent(),
            source.len(),
            value.as_bytes().len()
        );
        validation.is_at_most(base, EACH, product);
    }
    let (outcome, validation) = Cost::of(|| compiled.validate(&value));
    validation.is_at_most(base, EACH, value.as_bytes().len());
    if let Err(violation) = outcome {
        // The path must exist in the value.
        let decoded: serde_json::Value = value.decode().unwrap_or_default();
        let is_cut = violation.path.ends_with('…');
        assert!(
            is_cut || decoded.pointer(&violation.path).is_some(),
            "{violation}"
        );
    }
});
