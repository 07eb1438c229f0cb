//! A connection within the process, for tests of servers.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::transport::Memory;
use pyo3::prelude::*;

use crate::errors;
use crate::event_loop::{Event, FutureValue, Hub, lock};
use crate::runtime::Runtime;

/// The client's end of a connection to a server in this process. Messages are JSON.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Pipe {
    memory: Arc<Memory>,
    hub: Arc<Hub>,
    runtime: Mutex<Option<Arc<Runtime>>>,
}

#[pymethods]
impl Pipe {
    /// Connects to a server that is attached to an event loop.
    #[new]
    fn new(py: Python<'_>, server: &crate::server::Server) -> PyResult<Self> {
        let runtime = server.start_runtime(py)?;
        let memory = {
            let _entered = runtime.handle().enter();
            server.core().connect()
        };
        Ok(Self {
            memory: Arc::new(memory),
            hub: server.hub().clone(),
            runtime: Mutex::new(Some(runtime)),
        })
    }

    /// Sends one message, or a batch.
    fn send(&self, py: Python<'_>, message: &[u8]) -> PyResult<()> {
        let runtime = lock(&self.runtime).clone();
        let Some(runtime) = runtime else {
            return Err(errors::closed(py, "the connection is closed"));
        };
        let memory = self.memory.clone();
        let message = Bytes::copy_from_slice(message);
        // On the I/O thread, where the core's own handlers and inline ones run.
        runtime.handle().spawn(async move { memory.send(message) });
        Ok(())
    }

    /// Sets the result of `future` to the next message; to `None` when the connection is closed.
    fn receive_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let runtime = lock(&self.runtime).clone();
        let Some(runtime) = runtime else {
            return Err(errors::closed(py, "the connection is closed"));
        };
        let memory = self.memory.clone();
        let hub = self.hub.clone();
        runtime.handle().spawn(async move {
            let message = memory.receive().await;
            hub.post(Event::Resolve(future, FutureValue::Chunk(message)));
        });
        Ok(())
    }

    /// Ends the connection.
    fn close(&self, py: Python<'_>) {
        self.memory.close();
        let runtime = lock(&self.runtime).take();
        if let Some(runtime) = runtime
            && let Some(runtime) = Arc::into_inner(runtime)
        {
            runtime.close(py);
        }
    }
}
