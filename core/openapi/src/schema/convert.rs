//! Conversion of schemas of OpenAPI 3.0 and 3.1 to JSON Schema 2020-12.
//!
//! Only known keywords with valid values are kept: documents in use contain values that no validator accepts, and each
//! unknown keyword costs a model's attention. What a schema loses makes it accept more, never less: therefore `not`, `if` and
//! `unevaluatedProperties`, for which a loss would do the opposite, are left out.

use std::collections::HashSet;

use mcpline_schema::Validator;
use serde_json::{Map, Value, json};

use super::set::{MARK, size_within};
use super::{SchemaSet, Stop};
use crate::limits::{MAX_EXAMPLE_BYTES, MAX_SCHEMA_DEPTH};
use crate::reference::{self, DocumentLocation};

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Arguments: properties that only responses have (`readOnly`) are left out.
    Request,
    /// A result: properties that only requests have (`writeOnly`) are left out, and rules that a later version of the API
    /// may relax as well: ranges, lengths, patterns, and that there are no other members.
    Response,
}

/// Where a schema is: how deep, and whether its title distinguishes it from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// The number of references that lead here.
    pub(crate) references: usize,
    /// The number of schemas around it.
    pub(crate) nesting: usize,
    /// Whether it is one of several alternatives.
    pub(crate) is_alternative: bool,
}

impl Position {
    pub(crate) fn at_reference(references: usize) -> Self {
        Self {
            references,
            nesting: 0,
            is_alternative: false,
        }
    }

    fn inner(self) -> Self {
        Self {
            nesting: self.nesting + 1,
            is_alternative: false,
            ..self
        }
    }

    fn alternative(self) -> Self {
        Self {
            is_alternative: true,
            ..self.inner()
        }
    }
}

