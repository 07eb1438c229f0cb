//! What is said about a broken rule. The words never repeat the value, which may be long or secret.

use serde_json::{Number, Value};

use crate::broken::Broken;
use crate::dialect::Shape;
use crate::types::Types;

/// The most names, values or alternatives that one message lists.
const LISTED: usize = 10;

/// The most names or values that are looked at to find those to list: some may read alike.
pub(crate) const EXAMINED: usize = 64;

/// The longest value of a schema that a message repeats, in bytes.
const REPEATED: usize = 100;

/// The longest reason that the message about alternatives repeats, in bytes: reasons may tell of alternatives in turn.
const REASON: usize = 400;

/// What the value of a keyword must be.
pub(crate) fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Anything => "may be anything",
        Shape::Schema => "must be a schema",
        Shape::Schemas => "must be a list of schemas, one at least",
        Shape::SchemaOrSchemas => "must be a schema or a list of schemas, one at least",
        Shape::SchemaMap => "must be an object of schemas",
        Shape::PatternMap => "must be an object of schemas, by regular expression",
        Shape::Dependencies => "must be an object of schemas and lists of names",
        Shape::Text => "must be a string",
        Shape::Id => "must be a URI without a fragment",
        Shape::Anchor => "must be a name of letters, digits, -, _ and .",
        Shape::Pattern => "must be a regular expression",
        Shape::Flag => "must be true or false",
        Shape::Number => "must be a number",
        Shape::Positive => "must be a number greater than 0",
        Shape::Natural => "must be a whole number, at least 0",
        Shape::List => "must be a list",
        Shape::Object => "must be an object",
        Shape::Names => "must be a list of different strings",
        Shape::SomeNames => "must be a list of different strings, one at least",
        Shape::NamesByName => "must be an object of lists of strings",
        Shape::Types => {
            "must be array, boolean, integer, null, number, object or string, or a list of them"
        }
        Shape::Options => "must be a list of different values, one at least",
    }
}

pub(crate) fn types(types: Types) -> String {
    let names = types.names().map(str::to_owned);
    format!("must be of type {}", listed(names, " or "))
}

pub(crate) fn options(options: &[Value]) -> String {
    format!("must be {}", listed(options.iter().map(value), " or "))
}

pub(crate) fn constant(expected: &Value) -> String {
    format!("must be {}", value(expected))
}

/// `demand` is what the limit means, as "at most".
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
    format!("must match the pattern {}", shortened(source, REPEATED))
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
    format!("must not have {noun} {}", listed(names, ", "))
}

pub(crate) fn property_name(reason: &str) -> String {
    format!("has a property name that {reason}")
}

/// Why none of several schemas fits. However many there are, no more is kept of their reasons than a message says.
#[derive(Default)]
pub(crate) struct Reasons {
    count: usize,
    /// The path of the first.
    path: String,
    /// The types that each demands, until there is one that demands something else, or of something else.
    types: Vec<Types>,
    /// Whether there is such a one.
    others: bool,
    /// What they say.
    texts: Distinct,
}

impl Reasons {
    pub(crate) fn add(&mut self, reason: &Broken) {
        if self.count == 0 {
            self.path.clone_from(&reason.path);
        }
        self.count += 1;
        match reason.types.filter(|_| reason.path == self.path) {
            // There are no more than 128 sets of types.
            Some(types) if self.types.contains(&types) => {}
            Some(types) => self.types.push(types),
            None => self.others = true,
        }
        let message = shortened(&reason.message, REASON);
        self.texts.add(if reason.path.is_empty() {
            message
        } else {
            format!("{} {message}", reason.path)
        });
    }

    /// The types of all, where that is what each demands, else what each demands.
    pub(crate) fn told(self) -> String {
        if self.count > 0 && !self.others {
            let names = self.types.into_iter().flat_map(Types::names);
            return format!(
                "must be of type {}",
                listed(names.map(str::to_owned), " or ")
            );
        }
        let reasons = self.texts.joined("; or ");
        format!("must fit one of the alternatives: {reasons}")
    }
}

fn quoted(name: &str) -> String {
    let beginning = beginning(name, REPEATED).unwrap_or(name);
    shortened(&format!("{beginning:?}"), REPEATED)
}

fn value(value: &Value) -> String {
    shortened(&value.to_string(), REPEATED)
}

/// Cut after so many bytes, or a little later.
fn shortened(text: &str, longest: usize) -> String {
    match beginning(text, longest) {
        Some(beginning) => format!("{beginning}…"),
        None => text.to_owned(),
    }
}

/// What stands before the first character that begins after so many bytes, if there is one.
fn beginning(text: &str, longest: usize) -> Option<&str> {
    let mut places = text.char_indices().map(|(at, _)| at);
    let end = places.find(|at| *at >= longest)?;
    text.get(..end)
}

/// Joins what is different, and cuts where it becomes long.
fn listed(items: impl Iterator<Item = String>, separator: &str) -> String {
    let mut distinct = Distinct::default();
    items.take(EXAMINED).for_each(|item| distinct.add(item));
    distinct.joined(separator)
}

/// Different texts, no more than are listed.
#[derive(Default)]
struct Distinct {
    texts: Vec<String>,
    has_more: bool,
}

impl Distinct {
    fn add(&mut self, text: String) {
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < LISTED {
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
