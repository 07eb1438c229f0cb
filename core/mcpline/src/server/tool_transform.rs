//! Transformed tools: a tool of a server with another name, another description or other arguments.
//!
//! The handler stays the same. It receives the arguments that it knows: what a client sent is renamed, and values that
//! clients do not see are added, before it is called (`argument_map`).

use std::collections::BTreeMap;

use mcpline_protocol::schema::CompiledSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::Error;
use crate::sync::Arc;

use super::Server;
use super::argument_map::{ArgumentMap, TransformedHandler};
use super::feature_entries::ToolEntry;

/// What a transformed tool has that differs from the original. Absent members stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolTransform {
    /// Another name. The prefix of a mount is put before it.
    #[serde(deserialize_with = "present")]
    pub name: Option<String>,
    /// Another name for users.
    #[serde(deserialize_with = "present")]
    pub title: Option<String>,
    /// Another description.
    #[serde(deserialize_with = "present")]
    pub description: Option<String>,
    /// Other tags.
    #[serde(deserialize_with = "present")]
    pub tags: Option<Vec<String>>,
    /// Changes of arguments, by the names that these have in the original. If one is renamed or hidden, and the schema does not
    /// say `additionalProperties`, arguments that it does not describe are refused from then on.
    pub arguments: BTreeMap<String, ArgumentTransform>,
}

/// What differs for one argument of a [transformed tool](ToolTransform).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ArgumentTransform {
    /// Another name.
    #[serde(deserialize_with = "present")]
    pub name: Option<String>,
    /// Another description.
    #[serde(deserialize_with = "present")]
    pub description: Option<String>,
    /// The value for calls without the argument, which becomes optional.
    #[serde(deserialize_with = "present")]
    pub default: Option<Value>,
    /// The value for all calls. Clients do not see the argument and cannot send it.
    #[serde(deserialize_with = "present")]
    pub fixed: Option<Value>,
    /// Clients do not see the argument and cannot send it. The handler gets none, so the argument must be optional in the
    /// original.
    pub hidden: bool,
}

/// Reads a value that is there. `null` is a value of its own, or an error where the type has none.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl ToolTransform {
    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the name for users.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the tags.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Changes an argument, named as in the original.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, change: ArgumentTransform) -> Self {
        self.arguments.insert(name.into(), change);
        self
    }
}

impl ArgumentTransform {
    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the value for calls without the argument.
    #[must_use]
    pub fn with_default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Sets the value for all calls, and hides the argument.
    #[must_use]
    pub fn with_fixed(mut self, value: impl Into<Value>) -> Self {
        self.fixed = Some(value.into());
        self
    }

    /// Hides the argument.
    #[must_use]
    pub fn with_hidden(mut self) -> Self {
        self.hidden = true;
        self
    }
}

impl Server {
    /// Changes a tool: its name, descriptions, and which arguments clients see, under which names. The handler stays the
    /// same, and receives the arguments that it knows. Tools of mounted servers are changed by
    /// [`MountOptions::tools`](super::MountOptions::tools) instead.
    ///
    /// If the handler [decodes its arguments itself](super::ToolOptions::decodes_itself), its errors name arguments as it
    /// knows them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no such tool, or it is one of a mounted server; the new
    /// name is taken; the tool has no such argument; two arguments would have one name; a required argument would be
    /// hidden without a value; a value does not match the argument's schema; or the input schema relates arguments to
    /// each other (such as `oneOf` or `dependentRequired` at its root), so that they cannot be renamed or hidden.
    pub fn transform_tool(&self, name: &str, transform: &ToolTransform) -> Result<(), Error> {
        self.replace_feature(name, |entry: &ToolEntry| entry.transformed(transform))
    }
}

impl ToolEntry {
    /// Returns the entry of the transformed tool.
    ///
    /// # Errors
    ///
    /// See [`Server::transform_tool`].
    pub(super) fn transformed(&self, transform: &ToolTransform) -> Result<Self, Error> {
        let original = &self.tool.name;
        let unusable = |reason: String| {
            Error::usage(format!(
                "the tool {original} cannot be transformed: {reason}"
            ))
        };
        let mut tool = self.tool.clone();
        if let Some(name) = &transform.name {
            tool.name.clone_from(name);
        }
        if let Some(title) = &transform.title {
            tool.title = Some(title.clone());
        }
        if let Some(description) = &transform.description {
            tool.description = Some(description.clone());
        }
        let mut options = self.options.clone();
        if let Some(tags) = &transform.tags {
            options.tags.clone_from(tags);
        }
        let map =
            ArgumentMap::new(&mut tool.input_schema, &transform.arguments).map_err(unusable)?;
        let mut handler = self.handler.clone();
        let mut names_alone = None;
        if map.changes_names_or_values() {
            // The handler knows none of the names that clients send, so these are checked before.
            if options.decodes_itself {
                names_alone = Some(names_of(&tool.input_schema));
                options.decodes_itself = false;
            }
            handler = Arc::new(TransformedHandler::new(map, handler));
        }
        let rate = self.bucket.as_ref().map(|(rate, _)| *rate);
        let mut transformed = Self::new(tool, options, handler, rate)?;
        transformed.bucket.clone_from(&self.bucket);
        if let Some(schema) = names_alone {
            let compiled =
                CompiledSchema::compile(&schema).map_err(|error| unusable(error.to_string()))?;
            transformed.input = Some(compiled);
        }
        Ok(transformed)
    }
}

/// Returns a schema that says which arguments there may and must be, and accepts all values: for handlers that check the
/// values themselves, and may accept what the schema does not.
fn names_of(schema: &Value) -> Value {
    let mut names = serde_json::Map::new();
    names.insert("type".into(), "object".into());
    for keyword in ["required", "additionalProperties"] {
        if let Some(value) = schema.get(keyword) {
            names.insert(keyword.into(), value.clone());
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let any = properties.map(|(name, _)| (name.clone(), Value::Bool(true)));
    names.insert("properties".into(), Value::Object(any.collect()));
    Value::Object(names)
}
