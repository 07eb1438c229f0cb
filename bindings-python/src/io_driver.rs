//! Does the I/O of a server on the thread of an event loop, while the loop waits for its events.
//!
//! `mcpline._selector` uses this in place of asyncio's selector. The events that the loop itself waits for are
//! represented by one additional descriptor, that of the loop's own selector.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use crate::errors;
use crate::event_loop::{Loop, lock};
use crate::runtime::Runtime;

/// There are calls or events to drain.
const CALLS: u8 = 1;
/// One of the loop's own descriptors may be ready.
const DESCRIPTORS: u8 = 2;
/// This process is a fork of the one that drives: it has to select by itself.
const FORKED: u8 = 4;

/// Drives the I/O of one server on the thread of one loop.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct IoDriver {
    parts: Mutex<Option<Arc<IoDriverParts>>>,
    event_loop: Py<Loop>,
}

struct IoDriverParts {
    runtime: Arc<Runtime>,
    /// The descriptor of the loop's own selector.
    descriptors: AsyncFd<OwnedFd>,
    calls: Arc<Notify>,
}

#[pymethods]
impl IoDriver {
    /// Makes the thread of the loop drive the server's I/O from now on. `selector` is the descriptor of the loop's own
    /// selector.
    #[new]
    fn new(
        py: Python<'_>,
        server: &crate::server::Server,
        event_loop: Py<Loop>,
        selector: i32,
    ) -> PyResult<Self> {
        let failed = |error: std::io::Error| errors::transport(py, &error.to_string());
        let runtime = server.start_runtime(py)?;
        // SAFETY: the caller's selector keeps its descriptor open during this call.
        let selector = unsafe { BorrowedFd::borrow_raw(selector) };
        let selector = selector.try_clone_to_owned().map_err(failed)?;
        let descriptors = {
            let _entered = runtime.handle().enter();
            // SAFETY: the descriptor is a duplicate that the `AsyncFd` owns and closes.
            unsafe { AsyncFd::register_with_interest(selector, Interest::READABLE) }
                .map_err(|error| failed(error.into()))?
        };
        let calls = Arc::new(Notify::new());
        let woken = calls.clone();
        event_loop
            .get()
            .set_driven(Some(Arc::new(move || woken.notify_one())));
        runtime.baton().enter();
        runtime.baton().leave();
        Ok(Self {
            parts: Mutex::new(Some(Arc::new(IoDriverParts {
                runtime,
                descriptors,
                calls,
            }))),
            event_loop,
        })
    }

    /// Drives until the loop has something to do, or for `timeout` seconds; `None` means no limit. Returns what there
    /// is to do.
    #[pyo3(signature = (timeout))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> u8 {
        let parts = lock(&self.parts).clone();
        match parts {
            Some(parts) if !parts.runtime.is_foreign() => py.detach(|| parts.drive(timeout)),
            _ => FORKED,
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)
    }

    /// Returns the I/O to its thread.
    fn close(&self) {
        let parts = lock(&self.parts).take();
        let Some(parts) = parts else { return };
        if parts.runtime.is_foreign() {
            // Dropping it would remove a descriptor from the parent's selector.
            std::mem::forget(parts);
            return;
        }
        self.event_loop.get().set_driven(None);
        parts.runtime.baton().release();
    }
}

impl Drop for IoDriver {
    fn drop(&mut self) {
        self.close();
    }
}

impl IoDriverParts {
    fn drive(&self, timeout: Option<f64>) -> u8 {
        let baton = self.runtime.baton();
        baton.enter();
        let ready = self.runtime.block_on(self.turn(timeout));
        baton.leave();
        ready
    }

    async fn turn(&self, timeout: Option<f64>) -> u8 {
        // Actions that the loop has queued since the last turn.
        self.runtime.io_queue().run();
        let at_once = self.ready_now().await;
        if at_once != 0 || timeout.is_some_and(|timeout| timeout <= 0.0) {
            // All other tasks get one turn: a loop that never idles must not starve the I/O.
            tokio::task::yield_now().await;
            return at_once | self.ready_now().await;
        }
        let Some(timeout) = timeout else {
            return self.ready().await;
        };
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX);
        tokio::time::timeout(timeout, self.ready())
            .await
            .unwrap_or(0)
    }

    /// Returns what the loop has to do now.
    async fn ready_now(&self) -> u8 {
        tokio::select! {
            biased;
            ready = self.ready() => ready,
            () = std::future::ready(()) => 0,
        }
    }

    /// Waits until the loop has something to do.
    async fn ready(&self) -> u8 {
        tokio::select! {
            biased;
            () = self.calls.notified() => {
                // The loop's own descriptors must not wait for a pause between calls.
                tokio::select! {
                    biased;
                    () = self.readable() => CALLS | DESCRIPTORS,
                    () = std::future::ready(()) => CALLS,
                }
            }
            () = self.readable() => DESCRIPTORS,
        }
    }

    /// Waits until one of the loop's own descriptors is ready.
    async fn readable(&self) {
        // This fails only when the runtime ends, and then there is nothing to wait for.
        while let Ok(mut guard) = self.descriptors.readable().await {
            // A notification is no proof: the loop may have handled everything since. Readiness is kept until nothing
            // is left, because the rest is not notified again.
            if is_readable(self.descriptors.get_ref()) {
                guard.retain_ready();
                return;
            }
            guard.clear_ready();
        }
        std::future::pending().await
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    let now = Timespec::default();
    rustix::event::poll(&mut descriptors, Some(&now)).is_ok_and(|ready| ready > 0)
}
