//! The client: connects to a server, sends requests and answers input requests.
//!
//! The kernel implements phases, requests in flight, input requests and targets (`mcpline::foreign::client`). This
//! module converts types and runs callbacks.
//!
//! - [`handle`] is one client. [`settings`], [`handlers`] and [`channel`] configure it, [`opening`] connects it.
//! - [`request_handle`] is one request in flight, sent with [`request_options`] by the functions in [`requests`],
//!   [`lists`] and [`operations`].
//! - [`input_request`] and [`listeners`] pass input requests and notifications to callbacks, in order where order
//!   matters ([`serial_queue`]).

// The header has this order.
mod requests;

mod channel;
mod errors;
mod handle;
mod listeners;

mod handlers;
mod lists;
mod opening;
mod request_options;
mod serial_queue;

mod input_request;

mod request_handle;
mod settings;

mod operations;

pub(crate) use input_request::{Handler, InputRequestHandlers};

pub use channel::mcpl_client_set_channel;
pub use handle::{
    mcpl_client, mcpl_client_close, mcpl_client_free, mcpl_client_metrics, mcpl_client_new,
    mcpl_client_pid, mcpl_client_stats,
};
pub use handlers::*;
pub use input_request::{
    mcpl_input_request, mcpl_input_request_answer, mcpl_input_request_cancelled,
    mcpl_input_request_fail, mcpl_input_request_handler, mcpl_input_request_is_cancelled,
    mcpl_input_request_on_cancel, mcpl_input_request_refuse,
};
pub use listeners::{
    mcpl_connection_event, mcpl_connection_listener, mcpl_log_listener, mcpl_notification_listener,
    mcpl_stderr_listener,
};
pub use lists::*;
pub use opening::*;
pub use operations::*;
pub use request_handle::{mcpl_request, mcpl_request_cancel, mcpl_result_callback};
pub use request_options::{mcpl_progress, mcpl_request_options};
pub use requests::*;
pub use settings::*;
