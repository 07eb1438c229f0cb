//! The arguments of a transformed tool: how its schema differs from that of the original, and how the arguments of a call
//! become those that the handler knows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::wire::Raw;
use serde_json::{Map, Value, json};

use crate::sync::Arc;

use super::call::Call;
use super::handler::Handler;
use super::tool_transform::ArgumentTransform;

/// Keywords at the root of a schema that relate arguments to each other. A renamed or hidden argument could change what
/// they say.
const RELATING: [&str; 16] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "$ref",
    "$dynamicRef",
];

/// Maximum length of an argument's new name, in bytes: what providers of models accept, with room.
const MAX_NAME_LEN: usize = 128;

/// What happens to the arguments of a call.
pub(super) struct ArgumentMap {
    /// The names in the original, by the names that clients send.
    renamed: BTreeMap<String, String>,
    /// Names of the original that clients do not see: they cannot be sent, also where a schema allows other members.
    withheld: Vec<String>,
    /// Values that are added unless the client sent one, by the names in the original.
    defaults: Vec<(String, Raw)>,
}

impl ArgumentMap {
    /// Changes the schema of a tool's arguments.
    ///
    /// # Errors
    ///
    /// Returns the reason if a change is impossible.
    pub(super) fn new(
        schema: &mut Value,
        changes: &BTreeMap<String, ArgumentTransform>,
    ) -> Result<Self, String> {
        let mut map = Self {
            renamed: BTreeMap::new(),
            withheld: Vec::new(),
            defaults: Vec::new(),
        };
        if changes.is_empty() {
            return Ok(map);
        }
        let original = schema.clone();
        let members = schema
            .as_object_mut()
            .ok_or("its input schema is not an object")?;
        let described = match members.get("properties") {
            Some(Value::Object(properties)) => properties.clone(),
            _ => Map::new(),
        };
        let unchanged = ArgumentTransform::default();
        let change_of = |name: &str| changes.get(name).unwrap_or(&unchanged);
        let original_required = required_names(members);
        let mut properties = Map::new();
        for (name, property) in &described {
            let change = change_of(name);
            check_values(&original, name, change)?;
            let value = change.value_if_absent();
            if let Some(value) = value {
                let raw = Raw::from_serialize(value).map_err(|error| error.to_string())?;
                map.defaults.push((name.clone(), raw));
            }
            if change.hides() {
                if original_required.contains(name) && value.is_none() {
                    return Err(format!(
                        "the argument {name:?} is required, so it can be hidden only with a value (`fixed`)"
                    ));
                }
                map.withheld.push(name.clone());
                continue;
            }
            let seen = change.name.as_ref().unwrap_or(name);
            if seen != name {
                check_name(seen)?;
                map.withheld.push(name.clone());
                map.renamed.insert(seen.clone(), name.clone());
            }
            if properties
                .insert(seen.clone(), changed_property(property, change))
                .is_some()
            {
                return Err(format!("two arguments would be named {seen:?}"));
            }
        }
        if let Some(unknown) = changes.keys().find(|name| !described.contains_key(*name)) {
            let known: Vec<&str> = described.keys().map(String::as_str).collect();
            return Err(format!(
                "it has no argument {unknown:?}; its arguments are {}",
                match known.is_empty() {
                    true => "not described".to_owned(),
                    false => known.join(", "),
                }
            ));
        }
        if !map.withheld.is_empty() {
            if let Some(keyword) = RELATING.iter().find(|name| members.contains_key(**name)) {
                return Err(format!(
                    "its input schema has {keyword:?}, so its arguments cannot be renamed or hidden"
                ));
            }
            if refers_to_properties(&original) {
                return Err(
                    "its input schema has a `$ref` to \"#/properties/…\", so its arguments cannot be renamed or hidden"
                        .into(),
                );
            }
            members
                .entry("additionalProperties")
                .or_insert(Value::Bool(false));
        }
        let required: Vec<&String> = original_required
            .iter()
            .filter(|name| !change_of(name).hides() && change_of(name).value_if_absent().is_none())
            .map(|name| change_of(name).name.as_ref().unwrap_or(name))
            .collect();
        members.insert("properties".into(), Value::Object(properties));
        match required.is_empty() {
            true => drop(members.shift_remove("required")),
            false => drop(members.insert("required".into(), json!(required))),
        }
        Ok(map)
    }

    /// Whether handlers get other arguments than clients send.
    pub(super) fn changes_names_or_values(&self) -> bool {
        !self.withheld.is_empty() || !self.defaults.is_empty()
    }

    /// Returns the arguments for the handler.
    pub(super) fn apply(&self, arguments: &Raw) -> Raw {
        let mut out = ObjectWriter::default();
        let mut defaults: Vec<&(String, Raw)> = self.defaults.iter().collect();
        for (name, value) in arguments.members().into_iter().flatten() {
            let name = match self.renamed.get(name.as_ref()) {
                Some(original) => Cow::Borrowed(original.as_str()),
                None if self.withheld.iter().any(|other| *other == name) => continue,
                None => name,
            };
            defaults.retain(|(other, _)| *other != name);
            out.member(&name, &value);
        }
        for (name, value) in defaults {
            out.member(name, value);
        }
        out.finish()
    }
}

