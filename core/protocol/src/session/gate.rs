//! Which method a session may serve: what the revision has, and what the server offers.

use crate::error::RpcError;
use crate::revision::Revision;
use crate::vocabulary::ServerCapabilities;
use crate::wire::Method;

/// Where a request that passed the gate goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// The session answers it itself.
    Session,
    /// The server's features answer it.
    Server,
}

/// Lets a request through or says why not.
///
/// A method that the revision doesn't have, or whose capability the server didn't declare, does not
/// exist for the client: -32601.
pub(super) fn admit(
    method: &Method,
    revision: Revision,
    offered: &ServerCapabilities,
) -> Result<Destination, RpcError> {
    let features = revision.features();
    let (exists, destination) = match method {
        Method::Ping => (features.ping, Destination::Session),
        Method::ServerDiscover => (revision.is_modern(), Destination::Session),
        Method::LoggingSetLevel => (
            features.set_level && offered.logging.is_some(),
            Destination::Session,
        ),
        Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => (
            features.resource_subscribe && subscribes(offered),
            Destination::Session,
        ),
        Method::SubscriptionsListen => (features.listen, Destination::Session),
        Method::ToolsList | Method::ToolsCall => (offered.tools.is_some(), Destination::Server),
        Method::PromptsList | Method::PromptsGet => {
            (offered.prompts.is_some(), Destination::Server)
        }
        Method::ResourcesList | Method::ResourcesTemplatesList | Method::ResourcesRead => {
            (offered.resources.is_some(), Destination::Server)
        }
        // Before 2025-03-26 there was no capability to declare; the method was simply there.
        Method::CompletionComplete => (
            offered.completions.is_some() || !features.completions_capability,
            Destination::Server,
        ),
        _ => (false, Destination::Server),
    };
    if exists {
        Ok(destination)
    } else {
        Err(RpcError::method_not_found(method.as_str()))
    }
}

fn subscribes(offered: &ServerCapabilities) -> bool {
    let resources = offered.resources.as_ref();
    resources.and_then(|resources| resources.subscribe) == Some(true)
}
