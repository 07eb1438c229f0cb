//! Resources and resource templates.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};

use super::caching::CacheHints;
use super::content::Annotations;
use super::implementation::Icon;
use super::macros::setters;
use super::tools::ResultType;
use super::{Extra, JsonObject};

/// The definition of a resource; in content, a link to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// URI.
    pub uri: String,
    /// Name for programs.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Resource {
    /// Creates a resource.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(Resource {
    with_title => title: String,
    with_description => description: String,
    with_mime_type => mime_type: String,
    with_size => size: u64,
    with_icons => icons: Vec<Icon>,
    with_annotations => annotations: Annotations,
    with_meta => meta: Extra,
});

/// The definition of a resource template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// URI template (RFC 6570).
    pub uri_template: String,
    /// Name for programs.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// MIME type, if all resources have the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Icons; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceTemplate {
    /// Creates a resource template.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(ResourceTemplate {
    with_title => title: String,
    with_description => description: String,
    with_mime_type => mime_type: String,
    with_icons => icons: Vec<Icon>,
    with_annotations => annotations: Annotations,
    with_meta => meta: Extra,
});

/// Contents of a resource: text, or binary data in base64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceContents {
    /// URI.
    pub uri: String,
    /// MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Text content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Binary content in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceContents {
    /// Text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Creates binary contents from base64 data.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            blob: Some(blob.into()),
            ..Self::default()
        }
    }
}

setters!(ResourceContents { with_mime_type => mime_type: String, with_meta => meta: Extra });

/// The parameters of `resources/read`, and of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The resource.
    pub uri: String,
    /// Responses to input requests of the server; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<JsonObject>,
    /// State that the server sent with its input requests; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ReadResourceParams {
    /// Creates parameters for a resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

setters!(ReadResourceParams {
    with_input_responses => input_responses: JsonObject,
    with_request_state => request_state: String,
    with_meta => meta: Extra,
});

/// Result of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// Type of the result; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Contents; more than one if the resource has parts.
    pub contents: Vec<ResourceContents>,
    /// Cache hints; since 2026-07-28.
    #[serde(flatten)]
    pub cache: CacheHints,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ReadResourceResult {
    /// Creates a result with these contents.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self {
            contents,
            ..Self::default()
        }
    }
}

/// The parameters of `notifications/resources/updated`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdated {
    /// URI of the resource, or of one that it contains.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceUpdated {
    /// Creates a notification about this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}
