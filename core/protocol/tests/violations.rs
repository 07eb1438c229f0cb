//! Invalid arguments: the path and wording of each violation, which all bindings share.

use mcpline_protocol::Raw;
use mcpline_protocol::schema::CompiledSchema;
use serde_json::{Value, json};

const CASES: &str = include_str!("../../../tests/arguments/violations.json");

#[test]
fn violations_match_the_shared_cases() {
    let document: Value = serde_json::from_str(CASES).expect("the cases are JSON");
    let groups = document["groups"].as_array().expect("groups");
    assert!(!groups.is_empty());
    for group in groups {
        let schema = json!({
            "type": "object", "properties": {"value": group["schema"]}, "required": ["value"],
        });
        let compiled = CompiledSchema::compile(&schema).expect("a schema");
        for case in group["cases"].as_array().expect("cases") {
            let arguments = Raw::from_serialize(&case["arguments"]).expect("JSON");
            let found = compiled.validate(&arguments).err();
            let found = found.map(|violation| violation.to_string());
            assert_eq!(
                json!(found),
                case["violation"],
                "{}: {}",
                group["name"],
                case["arguments"]
            );
        }
    }
}
