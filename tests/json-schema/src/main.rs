//! Validates values: reads one `{"schema": …, "value": …}` per line and prints one answer per line, for test suites and
//! comparisons in other languages.
//!
//! The answers are `{"valid": true}`, `{"valid": false, "why": …}`, and `{"refused": …}` if the schema cannot be used.

use std::io::{self, BufRead, Write};

use mcpline_schema::{
    MeasuredSchema, SchemaError, StepBudget, Validator, Violation, compilation_steps,
    validation_steps,
};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut answers = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let answer = match compiled(&case["schema"]) {
            Err(error) => json!({"refused": error.to_string()}),
            Ok(validator) => {
                let value = &case["value"];
                let steps = validation_steps(value.to_string().len());
                match validator.validate_within(value, &mut StepBudget::new(steps, None)) {
                    Ok(()) => json!({"valid": true}),
                    Err(failure) => {
                        let why = Violation::from(failure).to_string();
                        json!({"valid": false, "why": why})
                    }
                }
            }
        };
        writeln!(answers, "{answer}")?;
    }
    answers.flush()
}

fn compiled(schema: &Value) -> Result<Validator, SchemaError> {
    let mut budget = StepBudget::new(compilation_steps(schema), None);
    Validator::compile_within(schema, MeasuredSchema::of(schema)?, &mut budget)
}
