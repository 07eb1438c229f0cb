//! A JSON Schema validator for schemas and values from untrusted sources.
//!
//! ```
//! use mcpline_schema::Validator;
//! use serde_json::json;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": { "days": { "type": "integer", "minimum": 1 } },
//!     "required": ["days"]
//! });
//! let validator = Validator::compile(&schema)?;
//! assert!(validator.validate(&json!({ "days": 3 })).is_ok());
//!
//! let violation = validator.validate(&json!({ "days": 0 })).unwrap_err();
//! assert_eq!(violation.path, "/days");
//! assert_eq!(violation.rule, "minimum");
//! assert_eq!(violation.message, "must be at least 1");
//! # Ok::<(), mcpline_schema::SchemaError>(())
//! ```
//!
//! - **Dialects:** 2020-12, 2019-09 and drafts 7, 6 and 4, chosen by `$schema`; 2020-12 without one.
//! - **Nothing is fetched.** A `$ref` to another document is an error when the schema is compiled.
//! - **Work is bounded.** Compiling and validating count their steps and stop at a limit; see [`limits`]. The standard limits
//!   depend on the sizes of schema and value; [`StepBudget`] sets others, and stops a computation from another thread.
//! - **`pattern` is ECMA-262** with the flag `u`, without back references, and matched in linear time.
//! - **`format` is a rule in drafts 4, 6 and 7** for the formats that the README lists, and an annotation since.
//!   `contentEncoding`, `contentMediaType` and `contentSchema` are annotations in all dialects.
//!
//! # Modules
//!
//! `metaschema` checks a schema against the rules of its dialect, `resources` finds its URIs and anchors, `compile`
//! creates a `program` of nodes with rules, and `evaluate` applies it to a value. `pattern` parses and matches regular
//! expressions. `messages` writes the messages.

mod broken_rule;
mod budget;
mod compile;
mod dialect;
mod equality;
mod evaluate;
mod evaluated;
mod format;
pub mod limits;
mod messages;
mod metaschema;
mod number;
mod pattern;
mod program;
mod resources;
pub mod subschemas;
mod types;
mod value_cost;
mod value_path;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use serde_json::Value;

pub use budget::StepBudget;

use dialect::Dialect;
use evaluate::{EvaluationError, evaluate};
use limits::{MAX_COMPILATION_STEPS, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, MAX_VALIDATION_STEPS};
use program::Program;
use value_cost::charge_value;

/// Proof that a schema has a supported dialect and is within the size limits. The schema is not compiled yet.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredSchema {
    dialect: Dialect,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Validator {
    program: Program,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Neither an object nor a boolean.
    #[error("a schema must be an object or a boolean")]
    NotASchema,
    /// `$schema` names an unsupported dialect.
    #[error("the schema dialect {0:?} is not supported")]
    Dialect(String),
    /// Nested more than [`MAX_SCHEMA_DEPTH`] levels deep.
    #[error("the schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")]
    Depth,
    /// More than [`MAX_SUBSCHEMAS`] subschemas.
    #[error("the schema has more than {MAX_SUBSCHEMAS} subschemas")]
    Size,
    /// Compiling takes more steps than [`MAX_COMPILATION_STEPS`] and the schema's size allow.
    #[error("the compilation limit was reached before the whole schema was read")]
    Limit,
    /// A reference leads out of the schema, or to nothing.
    #[error("the reference {0:?} cannot be resolved within the schema, and nothing is fetched")]
    Reference(String),
    /// A keyword has a value that its dialect does not allow.
    #[error("the schema is invalid at {place}: {message}", place = pointer_or_root(path))]
    Invalid {
        /// A JSON pointer into the schema.
        path: String,
        /// What is wrong there.
        message: String,
    },
}

/// The first rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {place}: {message} ({rule})", place = pointer_or_root(path))]
pub struct Violation {
    /// A JSON pointer into the value; empty for the whole value.
    pub path: String,
    /// The keyword of the schema.
    pub rule: String,
    /// What the rule requires, without the value itself.
    pub message: String,
}

fn pointer_or_root(pointer: &str) -> &str {
    if pointer.is_empty() {
        "the root"
    } else {
        pointer
    }
}

impl Violation {
    /// A violation without a known rule or path.
    pub fn unexplained(message: &str) -> Self {
        Self {
            path: String::new(),
            rule: "schema".to_owned(),
            message: message.to_owned(),
        }
    }
}

impl MeasuredSchema {
    /// Checks dialect, depth and number of subschemas. It does not check the rules of the dialect.
    ///
    /// # Errors
    /// When it is not a schema, has an unknown dialect, or exceeds a size limit.
    pub fn of(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotASchema);
        }
        let dialect = Dialect::of(schema, Dialect::Draft202012)?;
        subschemas::check_size(schema)?;
        Ok(Self { dialect })
    }

    /// Whether the schema is of 2020-12.
    pub fn is_2020_12(self) -> bool {
        self.dialect == Dialect::Draft202012
    }
}

