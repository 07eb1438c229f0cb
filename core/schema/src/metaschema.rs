//! Checks a schema against the rules of its dialect's metaschema.

use serde_json::Value;

use crate::budget::StepBudget;
use crate::dialect::{Dialect, KeywordShape};
use crate::equality::are_unique;
use crate::number;
use crate::types::Types;
use crate::value_path::{PathSegment, value_path};
use crate::{SchemaError, messages};

/// The first rule of the metaschema that a schema breaks.
#[derive(Debug)]
pub(crate) struct InvalidSchema {
    /// A JSON pointer into the schema.
    pub(crate) path: String,
    /// What is wrong there.
    pub(crate) message: String,
}

/// Why a schema is rejected.
#[derive(Debug)]
pub(crate) enum SchemaCheckError {
    /// The schema breaks a rule of its dialect.
    InvalidSchema(InvalidSchema),
    /// The budget was exhausted before the result was known.
    BudgetExhausted,
}

impl From<SchemaCheckError> for SchemaError {
    fn from(failure: SchemaCheckError) -> Self {
        match failure {
            SchemaCheckError::InvalidSchema(invalid) => Self::Invalid {
                path: invalid.path,
                message: invalid.message,
            },
            SchemaCheckError::BudgetExhausted => Self::Limit,
        }
    }
}

/// Checks a schema and its subschemas, which may declare other dialects.
pub(crate) fn check_schema(
    schema: &Value,
    dialect: Dialect,
    budget: &mut StepBudget<'_>,
) -> Result<(), SchemaCheckError> {
    let mut checker = SchemaChecker {
        path: Vec::new(),
        budget: *budget,
    };
    let outcome = checker.check_schema(schema, dialect);
    *budget = checker.budget;
    outcome
}

struct SchemaChecker<'a, 'b> {
    path: Vec<PathSegment<'a>>,
    budget: StepBudget<'b>,
}

/// The steps of looking up a keyword among those of its dialect.
const KEYWORD_STEPS: usize = 4;

