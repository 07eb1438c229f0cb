//! The HTTP client: connections, redirects, proxies and TLS.
//!
//! The client's transports and the fetches of authorization share it. It depends on neither: [`Authorizer`] abstracts
//! the authorization of requests.

mod address_policy;
mod authorizer;
pub(crate) mod client;
mod connector;
mod custom_connector;
#[cfg(feature = "auth")]
mod fetcher;
mod headers;
mod pool;
pub(crate) mod refusal;
pub(crate) mod response;
mod settings;
mod stream;
pub(crate) mod target;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;

#[cfg(feature = "openapi")]
pub(crate) use address_policy::AddressPolicy;
#[cfg(feature = "auth")]
pub(crate) use address_policy::is_public;
#[cfg(feature = "auth")]
pub use authorizer::Auth;
pub(crate) use authorizer::RequestTimer;
#[cfg(feature = "auth")]
pub(crate) use authorizer::{AttemptOutcome, AuthSource, AuthorizationAttempts, Authorizer};
#[cfg(any(feature = "client", feature = "openapi", feature = "otlp"))]
pub(crate) use client::{ConnectionReuse, HttpClient};
pub use custom_connector::{ConnectTarget, HttpConnector};
#[cfg(feature = "auth")]
pub(crate) use fetcher::Fetcher;
#[cfg(any(feature = "client", feature = "openapi", feature = "otlp"))]
pub(crate) use headers::USER_AGENT_VALUE;
pub use settings::{HttpSettings, Proxy};
#[cfg(feature = "client")]
pub(crate) use target::is_loopback;
