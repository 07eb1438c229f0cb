//! The kernel that all bindings share: calls queued for a foreign event loop, and results collected from it.
//!
//! Crossing to another thread costs more than the call itself, so it is done in batches. [`CallQueue`] collects calls
//! and wakes the foreign loop once, one scheduler turn later, when the I/O thread has processed everything that has
//! arrived. [`IoThreadQueue`] does the same in the other direction.
//!
//! ```text
//!   I/O thread                                     foreign loop
//!   Handler::call ─► CallQueue ──(one wake)──────► drain ─► run handlers
//!   Call::reply ◄── the drain task ◄──(one wake)── IoThreadQueue::push
//! ```
//!
//! Blocking handlers run on a pool of worker threads ([`workers`]). Wherever calls wait, the clients of a server take
//! turns ([`FairQueue`]): a client that floods a server only delays itself.
//!
//! [`client`] contains the handle of a client, with its phases, requests in flight, input requests and listeners.
//!
//! The host's part of authorization uses the same mechanism as input requests of servers: [`auth`].
//!
//! The HTTP server of a mount receives a body only as the core reads it ([`RequestBody`]), and gets a response only as
//! its client takes it ([`ResponseBody`]).
//!
//! A [`channel`] is a transport in foreign code. [`ForeignSharing`] is the state that processes share, in foreign code.
//!
//! A server's features are registered by one function, with their definitions as JSON: [`Feature`].
//!
//! Conversions for foreign code are here as well, so that they are the same in every language: [`options`] and
//! [`results`] are read from JSON, a [`Failure`] is an error with its facts, and [`diagnostics`] are lines for a log.

#[cfg(all(feature = "auth", feature = "client"))]
pub mod auth;
#[cfg(feature = "server")]
mod built_in_middleware;
#[cfg(feature = "server")]
mod call_actions;
#[cfg(feature = "server")]
mod call_queue;
pub mod channel;
#[cfg(feature = "client")]
pub mod client;
pub mod diagnostics;
#[cfg(feature = "server")]
mod executors;
mod failure;
#[cfg(feature = "server")]
mod features;
#[cfg(any(feature = "openapi", feature = "routes"))]
mod http_parts;
#[cfg(feature = "server")]
mod io_thread_queue;
#[cfg(all(feature = "server", feature = "http"))]
mod listening;
#[cfg(all(feature = "server", feature = "stdio"))]
mod local_socket;
#[cfg(feature = "openapi")]
mod openapi;
pub mod options;
#[cfg(all(test, mcpline_models))]
mod race_models;
#[cfg(all(feature = "server", feature = "http"))]
mod request_body;
#[cfg(feature = "server")]
mod request_spans;
#[cfg(all(feature = "server", feature = "http"))]
mod response_body;
#[cfg(feature = "server")]
pub mod results;
#[cfg(feature = "routes")]
mod routes;
#[cfg(feature = "server")]
mod sharing;
#[cfg(windows)]
mod socket_pair;
#[cfg(feature = "otlp")]
mod span_export;
#[cfg(feature = "server")]
mod stats;
#[cfg(feature = "server")]
mod traffic_printer;
#[cfg(all(feature = "server", feature = "http"))]
mod worker_processes;
#[cfg(feature = "server")]
pub mod workers;

#[cfg(feature = "server")]
pub use built_in_middleware::add_built_in_middleware;
#[cfg(feature = "server")]
pub use call_actions::{notification, report, request, run_next};
#[cfg(feature = "server")]
pub use executors::{executors_of, executors_of_context, session_state, set_executors};
#[cfg(feature = "client")]
pub use failure::client_error_examples;
#[cfg(feature = "server")]
pub use failure::input_request_error_examples;
pub use failure::{Failure, FailureCause, FailureDetails};
#[cfg(feature = "server")]
pub use features::{
    Feature, FeatureKey, call_kind, feature_selection, mount_options, transform_tool,
};
#[cfg(any(feature = "openapi", feature = "routes"))]
pub use http_parts::http_response;

