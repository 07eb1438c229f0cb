//! Clients through the public API: what they send, what they accept, and servers that break the rules.

#[path = "../support/mod.rs"]
mod support;

mod audit_log;
mod capabilities;
mod features;
mod http_connector;
mod input_requests;
mod messages;
mod metrics;
mod middleware;
mod open_input_requests;
mod openapi_clients;
mod reconnecting;
mod redaction;
mod rule_breaking_servers;
mod rules;
mod scripted_servers;
mod socket_faults;
mod timeouts;
mod tool_calls;
mod transports;
