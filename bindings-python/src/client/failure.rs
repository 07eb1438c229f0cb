//! What a request ends with: an answer, or one of the exceptions of `mcpline.errors`.

use mcpline::RpcError;
use mcpline::client::{ClientError, ClientErrorKind};
use mcpline::protocol::client::OpenError;
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat};

use crate::errors::{class, loads, raise};

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
    let made = || -> PyResult<PyErr> {
        let members = PyDict::new(py);
        members.set_item("retry_safe", error.is_retry_safe())?;
        members.set_item("outcome_unknown", error.is_outcome_unknown())?;
        let text = error.to_string();
        let class = match error.kind() {
            ClientErrorKind::Rpc => {
                if let Some(error) = error.rpc() {
                    let (code, message, data) = parts(py, error)?;
                    return Ok(raise(class!(py, "ServerError"), (code, message, data)));
                }
                class!(py, "InvalidAnswer")
            }
            ClientErrorKind::TimedOut => class!(py, "RequestTimedOut"),
            ClientErrorKind::Http => class!(py, "HttpError"),
            ClientErrorKind::Connection => match error {
                ClientError::Exited { .. } => class!(py, "ServerExited"),
                _ => class!(py, "ConnectionFailed"),
            },
            ClientErrorKind::Invalid => class!(py, "InvalidAnswer"),
            ClientErrorKind::Open => match error {
                ClientError::Open(OpenError::TimedOut { .. }) => class!(py, "OpenTimedOut"),
                _ => class!(py, "OpenFailed"),
            },
            ClientErrorKind::Unanswered => class!(py, "QuestionUnanswered"),
            ClientErrorKind::Unsupported => class!(py, "NotSupported"),
            ClientErrorKind::Closed => class!(py, "ClientClosed"),
            ClientErrorKind::Misuse => return Ok(crate::errors::misuse(py, text)),
            // A kind that this binding doesn't know yet is still a failure of the client.
            _ => class!(py, "ClientError"),
        };
        match error {
            ClientError::TimedOut { waited, in_all } => {
                members.set_item("waited", waited.as_secs_f64())?;
                members.set_item("in_all", *in_all)?;
            }
            ClientError::Http {
                status,
                body,
                challenge,
                ..
            } => {
                members.set_item("status", *status)?;
                members.set_item("body", body)?;
                members.set_item("challenge", challenge.as_deref())?;
            }
            ClientError::Exited { exit, stderr, .. } => {
                members.set_item("exit", exit.as_deref())?;
                members.set_item("stderr", stderr)?;
            }
            _ => {}
        }
        let given = match error {
            ClientError::Unanswered(error) | ClientError::Open(OpenError::Refused(error)) => {
                Some(error)
            }
            ClientError::Http { error, .. } => error.as_deref(),
            _ => None,
        };
        if let Some(given) = given {
            let error = raise(class!(py, "Error"), parts(py, given)?);
            members.set_item("error", error.value(py))?;
        }
        Ok(
            match class.and_then(|class| class.call((text,), Some(&members))) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            },
        )
    };
    made().unwrap_or_else(|error| error)
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

/// Every kind of failure by name, with an exception of it: for the test that none is forgotten.
#[pyfunction]
pub(crate) fn failures(py: Python<'_>) -> Vec<(&'static str, Bound<'_, PyAny>)> {
    let rpc = || RpcError::invalid_params("no");
    let examples = vec![
        ClientError::Rpc(rpc()),
        ClientError::TimedOut {
            waited: std::time::Duration::from_secs(1),
            in_all: false,
        },
        ClientError::Http {
            status: 401,
            body: "no".to_owned(),
            challenge: Some("Bearer".to_owned()),
            error: Some(Box::new(rpc())),
        },
        ClientError::SessionLost,
        ClientError::Unreachable {
            reason: "no route".to_owned(),
        },
        ClientError::ConnectionLost {
            reason: "reset".to_owned(),
        },
        ClientError::Exited {
            exit: Some("exit status: 1".to_owned()),
            stderr: vec!["last words".to_owned()],
            unsent: false,
        },
        ClientError::Invalid {
            reason: "no JSON".to_owned(),
        },
        ClientError::TooManyRounds { rounds: 10 },
        ClientError::Open(OpenError::Refused(rpc())),
        ClientError::Open(OpenError::TimedOut {
            method: "initialize",
            waited: std::time::Duration::from_secs(1),
        }),
        ClientError::Unanswered(rpc()),
        ClientError::Unsupported("not here".to_owned()),
        ClientError::Closed,
        ClientError::Misuse("no object".to_owned()),
    ];
    let known = ClientErrorKind::ALL
        .iter()
        .filter(|kind| !examples.iter().any(|error| error.kind() == **kind));
    let missing: Vec<_> = known
        .map(|kind| (kind.as_str(), py.None().into_bound(py)))
        .collect();
    let shown = examples.iter().map(|error| {
        let exception = exception(py, error);
        (
            error.kind().as_str(),
            exception.into_value(py).into_bound(py).into_any(),
        )
    });
    shown.chain(missing).collect()
}
