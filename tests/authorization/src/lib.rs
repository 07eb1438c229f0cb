//! A small OAuth 2.1 authorization server for tests and examples.
//!
//! It does what the specifications ask for and nothing more, and each of its behaviours can be switched, while it runs,
//! to one of those that are met outside: another place for its metadata, an `iss` that is missing or wrong, tokens
//! that live a second, an endpoint that answers nonsense. Everything that it was asked is there to be looked at.
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
//! It is no server for production: users are whoever they say, nothing is kept, and the RSA keys are public.

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
