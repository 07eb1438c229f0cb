//! State that processes share, in Python: arguments and results of its functions.

use std::sync::Arc;

use bytes::Bytes;
use mcpline::Reply;
use mcpline::sharing::{LoggedEvents, SharingReply, SharingRequest};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};

/// Receives the messages of a bus.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct BusReceiver(Arc<dyn Fn(Bytes) + Send + Sync>);

#[pymethods]
impl BusReceiver {
    /// Passes a message on, from any thread. Raises `TypeError` if it is not `bytes` or another contiguous buffer of bytes.
    fn __call__(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let copied = match message.cast::<PyBytes>() {
            Ok(message) => message.clone(),
            Err(_) => {
                let view = PyMemoryView::from(message).map_err(|_| not_a_message(message))?;
                view.call_method0("tobytes")?.cast_into()?
            }
        };
        let message = Bytes::copy_from_slice(copied.as_bytes());
        py.detach(|| (self.0)(message));
        Ok(())
    }
}

/// The error of `receive`. It is logged too, because libraries may drop the exceptions of callbacks.
fn not_a_message(message: &Bound<'_, PyAny>) -> PyErr {
    let name = message.get_type().name();
    let name = name.map_or_else(|_| "?".to_owned(), |name| name.to_string());
    mcpline::foreign::warn_of_invalid_message(&name);
    PyTypeError::new_err(format!("a message of the bus must be bytes, not {name}"))
}

/// Returns the arguments of the function for a request.
pub(crate) fn arguments<'py>(
    py: Python<'py>,
    request: &SharingRequest,
) -> PyResult<Bound<'py, PyTuple>> {
    let bytes = |bytes: &Bytes| PyBytes::new(py, bytes);
    match request {
        SharingRequest::Save {
            id,
            session,
            replaces,
            lifetime,
        } => {
            let lifetime = lifetime.map(|lifetime| lifetime.as_secs_f64());
            (id, bytes(session), bytes(replaces), lifetime).into_pyobject(py)
        }
        SharingRequest::Load { id } | SharingRequest::Remove { id } => PyTuple::new(py, [id]),
        SharingRequest::Append {
            stream,
            number,
            events,
        } => {
            let events: Vec<_> = events.iter().map(bytes).collect();
            (stream, *number, events).into_pyobject(py)
        }
        SharingRequest::End { stream, last } => (stream, *last).into_pyobject(py),
        SharingRequest::Read { stream, after } => (stream, *after).into_pyobject(py),
        SharingRequest::Publish { message } => PyTuple::new(py, [bytes(message)]),
        SharingRequest::Subscribe { receive } => {
            PyTuple::new(py, [Bound::new(py, BusReceiver(receive.clone()))?])
        }
        SharingRequest::Unsubscribe => Ok(PyTuple::empty(py)),
    }
}

/// Returns the reply for a converted result: `None`, or a name with its value.
pub(crate) fn reply(converted: &Bound<'_, PyAny>) -> PyResult<Reply> {
    if converted.is_none() {
        return Ok(Reply::Sharing(SharingReply::Done));
    }
    let (name, value): (String, Bound<'_, PyAny>) = converted.extract()?;
    let bytes = |value: &Bound<'_, PyAny>| -> PyResult<Bytes> {
        Ok(Bytes::copy_from_slice(value.cast::<PyBytes>()?.as_bytes()))
    };
    let reply = match &*name {
        "conflict" => SharingReply::Conflict(bytes(&value)?),
        "session" if value.is_none() => SharingReply::Session(None),
        "session" => SharingReply::Session(Some(bytes(&value)?)),
        _ if value.is_none() => SharingReply::Events(None),
        _ => {
            let (events, ended, has_more): (Vec<Bound<'_, PyAny>>, bool, bool) = value.extract()?;
            let events = events.iter().map(bytes).collect::<PyResult<Vec<_>>>()?;
            let mut part = LoggedEvents::new(events, ended);
            part.has_more = has_more;
            SharingReply::Events(Some(part))
        }
    };
    Ok(Reply::Sharing(reply))
}
