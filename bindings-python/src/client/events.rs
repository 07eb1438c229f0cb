//! Passes input requests and notifications of a server to Python's handlers.

use std::sync::Arc;

use mcpline::client::ConnectionEvent;
use mcpline::foreign::client::{BacklogSlot, ClientEvents, HostInputRequest, InputRequests};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::wire::Raw;
use mcpline::{RpcError, TraceContext};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::outcome::{checked, trusted};

use super::event_queue::{Event, EventQueue};

/// Names and values.
type Fields = Vec<(&'static str, String)>;

/// The host's handlers: a weak reference to `mcpline._hosts.Host`. The client object of Python owns them, and the core
/// must not keep it alive.
pub(super) struct Host(Py<PyAny>);

impl Host {
    pub(super) fn new(reference: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self(reference))
    }

    /// Returns the handlers; `None` once the client is gone.
    pub(super) fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let host = self.0.bind(py).call0()?;
        Ok((!host.is_none()).then_some(host))
    }
}

/// Takes the answer to an input request, which is abandoned if this is dropped first.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct InputResponseSender {
    requests: Arc<InputRequests>,
    number: u64,
}

#[pymethods]
impl InputResponseSender {
    /// Answers with a result, as JSON.
    fn finish(&self, result: &Bound<'_, PyBytes>) {
        self.requests.answer(self.number, Ok(trusted(result)));
    }

    /// Returns what the span of the request begins with: its own attributes, and the trace context of its parent.
    fn span(&self) -> (Fields, Fields) {
        let span = self.requests.span(self.number);
        let parent = span.parent.iter().flat_map(TraceContext::fields);
        let parent = parent.map(|(name, value)| (name, value.to_owned()));
        (span.attributes, parent.collect())
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
        self.requests.answer(self.number, Err(error));
        Ok(())
    }
}

impl Drop for InputResponseSender {
    fn drop(&mut self) {
        self.requests.abandon(self.number);
    }
}

/// The queue for the events of one client, and its host.
pub(super) struct Events {
    pub(super) event_queue: Arc<EventQueue>,
    pub(super) host: Arc<Host>,
}

impl ClientEvents for Events {
    fn input_request(&self, requests: &Arc<InputRequests>, request: HostInputRequest) {
        let answer = InputResponseSender {
            requests: requests.clone(),
            number: request.number,
        };
        let host = self.host.clone();
        self.event_queue.post(Event::InputRequest {
            host,
            request,
            answer,
        });
    }

    fn withdrawn(&self, number: u64) {
        let host = self.host.clone();
        self.event_queue.post(Event::Withdrawn { host, number });
    }

    fn notification(&self, method: &str, params: Option<Raw>, slot: BacklogSlot) {
        self.event_queue.post(Event::Notification {
            host: self.host.clone(),
            method: method.to_owned(),
            params,
            slot,
        });
    }

    fn connection(&self, event: &ConnectionEvent, slot: Option<BacklogSlot>) {
        let (host, event) = (self.host.clone(), event.clone());
        self.event_queue
            .post(Event::Connection { host, event, slot });
    }

    fn stderr(&self, line: &str, slot: BacklogSlot) {
        let (host, line) = (self.host.clone(), line.to_owned());
        self.event_queue.post(Event::Stderr { host, line, slot });
    }
}
