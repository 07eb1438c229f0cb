//! What is known of a request's caller where no token was checked here, and how a caller is told what it lacks.

use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, Response};
use mcpline_protocol::{Challenge, Scopes};

use crate::caller::Caller;
use crate::server::Principal;

use super::body::Body;

/// Notes the principal of the caller whom a layer in front authenticated, unless that layer named one itself.
pub(super) fn note_principal(parts: &mut Parts) {
    if parts.extensions.get::<Principal>().is_none()
        && let Some(authorized) = parts.extensions.get::<Caller>()
    {
        let principal = authorized.principal();
        parts.extensions.insert(Principal(principal));
    }
}

/// Until when streams of this request's caller go on that belong to no call.
pub(super) fn good_until(parts: &Parts) -> Option<u64> {
    parts.extensions.get::<Caller>()?.good_until()
}

/// The challenge for scopes, of a server that checks no tokens itself.
pub(super) fn scope_challenge(needed: &Scopes) -> Challenge {
    Challenge::new("Bearer")
        .with("error", "insufficient_scope")
        .with("scope", needed.to_string())
}

/// Adds a challenge to a refusal.
pub(super) fn add_challenge(response: &mut Response<Body>, challenge: Option<Challenge>) {
    // What can't be in a header was left out when it was written.
    if let Some(challenge) = challenge
        && let Ok(value) = HeaderValue::from_str(&challenge.to_header())
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}
