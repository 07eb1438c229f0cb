//! Elicitation: the server requests input from the client's user, with a form or a URL; since 2025-06-18.

use std::fmt;

use mcpline_derive::Members;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::macros::{open_words, optional_number, setters};
use super::{Extra, JsonObject};
use crate::members;

/// Parameters of `elicitation/create`: a form, unless `mode` is `url`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitParams {
    /// Mode of the elicitation; since 2025-11-25. `None`: a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ElicitMode>,
    /// Message for the user.
    pub message: String,
    /// The fields of the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<FormSchema>,
    /// URL to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Identifies a URL elicitation in the notification of its completion; 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ElicitParams {
    /// Creates a form elicitation. It has no `mode`, so that every revision supports it.
    pub fn form(message: impl Into<String>, schema: FormSchema) -> Self {
        Self {
            message: message.into(),
            requested_schema: Some(schema),
            ..Self::default()
        }
    }

    /// Creates a URL elicitation.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            mode: Some(ElicitMode::Url),
            message: message.into(),
            url: Some(url.into()),
            ..Self::default()
        }
    }

    /// Returns whether this is a URL elicitation.
    pub fn is_url(&self) -> bool {
        self.mode == Some(ElicitMode::Url)
    }
}

setters!(ElicitParams {
    with_mode => mode: ElicitMode,
    with_elicitation_id => elicitation_id: String,
    with_meta => meta: Extra,
});

open_words! {
    /// Mode of an elicitation.
    ElicitMode {
        /// A form that the client shows.
        Form = "form",
        /// A URL that the user opens.
        Url = "url",
    }
}

/// The fields of a form: a JSON Schema of one flat object.
#[derive(Clone, Debug, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FormSchema {
    /// The dialect of the schema.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Always `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The fields, in the order to show them.
    pub properties: FormFields,
    /// The fields that must be filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Default for FormSchema {
    fn default() -> Self {
        Self {
            schema: None,
            kind: "object".to_owned(),
            properties: FormFields::default(),
            required: None,
            extra: Extra::new(),
        }
    }
}

impl FormSchema {
    /// Creates a form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an optional field.
    #[must_use]
    pub fn with_optional(mut self, name: impl Into<String>, field: FieldSchema) -> Self {
        self.properties.0.push((name.into(), field));
        self
    }

    /// Adds a required field.
    #[must_use]
    pub fn with_required(mut self, name: impl Into<String>, field: FieldSchema) -> Self {
        let name = name.into();
        self.required.get_or_insert_default().push(name.clone());
        self.with_optional(name, field)
    }
}

/// Named fields, in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FormFields(pub Vec<(String, FieldSchema)>);

impl FormFields {
    /// Returns the field of this name.
    pub fn get(&self, name: &str) -> Option<&FieldSchema> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, field)| field)
    }
}

impl Serialize for FormFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

impl<'de> Deserialize<'de> for FormFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = FormFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FormFields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry::<String, FieldSchema>()? {
            fields.push(field);
        }
        let mut names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(A::Error::custom(format!("duplicate field {}", pair[0]))),
            None => Ok(FormFields(fields)),
        }
    }
}

/// One field of a form: a string, number, integer or boolean, or a choice among strings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FieldSchema {
    /// `string`, `number`, `integer`, `boolean`, or `array` for a multiple choice.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Default value. Booleans since 2025-06-18, others since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = present)]
    pub default: Option<Value>,
    /// For strings: `email`, `uri`, `date` or `date-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Minimum number of characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Maximum number of characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Minimum value.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub minimum: Option<f64>,
    /// Maximum value.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub maximum: Option<f64>,
    /// The values of a single choice without titles.
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Titles of `values`, in the form of 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enum_names: Option<Vec<String>>,
    /// The values of a single choice, with titles; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Choice>>,
    /// The values of a multiple choice; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Choices>,
    /// Minimum number of choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Reads a member that is present even if it is `null`.
fn present<'de, A: MapAccess<'de>>(map: &mut A, value: &mut Option<Value>) -> Result<(), A::Error> {
    members::read(map, value.get_or_insert_default())
}

impl FieldSchema {
    fn of(kind: &str) -> Self {
        Self {
            kind: Some(kind.to_owned()),
            ..Self::default()
        }
    }

    /// Creates a string field.
    pub fn string() -> Self {
        Self::of("string")
    }

    /// Creates a number field.
    pub fn number() -> Self {
        Self::of("number")
    }

    /// Creates an integer field.
    pub fn integer() -> Self {
        Self::of("integer")
    }

