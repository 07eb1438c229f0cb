//! What stands in for `authorization` in programs that are built without the cargo feature `auth`: tokens are not checked here.
//! A layer in front may say who calls.

use std::sync::Arc;

use http::Response;
use http::request::Parts;
use mcpline_protocol::{Revision, Scopes};

use crate::quota::ClientQuota;

use super::body::Body;
use super::caller::{add_challenge, note_principal, scope_challenge};
use super::options::HttpOptions;

/// There is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthEndpoint {}

/// Nothing.
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

/// Notes who calls.
///
/// # Errors
///
/// None.
pub(super) async fn admit(
    _: &HttpOptions,
    parts: &mut Parts,
    _: impl FnOnce(&Parts) -> Arc<ClientQuota>,
) -> Result<(), Response<Body>> {
    note_principal(parts);
    Ok(())
}

/// Adds to a refusal which scopes are needed.
pub(super) fn demand(response: &mut Response<Body>, _: &HttpOptions, needed: &Scopes) {
    add_challenge(response, Some(scope_challenge(needed)));
}