/// What errors about arguments begin with.
const INVALID_ARGUMENTS: &str = "Invalid arguments: ";

impl ArgumentMap {
    /// Replaces the names of arguments in a handler's error about them by those that the client knows. Places are JSON pointers
    /// (`at /items/2: …`), or a path at the beginning (`` `items[2].id`: … ``).
    pub(super) fn with_names_of_client(&self, text: String) -> String {
        let Some(reasons) = text.strip_prefix(INVALID_ARGUMENTS) else {
            return text;
        };
        let mut out = String::from(INVALID_ARGUMENTS);
        let mut rest = reasons;
        if let Some(path) = rest.strip_prefix('`') {
            out.push('`');
            rest = self.replace_name(path, &mut out, |end| matches!(end, '.' | '[' | '`'));
        }
        while let Some(at) = rest.find("at /") {
            let place = at + "at /".len();
            out.push_str(&rest[..place]);
            rest = self.replace_name(&rest[place..], &mut out, |end| {
                matches!(end, '/' | ':' | ';' | ',' | ' ' | '\n')
            });
        }
        out.push_str(rest);
        out
    }

    /// Writes the name that a text begins with as the client knows it; returns the rest of the text.
    fn replace_name<'t>(
        &self,
        text: &'t str,
        out: &mut String,
        is_end: impl Fn(char) -> bool,
    ) -> &'t str {
        let (name, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        let renamed = self.renamed.iter().find(|(_, original)| *original == name);
        out.push_str(renamed.map_or(name, |(seen, _)| seen));
        rest
    }
}

/// A handler that gets the arguments that it knows.
pub(super) struct TransformedHandler {
    map: Arc<ArgumentMap>,
    handler: Arc<dyn Handler>,
}

impl TransformedHandler {
    pub(super) fn new(map: ArgumentMap, handler: Arc<dyn Handler>) -> Self {
        Self {
            map: Arc::new(map),
            handler,
        }
    }
}

impl Handler for TransformedHandler {
    fn call(&self, call: Call) {
        self.handler.call(call.transformed(&self.map));
    }
}

/// Writes a JSON object of values that are JSON already.
#[derive(Default)]
struct ObjectWriter(String);

impl ObjectWriter {
    fn member(&mut self, name: &str, value: &Raw) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(Raw::string(name).as_str());
        self.0.push(':');
        self.0.push_str(value.as_str());
    }

    fn finish(mut self) -> Raw {
        if self.0.is_empty() {
            return Raw::EMPTY_OBJECT;
        }
        self.0.push('}');
        Raw::from_trusted(self.0)
    }
}

impl ArgumentTransform {
    /// Whether clients do not see the argument.
    fn hides(&self) -> bool {
        self.hidden || self.fixed.is_some()
    }

    /// The value that handlers get if the client sends none.
    fn value_if_absent(&self) -> Option<&Value> {
        self.fixed.as_ref().or(self.default.as_ref())
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_valid = (1..=MAX_NAME_LEN).contains(&name.len()) && !name.chars().any(char::is_control);
    match is_valid {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a valid argument name: 1 to {MAX_NAME_LEN} bytes without control characters"
        )),
    }
}

/// Whether a schema contains a reference to the schema of an argument by its place.
fn refers_to_properties(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let is_reference = name == "$ref" || name == "$dynamicRef";
            let is_place = |text: &str| text.starts_with("#/properties");
            (is_reference && value.as_str().is_some_and(is_place)) || refers_to_properties(value)
        }),
        Value::Array(items) => items.iter().any(refers_to_properties),
        _ => false,
    }
}

fn required_names(members: &Map<String, Value>) -> Vec<String> {
    let required = members.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn changed_property(property: &Value, change: &ArgumentTransform) -> Value {
    let mut property = match property {
        Value::Object(members) => members.clone(),
        // `true` accepts all values, as `{}` does. `false` accepts none.
        Value::Bool(true) => Map::new(),
        other => return other.clone(),
    };
    if let Some(description) = &change.description {
        property.insert("description".into(), description.clone().into());
    }
    if let Some(default) = &change.default {
        property.insert("default".into(), default.clone());
    }
    Value::Object(property)
}

/// Checks the values that a change adds against the schema of the argument.
fn check_values(schema: &Value, name: &str, change: &ArgumentTransform) -> Result<(), String> {
    let values = [("default", &change.default), ("fixed", &change.fixed)];
    if change.default.is_some() && change.fixed.is_some() {
        return Err(format!(
            "the argument {name:?} has `default` and `fixed`: set only one of them"
        ));
    }
    for (which, value) in values {
        let Some(value) = value else { continue };
        // Alone, with the definitions that its schema may refer to.
        let mut alone = json!({"properties": {name: schema["properties"][name]}});
        for definitions in ["$defs", "definitions", "$schema"] {
            if let Some(found) = schema.get(definitions) {
                alone[definitions] = found.clone();
            }
        }
        let compiled = CompiledSchema::compile(&alone).map_err(|error| error.to_string())?;
        let arguments =
            Raw::from_serialize(&json!({name: value})).map_err(|error| error.to_string())?;
        compiled.validate(&arguments).map_err(|violation| {
            format!("`{which}` of the argument {name:?} does not match its schema: {violation}")
        })?;
    }
    Ok(())
}
