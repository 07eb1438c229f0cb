//! Messages about broken rules. They never repeat the value, which may be long or secret.

use serde_json::{Number, Value};

use crate::broken_rule::BrokenRule;
use crate::dialect::KeywordShape;
use crate::types::Types;

/// The largest number of names, values or alternatives that one message lists.
const MAX_LISTED_ITEMS: usize = 10;

/// The largest number of names or values that are examined to find those to list: some may have the same text.
pub(crate) const MAX_EXAMINED_ITEMS: usize = 64;

/// The longest value of a schema that a message repeats, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// The longest reason that the message about alternatives repeats, in bytes: reasons may contain alternatives
/// themselves.
const MAX_REASON_BYTES: usize = 400;

/// What the value of a keyword must be.
pub(crate) fn shape(shape: KeywordShape) -> &'static str {
    match shape {
        KeywordShape::Anything => "may be anything",
        KeywordShape::Schema => "must be a schema",
        KeywordShape::Schemas => "must be a list of schemas, one at least",
        KeywordShape::SchemaOrSchemas => "must be a schema or a list of schemas, one at least",
        KeywordShape::SchemaMap => "must be an object of schemas",
        KeywordShape::PatternMap => "must be an object of schemas, by regular expression",
        KeywordShape::Dependencies => "must be an object of schemas and lists of names",
        KeywordShape::Text => "must be a string",
        KeywordShape::Id => "must be a URI without a fragment",
        KeywordShape::Anchor => "must be a name of letters, digits, -, _ and .",
        KeywordShape::Pattern => "must be a regular expression",
        KeywordShape::Flag => "must be true or false",
        KeywordShape::Number => "must be a number",
        KeywordShape::Positive => "must be a number greater than 0",
        KeywordShape::Natural => "must be a whole number, at least 0",
        KeywordShape::List => "must be a list",
        KeywordShape::Object => "must be an object",
        KeywordShape::Names => "must be a list of different strings",
        KeywordShape::NonEmptyNames => "must be a list of different strings, one at least",
        KeywordShape::NamesByName => "must be an object of lists of strings",
        KeywordShape::Types => {
            "must be array, boolean, integer, null, number, object or string, or a list of them"
        }
        KeywordShape::Options => "must be a list of different values, one at least",
    }
}

pub(crate) fn types(types: Types) -> String {
    let names = types.names().map(str::to_owned);
    format!("must be of type {}", join_distinct(names, " or "))
}

pub(crate) fn options(options: &[Value]) -> String {
    format!(
        "must be {}",
        join_distinct(options.iter().map(value), " or ")
    )
}

pub(crate) fn constant(expected: &Value) -> String {
    format!("must be {}", value(expected))
}

/// `demand` introduces the limit, such as "at most".
pub(crate) fn bound(demand: &str, limit: &Number) -> String {
    format!("must be {demand} {limit}")
}

pub(crate) fn items(demand: &str, count: u64) -> String {
    let noun = if count == 1 { "item" } else { "items" };
    format!("must have {demand} {count} {noun}")
}

pub(crate) fn matching(demand: &str, count: u64) -> String {
    let noun = if count == 1 { "item" } else { "items" };
    format!("must contain {demand} {count} matching {noun}")
}

pub(crate) fn characters(demand: &str, count: u64) -> String {
    let noun = if count == 1 {
        "character"
    } else {
        "characters"
    };
    format!("must be {demand} {count} {noun} long")
}

pub(crate) fn properties(demand: &str, count: u64) -> String {
    format!("must have {demand} {count} properties")
}

pub(crate) fn pattern(source: &str) -> String {
    format!(
        "must match the pattern {}",
        truncate(source, MAX_QUOTED_BYTES)
    )
}

pub(crate) fn missing(name: &str) -> String {
    format!("must have the property {}", quoted(name))
}

pub(crate) fn missing_beside(name: &str, present: &str) -> String {
    format!(
        "must have the property {} beside {}",
        quoted(name),
        quoted(present)
    )
}

pub(crate) fn unexpected(names: &[&str]) -> String {
    let noun = if names.len() == 1 {
        "the property"
    } else {
        "the properties"
    };
    let names = names.iter().map(|name| quoted(name));
    format!("must not have {noun} {}", join_distinct(names, ", "))
}

pub(crate) fn property_name(reason: &str) -> String {
    format!("has a property name that {reason}")
}

/// Why no alternative matches. It keeps only as many reasons as a message shows.
#[derive(Default)]
pub(crate) struct AlternativeReasons {
    count: usize,
    /// The path of the first reason.
    path: String,
    /// The types that each alternative requires at `path`.
    types: Vec<Types>,
    /// Whether an alternative breaks another rule, or one at another path.
    has_other_rules: bool,
    /// The distinct reasons.
    texts: DistinctTexts,
}

impl AlternativeReasons {
    pub(crate) fn add(&mut self, reason: &BrokenRule) {
        if self.count == 0 {
            self.path.clone_from(&reason.path);
        }
        self.count += 1;
        match reason.types.filter(|_| reason.path == self.path) {
            // There are at most 128 sets of types.
            Some(types) if self.types.contains(&types) => {}
            Some(types) => self.types.push(types),
            None => self.has_other_rules = true,
        }
        let message = truncate(&reason.message, MAX_REASON_BYTES);
        self.texts.add(if reason.path.is_empty() {
            message
        } else {
            format!("{} {message}", reason.path)
        });
    }

    /// Writes the message: one list of types if every alternative failed by its type, otherwise each reason.
    pub(crate) fn into_message(self) -> String {
        if self.count > 0 && !self.has_other_rules {
            let names = self.types.into_iter().flat_map(Types::names);
            return format!(
                "must be of type {}",
                join_distinct(names.map(str::to_owned), " or ")
            );
        }
        let reasons = self.texts.joined("; or ");
        format!("must fit one of the alternatives: {reasons}")
    }
}

fn quoted(name: &str) -> String {
    let beginning = beginning(name, MAX_QUOTED_BYTES).unwrap_or(name);
    truncate(&format!("{beginning:?}"), MAX_QUOTED_BYTES)
}

fn value(value: &Value) -> String {
    truncate(&value.to_string(), MAX_QUOTED_BYTES)
}

/// Truncates a text at the first character that begins at `max_bytes` or later.
fn truncate(text: &str, max_bytes: usize) -> String {
    match beginning(text, max_bytes) {
        Some(beginning) => format!("{beginning}…"),
        None => text.to_owned(),
    }
}

/// The part before the first character that begins at `max_bytes` or later; `None` if no character does.
fn beginning(text: &str, max_bytes: usize) -> Option<&str> {
    let mut places = text.char_indices().map(|(at, _)| at);
    let end = places.find(|at| *at >= max_bytes)?;
    text.get(..end)
}

/// Joins the distinct items, at most [`MAX_LISTED_ITEMS`].
fn join_distinct(items: impl Iterator<Item = String>, separator: &str) -> String {
    let mut distinct = DistinctTexts::default();
    items
        .take(MAX_EXAMINED_ITEMS)
        .for_each(|item| distinct.add(item));
    distinct.joined(separator)
}

/// Distinct texts, at most as many as a message lists.
#[derive(Default)]
struct DistinctTexts {
    texts: Vec<String>,
    has_more: bool,
}

impl DistinctTexts {
    fn add(&mut self, text: String) {
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < MAX_LISTED_ITEMS {
            self.texts.push(text);
        } else {
            self.has_more = true;
        }
    }

    fn joined(mut self, separator: &str) -> String {
        if self.has_more {
            self.texts.push("…".to_owned());
        }
        self.texts.join(separator)
    }
}