impl SchemaSet<'_> {
    /// Converts the schema at a place.
    ///
    /// # Errors
    ///
    /// A reference leads nowhere, or the schemas become too large.
    pub(crate) fn convert(
        &mut self,
        place: &DocumentLocation,
        position: Position,
    ) -> Result<Value, Stop> {
        match self.document.at(place) {
            Some(value) => self.convert_value(value, place, position),
            None => {
                self.count_one()?;
                Ok(Value::Bool(true))
            }
        }
    }

    /// Converts a schema, which is at a place.
    fn convert_value(
        &mut self,
        value: &Value,
        place: &DocumentLocation,
        position: Position,
    ) -> Result<Value, Stop> {
        self.count_one()?;
        let Some(schema) = value.as_object() else {
            // Anything else than an object or `false` says nothing.
            return Ok(Value::Bool(value.as_bool().unwrap_or(true)));
        };
        self.reached.nesting = self.reached.nesting.max(position.nesting);
        if position.nesting >= self.max_nesting.min(MAX_SCHEMA_DEPTH) {
            return Ok(self.outline(place));
        }
        let mut converted = Map::new();
        if let Some(reference) = reference::of(value) {
            let target = self.document.target(reference, place)?;
            // A chain of references that never ends would be a schema that never ends.
            self.document.follow(&target)?;
            converted = self.refer(&target, position)?;
        }
        for (keyword, value) in schema {
            self.keyword(&mut converted, keyword, value, place, position)?;
        }
        let mut is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
        if is_null_beside_alternatives(&converted) {
            converted.shift_remove("type");
            is_nullable = true;
        }
        resolve_contradicting_enum(&mut converted, self.direction);
        apply_boolean_bounds(&mut converted, schema);
        self.drop_hidden_properties(&mut converted, schema, place);
        drop_forbidden_requirements(&mut converted);
        merge_single_all_of(&mut converted);
        let mut converted = Value::Object(converted);
        if is_nullable {
            converted = nullable(converted);
        }
        Ok(converted)
    }

    /// Converts a keyword of the schema at a place.
    fn keyword(
        &mut self,
        out: &mut Map<String, Value>,
        keyword: &str,
        value: &Value,
        schema: &DocumentLocation,
        position: Position,
    ) -> Result<(), Stop> {
        let is_response = self.direction == Direction::Response;
        let place = || schema.child(keyword);
        let converted = match keyword {
            "type" => types(value),
            "title" => value
                .as_str()
                .filter(|title| position.is_alternative && title.len() <= MAX_EXAMPLE_BYTES)
                .map(Value::from),
            "format" if value == "binary" && !is_response => {
                out.insert("contentEncoding".to_owned(), "base64".into());
                None
            }
            "description" => match value.as_str() {
                Some(text) => self.description(text)?,
                None => None,
            },
            "format" | "contentEncoding" | "contentMediaType" => value
                .as_str()
                .filter(|text| !text.trim().is_empty() && text.len() <= MAX_EXAMPLE_BYTES)
                .map(Value::from),
            "enum" if value.as_array().is_some_and(|all| !all.is_empty()) => self.copy(value)?,
            "const" => self.copy(value)?,
            "default" if !is_response && is_short(value) => self.copy(value)?,
            "example" if !is_response => {
                let known = out.contains_key("examples");
                if is_short(value)
                    && !known
                    && let Some(value) = self.copy(value)?
                {
                    out.insert("examples".to_owned(), json!([value]));
                }
                None
            }
            "examples" if !is_response && value.is_array() && is_short(value) => {
                self.copy(value)?
            }
            "deprecated" | "uniqueItems" => value
                .as_bool()
                .filter(|is_so| *is_so && !(is_response && keyword == "uniqueItems"))
                .map(Value::Bool),
            "required" => match self.copy(value)? {
                Some(value) => required(&value),
                None => None,
            },
            "pattern" if !is_response => match value.as_str() {
                Some(pattern) => {
                    self.count(pattern.len())?;
                    is_pattern(pattern).then(|| Value::from(pattern))
                }
                None => None,
            },
            "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => {
                (value.is_number() && !is_response).then(|| value.clone())
            }
            "multipleOf" => value
                .as_f64()
                .filter(|number| *number > 0.0 && !is_response)
                .map(|_| value.clone()),
            "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties"
            | "minProperties" | "maxContains" | "minContains" => {
                (value.is_u64() && !is_response).then(|| value.clone())
            }
            "properties" | "dependentSchemas" => {
                self.members(value, &place(), position, |_| true)?
            }
            "patternProperties" => self.members(value, &place(), position, is_pattern)?,
            "items" if value.is_array() => {
                if let Some(items) = self.elements(value, &place(), position.inner())? {
                    out.insert("prefixItems".to_owned(), items);
                }
                None
            }
            "additionalProperties" if is_response && value == &Value::Bool(false) => None,
            // `true` and `{}` are the default.
            "additionalProperties"
                if value == &Value::Bool(true) || value.as_object().is_some_and(Map::is_empty) =>
            {
                None
            }
            "items" | "additionalProperties" | "contains" | "propertyNames" => {
                Some(self.convert_value(value, &place(), position.inner())?)
            }
            "prefixItems" | "allOf" => self.elements(value, &place(), position.inner())?,
            "anyOf" => self.elements(value, &place(), position.alternative())?,
            "oneOf" => {
                // Alternatives often overlap, because a discriminator tells them apart.
                if let Some(all) = self.elements(value, &place(), position.alternative())?
                    && !out.contains_key("anyOf")
                {
                    out.insert("anyOf".to_owned(), all);
                }
                None
            }
            "dependentRequired" if value.is_object() => self.copy(value)?.filter(|value| {
                let lists = value.as_object().into_iter().flat_map(Map::values);
                lists.into_iter().all(|list| required(list).is_some())
            }),
            _ => None,
        };
        if let Some(converted) = converted {
            out.insert(keyword.to_owned(), converted);
        }
        Ok(())
    }

    /// Converts an object whose members are schemas.
    fn members(
        &mut self,
        value: &Value,
        place: &DocumentLocation,
        position: Position,
        keep: impl Fn(&str) -> bool,
    ) -> Result<Option<Value>, Stop> {
        let Some(members) = value.as_object() else {
            return Ok(None);
        };
        let mut converted = Map::new();
        for (name, schema) in members.iter().filter(|(name, _)| *name != MARK) {
            self.count(name.len())?;
            if !keep(name) {
                continue;
            }
            let schema = self.convert_value(schema, &place.child(name), position.inner())?;
            converted.insert(name.clone(), schema);
        }
        Ok((!converted.is_empty()).then_some(Value::Object(converted)))
    }

    /// Converts an array of schemas.
    fn elements(
        &mut self,
        value: &Value,
        place: &DocumentLocation,
        position: Position,
    ) -> Result<Option<Value>, Stop> {
        let mut converted = Vec::new();
        for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
            converted.push(self.convert_value(
                schema,
                &place.child(&index.to_string()),
                position,
            )?);
        }
        Ok((!converted.is_empty()).then_some(Value::Array(converted)))
    }

    /// Returns a schema with only the types and the description of the one at a place.
    pub(crate) fn outline(&mut self, place: &DocumentLocation) -> Value {
        let mut outline = Map::new();
        let Ok((_, Value::Object(schema))) = self.document.follow(place) else {
            return Value::Object(outline);
        };
        if let Some(types) = schema.get("type").and_then(types) {
            outline.insert("type".to_owned(), types);
        }
        if let Some(Value::String(description)) = schema.get("description")
            && description.len() <= MAX_EXAMPLE_BYTES.min(self.max_description_bytes)
        {
            let bytes = &mut self.reached.description_bytes;
            *bytes = description.len().max(*bytes);
            outline.insert("description".to_owned(), Value::from(&**description));
        }
        let outline = Value::Object(outline);
        match schema.get("nullable") == Some(&Value::Bool(true)) {
            true => nullable(outline),
            false => outline,
        }
    }

    /// Removes the properties that the other direction has.
    fn drop_hidden_properties(
        &self,
        converted: &mut Map<String, Value>,
        schema: &Map<String, Value>,
        place: &DocumentLocation,
    ) {
        let flag = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let Some(Value::Object(declared)) = schema.get("properties") else {
            return;
        };
        let properties = place.child("properties");
        let is_hidden = |(name, schema): &(&String, &Value)| {
            let own = schema.get(flag);
            let followed = match own.is_none() && reference::of(schema).is_some() {
                true => self.document.follow(&properties.child(name)).ok(),
                false => None,
            };
            let flagged = own.or(followed.and_then(|(_, schema)| schema.get(flag)));
            flagged == Some(&Value::Bool(true))
        };
        let hidden = declared.iter().filter(is_hidden).map(|(name, _)| name);
        let hidden: HashSet<_> = hidden.collect();
        if hidden.is_empty() {
            return;
        }
        if let Some(Value::Object(kept)) = converted.get_mut("properties") {
            kept.retain(|name, _| !hidden.contains(name));
        }
        if let Some(Value::Array(required)) = converted.get_mut("required") {
            let hidden: HashSet<_> = hidden.iter().map(|name| name.as_str()).collect();
            required.retain(|name| name.as_str().is_none_or(|name| !hidden.contains(name)));
        }
        if converted.get("required") == Some(&json!([])) {
            converted.shift_remove("required");
        }
    }
}

