//! Equality of values according to JSON Schema: numbers by value, members in any order.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use serde_json::Value;

use crate::budget::StepBudget;
use crate::number;
use crate::value_cost::charge_value;

/// Whether two values are equal; `None` if that exceeds the budget.
pub(crate) fn are_equal(left: &Value, right: &Value, budget: &mut StepBudget<'_>) -> Option<bool> {
    match (left, right) {
        (Value::String(left), Value::String(right)) if left.len() == right.len() => {
            budget.charge_bytes(left.len())?;
            Some(left == right)
        }
        (Value::Number(left), Value::Number(right)) => {
            budget.charge(1)?;
            Some(number::compare(left, right).is_eq())
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            budget.charge(1)?;
            for (left, right) in left.iter().zip(right) {
                if !are_equal(left, right, budget)? {
                    return Some(false);
                }
            }
            Some(true)
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            budget.charge(1)?;
            for (name, left) in left {
                budget.charge_bytes(name.len())?;
                match right.get(name) {
                    Some(right) if are_equal(left, right, budget)? => {}
                    _ => return Some(false),
                }
            }
            Some(true)
        }
        (Value::Bool(left), Value::Bool(right)) => {
            budget.charge(1)?;
            Some(left == right)
        }
        (left, right) => {
            budget.charge(1)?;
            Some(left.is_null() && right.is_null())
        }
    }
}

/// Up to this many items are compared pairwise.
const MAX_PAIRWISE_ITEMS: usize = 8;

/// Whether no two items are equal; `None` if that exceeds the budget.
pub(crate) fn are_unique(items: &[Value], budget: &mut StepBudget<'_>) -> Option<bool> {
    if items.len() <= MAX_PAIRWISE_ITEMS {
        return all_differ(items, |item| item, budget);
    }
    // Items are sorted by their hashes, and members by their names.
    let sorting = 1 + items.len().ilog2() as usize;
    budget.charge(items.len().saturating_mul(sorting))?;
    for item in items {
        for _ in 0..READS_PER_HASH {
            charge_value(item, budget)?;
        }
    }
    // The keys of the hash are random, so an attacker can't make items collide.
    let hashes = RandomState::new();
    let mut hashed: Vec<_> = items
        .iter()
        .map(|item| {
            let mut state = hashes.build_hasher();
            hash(item, &mut state);
            (state.finish(), item)
        })
        .collect();
    hashed.sort_unstable_by_key(|(hash, _)| *hash);
    // Equal items are adjacent, possibly among others with the same hash, so each run is compared completely.
    for run in hashed.chunk_by(|left, right| left.0 == right.0) {
        if !all_differ(run, |(_, item)| item, budget)? {
            return Some(false);
        }
    }
    Some(true)
}

/// How often a value can be read in the time that hashing it takes.
const READS_PER_HASH: usize = 4;

/// Compares all pairs of items.
fn all_differ<T>(
    items: &[T],
    value: impl Fn(&T) -> &Value,
    budget: &mut StepBudget<'_>,
) -> Option<bool> {
    for (index, item) in items.iter().enumerate() {
        for other in items.iter().take(index) {
            if are_equal(value(item), value(other), budget)? {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Feeds a value to a hash; equal values have equal hashes.
fn hash(value: &Value, state: &mut impl Hasher) {
    match value {
        Value::Null => 0u8.hash(state),
        Value::Bool(value) => (1u8, value).hash(state),
        Value::Number(value) => {
            2u8.hash(state);
            number::hash(value, state);
        }
        Value::String(value) => (3u8, value).hash(state),
        Value::Array(items) => {
            (4u8, items.len()).hash(state);
            items.iter().for_each(|item| hash(item, state));
        }
        Value::Object(members) => {
            (5u8, members.len()).hash(state);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in members {
                name.hash(state);
                hash(value, state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn equal(left: &Value, right: &Value) -> bool {
        are_equal(left, right, &mut StepBudget::new(1_000, None)).expect("affordable")
    }

    fn unique(items: &[Value]) -> bool {
        are_unique(items, &mut StepBudget::new(100_000, None)).expect("affordable")
    }

    #[test]
    fn equality_ignores_number_spelling_and_member_order() {
        assert!(equal(
            &json!({"a": [1, 2.0], "b": null}),
            &json!({"b": null, "a": [1.0, 2]})
        ));
        for (left, right) in [
            (json!(0), json!(false)),
            (json!("1"), json!(1)),
            (json!([1]), json!([1, 1])),
            (json!({"a": 1}), json!({"b": 1})),
        ] {
            assert!(!equal(&left, &right), "{left} {right}");
        }
    }

    #[test]
    fn equal_items_are_found_among_few_and_among_many() {
        for count in [2, 100] {
            let mut items: Vec<_> = (0..count)
                .map(|number| json!({"n": number, "m": [number]}))
                .collect();
            assert!(unique(&items));
            items.push(json!({"m": [0.0], "n": 0}));
            assert!(!unique(&items));
        }
    }
}
