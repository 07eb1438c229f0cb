//! Judges values: reads `{"schema": …, "value": …}` by the line and answers each with a line, for test suites and
//! comparisons in other languages.
//!
//! The answers are `{"valid": true}`, `{"valid": false, "why": …}`, and `{"refused": …}` where the schema can't be used.

use std::io::{self, BufRead, Write};

use mcpline_schema::{Measured, SchemaError, Validator};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut answers = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let answer = match compiled(&case["schema"]) {
            Err(error) => json!({"refused": error.to_string()}),
            Ok(validator) => {
                let value = &case["value"];
                match validator.validate(value, value.to_string().len()) {
                    Ok(()) => json!({"valid": true}),
                    Err(violation) => json!({"valid": false, "why": violation.to_string()}),
                }
            }
        };
        writeln!(answers, "{answer}")?;
    }
    answers.flush()
}

fn compiled(schema: &Value) -> Result<Validator, SchemaError> {
    Validator::compile(schema, Measured::of(schema)?)
}
