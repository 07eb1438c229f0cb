//! Suggestions for arguments that a tool does not have: names that were probably meant.

use std::fmt::Write as _;

use mcpline_protocol::schema::Violation;
use mcpline_protocol::similar_names::{MAX_NAME_BYTES, nearest};
use mcpline_protocol::wire::Raw;
use serde_json::Value;

/// Maximum number of unknown arguments for which names are suggested.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of names of the schema that are compared with one argument.
const MAX_COMPARED_NAMES: usize = 256;

/// Returns `; did you mean "days" instead of "day"?` if the violation is about the arguments' names and there are names like
/// those that the schema does not have, or else an empty text.
pub(super) fn suggestions(violation: &Violation, arguments: &Raw, schema: &Value) -> String {
    let is_about_names = matches!(
        &*violation.rule,
        "additionalProperties" | "unevaluatedProperties" | "required"
    );
    let properties = schema.get("properties").and_then(Value::as_object);
    let (true, true, Some(properties)) = (is_about_names, violation.path.is_empty(), properties)
    else {
        return String::new();
    };
    let given: Vec<_> = arguments
        .members()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .take(MAX_COMPARED_NAMES)
        .collect();
    let unknown = given
        .iter()
        .filter(|name| name.len() <= MAX_NAME_BYTES && !properties.contains_key(&***name));
    let missing: Vec<_> = properties
        .keys()
        .filter(|name| name.len() <= MAX_NAME_BYTES)
        .filter(|name| given.iter().all(|given| given != *name))
        .take(MAX_COMPARED_NAMES)
        .collect();
    let mut text = String::new();
    for name in unknown.take(MAX_SUGGESTIONS) {
        let mut missing = missing.iter().map(|name| name.as_str());
        // At most a third of the characters differ.
        if let Some(meant) = nearest(name, &mut missing, 3) {
            let start = if text.is_empty() {
                "; did you mean"
            } else {
                ","
            };
            // Writing into a `String` never fails.
            let _ = write!(text, "{start} {meant:?} instead of {:?}", &**name);
        }
    }
    if !text.is_empty() {
        text.push('?');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn suggested(rule: &str, path: &str, arguments: &Value) -> String {
        let violation = Violation {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: String::new(),
        };
        let schema = json!({"properties": {"city": {}, "days": {}, "user_id": {}, "q": {}}});
        let arguments = Raw::parse(arguments.to_string()).expect("valid JSON");
        suggestions(&violation, &arguments, &schema)
    }

    #[test]
    fn suggests_names_that_differ_little() {
        for (arguments, expected) in [
            (
                json!({"day": 1}),
                r#"; did you mean "days" instead of "day"?"#,
            ),
            (
                json!({"ctiy": 1}),
                r#"; did you mean "city" instead of "ctiy"?"#,
            ),
            (
                json!({"userId": 1}),
                r#"; did you mean "user_id" instead of "userId"?"#,
            ),
            (
                json!({"citty": 1, "zzz": 2, "Days": 3}),
                r#"; did you mean "city" instead of "citty", "days" instead of "Days"?"#,
            ),
            (json!({"zzz": 1, "query": 1, "": 1}), ""),
            // The meant name is given as well.
            (json!({"day": 1, "days": 1}), ""),
        ] {
            assert_eq!(suggested("additionalProperties", "", &arguments), expected);
        }
        let day = json!({"day": 1});
        assert!(suggested("required", "", &day).contains("days"));
        assert_eq!(suggested("type", "", &day), "");
        assert_eq!(suggested("additionalProperties", "/city", &day), "");
    }

    #[test]
    fn suggestions_are_bounded() {
        let names = ["citya", "cityb", "cityc", "cityd", "daysa"];
        let mut arguments: serde_json::Map<_, _> = names
            .iter()
            .map(|&name| (name.to_owned(), json!(1)))
            .collect();
        let text = suggested(
            "additionalProperties",
            "",
            &Value::Object(arguments.clone()),
        );
        assert_eq!(text.matches("instead of").count(), MAX_SUGGESTIONS);
        arguments.clear();
        arguments.insert("city".repeat(100), json!(1));
        assert_eq!(
            suggested("additionalProperties", "", &Value::Object(arguments)),
            ""
        );
    }
}
