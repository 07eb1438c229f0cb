//! Makes a schema and a value small that two validators disagree about.

use serde_json::{Value, json};

/// The smallest that was found for which `differs` holds as for the given ones.
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

/// What a value can be replaced by, each a little smaller.
fn smaller(whole: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match whole {
        Value::Object(members) => {
            // What takes away most comes first.
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
