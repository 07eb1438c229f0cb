//! The verdicts of both validators on a schema and a value.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mcpline_schema::{
    MeasuredSchema, StepBudget, ValidationFailure, Validator, compilation_steps, validation_steps,
};
use serde_json::Value;

use crate::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    Invalid,
    /// The schema was refused.
    Refused,
    /// Validation exceeded its limit of steps.
    Limit,
    Panicked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Refused => "schema refused",
            Self::Limit => "limit reached",
            Self::Panicked => "panic",
        })
    }
}

impl Verdict {
    fn of(is_valid: bool) -> Self {
        if is_valid { Self::Valid } else { Self::Invalid }
    }
}

/// Both validators for one schema; `None` if it was refused, or compiling it panicked.
pub(crate) struct Both {
    ours: Result<Option<Validator>, ()>,
    theirs: Result<Option<jsonschema::Validator>, ()>,
}

impl Both {
    pub(crate) fn compile(dialect: Dialect, schema: &Value) -> Self {
        let ours = catch_unwind(AssertUnwindSafe(|| {
            let compiled = MeasuredSchema::of(schema).and_then(|measured| {
                let mut budget = StepBudget::new(compilation_steps(schema), None);
                Validator::compile_within(schema, measured, &mut budget)
            });
            compiled.ok()
        }));
        // Formats are checked in the older drafts only.
        let options = match dialect {
            Dialect::Draft7 => jsonschema::draft7::options().should_validate_formats(true),
            Dialect::Draft202012 => {
                jsonschema::draft202012::options().should_validate_formats(false)
            }
        };
        let theirs = catch_unwind(AssertUnwindSafe(|| options.build(schema).ok()));
        Self {
            ours: ours.map_err(drop),
            theirs: theirs.map_err(drop),
        }
    }

    /// Returns our verdict on a value, and theirs.
    pub(crate) fn of(&self, value: &Value) -> (Verdict, Verdict) {
        let ours = match &self.ours {
            Err(()) => Verdict::Panicked,
            Ok(None) => Verdict::Refused,
            Ok(Some(validator)) => catch_unwind(AssertUnwindSafe(|| {
                let steps = validation_steps(value.to_string().len());
                match validator.validate_within(value, &mut StepBudget::new(steps, None)) {
                    Ok(()) => Verdict::Valid,
                    Err(ValidationFailure::Limit) => Verdict::Limit,
                    Err(_) => Verdict::Invalid,
                }
            }))
            .unwrap_or(Verdict::Panicked),
        };
        let theirs = match &self.theirs {
            Err(()) => Verdict::Panicked,
            Ok(None) => Verdict::Refused,
            Ok(Some(validator)) => catch_unwind(AssertUnwindSafe(|| validator.is_valid(value)))
                .map_or(Verdict::Panicked, Verdict::of),
        };
        (ours, theirs)
    }
}
