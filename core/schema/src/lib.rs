//! JSON Schema for schemas and values that nobody vouches for: compiling, validating, saying what is wrong.
//!
//! Without `$schema` a schema is of 2020-12; 2019-09 and drafts 7, 6 and 4 are understood as well
//! (2026-07-28, "Base protocol", JSON Schema Usage). Nothing is ever fetched: a `$ref` that leads out of
//! the schema is an error when it is compiled. What a hostile schema or value can cost is bounded: see
//! [`limits`].
//!
//! A schema is checked against the rules of its dialect (`check`), the URIs and anchors within it are found
//! (`resources`), and it is compiled to nodes with rules (`compile`, `program`), which a value is held against (`evaluate`).
//! Regular expressions are read and matched by `pattern`. What is said of a broken rule stands in `wording`.
//!
//! `format` is a rule in drafts 4, 6 and 7 for those that `format` knows, and a remark since; what a string contains
//! (`contentEncoding` and its kin) is a remark in all of them.
//!
//! Values are decoded here. `mcpline-protocol` sees of most that they fit without decoding them, and asks this
//! crate about the rest; so it is a crate of its own, compiled for size (`[profile]` in the root manifest).

mod budget;
mod check;
mod compile;
mod dialect;
mod equality;
mod evaluate;
mod format;
pub mod keywords;
pub mod limits;
mod marks;
mod number;
mod pattern;
mod place;
mod program;
mod resources;
mod types;
mod wording;

use serde_json::Value;

pub use budget::Budget;

use dialect::Dialect;
use evaluate::{Stop, charge_value, evaluate};
use limits::{MAX_COMPILATION_STEPS, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, MAX_VALIDATION_STEPS};
use program::Program;

/// A schema that has been looked at, but not compiled: its dialect is known, and its size within the limits.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    dialect: Dialect,
}

/// A schema ready to validate against.
#[derive(Debug)]
pub struct Validator {
    program: Program,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Neither an object nor a boolean.
    #[error("a schema must be an object or a boolean")]
    NotASchema,
    /// `$schema` names a dialect that is not understood.
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
    /// A reference leads out of the schema, or nowhere.
    #[error("the reference {0:?} cannot be resolved within the schema, and nothing is fetched")]
    Reference(String),
    /// A keyword has a value that its dialect does not allow.
    #[error("the schema is invalid at {place}: {message}", place = place_or_root(place))]
    Invalid {
        /// A JSON pointer into the schema.
        place: String,
        /// What is wrong there.
        message: String,
    },
}

/// The first rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {place}: {message} ({rule})", place = place_or_root(path))]
pub struct Violation {
    /// A JSON pointer into the value; empty for the whole.
    pub path: String,
    /// The keyword of the schema.
    pub rule: String,
    /// What the rule demands, without the value itself.
    pub message: String,
}

fn place_or_root(pointer: &str) -> &str {
    if pointer.is_empty() {
        "the root"
    } else {
        pointer
    }
}

impl Violation {
    /// A violation of no rule in particular: nothing can be said of the value.
    pub fn unexplained(message: &str) -> Self {
        Self {
            path: String::new(),
            rule: "schema".to_owned(),
            message: message.to_owned(),
        }
    }
}

impl Measured {
    /// Looks at a schema, without deciding whether its dialect allows what it says.
    ///
    /// # Errors
    /// When it is no schema, is of an unknown dialect, or is larger than the limits allow.
    pub fn of(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotASchema);
        }
        let dialect = Dialect::of(schema, Dialect::Draft202012)?;
        keywords::measure(schema)?;
        Ok(Self { dialect })
    }

    /// Whether the schema is of 2020-12.
    pub fn is_current(self) -> bool {
        self.dialect == Dialect::Draft202012
    }
}

impl Validator {
    /// Compiles a schema within a budget such as [`compilation_steps`] allows; `measured` is what has been found of it.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, or refers to anything outside of it. Also when the budget does not
    /// suffice.
    pub fn compile(
        schema: &Value,
        measured: Measured,
        budget: &mut Budget<'_>,
    ) -> Result<Self, SchemaError> {
        let program = compile::compile(schema, measured.dialect, budget)?;
        Ok(Self { program })
    }

    /// Validates a value, within a budget such as [`validation_steps`] allows for its size.
    ///
    /// # Errors
    /// The first rule that is broken, or that the budget did not suffice to tell.
    pub fn validate(
        &self,
        value: &Value,
        budget: &mut Budget<'_>,
    ) -> Result<(), ValidationFailure> {
        // Most values fit, so reasons are looked for in a second walk.
        match evaluate(&self.program, value, budget, false) {
            Ok(()) => return Ok(()),
            Err(Stop::Broken(_)) => {}
            Err(Stop::Spent) => return Err(ValidationFailure::Limit),
        }
        let Err(Stop::Broken(Some(broken))) = evaluate(&self.program, value, budget, true) else {
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
pub enum ValidationFailure {
    /// It breaks this rule.
    Broken(Violation),
    /// It breaks a rule. The budget was used up before it was found out which.
    Unexplained,
    /// The budget was used up, or the interrupt flag set, before anything was known.
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

/// How many steps compiling a schema may take.
pub fn compilation_steps(schema: &Value) -> usize {
    let mut reading = Budget::new(usize::MAX, None);
    // No schema takes that many steps.
    let _ = charge_value(schema, &mut reading);
    let of_size = reading.spent().saturating_mul(COMPILATION_STEPS_PER_READ);
    MAX_COMPILATION_STEPS.saturating_add(of_size)
}

/// How many steps the validation of a value may take; `size` is its length as text, in bytes.
pub fn validation_steps(size: usize) -> usize {
    MAX_VALIDATION_STEPS.saturating_add(size.saturating_mul(VALIDATION_STEPS_PER_BYTE))
}

/// Large values may take more steps: a value has at most one node in two bytes, and this allows each some thirty tries
/// of a subschema, or each byte to be looked at by as many states of an expression.
const VALIDATION_STEPS_PER_BYTE: usize = 64;

/// What compiling may take for each step of reading the schema once: a reference is resolved by reading another part of
/// it, and each pattern is read several times.
const COMPILATION_STEPS_PER_READ: usize = 512;