/// Returns a valid `type`.
fn types(value: &Value) -> Option<Value> {
    const TYPES: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    match value {
        Value::String(name) if TYPES.contains(&&**name) => Some(value.clone()),
        Value::Array(names) => {
            let mut known: Vec<Value> = Vec::new();
            for name in names {
                let is_known = name.as_str().is_some_and(|name| TYPES.contains(&name));
                if !is_known {
                    // An unknown type accepts something that is not known.
                    return None;
                }
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
            match known.len() {
                0 => None,
                1 => known.pop(),
                _ => Some(Value::Array(known)),
            }
        }
        _ => None,
    }
}

/// Returns a valid `required`.
fn required(value: &Value) -> Option<Value> {
    let names = value.as_array().filter(|names| !names.is_empty())?;
    let mut all: Vec<&str> = Vec::with_capacity(names.len());
    let mut known = HashSet::with_capacity(names.len());
    for name in names {
        let name = name.as_str()?;
        if known.insert(name) {
            all.push(name);
        }
    }
    Some(json!(all))
}

fn is_short(value: &Value) -> bool {
    size_within(value, MAX_EXAMPLE_BYTES).is_some()
}

fn is_pattern(pattern: &str) -> bool {
    Validator::compile(&json!({ "pattern": pattern })).is_ok()
}

/// OpenAPI 3.0: `exclusiveMinimum: true` says that `minimum` is exclusive.
fn apply_boolean_bounds(converted: &mut Map<String, Value>, schema: &Map<String, Value>) {
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        if schema.get(exclusive) == Some(&Value::Bool(true))
            && let Some(bound) = converted.shift_remove(bound)
        {
            converted.insert(exclusive.to_owned(), bound);
        }
    }
}

