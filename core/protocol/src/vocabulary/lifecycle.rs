//! Getting to know each other: `initialize` of the handshake era, `server/discover` since.

use serde::{Deserialize, Serialize};

use super::Extra;
use super::caching::CacheHints;
use super::capabilities::{ClientCapabilities, ServerCapabilities};
use super::implementation::Implementation;
use super::shape::setters;
use super::tools::ResultType;
use crate::members;

/// The parameters of `initialize`; before 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The revision that the client wants: its newest.
    pub protocol_version: String,
    /// What the client offers.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client_info: Implementation,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of `initialize`; before 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The revision of the session.
    pub protocol_version: String,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// Who the server is.
    pub server_info: Implementation,
    /// How to use the server, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

members! {
    InitializeResult from InitializeResult::default(); others extra; needs protocol_version, capabilities, server_info;
    protocol_version = "protocolVersion", capabilities, server_info = "serverInfo", instructions,
    meta = "_meta",
}

setters!(InitializeResult { with_instructions => instructions: String, with_meta => meta: Extra });

/// The result of `server/discover`; since 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The kind of result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The revisions that the server speaks.
    pub supported_versions: Vec<String>,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result may be kept.
    #[serde(flatten)]
    pub cache: CacheHints,
    /// Metadata; says who the server is.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

members! {
    DiscoverResult from DiscoverResult::default(); others extra; needs supported_versions, capabilities;
    ttl_ms in cache = "ttlMs", cache_scope in cache = "cacheScope",
    result_type = "resultType", supported_versions = "supportedVersions", capabilities,
    instructions, meta = "_meta",
}

setters!(DiscoverResult { with_instructions => instructions: String, with_meta => meta: Extra });
