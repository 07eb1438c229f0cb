//! The changes that a client has subscribed to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::RpcError;
use crate::list_methods::ListChange;
use crate::vocabulary::{ServerCapabilities, SubscriptionFilter, meta};
use crate::wire::{Params, Raw, RequestId};

use super::incoming_requests::RequestKey;
use super::server::SessionLimits;
use super::writing::{honoured_json, notification};

/// A change that a client may have subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or templates.
    Resources,
    /// The content of one resource.
    Resource(String),
}

impl Change {
    /// The notification that announces it.
    pub fn method(&self) -> &'static str {
        self.list()
            .map_or("notifications/resources/updated", ListChange::as_str)
    }

    /// The list that changed; `None` for a resource's content.
    pub(super) fn list(&self) -> Option<ListChange> {
        match self {
            Self::Tools => Some(ListChange::Tools),
            Self::Prompts => Some(ListChange::Prompts),
            Self::Resources => Some(ListChange::Resources),
            Self::Resource(_) => None,
        }
    }
}

/// A `subscriptions/listen` stream (2026-07-28).
#[derive(Debug, Clone)]
pub(super) struct SubscriptionStream {
    pub(super) key: RequestKey,
    pub(super) id: RequestId,
    pub(super) filter: SubscriptionFilter,
}

impl SubscriptionStream {
    /// The number of its URIs.
    pub(super) fn uris(&self) -> usize {
        self.filter
            .resource_subscriptions
            .as_ref()
            .map_or(0, Vec::len)
    }

    /// The stream's first message: the part of its filter that is honoured.
    pub(super) fn acknowledgment(&self) -> Vec<u8> {
        let mut params = Vec::with_capacity(128);
        params.extend_from_slice(b"{\"_meta\":{\"");
        params.extend_from_slice(meta::SUBSCRIPTION_ID.as_bytes());
        params.extend_from_slice(b"\":");
        params.extend_from_slice(self.id.raw());
        params.extend_from_slice(b"},\"notifications\":");
        params.extend_from_slice(honoured_json(&self.filter).as_bytes());
        params.push(b'}');
        notification("notifications/subscriptions/acknowledged", &params)
    }

    pub(super) fn wants(&self, change: &Change) -> bool {
        if let Change::Resource(uri) = change {
            let uris = self.filter.resource_subscriptions.as_ref();
            return uris.is_some_and(|uris| uris.contains(uri));
        }
        change.list().is_some_and(|list| list.is_in(&self.filter))
    }
}

/// Finds the URIs of `subscriptions/listen` as they are written in the request, without decoding them: no more than a
/// server with these limits accepts.
///
/// # Errors
/// When they are too many or too long, or not a list.
pub fn subscribed_uris(params: &Params, limits: &SessionLimits) -> Result<Vec<Raw>, RpcError> {
    const MEMBER: &str = "params.notifications.resourceSubscriptions";
    let filter = params.get("notifications");
    let uris = filter.and_then(|filter| filter.member("resourceSubscriptions"));
    let Some(uris) = uris.filter(|uris| !uris.is_null()) else {
        return Ok(Vec::new());
    };
    let Some(elements) = uris.elements() else {
        return Err(RpcError::invalid_params(format!(
            "{MEMBER} must be an array"
        )));
    };
    let (most, most_bytes) = (limits.max_subscriptions, limits.max_subscription_bytes);
    let mut uris = Vec::new();
    let mut bytes = 0;
    for uri in elements {
        bytes += uri.as_bytes().len();
        uris.push(uri);
        if uris.len() > most {
            return Err(RpcError::invalid_params(format!(
                "{MEMBER} has more than {most} URIs (`max_subscriptions`)"
            )));
        }
        if bytes > most_bytes {
            return Err(RpcError::invalid_params(format!(
                "{MEMBER} has more than {most_bytes} bytes (`max_subscription_bytes`)"
            )));
        }
    }
    Ok(uris)
}

/// The part of a filter that a server with these capabilities honours.
pub(super) fn honoured_filter(
    filter: &SubscriptionFilter,
    capabilities: &ServerCapabilities,
) -> SubscriptionFilter {
    let resources = capabilities.resources.as_ref();
    let subscribes = resources.and_then(|resources| resources.subscribe) == Some(true);
    let mut honoured = SubscriptionFilter {
        resource_subscriptions: filter.resource_subscriptions.clone().filter(|_| subscribes),
        ..SubscriptionFilter::default()
    };
    for change in ListChange::ALL {
        if change.is_in(filter) && change.is_declared(capabilities) {
            change.add_to(&mut honoured);
        }
    }
    honoured
}

/// `resources/subscribe` of the handshake era: one set of URIs per session.
pub(super) type SubscribedUris = BTreeSet<String>;
