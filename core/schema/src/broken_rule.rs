//! The report of a rule that a value breaks.

use crate::types::Types;

/// A rule that a value breaks: where, which, and the message.
#[derive(Clone, Debug)]
pub(crate) struct BrokenRule {
    /// A JSON pointer into the value.
    pub(crate) path: String,
    /// The keyword.
    pub(crate) rule: &'static str,
    /// What the rule demands.
    pub(crate) message: String,
    /// The types that would fit, if that is the rule.
    pub(crate) types: Option<Types>,
}
