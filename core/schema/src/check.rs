//! Whether a value is a schema that its dialect allows: the rules of the dialects' metaschemas.

use serde_json::Value;

use crate::dialect::{Dialect, Shape};
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

impl From<Misfit> for SchemaError {
    fn from(misfit: Misfit) -> Self {
        Self::Invalid {
            place: misfit.place,
            message: misfit.message,
        }
    }
}

/// Checks a schema, whose schemas within may declare dialects of their own.
pub(crate) fn check(schema: &Value, dialect: Dialect) -> Result<(), Misfit> {
    Checking { places: Vec::new() }.schema(schema, dialect)
}

struct Checking<'a> {
    places: Vec<Place<'a>>,
}

impl<'a> Checking<'a> {
    fn fail(&self, message: impl Into<String>) -> Result<(), Misfit> {
        Err(Misfit {
            place: pointer(&self.places),
            message: message.into(),
        })
    }

    fn schema(&mut self, schema: &'a Value, dialect: Dialect) -> Result<(), Misfit> {
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
    fn value(&mut self, shape: Shape, value: &'a Value) -> Result<(), Misfit> {
        let fits = match shape {
            Shape::Anything | Shape::Schema => true,
            Shape::SchemaOrSchemas => value.as_array().is_none_or(|schemas| !schemas.is_empty()),
            Shape::Schemas => value.as_array().is_some_and(|schemas| !schemas.is_empty()),
            Shape::SchemaMap | Shape::PatternMap | Shape::Object => value.is_object(),
            Shape::Dependencies | Shape::NamesByName => return self.lists(shape, value),
            Shape::Text | Shape::Pattern => value.is_string(),
            Shape::Id => value.as_str().is_some_and(has_no_fragment),
            Shape::Anchor => value.as_str().is_some_and(is_anchor),
            Shape::Flag => value.is_boolean(),
            Shape::Number => value.is_number(),
            Shape::Positive => value.as_number().is_some_and(number::is_positive),
            Shape::Natural => value.as_number().and_then(number::natural).is_some(),
            Shape::List => value.is_array(),
            Shape::Names => is_names(value),
            Shape::SomeNames => is_names(value) && value != &Value::Array(Vec::new()),
            Shape::Types => Types::of(value).is_some(),
            Shape::Options => value
                .as_array()
                .is_some_and(|options| !options.is_empty() && crate::equality::are_unique(options)),
        };
        if fits {
            Ok(())
        } else {
            self.fail(wording::shape(shape))
        }
    }

    /// Checks lists of names by name; schemas among them are looked at elsewhere.
    fn lists(&mut self, shape: Shape, value: &'a Value) -> Result<(), Misfit> {
        let Value::Object(lists) = value else {
            return self.fail(wording::shape(shape));
        };
        for (name, list) in lists {
            let is_schema = shape == Shape::Dependencies && !list.is_array();
            if !is_schema && !is_names(list) {
                self.places.push(Place::Name(name));
                return self.fail(wording::shape(Shape::Names));
            }
        }
        Ok(())
    }
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| {
        names.iter().all(Value::is_string) && crate::equality::are_unique(names)
    })
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
