//! The grammar of templates (RFC 6570 §2).

use super::expansion::encode;
use super::{Expression, Modifier, Operator, Part, VariableSpecifier};
use crate::limits::MAX_TEMPLATE_VARIABLES;

/// Why a text is not a URI template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at} of the URI template")]
pub struct TemplateError {
    /// What is wrong.
    pub problem: TemplateProblem,
    /// Where, counted in bytes from the start.
    pub at: usize,
}

/// The kind of a [`TemplateError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateProblem {
    /// `{` without `}`, or the other way round.
    #[error("unbalanced brace")]
    Brace,
    /// A character that neither URIs nor templates may contain, for example a space.
    #[error("character that must be percent-encoded")]
    Literal,
    /// A `%` without two hexadecimal digits.
    #[error("incomplete percent-encoding")]
    Percent,
    /// An operator that RFC 6570 reserves.
    #[error("reserved operator")]
    Operator,
    /// No variable name.
    #[error("invalid variable name")]
    Name,
    /// A prefix that is not a number from 1 to 9999.
    #[error("invalid prefix length")]
    Prefix,
    /// More than [`MAX_TEMPLATE_VARIABLES`].
    #[error("too many variables")]
    Variables,
}

const SIMPLE: Operator = Operator {
    symbol: None,
    first: "",
    separator: ',',
    named: false,
    if_empty: "",
    allows_reserved: false,
};

const OPERATORS: &[Operator] = &[
    Operator {
        symbol: Some('+'),
        allows_reserved: true,
        ..SIMPLE
    },
    Operator {
        symbol: Some('#'),
        first: "#",
        allows_reserved: true,
        ..SIMPLE
    },
    Operator {
        symbol: Some('.'),
        first: ".",
        separator: '.',
        ..SIMPLE
    },
    Operator {
        symbol: Some('/'),
        first: "/",
        separator: '/',
        ..SIMPLE
    },
    Operator {
        symbol: Some(';'),
        first: ";",
        separator: ';',
        named: true,
        ..SIMPLE
    },
    Operator {
        symbol: Some('?'),
        first: "?",
        separator: '&',
        named: true,
        if_empty: "=",
        ..SIMPLE
    },
    Operator {
        symbol: Some('&'),
        first: "&",
        separator: '&',
        named: true,
        if_empty: "=",
        ..SIMPLE
    },
];

pub(super) fn parse(source: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut count = 0;
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let error = |problem, offset: usize| TemplateError {
            problem,
            at: at + offset,
        };
        if let Some(inside) = rest.strip_prefix('{') {
            let end = inside.find('}').ok_or(error(TemplateProblem::Brace, 0))?;
            let expression = expression(&inside[..end])
                .map_err(|(problem, offset)| error(problem, 1 + offset))?;
            count += expression.variables.len();
            if count > MAX_TEMPLATE_VARIABLES {
                return Err(error(TemplateProblem::Variables, 0));
            }
            parts.push(Part::Expression(expression));
            at += end + 2;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            parts.push(Part::Literal(
                literal(&rest[..end]).map_err(|(problem, offset)| error(problem, offset))?,
            ));
            at += end;
        }
    }
    Ok(parts)
}

/// A problem and its offset in the given piece.
type Fault = (TemplateProblem, usize);

fn literal(text: &str) -> Result<String, Fault> {
    for (at, letter) in text.char_indices() {
        let problem = match letter {
            '}' => TemplateProblem::Brace,
            '%' if !is_triplet(&text.as_bytes()[at..]) => TemplateProblem::Percent,
            '\0'..=' ' | '\x7f' | '"' | '\'' | '<' | '>' | '\\' | '^' | '`' | '|' => {
                TemplateProblem::Literal
            }
            _ => continue,
        };
        // The grammar of URIs allows the apostrophe, that of literals does not, but it is in use.
        if letter != '\'' {
            return Err((problem, at));
        }
    }
    let mut encoded = String::new();
    encode(&mut encoded, text, true);
    Ok(encoded)
}

fn expression(text: &str) -> Result<Expression, Fault> {
    let operator = OPERATORS.iter().find(|operator| {
        operator
            .symbol
            .is_some_and(|symbol| text.starts_with(symbol))
    });
    if text.starts_with(['=', ',', '!', '@', '|']) {
        return Err((TemplateProblem::Operator, 0));
    }
    let mut at = usize::from(operator.is_some());
    let mut variables = Vec::new();
    for specifier in text[at..].split(',') {
        variables.push(self::specifier(specifier).map_err(|problem| (problem, at))?);
        at += specifier.len() + 1;
    }
    Ok(Expression {
        operator: operator.unwrap_or(&SIMPLE),
        variables,
    })
}

fn specifier(text: &str) -> Result<VariableSpecifier, TemplateProblem> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        let digits =
            (1..=4).contains(&length.len()) && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length
            .parse()
            .ok()
            .filter(|_| digits && !length.starts_with('0'));
        (
            name,
            Modifier::Prefix(length.ok_or(TemplateProblem::Prefix)?),
        )
    } else {
        (text, Modifier::None)
    };
    if is_name(name) {
        Ok(VariableSpecifier {
            name: name.to_owned(),
            modifier,
        })
    } else {
        Err(TemplateProblem::Name)
    }
}

/// Letters, digits, underscores and percent-encoded bytes, in groups with dots between them.
fn is_name(name: &str) -> bool {
    let group = |group: &str| {
        let mut rest = group.as_bytes();
        while let Some(&byte) = rest.first() {
            let length = match byte {
                b'%' if is_triplet(rest) => 3,
                b'_' => 1,
                byte if byte.is_ascii_alphanumeric() => 1,
                _ => return false,
            };
            rest = &rest[length..];
        }
        !group.is_empty()
    };
    name.split('.').all(group)
}

/// Whether `bytes` start with a percent-encoded byte.
pub(super) fn is_triplet(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}