/// Whether a schema has the type `null` beside alternatives: converters of documents from 3.0 to 3.1 write `nullable: true` so.
/// Read literally, it accepts at most `null`.
fn is_null_beside_alternatives(converted: &Map<String, Value>) -> bool {
    converted.get("type").is_some_and(|kind| kind == "null") && converted.contains_key("anyOf")
}

/// Removes names from `required` that a closed object cannot have: no value would match.
fn drop_forbidden_requirements(converted: &mut Map<String, Value>) {
    if converted.get("additionalProperties") != Some(&Value::Bool(false))
        || converted.contains_key("patternProperties")
    {
        return;
    }
    let properties = converted.get("properties").and_then(Value::as_object);
    let known: HashSet<String> = properties
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    if let Some(Value::Array(required)) = converted.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| known.contains(name)));
        if required.is_empty() {
            converted.shift_remove("required");
        }
    }
}

/// Handles `{"type": "string", "enum": [1, 2]}`, which no value matches: arguments are the values of `enum`, and results are
/// either.
fn resolve_contradicting_enum(converted: &mut Map<String, Value>, direction: Direction) {
    let (Some(declared), Some(Value::Array(values))) =
        (converted.get("type"), converted.get("enum"))
    else {
        return;
    };
    let is_declared = |value: &Value| match declared {
        Value::Array(kinds) => kinds.iter().any(|kind| is_of_type(value, kind)),
        kind => is_of_type(value, kind),
    };
    if values.iter().any(is_declared) {
        return;
    }
    converted.shift_remove("type");
    if direction == Direction::Response {
        converted.shift_remove("enum");
    }
}

fn is_of_type(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("array") => value.is_array(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        _ => true,
    }
}

/// Makes a schema accept `null`.
pub(crate) fn nullable(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let is_composed = has_composition(&schema);
    match schema.get_mut("type") {
        Some(Value::Array(types)) if types.iter().any(|kind| kind == "null") => {}
        Some(Value::Array(types)) => types.push(Value::from("null")),
        Some(one) => *one = json!([one.clone(), "null"]),
        None => {}
    }
    if !is_composed {
        return Value::Object(schema);
    }
    let mut outer = Map::new();
    for annotation in ["description", "default", "deprecated", "examples"] {
        if let Some(value) = schema.shift_remove(annotation) {
            outer.insert(annotation.to_owned(), value);
        }
    }
    outer.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
    Value::Object(outer)
}

fn has_composition(schema: &Map<String, Value>) -> bool {
    const COMPOSITIONS: [&str; 4] = [MARK, "allOf", "anyOf", "const"];
    COMPOSITIONS.iter().any(|name| schema.contains_key(*name))
}

/// Writes `{"allOf": [schema], …}` as `{schema, …}`, which is the same unless a keyword is in both.
fn merge_single_all_of(schema: &mut Map<String, Value>) {
    let Some(Value::Array(all)) = schema.get("allOf") else {
        return;
    };
    let [Value::Object(only)] = &all[..] else {
        return;
    };
    if only
        .keys()
        .any(|name| schema.contains_key(name) && !is_annotation(name))
    {
        return;
    }
    let only = only.clone();
    schema.shift_remove("allOf");
    for (name, value) in only {
        schema.entry(name).or_insert(value);
    }
}

/// Whether a keyword does not restrict values, so that one of several may be left out.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "deprecated"
    )
}
