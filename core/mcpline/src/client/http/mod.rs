//! The client's HTTP transports: Streamable HTTP of both eras ([`HttpLink`]) and HTTP+SSE of 2024-11-05
//! ([`HttpSseLink`]).
//!
//! A link is one conversation; an [`HttpClient`](crate::http_client::HttpClient) has the connections, which outlive it. What
//! a link does with an answer is in `exchange`, what it does with event streams in `events` and `listening`. One function
//! decides what goes into the head of a request ([`headers`]), one what a status means
//! ([`refusal`](crate::http_client::refusal)).

mod backoff;
mod dialler;
mod events;
mod exchange;
mod gate;
mod headers;
mod http_sse;
mod listening;
mod one_way;
mod retries;
mod streamable;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use dialler::HttpDialler;
pub(crate) use http_sse::HttpSseLink;
pub(crate) use streamable::HttpLink;
