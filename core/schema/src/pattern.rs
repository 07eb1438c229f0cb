//! The regular expressions of `pattern` and `patternProperties`: ECMA-262 with the flag `u`, searched for anywhere in a
//! text.
//!
//! Only whether there is a match matters, never which one or where. So an expression is simulated as a set of states:
//! time and memory are linear in the text, whatever the expression is. Look-arounds don't change that: each is a
//! condition on a position, which one pass over the text evaluates for all positions at once. Every step is counted.
//!
//! Schemas in use contain expressions that were written without the flag `u`, or for another language. Accepted are:
//!
//! - syntax that is an error only with `u` and unambiguous without it (ECMA-262, Annex B): needless escapes of
//!   characters that are not ASCII letters or digits (`\-`, `\_`, `\@`), a lone `]`, `{` or `}`, a class as an end of a
//!   range (`[\w-.]`), a repeated lookahead;
//! - syntax that has the same meaning in all languages that have it: `\A`, `\z` and `(?P<name>…)`;
//! - the flags `i`, `m` and `s` at the start of an expression, as in Python and Rust: `(?i)…`, `(?is)…`. They have the
//!   meaning of ECMA-262, as they do for a group (`(?i-s:…)`, since 2025). `u` is allowed among them and has no effect.
//!
//! With `i`, two characters are equal if they fold to the same one, as with ECMA-262's flags `iu`; `folding` describes
//! how that is determined without `CaseFolding.txt`. Single characters and classes of ASCII are folded when an
//! expression is compiled, other classes for each character that is not ASCII.
//!
//! Rejected are back references (`\1`, `\k<name>`, `(?P=name)`): no algorithm is known that matches them in linear
//! time. Also rejected are escapes of letters without a meaning here and with different meanings elsewhere (`\Z`, `\h`,
//! `\e`), octal escapes, all other flags (`(?x)`, `(?a)`, `(?L)`, `(?U)`, `(?R)`), and flags inside an expression that
//! don't belong to a group (`a(?i)b`): languages disagree whether they apply to what follows, to everything, or to
//! nothing.

mod class;
mod compiler;
mod counter;
mod emoji;
mod escape;
mod flags;
mod folding;
mod parser;
mod position;
mod program;
mod property;
mod set;
mod simulation;
mod states;
#[cfg(test)]
mod tests;
mod tree;

use program::Program;

use crate::budget::StepBudget;

/// A compiled regular expression of ECMA-262 with the flag `u`.
#[derive(Debug)]
pub(crate) struct Pattern {
    program: Program,
}

/// The steps of reading a byte of an expression.
const READING_STEPS: usize = 8;

/// How many states of a machine are initialized per step.
const STATES_PER_STEP: usize = 64;

/// Why a text is not a supported regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at character {position}")]
pub(crate) struct PatternError {
    /// A message for the author of the schema.
    pub(crate) message: &'static str,
    /// The position in the pattern, in characters.
    pub(crate) position: usize,
}

impl Pattern {
    /// Parses and compiles an expression.
    ///
    /// # Errors
    /// When it is not supported, or exceeds the [`crate::limits`].
    pub(crate) fn compile(source: &str, budget: &mut StepBudget<'_>) -> Result<Self, PatternError> {
        budget
            .charge(source.len().saturating_mul(READING_STEPS))
            .ok_or_else(compiler::too_large_error)?;
        let tree = parser::parse(source)?;
        let program = compiler::compile(tree, budget)?;
        Ok(Self { program })
    }

    /// The number of its operations, which determines its memory.
    pub(crate) fn size(&self) -> usize {
        let looks = self.program.look_arounds.iter();
        let machines = looks.chain([&self.program.main]);
        machines.map(|machine| machine.ops.len()).sum()
    }

    /// Whether the expression matches anywhere in a text. A step is a visit of one state at one position. `None` if the
    /// budget did not suffice: nothing is left of it then.
    pub(crate) fn is_found(&self, text: &str, budget: &mut StepBudget<'_>) -> Option<bool> {
        // The cost of initializing the states of large machines.
        let found = budget
            .charge(self.size() / STATES_PER_STEP)
            .and_then(|()| simulation::is_found(&self.program, text, budget));
        if found.is_none() {
            budget.exhaust();
        }
        found
    }
}
