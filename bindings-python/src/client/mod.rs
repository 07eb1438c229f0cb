//! What Python holds as a client: the kernel's handle, the thread that does its I/O, and the ways back to whoever waits.
//!
//! - [`handle`] is one client: requests go in, answers go back to futures ([`loop_queue`]) or to a waiting thread ([`waiter`]).
//! - [`loop_queue`] takes whatever has to happen on one event loop, or on the thread of a blocking client's handlers.
//! - [`events`] are input requests and notifications on their way to Python's handlers.
//! - [`channel`] is a transport written in Python, for servers too.
//! - [`options`] are those of one request, [`failure`] is what failures become, [`cursors`] is how lists are followed.

mod channel;
mod cursors;
mod events;
mod failure;
mod handle;

mod loop_queue;
mod options;
mod root_uris;
mod waiter;

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::event_loop::lock;
use crate::runtime::Runtime;

pub(crate) use channel::Channel;
pub(crate) use cursors::Cursors;
pub(crate) use events::Answer;
pub(crate) use failure::error_examples;
pub(crate) use handle::Client;
pub(crate) use loop_queue::{HeldBacklogSlot, LoopQueue};
pub(crate) use root_uris::root_uri;

/// The one I/O thread of all clients of this process. It lasts: connections end in the background.
fn shared_runtime(py: Python<'_>) -> PyResult<Arc<Runtime>> {
    static SHARED: Mutex<Option<Arc<Runtime>>> = Mutex::new(None);
    let mut shared = lock(&SHARED);
    if let Some(runtime) = &*shared
        && !runtime.is_foreign()
    {
        return Ok(runtime.clone());
    }
    let runtime = Arc::new(Runtime::start(py)?);
    // After a fork the parent's is none of ours: dropping it would end what the parent still uses.
    std::mem::forget(shared.replace(runtime.clone()));
    Ok(runtime)
}
