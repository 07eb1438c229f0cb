//! Descriptions of clients and servers, and icons.

use mcpline_derive::Members;
use serde::Serialize;

use super::Extra;
use super::macros::{open_words, setters};

/// Description of a client or server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Name for programs.
    pub name: String,
    /// Version.
    pub version: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// URL of its website.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Implementation {
    /// Creates a description with name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            ..Self::default()
        }
    }
}

setters!(Implementation {
    with_title => title: String,
    with_description => description: String,
    with_website_url => website_url: String,
    with_icons => icons: Vec<Icon>,
});

/// An icon, in one or more sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// MIME type, if that of the server is missing or too general.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// Background that the icon is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Icon {
    /// Creates an icon with a URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }
}

setters!(Icon {
    with_mime_type => mime_type: String,
    with_sizes => sizes: Vec<String>,
    with_theme => theme: Theme,
});

open_words! {
    /// Background that an icon is made for.
    Theme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
