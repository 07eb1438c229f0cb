//! Capabilities of clients and servers.

use std::collections::BTreeMap;

use mcpline_derive::Members;
use serde::Serialize;

use super::macros::setters;
use super::{Extra, JsonObject};
use crate::methods::ServerCapability;

/// Capabilities of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// The client lists root directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client samples from a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client asks its user for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<JsonObject>,
    /// Experimental capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<BTreeMap<String, JsonObject>>,
    /// Extensions, with their settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<BTreeMap<String, JsonObject>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ClientCapabilities {
    with_roots => roots: RootsCapability,
    with_sampling => sampling: SamplingCapability,
    with_elicitation => elicitation: ElicitationCapability,
    with_tasks => tasks: JsonObject,
    with_experimental => experimental: BTreeMap<String, JsonObject>,
    with_extensions => extensions: BTreeMap<String, JsonObject>,
});

impl ClientCapabilities {
    /// Returns the capabilities with these members replaced. Members that are `null` are removed.
    ///
    /// # Errors
    ///
    /// A member has an invalid value.
    pub fn overridden(&self, members: JsonObject) -> Result<Self, serde_json::Error> {
        let mut all = serde_json::to_value(self)?;
        if let Some(all) = all.as_object_mut() {
            all.extend(members);
            all.retain(|_, value| !value.is_null());
        }
        // Through text: deserializing from values would duplicate the code.
        serde_json::from_slice(all.to_string().as_bytes())
    }

    /// Returns whether forms are supported. An empty `elicitation` object means forms (2025-11-25, "Elicitation",
    /// Capabilities).
    pub fn has_form_elicitation(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether URL elicitation is supported.
    pub fn has_url_elicitation(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.url.is_some())
    }

    /// Returns whether a sampling request may offer tools to the model.
    pub fn has_sampling_tools(&self) -> bool {
        self.sampling
            .as_ref()
            .is_some_and(|sampling| sampling.tools.is_some())
    }
}

/// The `roots` capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// The client sends notifications when its roots change; before 2026-07-28.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(RootsCapability { with_list_changed => list_changed: bool });

/// The `sampling` capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// `includeContext` may have other values than `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// `tools` and `toolChoice` are supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(SamplingCapability {
    with_context => context: JsonObject,
    with_tools => tools: JsonObject,
});

/// The `elicitation` capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// Form mode is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// URL mode is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ElicitationCapability { with_form => form: JsonObject, with_url => url: JsonObject });

/// Capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// The server has tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// The server has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server has prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// The server completes arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// The server sends log messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// Experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<JsonObject>,
    /// Experimental capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<BTreeMap<String, JsonObject>>,
    /// Extensions, with their settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<BTreeMap<String, JsonObject>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ServerCapabilities {
    /// Returns whether the server declares a capability.
    pub fn declares(&self, capability: ServerCapability) -> bool {
        let resources = self.resources.as_ref();
        let tasks = self.tasks.as_ref();
        match capability {
            ServerCapability::Tools => self.tools.is_some(),
            ServerCapability::Resources => resources.is_some(),
            ServerCapability::ResourcesSubscribe => {
                resources.is_some_and(|resources| resources.subscribe == Some(true))
            }
            ServerCapability::Prompts => self.prompts.is_some(),
            ServerCapability::Completions => self.completions.is_some(),
            ServerCapability::Logging => self.logging.is_some(),
            ServerCapability::Tasks => tasks.is_some(),
            ServerCapability::TasksList => tasks.is_some_and(|tasks| tasks.contains_key("list")),
            ServerCapability::TasksCancel => {
                tasks.is_some_and(|tasks| tasks.contains_key("cancel"))
            }
        }
    }
}

setters!(ServerCapabilities {
    with_tools => tools: ListCapability,
    with_resources => resources: ResourcesCapability,
    with_prompts => prompts: ListCapability,
    with_completions => completions: JsonObject,
    with_logging => logging: JsonObject,
    with_tasks => tasks: JsonObject,
    with_experimental => experimental: BTreeMap<String, JsonObject>,
    with_extensions => extensions: BTreeMap<String, JsonObject>,
});

/// The `tools` and `prompts` capabilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListCapability {
    /// The server sends notifications when the list changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ListCapability { with_list_changed => list_changed: bool });

/// The `resources` capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Clients can subscribe to updates to a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server sends notifications when the list changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ResourcesCapability { with_subscribe => subscribe: bool, with_list_changed => list_changed: bool });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_elicitation_object_means_forms() {
        let read =
            |text: &str| serde_json::from_str::<ClientCapabilities>(text).expect("capabilities");
        let modes = |text: &str| {
            let capabilities = read(text);
            (
                capabilities.has_form_elicitation(),
                capabilities.has_url_elicitation(),
            )
        };
        assert_eq!(modes("{}"), (false, false));
        assert_eq!(modes(r#"{"elicitation":{}}"#), (true, false));
        assert_eq!(modes(r#"{"elicitation":{"url":{}}}"#), (false, true));
        assert_eq!(
            modes(r#"{"elicitation":{"url":{},"form":{}}}"#),
            (true, true)
        );
    }
}
