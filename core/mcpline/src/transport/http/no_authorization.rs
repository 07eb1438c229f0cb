//! Stands in for `authorization` in builds without the cargo feature `auth`. Tokens are not verified here; a layer in
//! front may identify the caller.

use std::sync::Arc;

use http::Response;
use http::request::Parts;
use mcpline_protocol::{Revision, Scopes};

use crate::quota::ClientQuota;
use crate::sharing::Sharing;

use super::caller::{add_challenge, note_principal, scope_challenge};
use super::options::HttpOptions;
use super::response_body::Body;

/// There are no such endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthEndpoint {}

/// There is no such state.
pub(super) struct Authorization;

impl Authorization {
    pub(super) fn of(_: &mut HttpOptions) -> Self {
        Self
    }

    pub(super) fn endpoint(
        &self,
        _: &str,
        _: &HttpOptions,
        _: &[Revision],
        _: bool,
    ) -> Option<AuthEndpoint> {
        None
    }

    pub(super) async fn answer(
        &self,
        endpoint: AuthEndpoint,
        _: &HttpOptions,
        _: &Parts,
    ) -> Response<Body> {
        match endpoint {}
    }
}

/// Stores the caller's principal in the request's extensions.
///
/// # Errors
///
/// None.
pub(super) async fn admit(
    _: &HttpOptions,
    parts: &mut Parts,
    _: Option<&Sharing>,
    _: impl FnOnce(&Parts) -> Arc<ClientQuota>,
) -> Result<(), Response<Body>> {
    note_principal(parts);
    Ok(())
}

/// Adds the challenge with the required scopes to a refusal.
pub(super) fn add_scope_challenge(response: &mut Response<Body>, _: &HttpOptions, needed: &Scopes) {
    add_challenge(response, Some(scope_challenge(needed)));
}
