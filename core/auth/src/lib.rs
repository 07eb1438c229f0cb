//! Authorization for the Model Context Protocol (`basic/authorization`): OAuth 2.1 as state machines and values.
//!
//! This crate does no input or output, reads no clock and draws no random numbers. A machine says which request to make
//! ([`fetch`]) and takes the response; time and entropy are arguments. The crate `mcpline` drives the machines.
//!
//! For clients: a [`Challenge`](mcpline_protocol::Challenge) leads to [`discovery`], which reads [`metadata`] at
//! [`well_known`] URLs. Then the client registers ([`registration`]), the user signs in ([`authorize`]), and the [`token`]
//! endpoint issues tokens.
//!
//! For servers: the [`claims`] of a token say who it is for and until when it is valid. Signatures, client assertions and
//! proofs of possession are in the crate `mcpline-jose`.

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

pub use error::AuthError;
pub use secret::Secret;
