//! Digests of requests that don't depend on how their JSON was written.
//!
//! A retry may order members differently, escape strings differently or write a number differently and still be the
//! same request, so digests are taken over a canonical form: members sorted by their decoded name, strings with the
//! shortest escapes, equal numbers written alike.

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use crate::wire::Raw;

/// Member of `params` with metadata.
const META: &str = "_meta";

/// Members of `params` that belong to one attempt and not to the request itself.
const PER_ATTEMPT: [&str; 3] = [META, "inputResponses", "requestState"];

/// Digests a request: its method and its parameters, without `_meta`, `inputResponses` and
/// `requestState`, which differ between an attempt and its retry.
///
/// Returns 32 bytes of SHA-256.
pub fn request_digest(method: &str, params: Option<&Raw>) -> [u8; 32] {
    let Some(params) = params else {
        return digest(method, &Value::Null);
    };
    let Ok(mut value) = params.decode::<Value>() else {
        return digest_as_written(method, params, &PER_ATTEMPT);
    };
    if let Value::Object(members) = &mut value {
        for name in PER_ATTEMPT {
            members.remove(name);
        }
    }
    digest(method, &value)
}

/// Digests an input request, so that a replay with another input request is noticed: its method and its parameters, without
/// `_meta`, where each run of the handler has a trace context of its own. Without any other member it is the same as without
/// parameters.
pub fn input_request_digest(method: &str, params: Option<&Raw>) -> [u8; 32] {
    match params.map(|params| (params, params.decode::<Value>())) {
        None => digest(method, &Value::Null),
        Some((_, Ok(mut value))) => {
            if let Value::Object(members) = &mut value {
                members.remove(META);
                if members.is_empty() {
                    value = Value::Null;
                }
            }
            digest(method, &value)
        }
        Some((params, Err(_))) => digest_as_written(method, params, &[META]),
    }
}

/// Digests parameters that cannot be decoded, because a number is out of range: the bytes of their members, except those
/// `without`. So each such request has a digest of its own, and the same one only if it is sent again as it was.
fn digest_as_written(method: &str, params: &Raw, without: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(method.as_bytes());
    // Distinct from the digest of a canonical form.
    hasher.update([1]);
    for (name, value) in params.members().into_iter().flatten() {
        if !without.contains(&&*name) {
            for part in [name.as_bytes(), value.as_bytes()] {
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part);
            }
        }
    }
    hasher.finalize().into()
}

/// Writes a value in canonical form: sorted members, no white space, equal numbers alike.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn digest(method: &str, value: &Value) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(method.as_bytes());
    hasher.update([0]);
    hasher.update(canonical_json(value).as_bytes());
    hasher.finalize().into()
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(out, members),
    }
}

fn write_object(out: &mut String, members: &Map<String, Value>) {
    let mut names: Vec<&String> = members.keys().collect();
    names.sort_unstable();
    out.push('{');
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_value(out, &members[name]);
    }
    out.push('}');
}

fn write_number(out: &mut String, number: &Number) {
    use std::fmt::Write;

    // A float with an integral value must have the same digest as the integer, such as 1.0 and 1.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let written = match number.as_f64() {
        Some(float) if !number.is_i64() && !number.is_u64() => {
            if float.fract() == 0.0 && float.abs() < EXACT {
                write!(out, "{}", float as i64)
            } else {
                write!(out, "{float:e}")
            }
        }
        _ => write!(out, "{number}"),
    };
    // Writing to a `String` can't fail.
    debug_assert!(written.is_ok());
}

fn write_string(out: &mut String, text: &str) {
    // `serde_json` always writes the shortest escapes.
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        Err(_) => out.push_str("\"\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).expect("valid JSON")
    }

    #[test]
    fn parameters_with_a_number_out_of_range_have_digests_of_their_own() {
        let raw = |json: &str| Raw::parse(json.to_owned()).expect("JSON");
        let one = raw(r#"{"arguments": {"amount": 1}, "pad": 1e999, "_meta": {"a": 1}}"#);
        let other = raw(r#"{"arguments": {"amount": 2}, "pad": 1e999}"#);
        let again = raw(r#"{"arguments": {"amount": 1}, "pad": 1e999, "requestState": "x"}"#);
        let digest = |params| request_digest("tools/call", Some(params));
        assert_ne!(digest(&one), digest(&other));
        assert_eq!(digest(&one), digest(&again));
        let digest = |params| input_request_digest("elicitation/create", Some(params));
        assert_ne!(digest(&one), digest(&other));
    }

    #[test]
    fn spelling_does_not_change_a_digest() {
        let one = raw(r#"{"name":"t","arguments":{"a":1,"b":"\u00e9"}}"#);
        let two = raw(r#"{ "arguments": {"b": "é", "a": 1.0}, "name": "t" }"#);
        assert_eq!(
            request_digest("tools/call", Some(&one)),
            request_digest("tools/call", Some(&two))
        );
    }

    #[test]
    fn leaves_out_members_of_one_attempt() {
        let first = raw(r#"{"name":"t","_meta":{"progressToken":1}}"#);
        let retry = raw(r#"{"name":"t","_meta":{},"inputResponses":{},"requestState":"x"}"#);
        assert_eq!(
            request_digest("tools/call", Some(&first)),
            request_digest("tools/call", Some(&retry))
        );
    }

    #[test]
    fn input_requests_are_the_same_with_another_trace_context() {
        let digest = |params: Option<&Raw>| input_request_digest("roots/list", params);
        let one = raw(r#"{"message":"m","_meta":{"traceparent":"00-1"}}"#);
        let two = raw(r#"{"message":"m","_meta":{"traceparent":"00-2"}}"#);
        assert_eq!(digest(Some(&one)), digest(Some(&two)));
        assert_eq!(digest(Some(&one)), digest(Some(&raw(r#"{"message":"m"}"#))));
        assert_eq!(digest(Some(&raw(r#"{"_meta":{"a":1}}"#))), digest(None));
        assert_ne!(digest(Some(&one)), digest(None));
    }

    #[test]
    fn other_arguments_or_another_method_differ() {
        let one = raw(r#"{"name":"t","arguments":{"a":1}}"#);
        let two = raw(r#"{"name":"t","arguments":{"a":2}}"#);
        assert_ne!(
            request_digest("tools/call", Some(&one)),
            request_digest("tools/call", Some(&two))
        );
        assert_ne!(
            request_digest("tools/call", Some(&one)),
            request_digest("prompts/get", Some(&one))
        );
    }

    #[test]
    fn members_are_sorted_at_every_level() {
        let value = serde_json::json!({"b": {"z": 1, "y": [1.5, "x"]}, "a": null});
        assert_eq!(
            canonical_json(&value),
            r#"{"a":null,"b":{"y":[1.5e0,"x"],"z":1}}"#
        );
    }
}
