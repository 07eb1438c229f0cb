//! URI templates (RFC 6570, all four levels): expanding one, and matching a URI back to its variables.
//!
//! RFC 6570 defines no matching (§1.4). [`UriTemplate::matches`] accepts what expansion can produce, with these choices
//! where that is ambiguous or unhelpful for routing:
//!
//! - `{var}` and `{+var}` match at least one character. `{/var}`, `{.var}`, `{;var}`, `{?var}`, `{&var}`
//!   and `{#var}` may be absent with their prefix; then the variable is not set.
//! - `{var}` stops at `/`, `?` and `#`; `{+var}` and `{#var}` match any characters. Reserved characters that a client
//!   forgot to encode, such as `@` in `{user}`, are accepted. If there are several ways to match, earlier variables
//!   take as much as they can.
//! - Values are percent-decoded; the result may contain `/` or `..`, which [`checks::path_variables`] looks for.
//!   A value that is not UTF-8 does not match.
//! - `{?a,b}`, `{&a,b}` and `{;a,b}` match their names in any order, each once. A name that is not
//!   listed does not match, unless a variable is exploded, as in `{?all*}`.
//! - Only exploded variables come back as lists or maps; `{list}` comes back as text with commas.
//! - `{var:3}` matches at most three characters and sets `var` to what it matched.
//!
//! [`checks::path_variables`]: crate::checks::path_variables

mod expansion;
mod matching;
mod parser;

use std::fmt;

use serde::{Serialize, Serializer};

pub use parser::{TemplateError, TemplateProblem};

use mcpline_schema::StepBudget;

use crate::limits::{MAX_MATCH_STEPS, MAX_URI};

/// A parsed URI template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    source: String,
    parts: Vec<Part>,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// Text.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// Pairs of keys and values.
    Map(Vec<(String, String)>),
}

/// The budget was exhausted before it was known whether a URI matches a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the matching limit was reached before the URI was compared with every template")]
pub struct MatchLimitReached;

/// Variables by name, in the order they were set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(Vec<(String, Variable)>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Literal text of a URI.
    Literal(String),
    Expression(Expression),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Expression {
    operator: &'static Operator,
    variables: Vec<VariableSpecifier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct VariableSpecifier {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modifier {
    None,
    /// `:n`
    Prefix(usize),
    /// `*`
    Explode,
}

/// A row of the table in RFC 6570, appendix A.
#[derive(Debug, PartialEq, Eq)]
struct Operator {
    symbol: Option<char>,
    first: &'static str,
    separator: char,
    named: bool,
    /// The text after the name of an empty value.
    if_empty: &'static str,
    allows_reserved: bool,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        Ok(Self {
            source: source.to_owned(),
            parts: parser::parse(source)?,
        })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of the template's variables, in order, including repeated ones.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.expressions()
            .flat_map(|expression| &expression.variables)
            .map(|variable| variable.name.as_str())
    }

    /// Expands the template. Variables without a value are left out.
    pub fn expand(&self, variables: &Variables) -> String {
        expansion::expand(&self.parts, variables)
    }

    /// Matches a URI, and returns its variables as the module documentation describes. `None` if it does not match, if
    /// it is longer than [`MAX_URI`] bytes, or if no match is found within [`MAX_MATCH_STEPS`].
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let mut budget = StepBudget::new(MAX_MATCH_STEPS, None);
        self.matches_within(uri, &mut budget).unwrap_or_default()
    }

    /// As [`matches`](Self::matches), within a budget that several matches may share.
    ///
    /// # Errors
    /// When the budget is exhausted before it is known whether the URI matches.
    pub fn matches_within(
        &self,
        uri: &str,
        budget: &mut StepBudget<'_>,
    ) -> Result<Option<Variables>, MatchLimitReached> {
        if uri.len() > MAX_URI {
            return Ok(None);
        }
        matching::matches(&self.parts, uri, budget)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl std::str::FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, Self::Err> {
        Self::parse(source)
    }
}

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Variable>) -> Self {
        self.set(name.into(), value.into());
        self
    }

    /// Sets a variable, replacing its previous value.
    pub fn set(&mut self, name: String, value: Variable) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The variable of that name.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// The variable of that name, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Variable::Text(text) => Some(text),
            Variable::List(_) | Variable::Map(_) => None,
        }
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Variable)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Serializes as a JSON object; lists become arrays, maps become objects.
impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(pairs) => {
                // A repeated key would make the JSON ambiguous; the last one wins.
                let last = pairs.iter().cloned();
                let last = last.map(|(key, value)| (key, serde_json::Value::from(value)));
                last.collect::<crate::vocabulary::JsonObject>()
                    .serialize(serializer)
            }
        }
    }
}

impl From<&str> for Variable {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Variable {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Variable {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<(String, String)>> for Variable {
    fn from(map: Vec<(String, String)>) -> Self {
        Self::Map(map)
    }
}

#[cfg(test)]
mod tests;
