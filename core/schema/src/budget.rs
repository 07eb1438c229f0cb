//! A bound on the work of one validation.
//!
//! References and alternatives let a small schema and a small value multiply into exponential work. A
//! keyword of our own, put into every subschema, counts how often one is tried.
//!
//! The validator tries keywords in an order of its own: cheap assertions, then the children of a value,
//! then `allOf`, `anyOf` and its kin, then references, then foreign keywords. The counting keyword must
//! run before any alternative is tried, so it stands in `allOf`, at the end of it. Work that escapes the
//! count ends at the next failure, which only an alternative can recover from.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use crate::keywords;

/// The name of the counting keyword; nobody else's.
pub(crate) const KEYWORD: &str = "x-mcpline-step";

/// What happens when a budget is spent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Every further try fails, so that a decision unwinds at once.
    Fail,
    /// The search for an explanation is left; it would go on after failures.
    Leave,
}

thread_local! {
    /// Tries that are left to the validation that runs on this thread.
    static LEFT: Cell<(usize, Then)> = const { Cell::new((usize::MAX, Then::Fail)) };
}

/// Runs a decision with so many tries. None if they are used up.
pub(crate) fn decide(tries: usize, decision: impl FnOnce() -> bool) -> Option<bool> {
    let outer = LEFT.replace((tries, Then::Fail));
    let decided = decision();
    let (left, _) = LEFT.replace(outer);
    (left > 0).then_some(decided)
}

/// Runs a search for an explanation with so many tries. None if they are used up, and where panics abort,
/// for then a search could not be left.
pub(crate) fn explain<T>(tries: usize, search: impl FnOnce() -> T) -> Option<T> {
    if !cfg!(panic = "unwind") {
        return None;
    }
    let outer = LEFT.replace((tries, Then::Leave));
    // The search only reads, so leaving it in the middle breaks nothing.
    let result = catch_unwind(AssertUnwindSafe(search));
    LEFT.set(outer);
    match result {
        Ok(found) => Some(found),
        Err(reason) if reason.is::<Spent>() => None,
        Err(reason) => resume_unwind(reason),
    }
}

/// Why a search was left.
struct Spent;

/// A copy of a schema that counts.
pub(crate) fn counting(schema: &Value) -> Value {
    let mut counting = schema.clone();
    keywords::for_each_mut(&mut counting, &mut |keywords| {
        let all = keywords.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(json!({ KEYWORD: true }));
        }
    });
    counting
}

/// Makes the keyword.
pub(crate) fn keyword<'a>(
    _: &'a Map<String, Value>,
    _: &'a Value,
    _: jsonschema::paths::Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Step))
}

struct Step;

impl<'i> Keyword<'i> for Step {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("too many steps"))
        }
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        let (left, then) = LEFT.get();
        let left = left.saturating_sub(1);
        LEFT.set((left, then));
        if left == 0 && then == Then::Leave {
            resume_unwind(Box::new(Spent));
        }
        left > 0
    }
}