    /// Creates a boolean field.
    pub fn boolean() -> Self {
        Self::of("boolean")
    }

    /// Creates a single choice.
    pub fn choice<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self {
            values: Some(values.into_iter().map(Into::into).collect()),
            ..Self::string()
        }
    }

    /// Creates a single choice with titles.
    pub fn titled_choice(choices: Vec<Choice>) -> Self {
        Self {
            one_of: Some(choices),
            ..Self::string()
        }
    }

    /// Creates a multiple choice.
    pub fn multiple_choice<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        let items = Choices {
            kind: Some("string".to_owned()),
            values: Some(values),
            ..Choices::default()
        };
        Self {
            items: Some(items),
            ..Self::of("array")
        }
    }

    /// Creates a multiple choice with titles.
    pub fn titled_multiple_choice(choices: Vec<Choice>) -> Self {
        Self {
            items: Some(Choices {
                any_of: Some(choices),
                ..Choices::default()
            }),
            ..Self::of("array")
        }
    }
}

setters!(FieldSchema {
    with_title => title: String,
    with_description => description: String,
    with_default => default: Value,
    with_format => format: String,
    with_min_length => min_length: u64,
    with_max_length => max_length: u64,
    with_minimum => minimum: f64,
    with_maximum => maximum: f64,
    with_enum_names => enum_names: Vec<String>,
    with_min_items => min_items: u64,
    with_max_items => max_items: u64,
});

/// A value with a title.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[non_exhaustive]
pub struct Choice {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// Display name.
    pub title: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Choice {
    /// Creates a value with a title.
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            title: title.into(),
            extra: Extra::new(),
        }
    }
}

/// The values of a multiple choice, with or without titles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Choices {
    /// `string`, if there are no titles.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The values without titles.
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// The values with titles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_of: Option<Vec<Choice>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Result of an elicitation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// Decision of the user.
    pub action: ElicitAction,
    /// Content of the form. Only with `accept`, and only for forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ElicitResult {
    /// Creates a result without content.
    pub fn new(action: ElicitAction) -> Self {
        Self {
            action,
            content: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(ElicitResult { with_content => content: JsonObject, with_meta => meta: Extra });

open_words! {
    /// Decision of a user.
    ElicitAction {
        /// The user accepted.
        Accept = "accept",
        /// The user declined.
        Decline = "decline",
        /// The user dismissed the request without a decision.
        Cancel = "cancel",
    }
}

/// Data of the error that requires URL elicitations (code -32042); 2025-11-25 only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UrlElicitationRequired {
    /// The URL elicitations.
    pub elicitations: Vec<ElicitParams>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl UrlElicitationRequired {
    /// Creates the data with these URL elicitations.
    pub fn new(elicitations: Vec<ElicitParams>) -> Self {
        Self {
            elicitations,
            ..Self::default()
        }
    }
}

/// The parameters of `notifications/elicitation/complete`; 2025-11-25 only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationComplete {
    /// Id of the URL elicitation that is complete.
    pub elicitation_id: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ElicitationComplete {
    /// Creates a notification about this URL elicitation.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self {
            elicitation_id: elicitation_id.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_in_the_order_it_was_built() {
        let schema = FormSchema::new()
            .with_required(
                "zeta",
                FieldSchema::string().with_title("Z").with_format("email"),
            )
            .with_optional(
                "alpha",
                FieldSchema::integer().with_minimum(1).with_default(5),
            )
            .with_optional(
                "color",
                FieldSchema::titled_choice(vec![Choice::new("r", "Red")]),
            )
            .with_optional(
                "many",
                FieldSchema::multiple_choice(["a", "b"]).with_max_items(1_u64),
            );
        let params = ElicitParams::form("Who?", schema);
        let text = serde_json::to_string(&params).expect("JSON");
        assert_eq!(
            text,
            concat!(
                r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"#,
                r#""zeta":{"type":"string","title":"Z","format":"email"},"#,
                r#""alpha":{"type":"integer","default":5,"minimum":1},"#,
                r#""color":{"type":"string","oneOf":[{"const":"r","title":"Red"}]},"#,
                r#""many":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":1}},"#,
                r#""required":["zeta"]}}"#
            )
        );
        assert_eq!(
            serde_json::from_str::<ElicitParams>(&text).expect("params"),
            params
        );
    }

    #[test]
    fn url_elicitation_has_its_mode() {
        let params = ElicitParams::url("Log in", "https://example.com/login");
        assert!(params.is_url());
        assert_eq!(
            serde_json::to_string(&params).expect("JSON"),
            r#"{"mode":"url","message":"Log in","url":"https://example.com/login"}"#
        );
    }
}
