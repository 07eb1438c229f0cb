//! Callers of requests whose tokens are not verified here, and their challenges.

use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, Response};
use mcpline_protocol::{Challenge, Scopes};

use crate::caller::Caller;
use crate::server::Principal;

use super::response_body::Body;

/// Stores the principal of the caller that a layer in front has authenticated, unless that layer has set one itself.
pub(super) fn note_principal(parts: &mut Parts) {
    if parts.extensions.get::<Principal>().is_none()
        && let Some(authorized) = parts.extensions.get::<Caller>()
    {
        let principal = authorized.principal();
        parts.extensions.insert(Principal(principal));
    }
}

/// Returns the time until which streams of this caller may last that belong to no call.
pub(super) fn stream_deadline(parts: &Parts) -> Option<u64> {
    parts.extensions.get::<Caller>()?.stream_deadline()
}

/// Returns the challenge for scopes, for a server that does not verify tokens itself.
pub(super) fn scope_challenge(needed: &Scopes) -> Challenge {
    Challenge::new("Bearer")
        .with("error", "insufficient_scope")
        .with("scope", needed.to_string())
}

/// Adds a challenge to a refusal.
pub(super) fn add_challenge(response: &mut Response<Body>, challenge: Option<Challenge>) {
    // Characters that a header cannot contain were left out when the challenge was written.
    if let Some(challenge) = challenge
        && let Ok(value) = HeaderValue::from_str(&challenge.to_header())
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}
