//! JSON Schema for schemas and values that nobody vouches for: compiling, validating, saying what is wrong.
//!
//! Without `$schema` a schema is of 2020-12; 2019-09 and drafts 7, 6 and 4 are understood as well
//! (2026-07-28, "Base protocol", JSON Schema Usage). Nothing is ever fetched: a `$ref` that leads out of
//! the schema is an error when it is compiled. What a hostile schema or value can cost is bounded: see
//! [`limits`].
//!
//! Values are decoded here. `mcpline-protocol` sees of most that they fit without decoding them, and asks this
//! crate about the rest; so it is a crate of its own, compiled for size (`[profile]` in the root manifest): generic
//! code belongs to the crate that instantiates it, and that of the validator is the largest of all.

mod budget;
pub mod keywords;
pub mod limits;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "what validates does not match with it yet")
)]
mod pattern;
mod wording;

use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::Value;

use limits::{MAX_BACKTRACKING, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TRIES, MAX_SUBSCHEMAS};

/// A schema that has been looked at, but not compiled: its dialect is known, and its size within the limits.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    draft: Draft,
    composed: bool,
}

/// A schema ready to validate against.
pub struct Validator {
    validator: jsonschema::Validator,
    /// Whether the work of a validation is counted: where values can make subschemas multiply.
    counted: bool,
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
        let draft = dialect(schema)?;
        let composed = keywords::measure(schema)?.composed;
        Ok(Self { draft, composed })
    }

    /// Whether the schema is of 2020-12.
    pub fn is_current(self) -> bool {
        self.draft == Draft::Draft202012
    }
}

impl Validator {
    /// Compiles a schema; `measured` is what has been found of it.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, or refers to anything outside of it.
    pub fn compile(schema: &Value, measured: Measured) -> Result<Self, SchemaError> {
        let options = jsonschema::options()
            .with_draft(measured.draft)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING))
            .offline();
        let validator = options.build(schema).map_err(schema_error)?;
        // The schema itself has been found valid; only then is the counting keyword put into a copy, so
        // that no error speaks of it.
        let validator = if measured.composed {
            options
                .with_keyword(budget::KEYWORD, budget::keyword)
                .build(&budget::counting(schema))
                .map_err(schema_error)?
        } else {
            validator
        };
        Ok(Self {
            validator,
            counted: measured.composed,
        })
    }

    /// Validates a value; `size` is its length as text.
    ///
    /// # Errors
    /// The first rule that is broken. Also when validation takes more than [`MAX_SCHEMA_TRIES`] tries, for
    /// then nothing can be said.
    pub fn validate(&self, value: &Value, size: usize) -> Result<(), Violation> {
        let explanation = || {
            self.validator
                .validate(value)
                .map_err(|error| wording::violation(&error))
        };
        if !self.counted {
            return if self.validator.is_valid(value) {
                Ok(())
            } else {
                explanation()
            };
        }
        let tries = MAX_SCHEMA_TRIES + size.saturating_mul(TRIES_PER_BYTE);
        match budget::decide(tries, || self.validator.is_valid(value)) {
            Some(true) => Ok(()),
            Some(false) => {
                let tries = (EXPLANATION_BYTES / size.max(1)).min(MAX_SCHEMA_TRIES);
                budget::explain(tries, explanation).unwrap_or_else(|| {
                    Err(Violation::unexplained(
                        "does not fit the schema, in a way too complex to explain",
                    ))
                })
            }
            None => Err(Violation::unexplained(
                "is too complex to be validated against its schema",
            )),
        }
    }
}

/// Large values may take more tries: a value has at most one node in two bytes, and this allows some
/// thirty for each.
const TRIES_PER_BYTE: usize = 16;

/// An explanation may hold a copy of the value for each alternative that failed.
const EXPLANATION_BYTES: usize = 64 * 1024 * 1024;

/// The dialect that a schema declares.
fn dialect(schema: &Value) -> Result<Draft, SchemaError> {
    let Some(declared) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let Some(uri) = declared.as_str() else {
        return Err(SchemaError::Dialect(declared.to_string()));
    };
    let name = uri
        .strip_prefix("https://")
        .or_else(|| uri.strip_prefix("http://"))
        .unwrap_or(uri);
    match name.strip_suffix('#').unwrap_or(name) {
        "json-schema.org/draft/2020-12/schema" => Ok(Draft::Draft202012),
        "json-schema.org/draft/2019-09/schema" => Ok(Draft::Draft201909),
        "json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
        "json-schema.org/draft-06/schema" => Ok(Draft::Draft6),
        "json-schema.org/draft-04/schema" => Ok(Draft::Draft4),
        _ => Err(SchemaError::Dialect(uri.to_owned())),
    }
}

fn schema_error(error: ValidationError<'static>) -> SchemaError {
    if let jsonschema::error::ValidationErrorKind::Referencing(problem) = error.kind() {
        return SchemaError::Reference(wording::reference(problem));
    }
    let violation = wording::violation(&error);
    SchemaError::Invalid {
        place: violation.path,
        message: violation.message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_search_that_is_left_leaves_nothing_behind() {
        let schema = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        let measured = Measured::of(&schema).expect("a schema");
        let compiled = Validator::compile(&schema, measured).expect("valid");
        let value = json!({});
        let check = || compiled.validate(&value, 2).expect_err("not valid").message;
        assert_eq!(
            budget::explain(1, || budget::decide(10, || true)),
            Some(Some(true))
        );
        assert_eq!(
            budget::explain(1, || compiled.validator.validate(&value).is_ok()),
            None
        );
        assert_eq!(check(), "must be of type integer or null");
    }
}
