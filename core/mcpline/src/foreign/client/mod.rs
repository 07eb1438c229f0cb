//! The kernel's part for clients.
//!
//! | A binding | uses |
//! | --- | --- |
//! | creates a client from options | [`ClientHandle`], with a [`ClientConfiguration`] and a [`Target`] for the server |
//! | opens, uses and closes it | [`Connection`], with its phases: a [`WrongPhaseError`] has one text in all languages |
//! | runs requests | [`ClientCommand::run`] as a task of [`RequestsInFlight`], with a [`OutcomeRecipient`] that is settled exactly once |
//! | cancels a request | [`RequestsInFlight::cancel`], by the request's number |
//! | receives events | [`ClientEvents`], which it implements |
//! | traces requests | [`SentRequest`], for what the span of a request needs to know |
//! | answers input requests | [`InputRequests`], by their numbers |
//! | ends with its process | [`ClientCloser`] |
//!
//! A binding converts types and schedules: it decides on which thread a [`OutcomeRecipient`] and an event reach foreign code.
//!
//! No function of this module holds a lock while it calls a [`OutcomeRecipient`] or [`ClientEvents`].

mod close_clients;
mod command;
mod config_file;
mod configuration;
mod connection;
mod events;
mod handle;
mod input_requests;
mod measurements;
mod outcome;
#[cfg(all(test, mcpline_models))]
mod race_models;
mod requests_in_flight;
mod sent_request;
mod target;
mod target_settings;
#[cfg(all(test, not(mcpline_models)))]
mod tests;

pub use close_clients::{CLOSING_TIMEOUT, ClientCloser};
pub use command::ClientCommand;
pub use config_file::configured_server;
pub use configuration::ClientConfiguration;
pub use connection::{Connection, OpenError, ServerDescription, WrongPhaseError};
pub use events::{
    ClientEvents, MAX_WAITING_INPUT_REQUEST_BYTES, MAX_WAITING_INPUT_REQUESTS,
    MAX_WAITING_NOTIFICATION_BYTES, MAX_WAITING_NOTIFICATIONS, connection_listener,
    listener_backlog, notification_listener, progress_listener, stderr_listener,
};
pub use handle::ClientHandle;
pub use input_requests::{HostInputRequest, InputRequestSpan, InputRequests};
#[cfg(feature = "metrics")]
pub use measurements::client_metrics;
pub use outcome::{Outcome, OutcomeRecipient, RequestFailure};
pub use requests_in_flight::RequestsInFlight;
pub use sent_request::SentRequest;
pub use target::Target;
pub use target_settings::TargetSettings;

pub use crate::backlog::{Backlog, BacklogSlot};
