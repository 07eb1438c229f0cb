//! The native half of the Python package `mcpline`.
//!
//! It converts types, schedules calls and maps errors; the core implements the protocol. `plan` describes how to call
//! a handler, `outcome` converts its result to a reply, `context` is its request context. Async handlers run on the
//! user's event loop (`event_loop`, `reusable_task`, `asyncio_internals`), sync ones on a thread pool (`workers`).
//! `http_app` answers HTTP requests that an ASGI server receives. `server` is the server object of Python, `runtime` the
//! thread that does the I/O, unless the loop's thread does (`io_driver_handoff`, `io_driver`). `client` is the client
//! object of Python.

mod argument_check;
mod asyncio_internals;
mod client;
mod context;
mod detached_drop;
mod errors;
mod event_loop;
mod exit;
mod http_app;
#[cfg(unix)]
mod io_driver;
#[cfg_attr(
    windows,
    expect(
        dead_code,
        reason = "no selector of Windows is a descriptor that could be driven"
    )
)]
mod io_driver_handoff;
mod log;
mod outcome;
mod per_process;
mod plan;
mod reusable_task;
mod runtime;
mod server;
mod serving;
mod session_states;
mod sharing;
mod verifier;
mod wakeup_fd;
mod workers;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// `mcpline._native`
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::argument_check::Schema;
    #[pymodule_export]
    use crate::asyncio_internals::AsyncioInternals;
    #[pymodule_export]
    use crate::client::{
        Channel, Client, Cursors, HeldBacklogSlot, InputResponseSender, LoopQueue, SentRequest,
        configured_server, error_examples, root_uri,
    };
    #[pymodule_export]
    use crate::context::Call;
    #[pymodule_export]
    use crate::event_loop::Loop;
    #[pymodule_export]
    use crate::http_app::{HttpApp, HttpExchange, MetadataEndpoint};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::io_driver::IoDriver;
    #[pymodule_export]
    use crate::outcome::{ExtendedReply, Failure, InputRequiredReply};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::reusable_task::ReusableTask;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::serving::Serving;
    #[pymodule_export]
    use crate::sharing::BusReceiver;
    #[pymodule_export]
    use crate::workers::{Job, Worker, Workers};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::log::install();
        crate::exit::register(module.py())?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

/// Imports an object of the package's Python half or of the standard library when it is first needed.
pub(crate) fn imported<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    cell.get_or_try_init(py, || Ok(py.import(module)?.getattr(name)?.unbind()))
        .map(|object| object.bind(py).clone())
}
