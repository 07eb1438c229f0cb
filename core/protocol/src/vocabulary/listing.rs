//! Paginated lists: `tools/list`, `resources/list`, `resources/templates/list`, `prompts/list`.

use serde::{Deserialize, Serialize};

use super::Extra;
use super::caching::CacheHints;
use super::macros::setters;
use super::prompts::Prompt;
use super::resources::{Resource, ResourceTemplate};
use super::tools::{ResultType, Tool};

/// Parameters of list requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListParams {
    /// Opaque cursor from the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ListParams { with_cursor => cursor: String, with_meta => meta: Extra });

macro_rules! list_result {
    ($(#[$doc:meta])* $name:ident { $items:ident: $item:ty }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// Type of the result; since 2026-07-28.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result_type: Option<ResultType>,
            /// The items of this page.
            pub $items: Vec<$item>,
            /// Cursor of the next page, if there is one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
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

        setters!($name { with_next_cursor => next_cursor: String, with_meta => meta: Extra });
    };
}

list_result! {
    /// A page of `tools/list`.
    ListToolsResult { tools: Tool }
}

list_result! {
    /// A page of `resources/list`.
    ListResourcesResult { resources: Resource }
}

list_result! {
    /// A page of `resources/templates/list`.
    ListResourceTemplatesResult { resource_templates: ResourceTemplate }
}

list_result! {
    /// A page of `prompts/list`.
    ListPromptsResult { prompts: Prompt }
}
