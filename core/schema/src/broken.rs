//! A rule of a schema that a value breaks, as it is reported.

use crate::types::Types;

/// Why a value doesn't fit, told.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// A JSON pointer into the value.
    pub(crate) path: String,
    /// The keyword.
    pub(crate) rule: &'static str,
    /// What the rule demands.
    pub(crate) message: String,
    /// The types that would fit, if that is the rule.
    pub(crate) types: Option<Types>,
}
