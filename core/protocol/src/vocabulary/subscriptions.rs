//! `subscriptions/listen`: a long-running request that receives change notifications; since 2026-07-28.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};

use super::Extra;
use super::macros::setters;
use super::tools::ResultType;

/// Changes that a client subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// `notifications/tools/list_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// `notifications/prompts/list_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// `notifications/resources/list_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// `notifications/resources/updated` for these URIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(SubscriptionFilter {
    with_tools_list_changed => tools_list_changed: bool,
    with_prompts_list_changed => prompts_list_changed: bool,
    with_resources_list_changed => resources_list_changed: bool,
    with_resource_subscriptions => resource_subscriptions: Vec<String>,
});

/// The parameters of `subscriptions/listen`, and of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenParams {
    /// Requested notifications, or notifications that will be sent.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ListenParams {
    /// Creates parameters with this filter.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            ..Self::default()
        }
    }
}

/// The result of `subscriptions/listen`, when the server ends it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenResult {
    /// Type of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata, including the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}
