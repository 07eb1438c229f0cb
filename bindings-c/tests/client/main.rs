//! The client as C calls it: every request and every callback, toward servers in this process and in another.
//!
//! [`host`] stands for a program in C: its callbacks send what they receive to the tests. [`service`] is the
//! server at the other end.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "texts end with zero bytes, what is written to is there, and what is given along lives long enough"
)]

mod channels;
mod closing;
mod finalizers;
mod host;
mod input_requests;
mod loops;
mod notifications;
mod processes;
mod protected;
mod requests;
mod service;
mod waiting;
