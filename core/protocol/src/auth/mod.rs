//! Authorization (`basic/authorization`): OAuth 2.1 as small machines and values.
//!
//! Nothing here fetches, waits or asks anybody: a machine says which request to make ([`fetch`]) and takes in what came of
//! it. What it needs of time and chance is an argument. The crate `mcpline` drives them.
//!
//! A client's way to a token: a [`Challenge`] leads to a [`discovery`] (by [`well_known`] places, of [`metadata`]), the
//! client becomes known ([`registration`]), the user is sent off and comes back ([`authorize`]), and the [`token`] endpoint
//! is asked. What tokens are good for is a set of [`Scopes`].
//!
//! A server's side: a token's [`claims`] say for whom and until when it is good. Signatures, client assertions and proofs of
//! possession are the crate `mcpline-jose`.

pub mod authorize;
pub mod claims;
pub mod discovery;
pub mod error;
pub mod fetch;
pub mod metadata;
pub mod registration;
pub mod secret;
pub mod token;
pub mod url;
pub mod well_known;

pub use crate::challenge::Challenge;
pub use crate::scopes::Scopes;
pub use error::AuthError;
pub use secret::Secret;
