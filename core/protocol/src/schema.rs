//! JSON Schema: compiling what authors and peers give, and validating against it.
//!
//! What the schemas may be, and what they can cost, is `mcpline-schema`'s to say. Here a plain schema is checked
//! against a value's bytes, which is what most calls come to; all else, and every refusal, is decided there on
//! the decoded value.
//!
//! Verdict, path, rule and wording of a [`Violation`] are the same for every language that is bound to
//! this crate.

mod quick;

use std::fmt;
use std::sync::{Arc, OnceLock};

use mcpline_schema::{Measured, Validator};
use serde_json::Value;

use crate::wire::Raw;

pub(crate) use mcpline_schema::keywords;
pub use mcpline_schema::{SchemaError, Violation};

use quick::Quick;

/// A schema ready to validate against. Cloning is cheap.
#[derive(Clone)]
pub struct CompiledSchema(Arc<Kind>);

enum Kind {
    /// Sees without decoding that a value fits. What it doesn't see is for the full validator, which is built
    /// when it is first needed: a process that starts doesn't wait for it.
    Plain(Quick, Unbuilt, OnceLock<Result<Validator, SchemaError>>),
    Full(Validator),
}

/// What the full validator is built of.
struct Unbuilt {
    schema: Value,
    measured: Measured,
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, refers to anything outside of it, or is larger than
    /// the limits allow.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let measured = Measured::of(schema)?;
        let quick = measured.is_current().then(|| Quick::of(schema)).flatten();
        Ok(Self(Arc::new(match quick {
            Some(quick) => {
                let schema = schema.clone();
                Kind::Plain(quick, Unbuilt { schema, measured }, OnceLock::new())
            }
            None => Kind::Full(Validator::compile(schema, measured)?),
        })))
    }

    /// The full validator, built if it hasn't been needed before.
    fn full(&self) -> Result<&Validator, &SchemaError> {
        match &*self.0 {
            Kind::Full(full) => Ok(full),
            Kind::Plain(_, Unbuilt { schema, measured }, full) => full
                .get_or_init(|| Validator::compile(schema, *measured))
                .as_ref(),
        }
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The first rule that is broken. Also when the value is a number that no 64-bit float can hold, or
    /// when validation takes more than [`MAX_SCHEMA_TRIES`](crate::limits::MAX_SCHEMA_TRIES) tries, or its patterns more than
    /// [`MAX_PATTERN_STEPS`](crate::limits::MAX_PATTERN_STEPS) steps, beside what its size allows, for then
    /// nothing can be said.
    pub fn validate(&self, value: &Raw) -> Result<(), Violation> {
        if let Kind::Plain(quick, ..) = &*self.0
            && quick.fits(value)
        {
            return Ok(());
        }
        let full = self
            .full()
            .map_err(|error| Violation::unexplained(&error.to_string()))?;
        let decoded: Value = value.decode().map_err(|_| Violation {
            path: String::new(),
            rule: "number".to_owned(),
            message: "a number is out of range".to_owned(),
        })?;
        full.validate(&decoded, value.as_bytes().len())
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
