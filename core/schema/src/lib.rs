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

use dialect::Dialect;
use evaluate::{Budget, Stop, evaluate};
use limits::{MAX_PATTERN_STEPS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TRIES, MAX_SUBSCHEMAS};
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
    /// Compiles a schema; `measured` is what has been found of it.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, or refers to anything outside of it.
    pub fn compile(schema: &Value, measured: Measured) -> Result<Self, SchemaError> {
        let program = compile::compile(schema, measured.dialect)?;
        Ok(Self { program })
    }

    /// Validates a value; `size` is its length as text, in bytes.
    ///
    /// # Errors
    /// The first rule that is broken. Also when validation takes more than [`MAX_SCHEMA_TRIES`] tries or
    /// [`MAX_PATTERN_STEPS`] steps of regular expressions, for then nothing can be said.
    pub fn validate(&self, value: &Value, size: usize) -> Result<(), Violation> {
        let budget = Budget {
            tries: MAX_SCHEMA_TRIES.saturating_add(size.saturating_mul(TRIES_PER_BYTE)),
            steps: MAX_PATTERN_STEPS.saturating_add(size.saturating_mul(STEPS_PER_BYTE)),
        };
        // Most values fit, so reasons are looked for in a second walk.
        match evaluate(&self.program, value, budget, false) {
            Ok(()) => return Ok(()),
            Err(Stop::Broken(_)) => {}
            Err(Stop::Spent) => {
                return Err(Violation::unexplained(
                    "is too complex to be validated against its schema",
                ));
            }
        }
        let Err(Stop::Broken(Some(broken))) = evaluate(&self.program, value, budget, true) else {
            return Err(Violation::unexplained(
                "does not fit the schema, in a way too complex to explain",
            ));
        };
        Err(Violation {
            path: broken.path,
            rule: broken.rule.to_owned(),
            message: broken.message,
        })
    }
}

/// Large values may take more tries: a value has at most one node in two bytes, and this allows some
/// thirty for each.
const TRIES_PER_BYTE: usize = 16;

/// Large values may take more steps: one in each of so many states for each byte.
const STEPS_PER_BYTE: usize = 64;
