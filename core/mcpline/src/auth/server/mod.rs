//! The server's side: whose tokens are accepted, and what a caller without a good one is told.
//!
//! A [`ResourceServer`] is given to [`HttpOptions::auth`](crate::transport::http::HttpOptions::auth). It checks the token
//! of each request before anything else of it is looked at, by the signature of its issuer ([`Keys`]), by asking the
//! issuer ([`Introspection`]) or by a callback, and makes a [`Caller`] of it, which handlers find in
//! [`Context::auth`](crate::Context::auth).

mod authorization_endpoints;
mod builder;
mod document_cache;
mod introspection;
mod keys;
mod proofs;
mod refused_tokens;
mod resource_server;
#[cfg(test)]
mod tests;
mod token_cache;
mod token_refusal;
mod verified_tokens;

use mcpline_auth::fetch::Fetch;

pub(crate) use authorization_endpoints::{AuthorizationEndpoint, EndpointAnswer};
pub use builder::{ResourceServerBuilder, VerifyError};
pub use introspection::Introspection;
pub use keys::Keys;
pub use resource_server::ResourceServer;
pub(crate) use token_refusal::TokenRefusal;
