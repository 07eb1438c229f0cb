//! What is said about a broken rule. The words never repeat the value, which may be long or secret.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

use crate::Violation;

/// The most names, values or alternatives that one message lists.
const LISTED: usize = 10;

/// The longest value of a schema that a message repeats, in bytes.
const REPEATED: usize = 100;

pub(crate) fn violation(error: &ValidationError<'_>) -> Violation {
    Violation {
        path: error.instance_path().as_str().to_owned(),
        rule: error.kind().keyword().to_owned(),
        message: message(error.kind()),
    }
}

/// The reference that cannot be resolved.
pub(crate) fn reference(error: &ReferencingError) -> String {
    match error {
        ReferencingError::Unretrievable { uri, .. } => uri.clone(),
        ReferencingError::PointerToNowhere { pointer } => format!("#{pointer}"),
        ReferencingError::NoSuchAnchor { anchor } | ReferencingError::InvalidAnchor { anchor } => {
            format!("#{anchor}")
        }
        other => other.to_string(),
    }
}

fn message(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalItems { limit } => format!("must not have more than {limit} items"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("must not have {}", properties(unexpected))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(context),
        Kind::OneOfMultipleValid { .. } => {
            "must fit exactly one of the alternatives, but fits several".to_owned()
        }
        Kind::Constant { expected_value } => format!("must be {}", value(expected_value)),
        Kind::Contains => "must contain a matching item".to_owned(),
        Kind::ContentEncoding { content_encoding } => {
            format!("must be encoded as {content_encoding}")
        }
        Kind::ContentMediaType { content_media_type } => format!("must be {content_media_type}"),
        Kind::FromUtf8 { .. } => "must be UTF-8 when decoded".to_owned(),
        Kind::Custom { message, .. } => message.clone(),
        Kind::Enum { options } => format!("must be {}", options_of(options)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::FalseSchema => "must not be present".to_owned(),
        Kind::Format { format } => format!("must be a valid {format}"),
        Kind::MaxItems { limit } => format!("must have at most {}", items(*limit)),
        Kind::MinItems { limit } => format!("must have at least {}", items(*limit)),
        Kind::MaxLength { limit } => format!("must be at most {} long", characters(*limit)),
        Kind::MinLength { limit } => format!("must be at least {} long", characters(*limit)),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Not { .. } => "must not fit the excluded schema".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", shortened(pattern)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "cannot be matched against the pattern in reasonable time".to_owned()
        }
        Kind::PropertyNames { error } => {
            format!("has a property name that {}", message(error.kind()))
        }
        Kind::Required { property } => format!("must have the property {}", value(property)),
        Kind::Type { kind } => format!(
            "must be of type {}",
            listed(types(kind).map(str::to_owned), " or ")
        ),
        Kind::UnevaluatedItems { .. } => "must not have further items".to_owned(),
        Kind::UniqueItems => "must not have equal items".to_owned(),
        Kind::Referencing(error) => {
            format!("the reference {:?} cannot be resolved", reference(error))
        }
    }
}

/// Why none of several schemas fits: their types, where that is all, else what each demands.
fn alternatives(context: &[Vec<ValidationError<'_>>]) -> String {
    let first: Vec<_> = context.iter().filter_map(|errors| errors.first()).collect();
    let common = |error: &&ValidationError<'_>| error.instance_path() == first[0].instance_path();
    let types_of = |error: &&ValidationError<'_>| match error.kind() {
        Kind::Type { kind } => Some(types(kind).map(str::to_owned).collect::<Vec<_>>()),
        _ => None,
    };
    let all_types: Option<Vec<_>> = first.iter().map(types_of).collect();
    match all_types {
        Some(types) if !types.is_empty() && first.iter().all(common) => {
            format!(
                "must be of type {}",
                listed(types.into_iter().flatten(), " or ")
            )
        }
        _ => {
            let reasons = first.iter().map(|error| {
                let inside = error.instance_path().as_str();
                let reason = message(error.kind());
                if inside.is_empty() {
                    reason
                } else {
                    format!("{inside} {reason}")
                }
            });
            format!(
                "must fit one of the alternatives: {}",
                listed(reasons, "; or ")
            )
        }
    }
}

fn types(kind: &TypeKind) -> impl Iterator<Item = &'static str> {
    let (one, several) = match kind {
        TypeKind::Single(one) => (Some(*one), None),
        TypeKind::Multiple(several) => (None, Some(*several)),
    };
    one.into_iter()
        .chain(several.into_iter().flat_map(|types| types.iter()))
        .map(|name| name.as_str())
}

fn options_of(options: &Value) -> String {
    match options {
        Value::Array(options) => listed(options.iter().map(value), " or "),
        other => value(other),
    }
}

fn properties(names: &[String]) -> String {
    let noun = if names.len() == 1 {
        "the property"
    } else {
        "the properties"
    };
    format!(
        "{noun} {}",
        listed(
            names.iter().map(|name| shortened(&format!("{name:?}"))),
            ", "
        )
    )
}

fn items(count: u64) -> String {
    format!("{count} {}", if count == 1 { "item" } else { "items" })
}

fn characters(count: u64) -> String {
    format!(
        "{count} {}",
        if count == 1 {
            "character"
        } else {
            "characters"
        }
    )
}

fn value(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    match text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= REPEATED)
    {
        Some(end) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Joins what is different, and cuts where it becomes long.
fn listed(items: impl Iterator<Item = String>, separator: &str) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for item in items {
        if distinct.contains(&item) {
            continue;
        }
        if distinct.len() == LISTED {
            distinct.push("…".to_owned());
            break;
        }
        distinct.push(item);
    }
    distinct.join(separator)
}
