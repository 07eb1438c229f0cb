//! Which request a session may serve: what the revision has, and what the server offers.

use crate::error::RpcError;
use crate::methods::ServedBy;
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
    destination(method, revision, offered)
        .ok_or_else(|| RpcError::method_not_found(method.as_str()))
}

fn destination(
    method: &Method,
    revision: Revision,
    offered: &ServerCapabilities,
) -> Option<Destination> {
    let spec = method.spec()?;
    let destination = match spec.served_by {
        ServedBy::Session => Destination::Session,
        ServedBy::Features => Destination::Server,
        ServedBy::Author => return None,
    };
    let is_offered = spec
        .capability(revision)
        .is_none_or(|capability| capability.is_declared(offered));
    (spec.is_in(revision) && is_offered).then_some(destination)
}
