//! The report of a rule that a value breaks.

use crate::types::Types;

/// A rule that a value breaks: its place, its keyword, and a message.
#[derive(Clone, Debug)]
pub(crate) struct BrokenRule {
    /// A JSON pointer into the value.
    pub(crate) path: String,
    /// The keyword.
    pub(crate) rule: &'static str,
    /// What the rule requires.
    pub(crate) message: String,
    /// The types that would match, if the rule is about types.
    pub(crate) types: Option<Types>,
}
