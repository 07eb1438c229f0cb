//! Middleware of servers, the middleware that the library provides, and recordings of traffic.

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod built_in;
mod chain;
mod messages;
mod over_http;
mod traffic;
mod traffic_file;