impl Validator {
    /// Compiles a schema within the standard limits.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, refers to anything outside itself, or exceeds the [`limits`].
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut budget = StepBudget::new(compilation_steps(schema), None);
        Self::compile_within(schema, MeasuredSchema::of(schema)?, &mut budget)
    }

    /// Compiles a schema within a budget, such as one of [`compilation_steps`]; `measured` is the result of
    /// [`MeasuredSchema::of`] for this schema.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, or refers to anything outside itself. [`SchemaError::Limit`] when
    /// the budget is exhausted.
    pub fn compile_within(
        schema: &Value,
        measured: MeasuredSchema,
        budget: &mut StepBudget<'_>,
    ) -> Result<Self, SchemaError> {
        let program = compile::compile(schema, measured.dialect, budget)?;
        Ok(Self { program })
    }

    /// Validates a value within the standard limits.
    ///
    /// # Errors
    /// The first rule that the value breaks. Also when the limit is reached before the result is known.
    pub fn validate(&self, value: &Value) -> Result<(), Violation> {
        let mut budget = StepBudget::new(validation_steps(min_json_bytes(value)), None);
        Ok(self.validate_within(value, &mut budget)?)
    }

    /// Validates a value within a budget, such as one of [`validation_steps`].
    ///
    /// # Errors
    /// The first rule that the value breaks, or that the budget is exhausted.
    pub fn validate_within(
        &self,
        value: &Value,
        budget: &mut StepBudget<'_>,
    ) -> Result<(), ValidationFailure> {
        // Most values match, so reasons are determined in a second pass.
        match evaluate(&self.program, value, budget, false) {
            Ok(()) => return Ok(()),
            Err(EvaluationError::BrokenRule(_)) => {}
            Err(EvaluationError::BudgetExhausted) => return Err(ValidationFailure::Limit),
        }
        let Err(EvaluationError::BrokenRule(Some(broken))) =
            evaluate(&self.program, value, budget, true)
        else {
            return Err(ValidationFailure::Unexplained);
        };
        Err(ValidationFailure::Broken(Violation {
            path: broken.path,
            rule: broken.rule.to_owned(),
            message: broken.message,
        }))
    }
}

/// Why a value is not known to match its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValidationFailure {
    /// It breaks this rule.
    Broken(Violation),
    /// It breaks a rule, but the budget was exhausted before that rule was found.
    Unexplained,
    /// The budget was exhausted, or the interrupt flag set, before the result was known.
    Limit,
}

impl From<ValidationFailure> for Violation {
    fn from(failure: ValidationFailure) -> Self {
        match failure {
            ValidationFailure::Broken(violation) => violation,
            ValidationFailure::Unexplained => Self::unexplained(
                "does not match the schema; the validation limit was reached before the broken rule was found",
            ),
            ValidationFailure::Limit => Self::unexplained(
                "the validation limit was reached before the value was checked against the whole schema",
            ),
        }
    }
}

/// The number of steps that compiling a schema may take.
pub fn compilation_steps(schema: &Value) -> usize {
    let mut reading = StepBudget::new(usize::MAX, None);
    // Reading a schema never takes that many steps.
    let _ = charge_value(schema, &mut reading);
    let of_size = reading.spent().saturating_mul(COMPILATION_STEPS_PER_READ);
    MAX_COMPILATION_STEPS.saturating_add(of_size)
}

/// The number of steps that the validation of a value may take; `size` is its length as text, in bytes.
pub fn validation_steps(size: usize) -> usize {
    MAX_VALIDATION_STEPS.saturating_add(size.saturating_mul(VALIDATION_STEPS_PER_BYTE))
}

/// A lower bound for the length of the value as JSON text, in bytes, however its numbers are written.
fn min_json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => "null".len(),
        Value::Number(_) => 1,
        Value::String(text) => "\"\"".len() + text.len(),
        // One bracket, and a comma or the other bracket after each item.
        Value::Array(items) => 1 + items.iter().map(|it| 1 + min_json_bytes(it)).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                "\"\":,".len() + name.len() + min_json_bytes(value)
            };
            1 + members.iter().map(member).sum::<usize>()
        }
    }
}

/// The additional steps for large values: a value has at most one node per two bytes, and this allows some thirty
/// attempts at a subschema for each node, or as many expression states to visit each byte.
const VALIDATION_STEPS_PER_BYTE: usize = 64;

/// The steps that compiling may take for each step of reading the schema once: resolving a reference reads another part
/// of it, and each pattern is read several times.
const COMPILATION_STEPS_PER_READ: usize = 512;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn min_json_bytes_is_a_lower_bound_for_the_text() {
        for text in [
            "null",
            "true",
            "1",
            r#""""#,
            r#""aé""#,
            "[]",
            "[1,[2,null]]",
            "{}",
            r#"{"a":1,"bé":[{"c":false}]}"#,
        ] {
            let value = serde_json::from_str(text).expect("a value");
            assert!(min_json_bytes(&value) <= text.len(), "{text}");
            assert!(min_json_bytes(&value) * 2 >= text.len(), "{text}");
        }
    }

    #[test]
    fn standard_limits_stop_a_schema_that_doubles_its_work_forty_times() {
        let mut definitions = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d40".to_owned(), json!(true));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        let validator = Validator::compile(&schema).expect("a schema");
        let violation = validator.validate(&json!(1)).expect_err("too much");
        assert_eq!(violation, ValidationFailure::Limit.into());
    }
}