#[cfg(all(feature = "server", feature = "http"))]
pub use crate::transport::http::io_threads::{IoThreadHooks, StartThread};
#[cfg(feature = "server")]
pub use call_queue::{CallQueue, QueueFull, WakeupHold};
#[cfg(feature = "server")]
pub use io_thread_queue::{InputResponseCallback, IoAction, IoThreadQueue};
#[cfg(all(feature = "server", feature = "http"))]
pub use listening::{hook_io_threads, listen};
#[cfg(all(feature = "server", feature = "stdio"))]
pub use local_socket::{LocalSocket, LocalSocketOptions, local_socket};
#[cfg(feature = "openapi")]
pub use openapi::{OpenApiFunctions, OpenApiImport, api_request};
#[cfg(all(feature = "server", feature = "http"))]
pub use request_body::{BodyFeed, ClientLeft, RequestBody, set_unknown_http_version};
#[cfg(feature = "server")]
pub use request_spans::span_attributes;
#[cfg(all(feature = "server", feature = "otlp"))]
pub use request_spans::{HandlerScope, span};
#[cfg(feature = "server")]
pub use request_spans::{
    begin_span, number_of_span, span_number, span_number_of_call, span_number_of_record,
    trace_context, trace_requests,
};
#[cfg(all(feature = "server", feature = "http"))]
pub use response_body::{MAX_PIECE_BYTES, ResponseBody};
#[cfg(feature = "routes")]
pub use routes::route_request;
#[cfg(feature = "server")]
pub use sharing::{
    ForeignSharing, MAX_RUNNING_FUNCTIONS, SharingCheck, SharingFunctions, SharingGuard,
    sharing_request, warn_of_invalid_message,
};
#[cfg(windows)]
pub use socket_pair::socket_pair;
#[cfg(feature = "otlp")]
pub use span_export::SpanExport;
#[cfg(feature = "server")]
pub use stats::{metrics_text, stats_json};
#[cfg(feature = "server")]
pub use traffic_printer::{
    TrafficLogger, flush_traffic, log_traffic, print_debug_warning, print_line, print_traffic,
    records_traffic,
};
#[cfg(all(feature = "server", feature = "http"))]
pub use worker_processes::{
    ServingRole, WorkerProcesses, WorkerProgram, listen_with_workers, report_ready,
};
#[cfg(feature = "server")]
pub use workers::MAX_WAITING_CALLS;

pub use crate::fair_queue::{FairQueue, PeerId};

/// Returns the line that a binding writes when a transport is ready ([`Settings::startup_message`]); `None` if there is to be
/// none. `url` is that of the endpoint; `None` for stdio, for which it is called before the transport is served.
///
/// [`Settings::startup_message`]: crate::server::Settings::startup_message
#[cfg(feature = "server")]
pub fn startup_message(server: &crate::server::Server, url: Option<&str>) -> Option<String> {
    #[cfg(feature = "http")]
    if url.is_some() && crate::worker_process::WorkerProcess::current().is_some() {
        // Its supervisor has written it.
        return None;
    }
    server.startup_message(url)
}

/// Records how long a call waited for the thread of its handler, which begins now. The [`CallQueue`] does so itself.
#[cfg(feature = "server")]
pub fn record_queue_time(call: &crate::server::Call) {
    call.record_queue_time();
}

/// Returns the client that limits count a call for. Waiting calls take turns by it.
#[cfg(feature = "server")]
pub fn peer_of_call(call: &crate::server::Call) -> PeerId {
    call.quota_peer()
}

/// Returns the client that limits count a call for, by the call's context.
#[cfg(feature = "server")]
pub fn peer_of_context(context: &crate::server::Context) -> PeerId {
    context.client().peer
}

/// Returns the request_handler of a method; `None` if the host cannot answer requests.
#[cfg(feature = "client")]
pub type HostRequestHandlers<'a> =
    Option<&'a dyn Fn(&'static str) -> crate::client::HostRequestHandler>;
