//! Equality of values as JSON Schema has it: numbers by value, members in any order.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use serde_json::Value;

use crate::number;

/// Whether two values are the same.
pub(crate) fn are_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number::compare(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| are_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| are_equal(left, right)))
        }
        (left, right) => left == right,
    }
}

/// Up to so many items are compared each with each.
const FEW: usize = 8;

/// Whether no two items are the same.
pub(crate) fn are_unique(items: &[Value]) -> bool {
    if items.len() <= FEW {
        return items
            .iter()
            .enumerate()
            .all(|(index, item)| !items[..index].iter().any(|other| are_equal(item, other)));
    }
    // The keys of the hash are drawn at random, so nobody can make items collide.
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
    // Equal items stand side by side, unless others have their hash by accident: so each run is compared throughout.
    hashed.chunk_by(|left, right| left.0 == right.0).all(|run| {
        run.iter()
            .enumerate()
            .all(|(index, (_, item))| !run[..index].iter().any(|(_, other)| are_equal(item, other)))
    })
}

/// Feeds a value to a hash; equal values feed the same.
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

    #[test]
    fn values_are_equal_as_mathematics_has_it() {
        assert!(are_equal(
            &json!({"a": [1, 2.0], "b": null}),
            &json!({"b": null, "a": [1.0, 2]})
        ));
        for (left, right) in [
            (json!(0), json!(false)),
            (json!("1"), json!(1)),
            (json!([1]), json!([1, 1])),
            (json!({"a": 1}), json!({"b": 1})),
        ] {
            assert!(!are_equal(&left, &right), "{left} {right}");
        }
    }

    #[test]
    fn equal_items_are_found_among_few_and_among_many() {
        for count in [2, 100] {
            let mut items: Vec<_> = (0..count)
                .map(|number| json!({"n": number, "m": [number]}))
                .collect();
            assert!(are_unique(&items));
            items.push(json!({"m": [0.0], "n": 0}));
            assert!(!are_unique(&items));
        }
    }
}
