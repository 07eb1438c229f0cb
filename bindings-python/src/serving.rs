//! A transport that is being served, from its start to its end.

use std::sync::{Arc, Mutex};

use mcpline::Error;
use mcpline::foreign::SharingGuard;
use mcpline::transport::{Stop, Transport};
use pyo3::prelude::*;

use crate::errors;
use crate::event_loop::{Event, FutureValue, Hub, lock};
use crate::runtime::Runtime;
use crate::wakeup_fd::WakeupFd;

/// A transport that is being served.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Serving {
    shared: Arc<Shared>,
    stop: Stop,
    address: Option<(String, u16)>,
    url: Option<String>,
    startup_message: Option<String>,
    has_workers: bool,
    is_worker: bool,
    runtime: Mutex<Option<Arc<Runtime>>>,
}

struct Shared {
    state: Mutex<State>,
    /// A pipe, because signals are written to it as well.
    wake: WakeupFd,
    /// Until the transport has ended.
    sharing: Mutex<Option<SharingGuard>>,
}

#[derive(Default)]
struct State {
    ended: Option<Result<(), Arc<Error>>>,
    waiting: Option<(Arc<Hub>, Py<PyAny>)>,
}

/// What there is to say of a transport.
#[derive(Default)]
pub(crate) struct Description {
    /// The address that it listens on, if any.
    pub(crate) address: Option<(String, u16)>,
    /// The URL of its MCP endpoint, if any.
    pub(crate) url: Option<String>,
    /// The line to write when it is ready, if any.
    pub(crate) startup_message: Option<String>,
    /// Whether other processes of the program serve, not this one.
    pub(crate) has_workers: bool,
    /// Whether this process is a worker, and this is what it serves.
    pub(crate) is_worker: bool,
}

impl Serving {
    /// Begins to serve.
    pub(crate) fn start(
        py: Python<'_>,
        runtime: Arc<Runtime>,
        server: &crate::server::Server,
        transport: impl Transport + 'static,
        stop: Stop,
        description: Description,
    ) -> PyResult<Self> {
        let wake = WakeupFd::pipe().map_err(|error| errors::transport(py, &error.to_string()))?;
        let sharing = match description.has_workers {
            // The workers use it.
            true => None,
            false => server.prepare_sharing(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake,
            sharing: Mutex::new(sharing),
        });
        let ending = shared.clone();
        let signal = stop.clone();
        let core = server.core().clone();
        runtime.handle().spawn(async move {
            let ended = core.serve_until(transport, signal).await;
            let sharing = lock(&ending.sharing).take();
            if let Some(sharing) = sharing {
                sharing.leave().await;
            }
            ending.end(ended.map_err(Arc::new));
        });
        Ok(Self {
            shared,
            stop,
            address: description.address,
            url: description.url,
            startup_message: description.startup_message,
            has_workers: description.has_workers,
            is_worker: description.is_worker,
            runtime: Mutex::new(Some(runtime)),
        })
    }
}

impl Shared {
    fn end(&self, ended: Result<(), Arc<Error>>) {
        let waiting = {
            let mut state = lock(&self.state);
            state.ended = Some(ended.clone());
            state.waiting.take()
        };
        self.wake.wake();
        if let Some((hub, future)) = waiting {
            hub.post(Event::Resolve(future, FutureValue::Ended(ended.err())));
        }
    }
}

#[pymethods]
impl Serving {
    /// The address that it listens on, if any.
    #[getter]
    fn address(&self) -> Option<(String, u16)> {
        self.address.clone()
    }

    /// The URL of the MCP endpoint, if any.
    #[getter]
    fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// The line to write when it is ready, which it is now; `None` if there is to be none.
    #[getter]
    fn startup_message(&self) -> Option<&str> {
        self.startup_message.as_deref()
    }

    /// Whether other processes of the program serve, not this one.
    #[getter]
    fn has_workers(&self) -> bool {
        self.has_workers
    }

    /// Says that handlers can run: begins to use shared state of the program, and reports it if this is what a worker serves.
    fn report_ready(&self) {
        if let Some(runtime) = &*lock(&self.runtime)
            && let Some(sharing) = &*lock(&self.shared.sharing)
        {
            sharing.begin(runtime.handle());
        }
        if self.is_worker {
            mcpline::foreign::report_ready();
        }
    }

    /// A descriptor for the interpreter to write to when a signal arrives, so that `wait` does not miss it.
    #[getter]
    fn signal_fd(&self) -> i64 {
        self.shared.wake.writer()
    }

    /// Stops the transport: calls in flight may finish within the grace period.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Waits for the end and runs signal handlers meanwhile. Raises the error of serving.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.check_signals()?;
            let ended = lock(&self.shared.state).ended.clone();
            match ended {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => return Err(errors::core(py, &error)),
                None => {}
            }
            py.detach(|| {
                self.shared.wake.wait();
                self.shared.wake.clear();
            });
        }
    }

    /// Sets the result of `future` at the end, on the loop that the server is attached to.
    fn wait_into(&self, server: &crate::server::Server, future: Py<PyAny>) {
        let hub = server.hub().clone();
        let ended = {
            let mut state = lock(&self.shared.state);
            match &state.ended {
                Some(ended) => ended.clone(),
                None => {
                    state.waiting = Some((hub, future));
                    return;
                }
            }
        };
        hub.post(Event::Resolve(future, FutureValue::Ended(ended.err())));
    }

    /// Releases the I/O thread, which ends if nothing else uses it.
    fn close(&self, py: Python<'_>) {
        self.stop.stop();
        let runtime = lock(&self.runtime).take();
        if let Some(runtime) = runtime
            && let Some(runtime) = Arc::into_inner(runtime)
        {
            runtime.close(py);
        }
        // Still there if the I/O thread ended before the transport.
        let sharing = lock(&self.shared.sharing).take();
        drop(sharing);
    }
}
