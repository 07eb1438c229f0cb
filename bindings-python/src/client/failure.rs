//! Converts outcomes of requests to results, or exceptions of `mcpline.errors`.

use bytes::Bytes;
use mcpline::client::ClientError;
use mcpline::foreign::client::{Outcome, WrongPhaseError};
use mcpline::foreign::{Failure, client_error_examples, input_request_error_examples};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList};

use crate::errors;

/// The value for a waiting future.
pub(super) enum ClientFutureValue {
    /// The outcome of a request.
    Outcome(Outcome),
    /// Messages for the peer of a channel.
    Messages(Vec<Bytes>),
}

impl ClientFutureValue {
    /// The outcome of an operation without a result.
    pub(super) const DONE: Self = Self::Outcome(Outcome::Done);

    pub(super) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Outcome(outcome) => into_python(py, outcome),
            Self::Messages(messages) => {
                let messages = messages.iter().map(|message| PyBytes::new(py, message));
                Ok(PyList::new(py, messages.collect::<Vec<_>>())?.into_any())
            }
        }
    }
}

/// Returns the result of a request as `bytes`, `None` if it has none; raises its failure as an exception.
pub(super) fn into_python(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Outcome::Result(result) => Ok(PyBytes::new(py, result.as_bytes()).into_any()),
        Outcome::Done => Ok(py.None().into_bound(py)),
        Outcome::Failed(failed) => Err(errors::failure(py, &failed.failure())),
    }
}

/// Creates the exception for a client in the wrong phase.
pub(super) fn phase(py: Python<'_>, error: WrongPhaseError) -> PyErr {
    errors::failure(py, &error.failure())
}

/// Converts a client's error during an operation to an exception; `operation` is empty if unknown.
pub(super) fn exception(py: Python<'_>, error: &ClientError, operation: &str) -> PyErr {
    errors::failure(py, &Failure::of_client(error).with_operation(operation))
}

/// Converts a number: whole ones become integers.
pub(super) fn number(py: Python<'_>, number: f64) -> PyResult<Bound<'_, PyAny>> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        return Ok((number as i64).into_pyobject(py)?.into_any());
    }
    Ok(PyFloat::new(py, number).into_any())
}

/// Returns one error of every kind that clients and input requests have, with its kind and its text, for a test that
/// covers all kinds.
#[pyfunction]
pub(crate) fn error_examples(py: Python<'_>) -> Vec<(&'static str, String, Bound<'_, PyAny>)> {
    let shown = |failure: &Failure<'_>| {
        let exception = errors::failure(py, failure).into_value(py);
        let kind = failure.kind.as_str();
        (
            kind,
            failure.message.clone(),
            exception.into_bound(py).into_any(),
        )
    };
    let clients = client_error_examples();
    let inputs = input_request_error_examples();
    let clients = clients
        .iter()
        .map(|error| Failure::of_client(error).with_operation("tools/call"));
    let inputs = inputs
        .iter()
        .map(|error| Failure::of_input_request(error).with_operation("elicitation/create"));
    clients
        .chain(inputs)
        .map(|failure| shown(&failure))
        .collect()
}
