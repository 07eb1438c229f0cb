//! The supported dialects of JSON Schema, and which values each allows for a keyword.

use serde_json::Value;

use crate::SchemaError;
use crate::value_path::PathSegment;

/// A dialect, ordered by age, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

use Dialect::{Draft4, Draft6, Draft7, Draft201909, Draft202012};

/// The form that a dialect requires of a keyword's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeywordShape {
    /// Any value: the keyword is unknown, or accepts everything.
    Anything,
    Schema,
    /// A list of at least one schema.
    Schemas,
    /// A schema, or a list of them.
    SchemaOrSchemas,
    /// An object of schemas.
    SchemaMap,
    /// Like `SchemaMap`, with regular expressions as names.
    PatternMap,
    /// An object of schemas and lists of names.
    Dependencies,
    Text,
    /// A string that is a reference; since 2019-09, `$id` must not have a fragment that is not empty.
    Id,
    /// A name that a reference can end in.
    Anchor,
    Pattern,
    Flag,
    Number,
    /// A number above zero.
    Positive,
    /// An integer of at least zero.
    Natural,
    List,
    Object,
    /// A list of unique strings.
    Names,
    /// Like `Names`, with at least one.
    NonEmptyNames,
    /// An object of lists of unique strings.
    NamesByName,
    Types,
    /// A list of at least one value, all unique.
    Options,
}

impl Dialect {
    /// The dialect that a schema declares; `otherwise` if it declares none.
    pub(crate) fn of(schema: &Value, otherwise: Self) -> Result<Self, SchemaError> {
        let Some(declared) = schema.get("$schema") else {
            return Ok(otherwise);
        };
        let Some(uri) = declared.as_str() else {
            return Err(SchemaError::Dialect(declared.to_string()));
        };
        Self::from_uri(uri).ok_or_else(|| SchemaError::Dialect(uri.to_owned()))
    }

    /// The dialect with this URI.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
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

    /// Whether keywords next to `$ref` are ignored.
    pub(crate) fn ref_hides_siblings(self) -> bool {
        self <= Draft7
    }

    /// Whether `format` is a rule; in later dialects it is an annotation.
    pub(crate) fn asserts_formats(self) -> bool {
        self <= Draft7
    }

    /// The form that this dialect requires of a keyword's value.
    pub(crate) fn shape(self, keyword: &str) -> KeywordShape {
        let (since, shape) = match keyword {
            "$schema" | "$ref" | "title" | "description" | "format" => (Draft4, KeywordShape::Text),
            "id" if self == Draft4 => (Draft4, KeywordShape::Text),
            "$id" => (
                Draft6,
                if self <= Draft7 {
                    KeywordShape::Text
                } else {
                    KeywordShape::Id
                },
            ),
            "$anchor" => (Draft201909, KeywordShape::Anchor),
            "$dynamicAnchor" => (Draft202012, KeywordShape::Anchor),
            "$dynamicRef" => (Draft202012, KeywordShape::Text),
            "$recursiveRef" if self == Draft201909 => (Draft201909, KeywordShape::Text),
            "$recursiveAnchor" if self == Draft201909 => (Draft201909, KeywordShape::Flag),
            "$vocabulary" => (Draft201909, KeywordShape::Object),
            "$comment" | "contentMediaType" | "contentEncoding" => (Draft7, KeywordShape::Text),
            "$defs" | "dependentSchemas" => (Draft201909, KeywordShape::SchemaMap),
            "definitions" | "properties" => (Draft4, KeywordShape::SchemaMap),
            "patternProperties" => (Draft4, KeywordShape::PatternMap),
            "dependencies" => (Draft4, KeywordShape::Dependencies),
            "dependentRequired" => (Draft201909, KeywordShape::NamesByName),
            "examples" => (Draft6, KeywordShape::List),
            "readOnly" | "writeOnly" => (Draft7, KeywordShape::Flag),
            "deprecated" => (Draft201909, KeywordShape::Flag),
            "uniqueItems" => (Draft4, KeywordShape::Flag),
            "exclusiveMaximum" | "exclusiveMinimum" if self == Draft4 => {
                (Draft4, KeywordShape::Flag)
            }
            "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
                (Draft4, KeywordShape::Number)
            }
            "multipleOf" => (Draft4, KeywordShape::Positive),
            "maxItems" | "minItems" | "maxLength" | "minLength" | "maxProperties"
            | "minProperties" => (Draft4, KeywordShape::Natural),
            "maxContains" | "minContains" => (Draft201909, KeywordShape::Natural),
            "pattern" => (Draft4, KeywordShape::Pattern),
            "required" if self == Draft4 => (Draft4, KeywordShape::NonEmptyNames),
            "required" => (Draft4, KeywordShape::Names),
            "type" => (Draft4, KeywordShape::Types),
            "enum" if self <= Draft6 => (Draft4, KeywordShape::Options),
            "enum" => (Draft4, KeywordShape::List),
            "items" if self <= Draft201909 => (Draft4, KeywordShape::SchemaOrSchemas),
            "additionalItems" if self == Draft202012 => (Draft4, KeywordShape::Anything),
            "items" | "additionalItems" | "additionalProperties" | "not" => {
                (Draft4, KeywordShape::Schema)
            }
            "prefixItems" => (Draft202012, KeywordShape::Schemas),
            "allOf" | "anyOf" | "oneOf" => (Draft4, KeywordShape::Schemas),
            "contains" | "propertyNames" => (Draft6, KeywordShape::Schema),
            "if" | "then" | "else" => (Draft7, KeywordShape::Schema),
            "contentSchema" | "unevaluatedItems" | "unevaluatedProperties" => {
                (Draft201909, KeywordShape::Schema)
            }
            _ => return KeywordShape::Anything,
        };
        if self >= since {
            shape
        } else {
            KeywordShape::Anything
        }
    }
}

impl KeywordShape {
    /// The subschemas in a value of this shape, each with its path segment.
    pub(crate) fn subschemas(self, value: &Value) -> Vec<(PathSegment<'_>, &Value)> {
        match (self, value) {
            (Self::Schemas | Self::SchemaOrSchemas, Value::Array(schemas)) => schemas
                .iter()
                .enumerate()
                .map(|(index, schema)| (PathSegment::Index(index), schema))
                .collect(),
            (Self::SchemaMap | Self::PatternMap, Value::Object(schemas)) => schemas
                .iter()
                .map(|(name, schema)| (PathSegment::Name(name), schema))
                .collect(),
            (Self::Dependencies, Value::Object(schemas)) => schemas
                .iter()
                .filter(|(_, schema)| !schema.is_array())
                .map(|(name, schema)| (PathSegment::Name(name), schema))
                .collect(),
            (Self::Schema | Self::SchemaOrSchemas, schema) => vec![(PathSegment::Here, schema)],
            _ => Vec::new(),
        }
    }
}
