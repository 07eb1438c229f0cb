//! The HTTP client: connections, redirects, proxies and TLS.
//!
//! The client's transports and the fetches of authorization share it. It depends on neither: [`Authorizer`] abstracts
//! the authorization of requests.

pub(crate) mod answer;
mod authorizer;
pub(crate) mod client;
mod connector;
mod custom_connector;
#[cfg(feature = "auth")]
mod fetcher;
mod headers;
mod pool;
mod reach;
pub(crate) mod refusal;
mod settings;
mod stream;
pub(crate) mod target;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;

#[cfg(feature = "auth")]
pub use authorizer::Auth;
pub(crate) use authorizer::RequestTimer;
#[cfg(feature = "auth")]
pub(crate) use authorizer::{AttemptOutcome, AuthSource, AuthorizationAttempts, Authorizer};
#[cfg(any(feature = "client", feature = "openapi", feature = "otlp"))]
pub(crate) use client::{HttpClient, Reuse};
pub use custom_connector::{ConnectTarget, HttpConnector};
#[cfg(feature = "auth")]
pub(crate) use fetcher::Fetcher;
#[cfg(any(feature = "client", feature = "openapi", feature = "otlp"))]
pub(crate) use headers::USER_AGENT_VALUE;
#[cfg(feature = "openapi")]
pub(crate) use reach::Reach;
#[cfg(feature = "auth")]
pub(crate) use reach::is_public;
pub use settings::{HttpSettings, Proxy};
#[cfg(feature = "client")]
pub(crate) use target::is_loopback;
