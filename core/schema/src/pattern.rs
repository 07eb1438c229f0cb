//! What `pattern` and `patternProperties` are matched with: regular expressions of ECMA-262 with the flag `u`, searched for
//! anywhere in a text.
//!
//! Only whether something is found is asked, never what or where. So an expression is simulated as a set of states: time
//! and memory are linear in the text, whatever the expression is. Look-arounds don't change that: each is a question about
//! a position, which one pass over the text answers for every position at once. Every step is counted.
//!
//! Schemas out there hold expressions that are written for the flag `u` being absent, or for another language. Taken are:
//!
//! - what is an error with `u` and plain without (ECMA-262, Annex B): needless escapes of what is no ASCII letter or digit
//!   (`\-`, `\_`, `\@`), a lone `]`, `{` or `}`, a class as an end of a range (`[\w-.]`), a repeated lookahead;
//! - what has one meaning wherever it has any: `\A`, `\z` and `(?P<name>…)`;
//! - the flags `i`, `m` and `s` at an expression's start, as Python and Rust know them: `(?i)…`, `(?is)…`. They mean what
//!   ECMA-262 says, as they do for a group (`(?i-s:…)`, since 2025). `u` may be among them, and changes nothing.
//!
//! With `i` two characters are the same if they fold to the same one, as with ECMA-262's flags `iu`; `folding` says how that
//! is known without `CaseFolding.txt`. Single characters and classes of ASCII are folded when an expression is compiled,
//! other classes for each character that is not ASCII.
//!
//! Refused are back references (`\1`, `\k<name>`, `(?P=name)`): no algorithm is known that matches them in linear time.
//! Refused are also escapes of letters that mean nothing here and different things elsewhere (`\Z`, `\h`, `\e`), octal escapes,
//! all other flags (`(?x)`, `(?a)`, `(?L)`, `(?U)`, `(?R)`), and flags within an expression that are not those of a group
//! (`a(?i)b`): they hold for what follows, or for everything, or nowhere.

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

use crate::budget::Budget;

/// A regular expression of ECMA-262 with the flag `u`, ready to be searched for.
#[derive(Debug)]
pub(crate) struct Pattern {
    program: Program,
}

/// The steps of reading a byte of an expression.
const READING_STEPS: usize = 8;

/// For so many states of a machine memory is set up in one step.
const STATES_PER_STEP: usize = 64;

/// Why a text is no regular expression, or none that this side takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at character {position}")]
pub(crate) struct PatternError {
    /// For whoever wrote the schema.
    pub(crate) message: &'static str,
    /// Where in the pattern, in characters.
    pub(crate) position: usize,
}

impl Pattern {
    /// Reads an expression and makes it ready.
    ///
    /// # Errors
    /// When it is none, or larger than [`crate::limits`] allow.
    pub(crate) fn compile(source: &str, budget: &mut Budget<'_>) -> Result<Self, PatternError> {
        budget
            .charge(source.len().saturating_mul(READING_STEPS))
            .ok_or_else(compiler::too_large_error)?;
        let tree = parser::parse(source)?;
        let program = compiler::compile(tree, budget)?;
        Ok(Self { program })
    }

    /// How many operations it was compiled to: what it holds of memory.
    pub(crate) fn size(&self) -> usize {
        let looks = self.program.look_arounds.iter();
        let machines = looks.chain([&self.program.main]);
        machines.map(|machine| machine.ops.len()).sum()
    }

    /// Whether the expression is found anywhere in a text. A step is a visit of one state at one position. `None` when
    /// the budget did not suffice: nothing is left of it then.
    pub(crate) fn is_found(&self, text: &str, budget: &mut Budget<'_>) -> Option<bool> {
        // What is set up for the states of large machines.
        let found = budget
            .charge(self.size() / STATES_PER_STEP)
            .and_then(|()| simulation::is_found(&self.program, text, budget));
        if found.is_none() {
            budget.exhaust();
        }
        found
    }
}
