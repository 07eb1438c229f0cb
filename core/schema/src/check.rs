//! Whether a value is a schema that its dialect allows: the rules of the dialects' metaschemas.

use serde_json::Value;

use crate::budget::Budget;
use crate::dialect::{Dialect, Shape};
use crate::equality::are_unique;
use crate::number;
use crate::place::{Place, pointer};
use crate::types::Types;
use crate::{SchemaError, wording};

/// Why something is no schema.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// A JSON pointer to the place.
    pub(crate) place: String,
    /// What is wrong there.
    pub(crate) message: String,
}

/// Why a check did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is no schema.
    Misfit(Misfit),
    /// The budget did not suffice to tell.
    Spent,
}

impl From<Failure> for SchemaError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Misfit(misfit) => Self::Invalid {
                place: misfit.place,
                message: misfit.message,
            },
            Failure::Spent => Self::Limit,
        }
    }
}

/// Checks a schema, whose schemas within may declare dialects of their own.
pub(crate) fn check(
    schema: &Value,
    dialect: Dialect,
    budget: &mut Budget<'_>,
) -> Result<(), Failure> {
    let mut checking = Checking {
        places: Vec::new(),
        budget: *budget,
    };
    let outcome = checking.schema(schema, dialect);
    *budget = checking.budget;
    outcome
}

struct Checking<'a, 'b> {
    places: Vec<Place<'a>>,
    budget: Budget<'b>,
}

/// The steps of looking a keyword up among those of its dialect.
const KEYWORD_STEPS: usize = 4;

impl<'a> Checking<'a, '_> {
    fn fail(&self, message: impl Into<String>) -> Result<(), Failure> {
        Err(Failure::Misfit(Misfit {
            place: pointer(&self.places),
            message: message.into(),
        }))
    }

    fn schema(&mut self, schema: &'a Value, dialect: Dialect) -> Result<(), Failure> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) if dialect > Dialect::Draft4 || self.may_be_flag() => return Ok(()),
            _ if dialect > Dialect::Draft4 => {
                return self.fail("must be a schema: an object or a boolean");
            }
            _ => return self.fail("must be a schema: an object"),
        };
        // A schema with a URI of its own may be of another dialect.
        let dialect = match members.contains_key("$id") || members.contains_key("id") {
            true => Dialect::of(schema, dialect).unwrap_or(dialect),
            false => dialect,
        };
        for (keyword, value) in members {
            self.charge(KEYWORD_STEPS)?;
            self.charge_text(keyword)?;
            let shape = dialect.shape(keyword);
            self.places.push(Place::Name(keyword));
            self.value(shape, value)?;
            for (place, schema) in shape.schemas(value) {
                self.places.push(place);
                self.schema(schema, dialect)?;
                self.places.pop();
            }
            self.places.pop();
        }
        if dialect == Dialect::Draft4 {
            for (keyword, other) in [
                ("exclusiveMaximum", "maximum"),
                ("exclusiveMinimum", "minimum"),
            ] {
                if members.contains_key(keyword) && !members.contains_key(other) {
                    return self.fail(format!("must have {other} beside {keyword}"));
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, steps: usize) -> Result<(), Failure> {
        self.budget.charge(steps).ok_or(Failure::Spent)
    }

    fn charge_text(&mut self, text: &str) -> Result<(), Failure> {
        self.budget.charge_bytes(text.len()).ok_or(Failure::Spent)
    }

    fn are_unique(&mut self, items: &[Value]) -> Result<bool, Failure> {
        are_unique(items, &mut self.budget).ok_or(Failure::Spent)
    }

    fn is_names(&mut self, value: &Value) -> Result<bool, Failure> {
        let names = value.as_array();
        let names = names.filter(|names| names.iter().all(Value::is_string));
        names.map_or(Ok(false), |names| self.are_unique(names))
    }

    /// In draft 4 two keywords take a boolean for a schema.
    fn may_be_flag(&self) -> bool {
        let mut names = self.places.iter().rev().filter_map(|place| match place {
            Place::Name(name) => Some(*name),
            _ => None,
        });
        matches!(
            names.next(),
            Some("additionalItems" | "additionalProperties")
        )
    }

    /// Checks the value of a keyword, but for the schemas in it.
    fn value(&mut self, shape: Shape, value: &'a Value) -> Result<(), Failure> {
        let fits = match shape {
            Shape::Anything | Shape::Schema => true,
            Shape::SchemaOrSchemas => value.as_array().is_none_or(|schemas| !schemas.is_empty()),
            Shape::Schemas => value.as_array().is_some_and(|schemas| !schemas.is_empty()),
            Shape::SchemaMap | Shape::PatternMap | Shape::Object => value.is_object(),
            Shape::Dependencies | Shape::NamesByName => return self.lists(shape, value),
            Shape::Text | Shape::Pattern => value.is_string(),
            Shape::Id | Shape::Anchor => {
                let Value::String(text) = value else {
                    return self.fail(wording::shape(shape));
                };
                self.charge_text(text)?;
                match shape {
                    Shape::Id => has_no_fragment(text),
                    _ => is_anchor(text),
                }
            }
            Shape::Flag => value.is_boolean(),
            Shape::Number => value.is_number(),
            Shape::Positive => value.as_number().is_some_and(number::is_positive),
            Shape::Natural => value.as_number().and_then(number::natural).is_some(),
            Shape::List => value.is_array(),
            Shape::Names => self.is_names(value)?,
            Shape::SomeNames => self.is_names(value)? && value != &Value::Array(Vec::new()),
            Shape::Types => Types::of(value).is_some(),
            Shape::Options => match value.as_array() {
                Some(options) => !options.is_empty() && self.are_unique(options)?,
                None => false,
            },
        };
        if fits {
            Ok(())
        } else {
            self.fail(wording::shape(shape))
        }
    }

    /// Checks lists of names by name; schemas among them are looked at elsewhere.
    fn lists(&mut self, shape: Shape, value: &'a Value) -> Result<(), Failure> {
        let Value::Object(lists) = value else {
            return self.fail(wording::shape(shape));
        };
        for (name, list) in lists {
            let is_schema = shape == Shape::Dependencies && !list.is_array();
            if !is_schema && !self.is_names(list)? {
                self.places.push(Place::Name(name));
                return self.fail(wording::shape(Shape::Names));
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
