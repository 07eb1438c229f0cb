//! The client object of Python: the kernel's handle, the thread that does its I/O, and the delivery of outcomes.
//!
//! - [`handle`] is one client: it sends requests, and outcomes resolve futures ([`event_queue`]) or wake a waiting
//!   thread ([`waiter`]).
//! - [`event_queue`] queues events for one event loop, or for the thread of a blocking client's handlers.
//! - [`events`] passes input requests and notifications to Python's handlers.
//! - [`channel`] is a transport written in Python, for servers as well.
//! - [`options`] are the options of one request, [`failure`] converts failures, [`cursors`] follows lists.

mod channel;
mod config_file;
mod cursors;
mod events;
mod failure;
mod handle;

mod event_queue;
mod options;
mod root_uris;
mod thread_waiter;

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::event_loop::lock;
use crate::runtime::Runtime;

pub(crate) use channel::Channel;
pub(crate) use config_file::configured_server;
pub(crate) use cursors::Cursors;
pub(crate) use event_queue::{HeldBacklogSlot, LoopQueue};
pub(crate) use events::InputResponseSender;
pub(crate) use failure::error_examples;
pub(crate) use handle::Client;
pub(crate) use options::SentRequest;
pub(crate) use root_uris::root_uri;

/// Returns the one I/O thread of all clients of this process. It is never stopped: connections end in the background.
fn shared_runtime(py: Python<'_>) -> PyResult<Arc<Runtime>> {
    static SHARED: Mutex<Option<Arc<Runtime>>> = Mutex::new(None);
    let mut shared = lock(&SHARED);
    if let Some(runtime) = &*shared
        && !runtime.is_foreign()
    {
        return Ok(runtime.clone());
    }
    let runtime = Arc::new(Runtime::start(py)?);
    // After a fork, dropping the parent's runtime would end connections that the parent still uses.
    std::mem::forget(shared.replace(runtime.clone()));
    Ok(runtime)
}
