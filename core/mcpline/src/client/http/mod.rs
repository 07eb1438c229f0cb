//! The client's HTTP transports: Streamable HTTP of both eras ([`HttpLink`]) and HTTP+SSE of 2024-11-05
//! ([`PairLink`]).
//!
//! A link is one conversation; an [`HttpClient`] has the connections, which outlive it. What a link does with an
//! answer is in `exchange`, what it does with event streams in `events` and `listening`. One function decides what
//! goes into the head of a request ([`headers`]), one what a status means ([`refusal`]): that is where authorization
//! will have its place.

mod answer;
mod backoff;
mod connector;
mod events;
mod exchange;
mod fetcher;
mod gate;
mod headers;
mod http_client;
mod listening;
mod one_way;
mod pair;
mod pool;
mod reach;
mod refusal;
mod repeats;
mod settings;
mod streamable;
mod target;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use fetcher::Fetcher;
pub(crate) use http_client::HttpClient;
pub(crate) use pair::{NO_EVENT_STREAM, PairLink};
pub(crate) use reach::is_public;
pub(crate) use streamable::HttpLink;
pub(crate) use target::{is_loopback, without_credentials};

pub use settings::{HttpSettings, Proxy};
