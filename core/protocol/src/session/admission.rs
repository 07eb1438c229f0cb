//! Which requests a session may serve: what the revision has, and what the server offers.

use crate::error::RpcError;
use crate::methods::MethodHandledBy;
use crate::revision::Revision;
use crate::wire::Method;

use super::peer_profiles::ServerProfile;

/// Where an admitted request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestHandledBy {
    /// The session answers it.
    Session,
    /// The server's features answer it.
    Server,
}

/// Admits a request, or returns the error for it.
///
/// A method that the revision doesn't have, or whose capability the server didn't declare, does not exist for the
/// client: -32601. A custom method exists on every revision that doesn't define it.
pub(super) fn admit(
    method: &Method,
    revision: Revision,
    profile: &ServerProfile,
) -> Result<RequestHandledBy, RpcError> {
    destination(method, revision, profile)
        .ok_or_else(|| RpcError::method_not_found(method.as_str()))
}

fn destination(
    method: &Method,
    revision: Revision,
    profile: &ServerProfile,
) -> Option<RequestHandledBy> {
    let Some(spec) = method.spec().filter(|spec| !spec.is_custom_in(revision)) else {
        let has_handler = profile.requests.contains(method.as_str());
        return has_handler.then_some(RequestHandledBy::Server);
    };
    let destination = match spec.handled_by {
        MethodHandledBy::Session => RequestHandledBy::Session,
        MethodHandledBy::Features => RequestHandledBy::Server,
        MethodHandledBy::Nothing => return None,
    };
    let is_offered = spec
        .capability(revision)
        .is_none_or(|capability| profile.capabilities.declares(capability));
    (spec.is_in(revision) && is_offered).then_some(destination)
}
