//! The client object of JavaScript: the kernel's handle, and the delivery of events and outcomes.
//!
//! - [`handle`] is one client: requests are handed over once per turn, and settle promises.
//! - [`events`] passes input requests and notifications to JavaScript's handlers.
//! - [`close_at_exit`] closes open clients at the end of the process or worker.
//! - [`failure`] converts the core's failures, [`cursors`] follows lists.

mod close_at_exit;
mod config_file;
mod cursors;
mod events;
mod failure;
mod handle;
mod metrics;
mod root_uris;
