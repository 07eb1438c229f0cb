//! JSON Schema: neither a schema nor a value makes validation slow or panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::wire::Raw;

fuzz_target!(|data: &[u8]| {
    // A schema and a value, each on a line.
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default().to_vec();
    let (Ok(schema), Ok(value)) = (serde_json::from_slice(&next()), Raw::parse(next())) else {
        return;
    };
    let Ok(compiled) = CompiledSchema::compile(&schema) else {
        return;
    };
    if let Err(violation) = compiled.validate(&value) {
        // The path leads somewhere in the value.
        let decoded: serde_json::Value = value.decode().unwrap_or_default();
        assert!(decoded.pointer(&violation.path).is_some(), "{violation}");
    }
});
