//! Authorization for the Model Context Protocol (`basic/authorization`): OAuth 2.1 as state machines and values, and
//! the client that drives them.
//!
//! Without cargo features this crate does no input or output, reads no clock and draws no random numbers. A state
//! machine returns the request to make ([`fetch`]) and takes the response; time and entropy are arguments.
//!
//! For clients: a [`Challenge`](mcpline_protocol::Challenge) leads to [`discovery`], which reads [`metadata`] at
//! [`well_known`] URLs. Then the client registers ([`registration`]), the user signs in ([`authorize`]), and the [`token`]
//! endpoint issues tokens.
//!
//! For servers: the [`claims`] of a token say who issued it, which resource it is for, and until when it is valid.
//!
//! With the cargo feature `proofs`: client assertions (`assertion`) and DPoP proofs, created in `dpop` and verified in
//! `proof`, with the keys of `mcpline-jose`.
//!
//! With the cargo feature `client`, the client's drivers: `client` manages tokens and authorizes requests, `user_agent`
//! sends users to the authorization server and back, `store` keeps tokens. The caller supplies the HTTP client
//! (`client::FetcherFactory`).

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "proofs")]
#[cfg_attr(docsrs, doc(cfg(feature = "proofs")))]
pub mod assertion;
pub mod authorize;
pub mod claims;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod client;
pub mod discovery;
#[cfg(feature = "proofs")]
#[cfg_attr(docsrs, doc(cfg(feature = "proofs")))]
pub mod dpop;
pub mod error;
#[cfg(feature = "client")]
mod error_chain;
pub mod fetch;
pub mod metadata;
#[cfg(feature = "proofs")]
#[cfg_attr(docsrs, doc(cfg(feature = "proofs")))]
pub mod proof;
pub mod registration;
pub mod secret;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod store;
pub mod token;
pub mod url;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod user_agent;
pub mod well_known;

pub use error::AuthError;
pub use secret::Secret;

/// A boxed future, for traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;