impl<'a> SchemaChecker<'a, '_> {
    fn reject(&self, message: impl Into<String>) -> Result<(), SchemaCheckError> {
        Err(SchemaCheckError::InvalidSchema(InvalidSchema {
            path: value_path(&self.path),
            message: message.into(),
        }))
    }

    fn check_schema(
        &mut self,
        schema: &'a Value,
        dialect: Dialect,
    ) -> Result<(), SchemaCheckError> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) if dialect > Dialect::Draft4 || self.allows_boolean_schema() => {
                return Ok(());
            }
            _ if dialect > Dialect::Draft4 => {
                return self.reject("must be a schema: an object or a boolean");
            }
            _ => return self.reject("must be a schema: an object"),
        };
        // A schema with its own URI may have another dialect.
        let dialect = match members.contains_key("$id") || members.contains_key("id") {
            true => Dialect::of(schema, dialect).unwrap_or(dialect),
            false => dialect,
        };
        for (keyword, value) in members {
            self.charge(KEYWORD_STEPS)?;
            self.charge_text(keyword)?;
            let shape = dialect.shape(keyword);
            self.path.push(PathSegment::Name(keyword));
            self.check_value(shape, value)?;
            for (segment, schema) in shape.subschemas(value) {
                self.path.push(segment);
                self.check_schema(schema, dialect)?;
                self.path.pop();
            }
            self.path.pop();
        }
        if dialect == Dialect::Draft4 {
            for (keyword, other) in [
                ("exclusiveMaximum", "maximum"),
                ("exclusiveMinimum", "minimum"),
            ] {
                if members.contains_key(keyword) && !members.contains_key(other) {
                    return self.reject(format!("must have {other} beside {keyword}"));
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, steps: usize) -> Result<(), SchemaCheckError> {
        self.budget
            .charge(steps)
            .ok_or(SchemaCheckError::BudgetExhausted)
    }

    fn charge_text(&mut self, text: &str) -> Result<(), SchemaCheckError> {
        self.budget
            .charge_bytes(text.len())
            .ok_or(SchemaCheckError::BudgetExhausted)
    }

    fn are_unique(&mut self, items: &[Value]) -> Result<bool, SchemaCheckError> {
        are_unique(items, &mut self.budget).ok_or(SchemaCheckError::BudgetExhausted)
    }

    fn is_list_of_unique_strings(&mut self, value: &Value) -> Result<bool, SchemaCheckError> {
        let names = value.as_array();
        let names = names.filter(|names| names.iter().all(Value::is_string));
        names.map_or(Ok(false), |names| self.are_unique(names))
    }

    /// Whether the keyword at this path accepts a boolean in place of a schema, as two keywords in draft 4 do.
    fn allows_boolean_schema(&self) -> bool {
        let mut names = self.path.iter().rev().filter_map(|segment| match segment {
            PathSegment::Name(name) => Some(*name),
            _ => None,
        });
        matches!(
            names.next(),
            Some("additionalItems" | "additionalProperties")
        )
    }

    /// Checks the value of a keyword, without its subschemas.
    fn check_value(
        &mut self,
        shape: KeywordShape,
        value: &'a Value,
    ) -> Result<(), SchemaCheckError> {
        let fits = match shape {
            KeywordShape::Anything | KeywordShape::Schema => true,
            KeywordShape::SchemaOrSchemas => {
                value.as_array().is_none_or(|schemas| !schemas.is_empty())
            }
            KeywordShape::Schemas => value.as_array().is_some_and(|schemas| !schemas.is_empty()),
            KeywordShape::SchemaMap | KeywordShape::PatternMap | KeywordShape::Object => {
                value.is_object()
            }
            KeywordShape::Dependencies | KeywordShape::NamesByName => {
                return self.check_name_lists(shape, value);
            }
            KeywordShape::Text | KeywordShape::Pattern => value.is_string(),
            KeywordShape::Id | KeywordShape::Anchor => {
                let Value::String(text) = value else {
                    return self.reject(messages::shape(shape));
                };
                self.charge_text(text)?;
                match shape {
                    KeywordShape::Id => has_no_fragment(text),
                    _ => is_anchor(text),
                }
            }
            KeywordShape::Flag => value.is_boolean(),
            KeywordShape::Number => value.is_number(),
            KeywordShape::Positive => value.as_number().is_some_and(number::is_positive),
            KeywordShape::Natural => value.as_number().and_then(number::natural).is_some(),
            KeywordShape::List => value.is_array(),
            KeywordShape::Names => self.is_list_of_unique_strings(value)?,
            KeywordShape::NonEmptyNames => {
                self.is_list_of_unique_strings(value)? && value != &Value::Array(Vec::new())
            }
            KeywordShape::Types => Types::of(value).is_some(),
            KeywordShape::Options => match value.as_array() {
                Some(options) => !options.is_empty() && self.are_unique(options)?,
                None => false,
            },
        };
        if fits {
            Ok(())
        } else {
            self.reject(messages::shape(shape))
        }
    }

    /// Checks an object of lists of names. Subschemas among the lists are checked elsewhere.
    fn check_name_lists(
        &mut self,
        shape: KeywordShape,
        value: &'a Value,
    ) -> Result<(), SchemaCheckError> {
        let Value::Object(lists) = value else {
            return self.reject(messages::shape(shape));
        };
        for (name, list) in lists {
            let is_schema = shape == KeywordShape::Dependencies && !list.is_array();
            if !is_schema && !self.is_list_of_unique_strings(list)? {
                self.path.push(PathSegment::Name(name));
                return self.reject(messages::shape(KeywordShape::Names));
            }
        }
        Ok(())
    }
}

fn has_no_fragment(uri: &str) -> bool {
    uri.split_once('#')
        .is_none_or(|(_, fragment)| fragment.is_empty())
}

fn is_anchor(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':'))
}
