//! HTTP as a client speaks it: connections, redirects, proxies and TLS.
//!
//! The client's transports and what authorization fetches share this. It imports neither: how requests are authorized is
//! behind [`Authorizer`].

pub(crate) mod answer;
mod authorizer;
pub(crate) mod client;
mod connector;
mod fetcher;
mod headers;
mod pool;
mod reach;
pub(crate) mod refusal;
mod settings;
pub(crate) mod target;
mod tls;

pub use authorizer::Auth;
pub(crate) use authorizer::{AttemptOutcome, Attempts, AuthSource, Authorizer, RequestTimer};
pub(crate) use client::HttpClient;
pub(crate) use fetcher::Fetcher;
pub(crate) use headers::USER_AGENT_VALUE;
pub(crate) use reach::is_public;
pub use settings::{HttpSettings, Proxy};
pub(crate) use target::{is_loopback, without_credentials};
