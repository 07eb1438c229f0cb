//! Authorization of servers: which tokens are accepted, and how callers without a valid one are answered.
//!
//! Set a [`ResourceServer`] as [`HttpOptions::auth`](crate::transport::http::HttpOptions::auth). It verifies the token
//! of each request before anything else of it is processed, by the issuer's signature ([`Keys`]), by a request to the
//! issuer ([`Introspection`]) or by a callback, and turns it into a [`Caller`], which handlers find in
//! [`Context::auth`](crate::Context::auth).

mod authorization_server_redirects;
mod builder;
mod document_cache;
mod introspection;
mod keys;
mod proof_replay_cache;
mod refused_tokens;
mod resource_server;
mod shared_proofs;
#[cfg(test)]
mod tests;
mod token_cache;
mod token_refusal;
mod verified_tokens;

use mcpline_auth::fetch::Fetch;

pub(crate) use authorization_server_redirects::{AuthorizationEndpoint, EndpointAnswer};
pub use builder::{ResourceServerBuilder, VerifyError};
pub use introspection::Introspection;
pub use keys::Keys;
pub use resource_server::ResourceServer;
pub(crate) use token_refusal::TokenRefusal;
