//! What a server may ask of a host and tell it, on its way to Python's handlers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpline::RpcError;
use mcpline::client::{Answer as Answering, Answerer, ClientBuilder};
use mcpline::foreign::client::Backlog;
use mcpline::protocol::ErrorCode;
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::sync::oneshot;

use crate::event_loop::lock;
use crate::outcome::{checked, trusted};

use super::port::{Event, Outlet};

/// The host's handlers: a weak reference to `mcpline._hosts.Host`. They belong to the client that Python holds, which
/// the core must not keep alive.
pub(super) struct Host(Py<PyAny>);

impl Host {
    pub(super) fn new(reference: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self(reference))
    }

    /// The handlers; `None` once the client is gone.
    pub(super) fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let host = self.0.bind(py).call0()?;
        Ok((!host.is_none()).then_some(host))
    }
}

/// Takes the answer to one question.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Answer {
    sender: Mutex<Option<oneshot::Sender<Result<Raw, RpcError>>>>,
}

#[pymethods]
impl Answer {
    /// Answers with a result, as JSON.
    fn finish(&self, result: &Bound<'_, PyBytes>) {
        self.send(Ok(trusted(result)));
    }

    /// Answers with an error.
    #[pyo3(signature = (code, message, data))]
    fn fail(
        &self,
        py: Python<'_>,
        code: i64,
        message: String,
        data: Option<Vec<u8>>,
    ) -> PyResult<()> {
        let mut error = RpcError::new(ErrorCode(code), message);
        error.data = data.map(|data| checked(py, data)).transpose()?;
        self.send(Err(error));
        Ok(())
    }
}

impl Answer {
    fn send(&self, outcome: Result<Raw, RpcError>) {
        if let Some(sender) = lock(&self.sender).take() {
            // Nobody may want it any more.
            let _ = sender.send(outcome);
        }
    }
}

/// Has the handlers in Python answer questions of this method.
pub(super) fn answerer(outlet: &Arc<Outlet>, host: &Arc<Host>, method: &str) -> Answerer {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let (outlet, host, method) = (outlet.clone(), host.clone(), Arc::<str>::from(method));
    Arc::new(move |params| {
        let (sender, receiver) = oneshot::channel();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        outlet.post(Event::Question {
            host: host.clone(),
            number,
            method: method.clone(),
            params,
            answer: Answer {
                sender: Mutex::new(Some(sender)),
            },
        });
        let asked = Asked {
            outlet: outlet.clone(),
            question: Some((host.clone(), number)),
        };
        let answering: Answering = Box::pin(async move {
            let answer = receiver.await;
            asked.end();
            answer.unwrap_or_else(|_| Err(RpcError::internal_error("the host is gone")))
        });
        answering
    })
}

/// Withdraws a question whose answer nobody waits for any more.
struct Asked {
    outlet: Arc<Outlet>,
    question: Option<(Arc<Host>, u64)>,
}

impl Asked {
    /// There is nothing to withdraw any more.
    fn end(mut self) {
        self.question = None;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some((host, number)) = self.question.take() {
            self.outlet.post(Event::Withdrawn { host, number });
        }
    }
}

/// Has the handlers in Python hear notifications: of these methods, or of every one.
pub(super) fn listening(
    builder: ClientBuilder,
    outlet: &Arc<Outlet>,
    host: &Arc<Host>,
    backlog: &Backlog,
    only_logs: bool,
) -> ClientBuilder {
    let (outlet, host, backlog) = (outlet.clone(), host.clone(), backlog.clone());
    builder.on_notification(move |notification| {
        let method = notification.method.as_str();
        if only_logs && method != "notifications/message" {
            return;
        }
        let params = notification.params.as_ref();
        let params = params.map(|params| params.raw().clone());
        let bytes = method.len() + params.as_ref().map_or(0, |params| params.as_bytes().len());
        let Some(place) = backlog.admit(bytes) else {
            return;
        };
        outlet.post(Event::Told {
            host: host.clone(),
            method: method.to_owned(),
            params,
            place,
        });
    })
}
