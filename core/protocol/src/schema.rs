//! JSON Schema: compiles the schemas of authors and peers, and validates against them.
//!
//! `mcpline-schema` defines which schemas are allowed and what they may cost. Here, values are checked against plain
//! schemas directly on their bytes, which is enough for most calls; everything else, and every violation, is left to
//! that crate and the decoded value.
//!
//! Result, path, rule and wording of a [`Violation`] are the same in every language with bindings.

mod plain;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use mcpline_schema::{
    MeasuredSchema, ValidationFailure, Validator, compilation_steps, validation_steps,
};
use serde_json::Value;

use crate::json::Raw;
use crate::limits::MAX_INLINE_STEPS;

pub use mcpline_schema::{SchemaError, StepBudget, Violation};

use plain::PlainSchema;

/// A compiled schema. Cloning is cheap.
#[derive(Clone)]
pub struct CompiledSchema(Arc<ValidationStrategy>);

enum ValidationStrategy {
    /// Recognizes matching values without decoding them. Other values need the full validator, which is built on first
    /// use, so that a starting process doesn't wait for it.
    Plain(
        PlainSchema,
        UncompiledSchema,
        OnceLock<Result<Validator, SchemaError>>,
    ),
    Full(Validator),
}

/// The input of the full validator.
struct UncompiledSchema {
    schema: Value,
    measured: MeasuredSchema,
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When the schema is not valid in its dialect, refers to anything outside itself, or exceeds the limits.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::compile_until(schema, None)
    }

    /// Compiles a schema. Setting `interrupt` ends that with [`SchemaError::Limit`].
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_until(
        schema: &Value,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Self, SchemaError> {
        let mut budget = StepBudget::new(compilation_steps(schema), interrupt);
        Self::compile_within(schema, &mut budget)
    }

    /// Compiles a schema if that takes at most [`MAX_INLINE_STEPS`] steps; `None` if it takes more.
    pub fn compile_inline(schema: &Value) -> Option<Result<Self, SchemaError>> {
        match Self::compile_within(schema, &mut StepBudget::new(MAX_INLINE_STEPS, None)) {
            Err(SchemaError::Limit) => None,
            compiled => Some(compiled),
        }
    }

    /// Compiles a schema within a budget.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), and [`SchemaError::Limit`] if the budget doesn't suffice.
    pub fn compile_within(
        schema: &Value,
        budget: &mut StepBudget<'_>,
    ) -> Result<Self, SchemaError> {
        let measured = MeasuredSchema::of(schema)?;
        let quick = measured
            .is_2020_12()
            .then(|| PlainSchema::of(schema))
            .flatten();
        Ok(Self(Arc::new(match quick {
            Some(quick) => {
                let unbuilt = UncompiledSchema {
                    schema: schema.clone(),
                    measured,
                };
                ValidationStrategy::Plain(quick, unbuilt, OnceLock::new())
            }
            None => ValidationStrategy::Full(Validator::compile_within(schema, measured, budget)?),
        })))
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The first broken rule. Also when the value contains a number that no 64-bit float can hold, or when validation
    /// takes more than [`MAX_VALIDATION_STEPS`](crate::limits::MAX_VALIDATION_STEPS) steps besides those for its size,
    /// because then the result is unknown.
    pub fn validate(&self, value: &Raw) -> Result<(), Violation> {
        self.validate_until(value, None)
    }

    /// Validates a value. Setting `interrupt` ends that with an error.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_until(
        &self,
        value: &Raw,
        interrupt: Option<&AtomicBool>,
    ) -> Result<(), Violation> {
        let mut budget = StepBudget::new(validation_steps(value.as_bytes().len()), interrupt);
        self.validate_within(value, &mut budget)
    }

    /// Validates a value within a budget.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), with the budget as the limit.
    pub fn validate_within(
        &self,
        value: &Raw,
        budget: &mut StepBudget<'_>,
    ) -> Result<(), Violation> {
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

    /// Validates a value if that takes at most [`MAX_INLINE_STEPS`] steps; `None` if it takes more.
    pub fn validate_inline(&self, value: &Raw) -> Option<Result<(), Violation>> {
        let mut budget = StepBudget::new(MAX_INLINE_STEPS, None);
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

    /// Whether the schema is plain and the value is recognized as matching without decoding.
    fn fits_plainly(&self, value: &Raw, budget: &mut StepBudget<'_>) -> bool {
        match &*self.0 {
            ValidationStrategy::Plain(quick, ..) => {
                // Anything that costs more is left to the full validator, which stops at the first broken rule.
                let most = MAX_INLINE_STEPS + value.as_bytes().len() * QUICK_STEPS_PER_BYTE;
                budget.with_limit(most, |budget| quick.fits(value.borrowed(), budget))
            }
            ValidationStrategy::Full(_) => false,
        }
    }

    /// The full validator, if it has been built.
    fn validator(&self) -> Option<Result<&Validator, SchemaError>> {
        match &*self.0 {
            ValidationStrategy::Full(full) => Some(Ok(full)),
            ValidationStrategy::Plain(_, _, full) => {
                Some(full.get()?.as_ref().map_err(Clone::clone))
            }
        }
    }

    fn unbuilt(&self) -> Option<&UncompiledSchema> {
        match &*self.0 {
            ValidationStrategy::Full(_) => None,
            ValidationStrategy::Plain(_, unbuilt, _) => Some(unbuilt),
        }
    }

    /// Builds the full validator. Exceeding the budget is not remembered.
    fn build(&self, budget: &mut StepBudget<'_>) -> Result<&Validator, SchemaError> {
        match &*self.0 {
            ValidationStrategy::Full(full) => Ok(full),
            ValidationStrategy::Plain(_, UncompiledSchema { schema, measured }, full) => {
                match Validator::compile_within(schema, *measured, budget) {
                    Err(SchemaError::Limit) => Err(SchemaError::Limit),
                    built => full.get_or_init(|| built).as_ref().map_err(Clone::clone),
                }
            }
        }
    }
}

/// The steps per byte of a value that may be spent on the check of a plain schema: each level of a value reads
/// everything inside it.
const QUICK_STEPS_PER_BYTE: usize = 8;

fn validated(
    validator: &Validator,
    value: &Raw,
    budget: &mut StepBudget<'_>,
) -> Result<(), ValidationFailure> {
    // Decoding takes a step per byte.
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
