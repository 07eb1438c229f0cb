//! Roots: directories of a client that a server may use.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use super::Extra;
use super::macros::setters;
use crate::root_uri::{InvalidRoot, root_uri};

/// A directory or file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Root {
    /// Creates a root from an absolute path or a `file://` URI; see [`root_uri`](crate::root_uri).
    ///
    /// # Errors
    ///
    /// [`InvalidRoot`]: `root` is neither.
    pub fn new(root: impl AsRef<OsStr>) -> Result<Self, InvalidRoot> {
        Ok(Self {
            uri: root_uri(root)?,
            ..Self::default()
        })
    }
}

setters!(Root { with_name => name: String, with_meta => meta: Extra });

/// The result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ListRootsResult {
    /// Creates a result with these roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self {
            roots,
            ..Self::default()
        }
    }
}
