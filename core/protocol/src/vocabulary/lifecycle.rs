//! The handshake: `initialize` up to 2025-11-25, `server/discover` since 2026-07-28.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};

use super::Extra;
use super::caching::CacheHints;
use super::capabilities::{ClientCapabilities, ServerCapabilities};
use super::implementation::Implementation;
use super::macros::setters;
use super::tools::ResultType;

/// The parameters of `initialize`; before 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// Protocol revision that the client requests: its newest.
    pub protocol_version: String,
    /// Capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// Description of the client.
    pub client_info: Implementation,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl InitializeParams {
    /// Creates the parameters of a handshake.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: protocol_version.into(),
            capabilities,
            client_info,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(InitializeParams { with_meta => meta: Extra });

/// The result of `initialize`; before 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// Protocol revision of the session.
    pub protocol_version: String,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Description of the server.
    pub server_info: Implementation,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(InitializeResult { with_instructions => instructions: String, with_meta => meta: Extra });

/// The result of `server/discover`; since 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// Type of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Protocol revisions that the server supports.
    pub supported_versions: Vec<String>,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Cache hints.
    #[members(within(ttl_ms, cache_scope))]
    #[serde(flatten)]
    pub cache: CacheHints,
    /// Metadata, including the description of the server.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(DiscoverResult { with_instructions => instructions: String, with_meta => meta: Extra });
