//! Conversion of the core's errors to Python exceptions.

use mcpline::foreign::{Failure, FailureCause, FailureDetails};
use mcpline::protocol::session::InputRequestError;
use mcpline::{ErrorKind, RpcError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

pub(crate) const MODULE: &str = "mcpline.errors";

macro_rules! class {
    ($py:expr, $name:literal) => {{
        static CLASS: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::PyAny>> = pyo3::sync::PyOnceLock::new();
        crate::imported($py, &CLASS, MODULE, $name)
    }};
}

/// Creates an exception of a class of `mcpline.errors` with these arguments.
pub(crate) fn raise<'py>(
    class: PyResult<Bound<'py, PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    match class.and_then(|class| class.call1(arguments)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Converts an error to an exception of the class of its kind, with all details.
pub(crate) fn failure(py: Python<'_>, failure: &Failure<'_>) -> PyErr {
    if failure.kind == ErrorKind::RequestCancelled {
        return cancelled(py);
    }
    made(py, failure).unwrap_or_else(|error| error)
}

fn made(py: Python<'_>, failure: &Failure<'_>) -> PyResult<PyErr> {
    let facts = PyDict::new(py);
    facts.set_item("retry_safe", failure.retry_safe)?;
    facts.set_item("outcome_unknown", failure.outcome_unknown)?;
    facts.set_item("operation", failure.operation)?;
    match &failure.details {
        FailureDetails::TimedOut { waited, in_all } => {
            facts.set_item("waited", waited)?;
            facts.set_item("in_all", in_all)?;
        }
        FailureDetails::Http {
            status,
            body,
            challenge,
        } => {
            facts.set_item("status", status)?;
            facts.set_item("body", body)?;
            facts.set_item("challenge", challenge)?;
        }
        FailureDetails::Authorization { reason } => facts.set_item("reason", reason)?,
        FailureDetails::Exited { exit, stderr } => {
            facts.set_item("exit", exit)?;
            facts.set_item("stderr", *stderr)?;
        }
        FailureDetails::Required(required) => {
            facts.set_item("required", loads(py, required.to_string().as_bytes())?)?;
        }
        // Details that this binding does not know yet are omitted.
        _ => {}
    }
    let class = py.import(MODULE)?.getattr(failure.kind.name())?;
    let error = match (failure.kind, &failure.source) {
        (ErrorKind::Rpc, Some(FailureCause::Rpc(error))) => {
            facts.set_item("text", failure.message.as_str())?;
            class.call(parts(py, error)?, Some(&facts))?
        }
        (_, source) => {
            match source {
                Some(FailureCause::Rpc(error)) => {
                    let error = class!(py, "RpcError")?.call1(parts(py, error)?)?;
                    facts.set_item("source", error)?;
                }
                Some(FailureCause::Text(text)) => facts.set_item("source", text)?,
                // No source, or one that this binding does not know yet.
                _ => {}
            }
            class.call((failure.message.as_str(),), Some(&facts))?
        }
    };
    if failure.is_for_model {
        error.setattr("_is_for_model", true)?;
    }
    Ok(PyErr::from_value(error))
}

type RpcErrorArguments<'e, 'py> = (i64, &'e str, Option<Bound<'py, PyAny>>);

fn parts<'e, 'py>(py: Python<'py>, error: &'e RpcError) -> PyResult<RpcErrorArguments<'e, 'py>> {
    let data = error.data.as_ref();
    let data = data.map(|data| loads(py, data.as_bytes())).transpose()?;
    Ok((error.code.0, error.message.as_ref(), data))
}

/// Converts a JSON-RPC error to an exception.
pub(crate) fn rpc(py: Python<'_>, error: &RpcError) -> PyErr {
    match parts(py, error) {
        Ok(parts) => raise(class!(py, "RpcError"), parts),
        Err(error) => error,
    }
}

/// Converts an error of the core to an exception.
pub(crate) fn core(py: Python<'_>, error: &mcpline::Error) -> PyErr {
    failure(py, &Failure::of_error(error))
}

/// Converts the error of an input request, or of another request to a client, to an exception.
pub(crate) fn input_request(py: Python<'_>, error: &InputRequestError, method: &str) -> PyErr {
    failure(py, &Failure::of_input_request(error).with_operation(method))
}

/// Creates an exception for incorrect use that this binding detects itself.
pub(crate) fn usage_error(py: Python<'_>, text: impl Into<String>) -> PyErr {
    raise(class!(py, "UsageError"), (text.into(),))
}

/// Creates an exception for something that is closed.
pub(crate) fn closed(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "Closed"), (text,))
}

/// Creates an exception for a failure of the operating system.
pub(crate) fn transport(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "TransportError"), (text,))
}

/// Creates an exception for a limit that was reached.
pub(crate) fn limit_exceeded(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "LimitExceeded"), (text,))
}

/// Creates the exception that a handler gets when its request is cancelled: asyncio's own. In a server that never
/// imported asyncio, a sync handler gets `RequestCancelled`.
pub(crate) fn cancelled(py: Python<'_>) -> PyErr {
    let found = py
        .import("sys")
        .and_then(|sys| sys.getattr("modules"))
        .and_then(|modules| modules.get_item("asyncio"))
        .and_then(|asyncio| asyncio.getattr("CancelledError"))
        .and_then(|class| class.call0());
    match found {
        Ok(error) => PyErr::from_value(error),
        Err(_) => raise(class!(py, "RequestCancelled"), ("request was cancelled",)),
    }
}

pub(crate) fn loads<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    crate::imported(py, &LOADS, "json", "loads")?.call1((PyBytes::new(py, json),))
}

/// Creates an exception for a bug in this binding, such as a lock that was poisoned by a panic.
pub(crate) fn internal_error(text: &str) -> PyErr {
    PyRuntimeError::new_err(format!("mcpline: {text}"))
}
