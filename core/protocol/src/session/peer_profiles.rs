//! The client of a session, and the server as the client sees it.

use std::collections::BTreeSet;

use crate::adapt;
use crate::error::RpcError;
use crate::input_method::InputMethod;
use crate::revision::Revision;
use crate::vocabulary::{
    CacheHints, CacheScope, Implementation, ListCapability, ResourcesCapability,
    ServerCapabilities, meta,
};
use crate::wire::{JsonKind, Raw};

/// A server's description of itself in `initialize` and `server/discover`.
#[derive(Debug, Clone, Default)]
pub struct ServerProfile {
    /// The server's name, version and the like.
    pub info: Implementation,
    /// The capabilities that the server offers now. Methods are admitted according to them.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
    /// Caching hints of `server/discover` (2026-07-28).
    pub discover_cache: CacheHints,
    /// The revisions that the server supports, oldest first. By default, all of them.
    pub revisions: Vec<Revision>,
    /// Custom requests that have a handler.
    pub requests: BTreeSet<Box<str>>,
    /// Custom notifications that have a handler.
    pub notifications: BTreeSet<Box<str>>,
}

/// The client: its revision, name and capabilities, from the handshake or the request itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientProfile {
    /// The revision that its messages follow.
    pub revision: Revision,
    /// `Implementation` as received, if the client identified itself.
    pub info: Option<Raw>,
    /// `ClientCapabilities` as received.
    pub capabilities: Raw,
}

/// A client capability that an input request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequiredCapability {
    /// `elicitation/create` in form mode.
    ElicitForm,
    /// `elicitation/create` in URL mode, from 2025-11-25 on.
    ElicitUrl,
    /// `sampling/createMessage`.
    Sampling,
    /// `sampling/createMessage` with tools, from 2025-11-25 on.
    SamplingTools,
    /// `roots/list`.
    Roots,
    /// Nothing: `ping` needs no capability.
    Nothing,
}

impl RequiredCapability {
    /// The capability that an input request with this method and these parameters needs.
    pub fn of(method: &str, params: Option<&Raw>) -> Self {
        let has = |name: &str| params.and_then(|params| params.member(name)).is_some();
        match InputMethod::parse(method) {
            Some(InputMethod::Elicit) => {
                let mode = params.and_then(|params| params.member("mode"));
                match mode.as_ref().map(Raw::as_str) {
                    Some("\"url\"") => Self::ElicitUrl,
                    _ => Self::ElicitForm,
                }
            }
            Some(InputMethod::Sample) if has("tools") || has("toolChoice") => Self::SamplingTools,
            Some(InputMethod::Sample) => Self::Sampling,
            Some(InputMethod::ListRoots) => Self::Roots,
            None => Self::Nothing,
        }
    }

    /// The capability as `data.requiredCapabilities` of -32021 names it.
    pub fn required(self) -> serde_json::Value {
        match self {
            Self::ElicitForm => serde_json::json!({"elicitation": {}}),
            Self::ElicitUrl => serde_json::json!({"elicitation": {"url": {}}}),
            Self::Sampling => serde_json::json!({"sampling": {}}),
            Self::SamplingTools => serde_json::json!({"sampling": {"tools": {}}}),
            Self::Roots => serde_json::json!({"roots": {}}),
            Self::Nothing => serde_json::json!({}),
        }
    }

    /// The name of the capability in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ElicitForm => "elicitation",
            Self::ElicitUrl => "elicitation in URL mode",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling with tools",
            Self::Roots => "roots",
            Self::Nothing => "nothing",
        }
    }

    /// The error of 2026-07-28 for a request that needs this capability.
    pub fn error(self) -> RpcError {
        RpcError::missing_capability(&self.required())
    }
}

impl ClientProfile {
    /// Whether the client accepts such an input request: it declared the capability, and the revision has it.
    pub fn accepts(&self, need: RequiredCapability) -> bool {
        let features = self.revision.features();
        let capability = |name: &str| non_null_member(&self.capabilities, name);
        let nested = |name: &str, inner: &str| self.declares(name, inner);
        match need {
            RequiredCapability::ElicitForm => {
                // An empty object means form mode (2025-11-25, client/elicitation, capabilities).
                features.elicitation
                    && capability("elicitation").is_some_and(|value| {
                        non_null_member(&value, "form").is_some()
                            || non_null_member(&value, "url").is_none()
                    })
            }
            RequiredCapability::ElicitUrl => {
                features.url_elicitation && nested("elicitation", "url")
            }
            RequiredCapability::Sampling => capability("sampling").is_some(),
            RequiredCapability::SamplingTools => {
                features.sampling_tools && nested("sampling", "tools")
            }
            RequiredCapability::Roots => capability("roots").is_some(),
            RequiredCapability::Nothing => true,
        }
    }

    /// Whether sampling may include the context of servers: since 2025-11-25 only if the client declared it
    /// (`client/sampling`, capabilities).
    pub fn accepts_context(&self) -> bool {
        !self.revision.features().sampling_tools || self.declares("sampling", "context")
    }

    /// The client's settings for an extension, an object; `None` if it did not declare the extension.
    pub fn extension(&self, identifier: &str) -> Option<Raw> {
        let declared = non_null_member(&self.capabilities, "extensions")?;
        non_null_member(&declared, identifier)
            .filter(|settings| settings.kind() == JsonKind::Object)
    }

    fn declares(&self, capability: &str, inner: &str) -> bool {
        let capability = non_null_member(&self.capabilities, capability);
        capability.is_some_and(|value| non_null_member(&value, inner).is_some())
    }
}

/// Returns a member, treating `null` as absent.
fn non_null_member(object: &Raw, name: &str) -> Option<Raw> {
    object.member(name).filter(|value| !value.is_null())
}

/// The result of `initialize` for a client of this revision. A server that does not keep state between requests declares
/// neither subscriptions nor notifications of changes.
pub(super) fn initialize_result(
    profile: &ServerProfile,
    revision: Revision,
    keeps_state: bool,
) -> Vec<u8> {
    let mut capabilities = profile.capabilities.clone();
    if !keeps_state {
        capabilities.resources = capabilities
            .resources
            .map(|_| ResourcesCapability::default());
        capabilities.tools = capabilities.tools.map(|_| ListCapability::default());
        capabilities.prompts = capabilities.prompts.map(|_| ListCapability::default());
    }
    let mut result = serde_json::json!({
        "protocolVersion": revision.as_str(),
        "capabilities": adapt::server_capabilities(&capabilities, revision),
        "serverInfo": adapt::implementation(&profile.info, revision),
    });
    if let Some(instructions) = &profile.instructions {
        result["instructions"] = instructions.as_str().into();
    }
    result.to_string().into_bytes()
}

/// The result of `server/discover` for a client of this revision (2026-07-28, `server/discover`).
pub(super) fn discover_result(profile: &ServerProfile, revision: Revision) -> Vec<u8> {
    let revisions: Vec<&str> = profile.revisions.iter().rev().map(|r| r.as_str()).collect();
    let mut result = serde_json::json!({
        "resultType": "complete",
        "supportedVersions": revisions,
        "capabilities": adapt::server_capabilities(&profile.capabilities, revision),
        "_meta": { meta::SERVER_INFO: adapt::implementation(&profile.info, revision) },
        "ttlMs": profile.discover_cache.ttl_ms.unwrap_or(0),
        "cacheScope": profile.discover_cache.cache_scope.clone().unwrap_or(CacheScope::Private),
    });
    if let Some(instructions) = &profile.instructions {
        result["instructions"] = instructions.as_str().into();
    }
    result.to_string().into_bytes()
}
