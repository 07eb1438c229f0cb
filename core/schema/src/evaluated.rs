//! The evaluated members of a value, which `unevaluatedItems` and `unevaluatedProperties` read (2020-12, sections 11.2
//! and 11.3).

use serde_json::Value;

/// Whether each item of an array, or each property of an object in its order, has been evaluated.
#[derive(Clone, Debug)]
pub(crate) struct EvaluatedMembers(Vec<bool>);

impl EvaluatedMembers {
    /// A record for a value without evaluated members.
    pub(crate) fn of(value: &Value) -> Self {
        Self(vec![false; member_count(value)])
    }

    pub(crate) fn insert(&mut self, index: usize) {
        if let Some(is_evaluated) = self.0.get_mut(index) {
            *is_evaluated = true;
        }
    }

    pub(crate) fn insert_all(&mut self) {
        self.0.fill(true);
    }

    /// Adds the members of `others`, a record for the same value.
    pub(crate) fn extend(&mut self, others: &Self) {
        for (is_evaluated, other) in self.0.iter_mut().zip(&others.0) {
            *is_evaluated |= other;
        }
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// The number of members of a value.
pub(crate) fn member_count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}
