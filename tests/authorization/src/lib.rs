//! A small OAuth 2.1 authorization server for tests and examples.
//!
//! By default it does what the specifications require and nothing more. Each of its behaviours can be switched, while
//! it runs, to one that occurs in practice: another location of the metadata, a missing or wrong `iss`, tokens that
//! live for a second, an endpoint that returns nonsense. All requests are in a log for tests to inspect.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use authorization_server::{AuthorizationServer, Config, Endpoint};
//!
//! let server = AuthorizationServer::start(Config::default()).await?;
//! println!("{}", server.issuer());
//! server.change(|config| config.registration = false);
//! assert_eq!(server.requests().count(Endpoint::Token), 0);
//! # Ok(())
//! # }
//! ```
//!
//! Do not use it in production: it does not authenticate users, stores nothing, and its RSA keys are public.

mod authorize;
mod clients;
mod config;
mod control;
mod dpop;
mod exchange;
mod fetch;
mod introspection;
mod keys;
mod metadata;
mod redirects;
mod resource;
mod server;
mod state;
mod token;

pub use config::{
    AuthMethod, Client, Config, Consent, Document, Dpop, Endpoint, Forced, Grant, IssParameter,
    RefreshTokens, TokenFormat, TrustedIssuer,
};
pub use exchange::{Parameters, Request, Requests};
pub use keys::{Algorithm, Key, read_unverified, thumbprint, unsigned};
pub use resource::{ProtectedResource, ResourceConfig, ResourceRequest};
use server::Shared;
pub use server::{AuthorizationServer, Held};
