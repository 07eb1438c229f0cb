//! Content blocks of tool results and prompts.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};

use super::Extra;
use super::macros::{open_words, optional_number, setters, tagged_union};
use super::resources::{Resource, ResourceContents};

tagged_union! {
    /// One piece of content.
    ContentBlock by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Audio; since 2025-03-26.
        Audio(AudioContent) = "audio",
        /// A link to a resource; since 2025-06-18.
        ResourceLink(Resource) = "resource_link",
        /// A resource with its contents.
        Resource(EmbeddedResource) = "resource",
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl ContentBlock {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from base64 data.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates audio from base64 data.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// A resource with its contents.
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource {
            resource,
            ..EmbeddedResource::default()
        })
    }
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TextContent {
    /// Creates text without annotations.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

setters!(TextContent { with_annotations => annotations: Annotations, with_meta => meta: Extra });

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// Base64 data of the image.
    pub data: String,
    /// MIME type.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ImageContent {
    /// Creates an image from base64 data.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            ..Self::default()
        }
    }
}

setters!(ImageContent { with_annotations => annotations: Annotations, with_meta => meta: Extra });

/// Audio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// Base64 data of the audio.
    pub data: String,
    /// MIME type.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl AudioContent {
    /// Creates audio from base64 data.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            ..Self::default()
        }
    }
}

setters!(AudioContent { with_annotations => annotations: Annotations, with_meta => meta: Extra });

/// A resource inside a message, with its contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EmbeddedResource {
    /// Creates an embedded resource without metadata.
    pub fn new(resource: ResourceContents) -> Self {
        Self {
            resource,
            annotations: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(EmbeddedResource { with_annotations => annotations: Annotations, with_meta => meta: Extra });

/// Hints about audience and priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Intended audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, optional, to 1, required.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub priority: Option<f64>,
    /// Time of the last change, in ISO 8601; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(Annotations {
    with_audience => audience: Vec<Role>,
    with_priority => priority: f64,
    with_last_modified => last_modified: String,
});

open_words! {
    /// Sender of a message.
    Role {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_unknown_types_are_kept_whole() {
        let text = r#"{"type":"video","data":"x","n":{"a":[1]}}"#;
        let block: ContentBlock = serde_json::from_str(text).expect("a block");
        assert!(matches!(&block, ContentBlock::Other(object) if object["type"] == "video"));
        assert_eq!(serde_json::to_string(&block).expect("JSON"), text);
    }

    #[test]
    fn unknown_members_of_known_blocks_are_kept() {
        let text = r#"{"type":"text","text":"x","annotations":{"priority":1,"new":2},"later":[]}"#;
        let block: ContentBlock = serde_json::from_str(text).expect("a block");
        assert_eq!(serde_json::to_string(&block).expect("JSON"), text);
    }

    #[test]
    fn a_known_block_without_its_members_is_refused() {
        for text in [
            r#"{"type":"text"}"#,
            r#"{"text":"x"}"#,
            r#"{"type":"image","data":"x"}"#,
        ] {
            assert!(
                serde_json::from_str::<ContentBlock>(text).is_err(),
                "{text}"
            );
        }
    }
}
