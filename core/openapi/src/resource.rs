//! Operations as resources: URI templates, and arguments from their variables.

use serde_json::{Map, Number, Value};

use crate::operation::Method;
use crate::parameter::{Encoding, Location, Parameter};
use crate::style::Style;

/// Returns the URI, or the URI template, of an operation.
pub(crate) fn template(
    scheme: &str,
    method: Method,
    path: &str,
    parameters: &[Parameter],
    has_body: bool,
) -> Option<String> {
    if method != Method::Get || has_body {
        return None;
    }
    let mut uri = path.trim_matches('/').to_owned();
    if uri.is_empty() {
        "root".clone_into(&mut uri);
    }
    let mut query = Vec::new();
    for parameter in parameters {
        let is_simple = matches!(
            parameter.encoding,
            Encoding::Style {
                style: Style::Simple | Style::Form,
                ..
            }
        );
        let argument = &*parameter.argument;
        // A template takes letters, digits, `_` and `.`.
        let is_variable = argument
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
        match parameter.location {
            Location::Path if is_simple && is_variable => {
                let name = &parameter.name;
                uri = uri.replace(&format!("{{{name}}}"), &format!("{{{argument}}}"));
            }
            Location::Query if is_simple && is_variable => query.push(argument),
            _ if parameter.is_required => return None,
            _ => {}
        }
    }
    match query.is_empty() {
        true => Some(format!("{scheme}://{uri}")),
        false => Some(format!("{scheme}://{uri}{{?{}}}", query.join(","))),
    }
}

/// Returns the arguments of a request: each text in the type that its schema names.
pub(crate) fn arguments(
    input_schema: &Value,
    parameters: &[Parameter],
    variables: &Map<String, Value>,
) -> Map<String, Value> {
    let mut arguments = Map::new();
    for parameter in parameters {
        let argument = &parameter.argument;
        let Some(value) = variables.get(argument).filter(|value| !value.is_null()) else {
            continue;
        };
        let schema = input_schema
            .get("properties")
            .and_then(|all| all.get(argument));
        arguments.insert(argument.clone(), typed(value, schema));
    }
    arguments
}

fn typed(value: &Value, schema: Option<&Value>) -> Value {
    let Value::String(text) = value else {
        return value.clone();
    };
    let kind = schema.and_then(|schema| schema.get("type"));
    let has = |name: &str| match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        Some(kind) => kind == name,
        None => false,
    };
    if has("string") {
        return value.clone();
    }
    if has("array") {
        let items = schema.and_then(|schema| schema.get("items"));
        let items = text.split(',').map(|item| typed(&Value::from(item), items));
        return Value::Array(items.collect());
    }
    let number = (has("integer") || has("number"))
        .then(|| text.parse::<Number>().ok())
        .flatten()
        // Digits of integers with more than 64 bits would be lost.
        .filter(|number| !number.is_f64() || text.contains(['.', 'e', 'E']));
    let boolean = has("boolean").then(|| text.parse().ok()).flatten();
    number
        .map(Value::Number)
        .or(boolean.map(Value::Bool))
        .unwrap_or_else(|| value.clone())
}
