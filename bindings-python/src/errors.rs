//! From the core's failures to Python's exceptions.

use mcpline::ErrorKind;
use mcpline::protocol::session::AskError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

pub(crate) const MODULE: &str = "mcpline.errors";

macro_rules! class {
    ($py:expr, $name:literal) => {{
        static CLASS: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::PyAny>> = pyo3::sync::PyOnceLock::new();
        crate::imported($py, &CLASS, $crate::errors::MODULE, $name)
    }};
}
pub(crate) use class;

/// An exception of a class of `mcpline.errors`, made with these arguments.
pub(crate) fn raise<'py>(
    class: PyResult<Bound<'py, PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    match class.and_then(|class| class.call1(arguments)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The exception of a failure of the core.
pub(crate) fn core(py: Python<'_>, error: &mcpline::Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Misuse => class!(py, "UsageError"),
        ErrorKind::Transport => class!(py, "TransportError"),
        ErrorKind::Closed => class!(py, "Closed"),
        // A kind that this binding doesn't know yet is a defect of ours until it does.
        _ => class!(py, "InternalError"),
    };
    raise(class, (error.to_string(),))
}

/// The exception of wrong use that this binding notices itself.
pub(crate) fn misuse(py: Python<'_>, text: impl Into<String>) -> PyErr {
    raise(class!(py, "UsageError"), (text.into(),))
}

/// The exception of something that is closed.
pub(crate) fn closed(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "Closed"), (text,))
}

/// The exception of a failure of the operating system.
pub(crate) fn transport(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "TransportError"), (text,))
}

/// The exception of a limit that a question exceeds.
pub(crate) fn busy(py: Python<'_>, text: &str) -> PyErr {
    raise(class!(py, "McplineError"), (text,))
}

/// The exception of a question that got no answer.
pub(crate) fn ask(py: Python<'_>, error: &AskError) -> PyErr {
    match error {
        AskError::Unsupported(need) => {
            let required = loads(py, need.required().to_string().as_bytes());
            match required {
                Ok(required) => raise(class!(py, "Unsupported"), (error.to_string(), required)),
                Err(error) => error,
            }
        }
        AskError::Refused(refusal) => {
            let data = refusal
                .data
                .as_ref()
                .map(|data| loads(py, data.as_bytes()))
                .transpose();
            match data {
                Ok(data) => {
                    let message = refusal.message.as_ref();
                    raise(class!(py, "Refused"), (refusal.code.0, message, data))
                }
                Err(error) => error,
            }
        }
        AskError::TimedOut(_) => raise(class!(py, "TimedOut"), (error.to_string(),)),
        AskError::Closed => closed(py, &error.to_string()),
        AskError::InvalidParams(_) | AskError::OutsideCall | AskError::Diverged { .. } => {
            misuse(py, error.to_string())
        }
        AskError::Cancelled => cancelled(py),
        _ => raise(class!(py, "McplineError"), (error.to_string(),)),
    }
}

/// What a handler sees when its request is cancelled: asyncio's own exception. In a server that never
/// imported asyncio, a sync handler sees that the request is closed.
pub(crate) fn cancelled(py: Python<'_>) -> PyErr {
    let found = py
        .import("sys")
        .and_then(|sys| sys.getattr("modules"))
        .and_then(|modules| modules.get_item("asyncio"))
        .and_then(|asyncio| asyncio.getattr("CancelledError"))
        .and_then(|class| class.call0());
    match found {
        Ok(error) => PyErr::from_value(error),
        Err(_) => closed(py, "the request was cancelled"),
    }
}

pub(crate) fn loads<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    crate::imported(py, &LOADS, "json", "loads")?.call1((PyBytes::new(py, json),))
}

/// A lock that another thread poisoned by a panic, or another defect of this binding.
pub(crate) fn defect(text: &str) -> PyErr {
    PyRuntimeError::new_err(format!("mcpline: {text}"))
}
