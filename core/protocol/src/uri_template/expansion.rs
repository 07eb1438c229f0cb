//! Expansion: from variables to a URI (RFC 6570 §3).

use super::parser::is_triplet;
use super::{Expression, Modifier, Operator, Part, Variable, VariableSpecifier, Variables};

pub(super) fn expand(parts: &[Part], variables: &Variables) -> String {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => uri.push_str(text),
            Part::Expression(expression) => expand_expression(&mut uri, expression, variables),
        }
    }
    uri
}

fn expand_expression(uri: &mut String, expression: &Expression, variables: &Variables) {
    let operator = expression.operator;
    let mut started = false;
    for specifier in &expression.variables {
        let Some(value) = variables
            .get(&specifier.name)
            .filter(|value| is_defined(value))
        else {
            continue;
        };
        if started {
            uri.push(operator.separator);
        } else {
            uri.push_str(operator.first);
        }
        started = true;
        expand_variable(uri, operator, specifier, value);
    }
}

/// Empty lists and maps count as not set (§2.3).
fn is_defined(value: &Variable) -> bool {
    match value {
        Variable::Text(_) => true,
        Variable::List(items) => !items.is_empty(),
        Variable::Map(pairs) => !pairs.is_empty(),
    }
}

fn expand_variable(
    uri: &mut String,
    operator: &Operator,
    specifier: &VariableSpecifier,
    value: &Variable,
) {
    let explode = specifier.modifier == Modifier::Explode;
    let reserved = operator.allows_reserved;
    match value {
        Variable::Text(text) => {
            let text = match specifier.modifier {
                Modifier::Prefix(length) => text
                    .char_indices()
                    .nth(length)
                    .map_or(&**text, |(end, _)| &text[..end]),
                Modifier::None | Modifier::Explode => text,
            };
            name(uri, operator, &specifier.name, text.is_empty());
            encode(uri, text, reserved);
        }
        Variable::List(items) => {
            if !explode {
                name(uri, operator, &specifier.name, false);
            }
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    uri.push(if explode { operator.separator } else { ',' });
                }
                if explode {
                    name(uri, operator, &specifier.name, item.is_empty());
                }
                encode(uri, item, reserved);
            }
        }
        Variable::Map(pairs) => {
            if !explode {
                name(uri, operator, &specifier.name, false);
            }
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    uri.push(if explode { operator.separator } else { ',' });
                }
                encode(uri, key, reserved);
                if explode && operator.named && value.is_empty() {
                    uri.push_str(operator.if_empty);
                } else {
                    uri.push(if explode { '=' } else { ',' });
                }
                encode(uri, value, reserved);
            }
        }
    }
}

/// Writes the name of a value, if the operator has names.
fn name(uri: &mut String, operator: &Operator, name: &str, empty: bool) {
    if operator.named {
        uri.push_str(name);
        uri.push_str(if empty { operator.if_empty } else { "=" });
    }
}

/// Percent-encodes all characters except unreserved ones. With `reserved`, reserved characters and percent-encoded
/// bytes also stay as they are.
pub(super) fn encode(uri: &mut String, text: &str, reserved: bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (at, letter) in text.char_indices() {
        let kept = letter.is_ascii_alphanumeric()
            || "-._~".contains(letter)
            || (reserved
                && (":/?#[]@!$&'()*+,;=".contains(letter) || is_triplet(&text.as_bytes()[at..])));
        if kept {
            uri.push(letter);
            continue;
        }
        for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            uri.push('%');
            uri.extend(digits.map(char::from));
        }
    }
}
