//! What a request ends with: an answer, or one of the exceptions of `mcpline.errors`.

use mcpline::RpcError;
use mcpline::client::ClientError;
use mcpline::foreign::{Failure, FailureClass, FailureDetails, failure_examples};
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat};

use crate::errors::{self, class, loads, raise};

/// What whoever waits is given.
pub(super) enum Given {
    /// A result, as JSON.
    Result(Raw),
    /// Something was done that has no result.
    Done,
    Failed(Box<ClientError>),
}

impl Given {
    pub(super) fn of_result(result: Result<Raw, ClientError>) -> Self {
        match result {
            Ok(result) => Self::Result(result),
            Err(error) => Self::Failed(Box::new(error)),
        }
    }

    pub(super) fn of_deed(result: Result<(), ClientError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error) => Self::Failed(Box::new(error)),
        }
    }

    pub(super) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Result(result) => Ok(PyBytes::new(py, result.as_bytes()).into_any()),
            Self::Done => Ok(py.None().into_bound(py)),
            Self::Failed(error) => Err(exception(py, &error)),
        }
    }
}

/// The exception of a failure of a client.
pub(super) fn exception(py: Python<'_>, error: &ClientError) -> PyErr {
    made(py, &Failure::of(error)).unwrap_or_else(|error| error)
}

fn made(py: Python<'_>, failure: &Failure<'_>) -> PyResult<PyErr> {
    let rpc = failure.members.error;
    let class = py.import(errors::MODULE)?.getattr(failure.class.as_str());
    match (failure.class, rpc) {
        (FailureClass::ServerError, Some(error)) => return Ok(raise(class, parts(py, error)?)),
        (FailureClass::UsageError, _) => return Ok(errors::misuse(py, failure.message.as_str())),
        _ => {}
    }
    let members = PyDict::new(py);
    members.set_item("retry_safe", failure.members.retry_safe)?;
    members.set_item("outcome_unknown", failure.members.outcome_unknown)?;
    match &failure.members.details {
        FailureDetails::TimedOut { waited, in_all } => {
            members.set_item("waited", waited)?;
            members.set_item("in_all", in_all)?;
        }
        FailureDetails::Http {
            status,
            body,
            challenge,
        } => {
            members.set_item("status", status)?;
            members.set_item("body", body)?;
            members.set_item("challenge", challenge)?;
        }
        FailureDetails::Authorization { reason } => members.set_item("reason", reason)?,
        FailureDetails::Exited { exit, stderr } => {
            members.set_item("exit", exit)?;
            members.set_item("stderr", *stderr)?;
        }
        // Details that this binding doesn't know yet are not told.
        _ => {}
    }
    if let Some(error) = rpc {
        let error = raise(class!(py, "Error"), parts(py, error)?);
        members.set_item("error", error.value(py))?;
    }
    let error = class?.call((failure.message.as_str(),), Some(&members))?;
    Ok(PyErr::from_value(error))
}

type Parts<'e, 'py> = (i64, &'e str, Option<Bound<'py, PyAny>>);

fn parts<'e, 'py>(py: Python<'py>, error: &'e RpcError) -> PyResult<Parts<'e, 'py>> {
    let data = error.data.as_ref();
    let data = data.map(|data| loads(py, data.as_bytes())).transpose()?;
    Ok((error.code.0, error.message.as_ref(), data))
}

/// A number as Python would read it: whole ones are integers.
pub(super) fn number(py: Python<'_>, number: f64) -> PyResult<Bound<'_, PyAny>> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        return Ok((number as i64).into_pyobject(py)?.into_any());
    }
    Ok(PyFloat::new(py, number).into_any())
}

/// Failures of every kind, by its name: for the test that none is forgotten.
#[pyfunction]
pub(crate) fn failures(py: Python<'_>) -> Vec<(&'static str, Bound<'_, PyAny>)> {
    let examples = failure_examples();
    let shown = examples.iter().map(|error| {
        let exception = exception(py, error).into_value(py);
        (error.kind().as_str(), exception.into_bound(py).into_any())
    });
    shown.collect()
}
