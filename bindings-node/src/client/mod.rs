//! What JavaScript holds as a client: the kernel's handle, and the way its events and results take to JavaScript.
//!
//! - [`handle`] is one client: requests go in, once per turn, and settle promises.
//! - [`events`] are input requests and notifications on their way to JavaScript's handlers.
//! - [`ending`] knows the clients that are open, for the end of the process or of the worker.
//! - [`failure`] is what the core's failures become, [`cursors`] how lists are followed.

mod close_at_exit;
mod cursors;
mod events;
mod failure;
mod handle;
mod root_uris;
