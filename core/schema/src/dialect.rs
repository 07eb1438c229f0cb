//! The dialects of JSON Schema that are understood, and what each makes of a keyword's value.

use serde_json::Value;

use crate::SchemaError;
use crate::place::Place;

/// A dialect, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

use Dialect::{Draft4, Draft6, Draft7, Draft201909, Draft202012};

/// What a dialect demands of the value of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing: the keyword is unknown, or takes whatever it is given.
    Anything,
    Schema,
    /// A list of schemas, one at least.
    Schemas,
    /// A schema, or a list of them.
    SchemaOrSchemas,
    /// An object of schemas.
    SchemaMap,
    /// As `SchemaMap`, its names being regular expressions.
    PatternMap,
    /// An object of schemas and lists of names.
    Dependencies,
    Text,
    /// A text that is a reference; `$id` has no fragment to speak of since 2019-09.
    Id,
    /// A name that references can end in.
    Anchor,
    Pattern,
    Flag,
    Number,
    /// A number above zero.
    Positive,
    /// A whole number, zero at least.
    Natural,
    List,
    Object,
    /// A list of different texts.
    Names,
    /// As `Names`, one at least.
    SomeNames,
    /// An object of lists of different texts.
    NamesByName,
    Types,
    /// A list of different values, one at least.
    Options,
}

impl Dialect {
    /// The dialect that a schema declares, or `otherwise`.
    pub(crate) fn of(schema: &Value, otherwise: Self) -> Result<Self, SchemaError> {
        let Some(declared) = schema.get("$schema") else {
            return Ok(otherwise);
        };
        let Some(uri) = declared.as_str() else {
            return Err(SchemaError::Dialect(declared.to_string()));
        };
        Self::named(uri).ok_or_else(|| SchemaError::Dialect(uri.to_owned()))
    }

    /// The dialect with this URI.
    pub(crate) fn named(uri: &str) -> Option<Self> {
        let name = uri
            .strip_prefix("https://")
            .or_else(|| uri.strip_prefix("http://"))
            .unwrap_or(uri);
        match name.strip_suffix('#').unwrap_or(name) {
            "json-schema.org/draft/2020-12/schema" => Some(Draft202012),
            "json-schema.org/draft/2019-09/schema" => Some(Draft201909),
            "json-schema.org/draft-07/schema" => Some(Draft7),
            "json-schema.org/draft-06/schema" => Some(Draft6),
            "json-schema.org/draft-04/schema" => Some(Draft4),
            _ => None,
        }
    }

    /// The keyword that gives a schema its URI.
    pub(crate) fn id(self) -> &'static str {
        if self == Draft4 { "id" } else { "$id" }
    }

    /// Whether `$ref` leaves no other keyword beside it a meaning.
    pub(crate) fn refers_alone(self) -> bool {
        self <= Draft7
    }

    /// Whether `format` is a rule; later it is a remark.
    pub(crate) fn asserts_formats(self) -> bool {
        self <= Draft7
    }

    /// What this dialect demands of the value of a keyword.
    pub(crate) fn shape(self, keyword: &str) -> Shape {
        let (since, shape) = match keyword {
            "$schema" | "$ref" | "title" | "description" | "format" => (Draft4, Shape::Text),
            "id" if self == Draft4 => (Draft4, Shape::Text),
            "$id" => (
                Draft6,
                if self <= Draft7 {
                    Shape::Text
                } else {
                    Shape::Id
                },
            ),
            "$anchor" => (Draft201909, Shape::Anchor),
            "$dynamicAnchor" => (Draft202012, Shape::Anchor),
            "$dynamicRef" => (Draft202012, Shape::Text),
            "$recursiveRef" if self == Draft201909 => (Draft201909, Shape::Text),
            "$recursiveAnchor" if self == Draft201909 => (Draft201909, Shape::Flag),
            "$vocabulary" => (Draft201909, Shape::Object),
            "$comment" | "contentMediaType" | "contentEncoding" => (Draft7, Shape::Text),
            "$defs" | "dependentSchemas" => (Draft201909, Shape::SchemaMap),
            "definitions" | "properties" => (Draft4, Shape::SchemaMap),
            "patternProperties" => (Draft4, Shape::PatternMap),
            "dependencies" => (Draft4, Shape::Dependencies),
            "dependentRequired" => (Draft201909, Shape::NamesByName),
            "examples" => (Draft6, Shape::List),
            "readOnly" | "writeOnly" => (Draft7, Shape::Flag),
            "deprecated" => (Draft201909, Shape::Flag),
            "uniqueItems" => (Draft4, Shape::Flag),
            "exclusiveMaximum" | "exclusiveMinimum" if self == Draft4 => (Draft4, Shape::Flag),
            "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
                (Draft4, Shape::Number)
            }
            "multipleOf" => (Draft4, Shape::Positive),
            "maxItems" | "minItems" | "maxLength" | "minLength" | "maxProperties"
            | "minProperties" => (Draft4, Shape::Natural),
            "maxContains" | "minContains" => (Draft201909, Shape::Natural),
            "pattern" => (Draft4, Shape::Pattern),
            "required" if self == Draft4 => (Draft4, Shape::SomeNames),
            "required" => (Draft4, Shape::Names),
            "type" => (Draft4, Shape::Types),
            "enum" if self <= Draft6 => (Draft4, Shape::Options),
            "enum" => (Draft4, Shape::List),
            "items" if self <= Draft201909 => (Draft4, Shape::SchemaOrSchemas),
            "additionalItems" if self == Draft202012 => (Draft4, Shape::Anything),
            "items" | "additionalItems" | "additionalProperties" | "not" => (Draft4, Shape::Schema),
            "prefixItems" => (Draft202012, Shape::Schemas),
            "allOf" | "anyOf" | "oneOf" => (Draft4, Shape::Schemas),
            "contains" | "propertyNames" => (Draft6, Shape::Schema),
            "if" | "then" | "else" => (Draft7, Shape::Schema),
            "contentSchema" | "unevaluatedItems" | "unevaluatedProperties" => {
                (Draft201909, Shape::Schema)
            }
            _ => return Shape::Anything,
        };
        if self >= since {
            shape
        } else {
            Shape::Anything
        }
    }
}

impl Shape {
    /// The schemas in a value of this shape, each with its place in it.
    pub(crate) fn schemas(self, value: &Value) -> Vec<(Place<'_>, &Value)> {
        match (self, value) {
            (Self::Schemas | Self::SchemaOrSchemas, Value::Array(schemas)) => schemas
                .iter()
                .enumerate()
                .map(|(index, schema)| (Place::Index(index), schema))
                .collect(),
            (Self::SchemaMap | Self::PatternMap, Value::Object(schemas)) => schemas
                .iter()
                .map(|(name, schema)| (Place::Name(name), schema))
                .collect(),
            (Self::Dependencies, Value::Object(schemas)) => schemas
                .iter()
                .filter(|(_, schema)| !schema.is_array())
                .map(|(name, schema)| (Place::Name(name), schema))
                .collect(),
            (Self::Schema | Self::SchemaOrSchemas, schema) => vec![(Place::Here, schema)],
            _ => Vec::new(),
        }
    }
}
