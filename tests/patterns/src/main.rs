//! Reads lines of JSON with a `pattern`, a `text` and whether it is `found`, and validates the text against a schema with
//! the pattern. Prints each line of which a schema says something else, with that, and how many lines there were.

use std::io::{BufRead, BufWriter, Error, Write, stdin, stdout};

use mcpline_schema::{Measured, Validator};
use serde_json::{Value, json};

fn main() -> Result<(), Error> {
    let mut out = BufWriter::new(stdout().lock());
    let (mut agreed, mut differed) = (0, 0);
    for line in stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let verdict = verdict(&case["pattern"], &case["text"]);
        if verdict == case["found"] {
            agreed += 1;
        } else {
            differed += 1;
            writeln!(out, "{case}: {verdict}")?;
        }
    }
    writeln!(out, "{agreed} agreed, {differed} differed")?;
    out.flush()
}

/// Whether a text fits; or in words why that can't be said.
fn verdict(pattern: &Value, text: &Value) -> Value {
    let schema = json!({"type": "string", "pattern": pattern});
    let compiled = Measured::of(&schema).and_then(|measured| Validator::compile(&schema, measured));
    let validator = match compiled {
        Ok(validator) => validator,
        Err(error) => return error.to_string().into(),
    };
    match validator.validate(text, text.to_string().len()) {
        Ok(()) => true.into(),
        Err(violation) if violation.rule == "pattern" => false.into(),
        Err(violation) => violation.to_string().into(),
    }
}
