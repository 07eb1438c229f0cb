//! The client: what C calls to connect to a server, to ask it and to answer it.
//!
//! - [`handle`] is one client: made, opened, closed, and what is in flight. [`plan`] is what it is told before, set by
//!   the functions in [`settings`] and [`hosting`]; [`opening`] connects.
//! - [`request`] is one request in flight, which ends exactly once; [`options`] say how it is sent. What can be asked is
//!   in [`asking`], [`listing`] and [`telling`].
//! - [`question`] is what a server asks its client, [`hearing`] what it tells. Both run in order where they have to
//!   ([`lane`]).
//! - [`channel`] is a transport written in C. [`failure`] says what failures are in C.

mod asking;
mod channel;
mod failure;
mod handle;
mod hearing;
mod hosting;
mod lane;
mod listing;
mod opening;
mod options;
mod plan;
mod question;
mod request;
mod settings;
mod telling;

pub(crate) use question::{Asked, withdraw_all};

pub use asking::*;
pub use channel::mcpl_client_set_channel;
pub use handle::{mcpl_client, mcpl_client_close, mcpl_client_free, mcpl_client_new};
pub use hearing::{mcpl_log_listener, mcpl_notification_listener, mcpl_stderr_listener};
pub use hosting::*;
pub use listing::*;
pub use opening::*;
pub use options::{mcpl_progress, mcpl_request_options};
pub use question::{
    mcpl_input_request, mcpl_input_request_answer, mcpl_input_request_cancelled,
    mcpl_input_request_handler, mcpl_input_request_is_cancelled, mcpl_input_request_on_cancel,
    mcpl_input_request_refuse,
};
pub use request::{mcpl_done, mcpl_request, mcpl_request_cancel};
pub use settings::*;
pub use telling::*;
