//! Minimises a schema and a value about which two validators disagree.

use serde_json::{Value, json};

/// Returns the smallest schema and value for which `differs` still holds.
pub(crate) fn shrink(
    schema: &Value,
    value: &Value,
    differs: impl Fn(&Value, &Value) -> bool,
) -> (Value, Value) {
    let (mut schema, mut value) = (schema.clone(), value.clone());
    loop {
        if let Some(smaller) = smaller(&schema).into_iter().find(|it| differs(it, &value)) {
            schema = smaller;
        } else if let Some(smaller) = smaller(&value).into_iter().find(|it| differs(&schema, it)) {
            value = smaller;
        } else {
            return (schema, value);
        }
    }
}

/// Replacements for a value, each a little smaller.
fn smaller(whole: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match whole {
        Value::Object(members) => {
            // The replacements that remove most come first.
            found.extend(members.values().filter(|it| it.is_object()).cloned());
            for name in members.keys() {
                if name != "$schema" {
                    let mut without = members.clone();
                    without.shift_remove(name);
                    found.push(Value::Object(without));
                }
            }
            for (name, member) in members {
                for part in smaller(member) {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), part);
                    found.push(Value::Object(changed));
                }
            }
            if !members.is_empty() {
                found.push(json!(true));
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let mut without = elements.clone();
                without.remove(index);
                found.push(Value::Array(without));
                for part in smaller(element) {
                    let mut changed = elements.clone();
                    changed[index] = part;
                    found.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    found
}
