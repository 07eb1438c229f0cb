//! JSON Schema: compiling what authors and peers give, and validating against it.
//!
//! Without `$schema` a schema is of 2020-12; 2019-09 and drafts 7, 6 and 4 are understood as well
//! (2026-07-28, "Base protocol", JSON Schema Usage). Nothing is ever fetched: a `$ref` that leads out of
//! the schema is an error when it is compiled. What a hostile schema or value can cost is bounded: see
//! [`MAX_SCHEMA_DEPTH`], [`MAX_SUBSCHEMAS`], [`MAX_SCHEMA_TRIES`] and [`MAX_BACKTRACKING`].
//!
//! Verdict, path, rule and wording of a [`Violation`] are the same for every language that is bound to
//! this crate.

mod budget;
pub(crate) mod keywords;
mod quick;
mod wording;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::limits::{MAX_BACKTRACKING, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TRIES, MAX_SUBSCHEMAS};
use crate::wire::Raw;

use quick::Quick;

/// A schema ready to validate against. Cloning is cheap.
#[derive(Clone)]
pub struct CompiledSchema(Arc<Kind>);

enum Kind {
    /// Sees without decoding that a value fits. What it doesn't see is for the full validator, which is built
    /// when it is first needed: a process that starts doesn't wait for it.
    Plain(Quick, Value, OnceLock<Result<Full, SchemaError>>),
    Full(Full),
}

struct Full {
    validator: Validator,
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

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, refers to anything outside of it, or is larger than
    /// the limits allow.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotASchema);
        }
        let draft = dialect(schema)?;
        let size = keywords::measure(schema)?;
        let quick = (draft == Draft::Draft202012)
            .then(|| Quick::of(schema))
            .flatten();
        Ok(Self(Arc::new(match quick {
            Some(quick) => Kind::Plain(quick, schema.clone(), OnceLock::new()),
            None => Kind::Full(Full::compile(schema, draft, size.composed)?),
        })))
    }

    /// The full validator, built if it hasn't been needed before.
    fn full(&self) -> Result<&Full, &SchemaError> {
        match &*self.0 {
            Kind::Full(full) => Ok(full),
            Kind::Plain(_, schema, full) => full
                .get_or_init(|| Full::compile(schema, Draft::Draft202012, is_composed(schema)))
                .as_ref(),
        }
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The first rule that is broken. Also when the value is a number that no 64-bit float can hold, or
    /// when validation takes more than [`MAX_SCHEMA_TRIES`] tries, for then nothing can be said.
    pub fn validate(&self, value: &Raw) -> Result<(), Violation> {
        if let Kind::Plain(quick, ..) = &*self.0
            && quick.fits(value)
        {
            return Ok(());
        }
        let full = self
            .full()
            .map_err(|error| unexplained(&error.to_string()))?;
        let decoded: Value = value.decode().map_err(|_| Violation {
            path: String::new(),
            rule: "number".to_owned(),
            message: "a number is out of range".to_owned(),
        })?;
        full.validate_value(&decoded, value.as_bytes().len())
    }
}

/// Whether a schema that was measured before uses composition.
fn is_composed(schema: &Value) -> bool {
    keywords::measure(schema).is_ok_and(|size| size.composed)
}

impl Full {
    fn compile(schema: &Value, draft: Draft, composed: bool) -> Result<Self, SchemaError> {
        let options = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING))
            .offline();
        let validator = options.build(schema).map_err(schema_error)?;
        // The schema itself has been found valid; only then is the counting keyword put into a copy, so
        // that no error speaks of it.
        let validator = if composed {
            options
                .with_keyword(budget::KEYWORD, budget::keyword)
                .build(&budget::counting(schema))
                .map_err(schema_error)?
        } else {
            validator
        };
        Ok(Self {
            validator,
            counted: composed,
        })
    }

    /// As [`CompiledSchema::validate`], for a value that is decoded already; `size` is its length as text.
    fn validate_value(&self, value: &Value, size: usize) -> Result<(), Violation> {
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
                    Err(unexplained(
                        "does not fit the schema, in a way too complex to explain",
                    ))
                })
            }
            None => Err(unexplained(
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

fn unexplained(message: &str) -> Violation {
    Violation {
        path: String::new(),
        rule: "schema".to_owned(),
        message: message.to_owned(),
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema").finish_non_exhaustive()
    }
}

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
mod tests;
