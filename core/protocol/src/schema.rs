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
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use mcpline_schema::{
    MeasuredSchema, ValidationFailure, Validator, compilation_steps, validation_steps,
};
use serde_json::Value;

use crate::json::Raw;
use crate::limits::MAX_INLINE_STEPS;

pub use mcpline_schema::{Budget, SchemaError, Violation};

use quick::Quick;

/// A schema ready to validate against. Cloning is cheap.
#[derive(Clone)]
pub struct CompiledSchema(Arc<SchemaKind>);

enum SchemaKind {
    /// Sees without decoding that a value fits. What it doesn't see is for the full validator, which is built
    /// when it is first needed: a process that starts doesn't wait for it.
    Plain(
        Quick,
        UncompiledSchema,
        OnceLock<Result<Validator, SchemaError>>,
    ),
    Full(Validator),
}

/// What the full validator is built of.
struct UncompiledSchema {
    schema: Value,
    measured: MeasuredSchema,
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, refers to anything outside of it, or is larger than
    /// the limits allow.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::compile_until(schema, None)
    }

    /// Compiles a schema. Once `interrupt` is set, it ends with [`SchemaError::Limit`].
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_until(
        schema: &Value,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Self, SchemaError> {
        let mut budget = Budget::new(compilation_steps(schema), interrupt);
        Self::compile_within(schema, &mut budget)
    }

    /// Compiles a schema if that takes no more than [`MAX_INLINE_STEPS`] steps; `None` if it takes more.
    pub fn compile_inline(schema: &Value) -> Option<Result<Self, SchemaError>> {
        match Self::compile_within(schema, &mut Budget::new(MAX_INLINE_STEPS, None)) {
            Err(SchemaError::Limit) => None,
            compiled => Some(compiled),
        }
    }

    /// Compiles a schema within a budget.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), and [`SchemaError::Limit`] if the budget doesn't suffice.
    pub fn compile_within(schema: &Value, budget: &mut Budget<'_>) -> Result<Self, SchemaError> {
        let measured = MeasuredSchema::of(schema)?;
        let quick = measured.is_2020_12().then(|| Quick::of(schema)).flatten();
        Ok(Self(Arc::new(match quick {
            Some(quick) => {
                let unbuilt = UncompiledSchema {
                    schema: schema.clone(),
                    measured,
                };
                SchemaKind::Plain(quick, unbuilt, OnceLock::new())
            }
            None => SchemaKind::Full(Validator::compile_within(schema, measured, budget)?),
        })))
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The first rule that is broken. Also when the value is a number that no 64-bit float can hold, or
    /// when validation takes more than [`MAX_VALIDATION_STEPS`](crate::limits::MAX_VALIDATION_STEPS) steps beside what
    /// its size allows, for then nothing can be said.
    pub fn validate(&self, value: &Raw) -> Result<(), Violation> {
        self.validate_until(value, None)
    }

    /// Validates a value. Once `interrupt` is set, it ends with an error.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_until(
        &self,
        value: &Raw,
        interrupt: Option<&AtomicBool>,
    ) -> Result<(), Violation> {
        let mut budget = Budget::new(validation_steps(value.as_bytes().len()), interrupt);
        self.validate_within(value, &mut budget)
    }

    /// Validates a value within a budget.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), the budget being the limit.
    pub fn validate_within(&self, value: &Raw, budget: &mut Budget<'_>) -> Result<(), Violation> {
        if self.fits_plainly(value, budget) {
            return Ok(());
        }
        let validator = match self.validator() {
            Some(built) => built,
            None => {
                let steps = self.unbuilt().map_or(0, |it| compilation_steps(&it.schema));
                self.build(&mut budget.with_same_interrupt(steps))
            }
        };
        let validator = validator.map_err(|error| Violation::unexplained(&error.to_string()))?;
        validated(validator, value, budget).map_err(Violation::from)
    }

    /// Validates a value if that takes no more than [`MAX_INLINE_STEPS`] steps; `None` if it takes more.
    pub fn validate_inline(&self, value: &Raw) -> Option<Result<(), Violation>> {
        let mut budget = Budget::new(MAX_INLINE_STEPS, None);
        if self.fits_plainly(value, &mut budget) {
            return Some(Ok(()));
        }
        let validator = match self.validator() {
            Some(built) => built,
            None => self.build(&mut budget),
        };
        let validator = match validator {
            Ok(validator) => validator,
            Err(SchemaError::Limit) => return None,
            Err(error) => return Some(Err(Violation::unexplained(&error.to_string()))),
        };
        match validated(validator, value, &mut budget) {
            Err(ValidationFailure::Limit | ValidationFailure::Unexplained) => None,
            outcome => Some(outcome.map_err(Violation::from)),
        }
    }

    /// Whether the schema is plain, and it is seen without decoding that the value fits.
    fn fits_plainly(&self, value: &Raw, budget: &mut Budget<'_>) -> bool {
        match &*self.0 {
            SchemaKind::Plain(quick, ..) => {
                // What costs more here is left to the full validator, which stops at the first broken rule.
                let most = MAX_INLINE_STEPS + value.as_bytes().len() * QUICK_STEPS_PER_BYTE;
                budget.with_limit(most, |budget| quick.fits(value.borrowed(), budget))
            }
            SchemaKind::Full(_) => false,
        }
    }

    /// The full validator, if it has been built.
    fn validator(&self) -> Option<Result<&Validator, SchemaError>> {
        match &*self.0 {
            SchemaKind::Full(full) => Some(Ok(full)),
            SchemaKind::Plain(_, _, full) => Some(full.get()?.as_ref().map_err(Clone::clone)),
        }
    }

    fn unbuilt(&self) -> Option<&UncompiledSchema> {
        match &*self.0 {
            SchemaKind::Full(_) => None,
            SchemaKind::Plain(_, unbuilt, _) => Some(unbuilt),
        }
    }

    /// The full validator, built now. That the budget didn't suffice is not remembered.
    fn build(&self, budget: &mut Budget<'_>) -> Result<&Validator, SchemaError> {
        match &*self.0 {
            SchemaKind::Full(full) => Ok(full),
            SchemaKind::Plain(_, UncompiledSchema { schema, measured }, full) => {
                match Validator::compile_within(schema, *measured, budget) {
                    Err(SchemaError::Limit) => Err(SchemaError::Limit),
                    built => full.get_or_init(|| built).as_ref().map_err(Clone::clone),
                }
            }
        }
    }
}

/// How many steps may be spent on seeing plainly that a value fits, for each of its bytes: each level of a value reads
/// what is within it.
const QUICK_STEPS_PER_BYTE: usize = 8;

fn validated(
    validator: &Validator,
    value: &Raw,
    budget: &mut Budget<'_>,
) -> Result<(), ValidationFailure> {
    // Decoding takes a step for each byte.
    budget
        .charge(value.as_bytes().len())
        .ok_or(ValidationFailure::Limit)?;
    let decoded: Value = value.decode().map_err(|_| {
        ValidationFailure::Broken(Violation {
            path: String::new(),
            rule: "number".to_owned(),
            message: "a number is out of range".to_owned(),
        })
    })?;
    validator.validate_within(&decoded, budget)
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
