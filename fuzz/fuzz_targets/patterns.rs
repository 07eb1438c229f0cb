//! Regular expressions of schemas: per character, an expression takes at most as many steps as it has operations, and
//! no more memory than that.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_fuzz::Cost;
use mcpline_protocol::schema::{CompiledSchema, StepBudget};
use mcpline_protocol::wire::Raw;
use serde_json::json;

fuzz_target!(|input: (String, String)| {
    let (pattern, text) = input;
    let schema = json!({"pattern": pattern});
    let mut compiling = StepBudget::new(usize::MAX, None);
    let (compiled, compilation) =
        Cost::of(|| CompiledSchema::compile_within(&schema, &mut compiling));
    let base = Cost {
        steps: 0,
        bytes: 64 * 1024,
    };
    // An operation takes a few bytes, and four steps to compile; a class of all characters takes some kilobytes.
    compilation.is_at_most(
        base,
        Cost {
            steps: 0,
            bytes: 2_048,
        },
        compiling.spent(),
    );
    let Ok(compiled) = compiled else { return };
    let value = Raw::from_serialize(&text).expect("a string");
    let mut matching = StepBudget::new(usize::MAX, None);
    let (_, matched) = Cost::of(|| compiled.validate_within(&value, &mut matching).is_ok());
    let characters = text.chars().count() + 1;
    let most = 1_000 + 2 * compiling.spent() * characters + 4 * value.as_bytes().len();
    assert!(matching.spent() <= most, "{} steps", matching.spent());
    let units = compiling.spent() + value.as_bytes().len();
    matched.is_at_most(
        base,
        Cost {
            steps: 0,
            bytes: 64,
        },
        units,
    );
});
