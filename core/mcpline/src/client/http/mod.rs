//! The client's HTTP transports: Streamable HTTP of both eras ([`HttpLink`]) and HTTP+SSE of 2024-11-05
//! ([`HttpSseLink`]).
//!
//! A link lasts for one session; an [`HttpClient`](crate::http_client::HttpClient) has the connections, which outlive
//! it.
//! `exchange` sends a POST and handles its response, `events` reads event streams, `get_streams` opens streams by GET: the
//! session's own one, and those that it resumes by `Last-Event-ID`. One function decides which headers a request has
//! ([`headers`]), one what a status means ([`refusal`](crate::http_client::refusal)).

mod backoff;
mod dialler;
mod events;
mod exchange;
mod get_streams;
mod headers;
mod http_sse;
mod latch;
mod link_tasks;
mod one_way;
mod one_way_retries;
mod streamable;
#[cfg(test)]
mod tests;

pub(crate) use dialler::HttpDialler;
pub(crate) use http_sse::HttpSseLink;
pub(crate) use streamable::HttpLink;
