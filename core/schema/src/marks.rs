//! Which members of a value the rules of a schema have looked at: what `unevaluatedItems` and `unevaluatedProperties`
//! ask for (2020-12, sections 11.2 and 11.3).

use serde_json::Value;

/// A mark for each item of an array, or for each property of an object in its order.
#[derive(Clone, Debug)]
pub(crate) struct Marks(Vec<bool>);

impl Marks {
    /// None of the members of a value is marked.
    pub(crate) fn of(value: &Value) -> Self {
        Self(vec![false; size(value)])
    }

    pub(crate) fn mark(&mut self, index: usize) {
        if let Some(mark) = self.0.get_mut(index) {
            *mark = true;
        }
    }

    pub(crate) fn mark_all(&mut self) {
        self.0.fill(true);
    }

    /// Adds the marks of others for the same value.
    pub(crate) fn add(&mut self, others: &Self) {
        for (mark, other) in self.0.iter_mut().zip(&others.0) {
            *mark |= other;
        }
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// The number of members of a value.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}
