//! Converts what a handler returned or raised to the core's reply.

use bytes::Bytes;
use mcpline::foreign::IoAction;
use mcpline::foreign::results;
use mcpline::protocol::wire::Raw;
use mcpline::server::{CallKind, CompletionReply, KeyedInputRequest};
use mcpline::{HandlerError, InputRequestMethod, InputRequired, Reply, RpcError, ToolReply};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::errors;
use crate::plan::{PlanObjects, SharedPlan};

/// The end of a call.
pub(crate) type Outcome = Result<Reply, HandlerError>;

/// Input requests that a handler returned.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct InputRequiredReply {
    input_required: InputRequired,
}

#[pymethods]
impl InputRequiredReply {
    #[new]
    fn new(
        py: Python<'_>,
        requests: Vec<(String, String, Option<Vec<u8>>)>,
        state: Option<String>,
    ) -> PyResult<Self> {
        let requests = requests
            .into_iter()
            .map(|(key, method, params)| {
                Ok(KeyedInputRequest {
                    key,
                    method: input_request_method(py, &method)?,
                    params: params.map(|params| checked(py, params)).transpose()?,
                })
            })
            .collect::<PyResult<_>>()?;
        Ok(Self {
            input_required: InputRequired { requests, state },
        })
    }
}

/// A result of an extension's type that a handler returned.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct ExtendedReply {
    result: Raw,
}

#[pymethods]
impl ExtendedReply {
    #[new]
    fn new(result: &Bound<'_, PyBytes>) -> Self {
        Self {
            result: trusted(result),
        }
    }
}

/// What the client is sent when a handler raises.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Failure {
    error: HandlerError,
}

#[pymethods]
impl Failure {
    /// A failure that the model should read.
    #[staticmethod]
    fn tool(text: String) -> Self {
        Self {
            error: HandlerError::Tool(text),
        }
    }

    /// A failure that is logged already. Clients get `text`, and `description` in debug mode only.
    #[staticmethod]
    fn exception(text: String, description: String) -> Self {
        Self {
            error: HandlerError::ToolWithSources {
                message: text,
                sources: description,
            },
        }
    }

    /// A JSON-RPC error.
    #[staticmethod]
    #[pyo3(signature = (code, message, data))]
    fn rpc(py: Python<'_>, code: i64, message: String, data: Option<Vec<u8>>) -> PyResult<Self> {
        let mut error = RpcError::new(mcpline::protocol::ErrorCode(code), message);
        error.data = data.map(|data| checked(py, data)).transpose()?;
        Ok(Self {
            error: HandlerError::Rpc(error),
        })
    }

    /// A resource that does not exist: its URI, or `None` for the requested one.
    #[staticmethod]
    #[pyo3(signature = (uri))]
    fn resource_not_found(uri: Option<String>) -> Self {
        Self {
            error: HandlerError::ResourceNotFound(uri),
        }
    }

    /// URL elicitations that the user must complete first; each item is the parameters of an elicitation in URL mode.
    #[staticmethod]
    fn url_elicitations(py: Python<'_>, url_elicitations: Vec<Vec<u8>>) -> PyResult<Self> {
        let url_elicitations = url_elicitations
            .iter()
            .map(|elicitation| crate::server::read(py, "a visit", elicitation))
            .collect::<PyResult<_>>()?;
        Ok(Self {
            error: HandlerError::UrlElicitationRequired(url_elicitations),
        })
    }

    /// A capability that the client lacks; `required` is the capability as the client would declare it.
    #[staticmethod]
    fn unsupported(required: &[u8], message: String) -> Self {
        let required = serde_json::from_slice::<serde_json::Value>(required).unwrap_or_default();
        Self {
            error: results::unsupported(&required, message),
        }
    }
}

impl SharedPlan {
    /// Returns the reply of a handler that returned `value`.
    pub(crate) fn reply(
        &self,
        py: Python<'_>,
        objects: &PlanObjects,
        uri: impl FnOnce() -> String,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Reply> {
        if matches!(self.kind, CallKind::Event | CallKind::Notification) {
            // The return value is not sent.
            return Ok(Reply::Tool(ToolReply::default()));
        }
        if self.kind == CallKind::Tool {
            // The two most common results are converted without Python code.
            match &objects.encode {
                None => {
                    if let Ok(text) = value.cast_exact::<PyString>() {
                        return Ok(Reply::Tool(text_reply(text)?));
                    }
                }
                Some(encode) if !is_special(py, objects, value) => {
                    let structured = encode.bind(py).call1((value,))?;
                    return Ok(Reply::Tool(ToolReply {
                        structured: Some(trusted(structured.cast::<PyBytes>()?)),
                        ..ToolReply::default()
                    }));
                }
                Some(_) => {}
            }
        }
        let convert = objects.convert.bind(py);
        let converted = match self.kind {
            CallKind::Resource => convert.call1((value, uri()))?,
            _ => convert.call1((value,))?,
        };
        if let Ok(input_required) = converted.cast::<InputRequiredReply>() {
            return Ok(Reply::InputRequired(
                input_required.get().input_required.clone(),
            ));
        }
        if let Ok(extended) = converted.cast::<ExtendedReply>() {
            return Ok(Reply::Result(extended.get().result.clone()));
        }
        match self.kind {
            CallKind::Tool => tool_reply(&converted),
            CallKind::Completion => {
                let (values, total, has_more) = converted.extract()?;
                Ok(Reply::Completion(CompletionReply {
                    values,
                    total,
                    has_more,
                }))
            }
            CallKind::Request | CallKind::Credential => {
                Ok(Reply::Result(trusted(converted.cast::<PyBytes>()?)))
            }
            // A whole result, or what a tool returns.
            CallKind::Middleware => match converted.cast::<PyBytes>() {
                Ok(result) => Ok(Reply::Result(trusted(result))),
                Err(_) => tool_reply(&converted),
            },
            CallKind::Sharing => crate::sharing::reply(&converted),
            CallKind::Route | CallKind::HttpClient => http_response(py, &converted),
            kind => results::content(kind, trusted(converted.cast::<PyBytes>()?))
                .map_err(|error| errors::core(py, &error)),
        }
    }

    /// Converts an exception to the client's error. Logs it if it is not meant for the client.
    pub(crate) fn failure(&self, py: Python<'_>, error: &PyErr) -> HandlerError {
        let reported = self.lock_objects().and_then(|objects| {
            let failure = objects.fail.bind(py).call1((error.value(py),))?;
            Ok(failure.cast::<Failure>()?.get().error.clone())
        });
        reported.unwrap_or_else(|defect| {
            // Reporting failed: log both errors.
            HandlerError::Internal(format!("{error}; and while reporting it: {defect}"))
        })
    }

    /// Returns the outcome of a handler that returned `value`.
    pub(crate) fn outcome(
        &self,
        py: Python<'_>,
        uri: impl FnOnce() -> String,
        value: &Bound<'_, PyAny>,
    ) -> Outcome {
        self.lock_objects()
            .and_then(|objects| self.reply(py, &objects, uri, value))
            .map_err(|error| self.failure(py, &error))
    }
}

fn is_special(py: Python<'_>, objects: &PlanObjects, value: &Bound<'_, PyAny>) -> bool {
    let class = value.get_type();
    objects
        .special
        .bind(py)
        .iter_borrowed()
        .any(|special| special.is(&class))
}

fn text_reply(text: &Bound<'_, PyString>) -> PyResult<ToolReply> {
    // `ToolReply::text` writes the text into a content block; lone surrogates raise here.
    Ok(ToolReply::text(text.to_str()?))
}

/// Reads status, headers and body.
fn http_response(py: Python<'_>, converted: &Bound<'_, PyAny>) -> PyResult<Reply> {
    let (status, headers, body): (u16, Vec<(String, String)>, Bound<'_, PyBytes>) =
        converted.extract()?;
    let body = Bytes::copy_from_slice(body.as_bytes());
    mcpline::foreign::http_response(status, &headers, body)
        .map_err(|error| errors::core(py, &error))
}

fn tool_reply(converted: &Bound<'_, PyAny>) -> PyResult<Reply> {
    let parts = converted.cast::<PyTuple>()?;
    let part = |index: usize| -> PyResult<Option<Raw>> {
        let part = parts.get_item(index)?;
        Ok(match part.is_none() {
            true => None,
            false => Some(trusted(part.cast::<PyBytes>()?)),
        })
    };
    Ok(Reply::Tool(ToolReply {
        content: part(0)?,
        structured: part(1)?,
        is_error: parts.get_item(2)?.extract()?,
        meta: part(3)?,
    }))
}

/// Wraps JSON that an encoder of this package has written.
pub(crate) fn trusted(json: &Bound<'_, PyBytes>) -> Raw {
    Raw::from_trusted(json.as_bytes().to_vec())
}

/// Validates JSON from the package's Python code: this is not on the fast path.
pub(crate) fn checked(py: Python<'_>, json: Vec<u8>) -> PyResult<Raw> {
    Raw::parse(Bytes::from(json)).map_err(|error| errors::usage_error(py, error.to_string()))
}

/// Parses the method of an input request.
pub(crate) fn input_request_method(py: Python<'_>, name: &str) -> PyResult<InputRequestMethod> {
    InputRequestMethod::parse(name).map_err(|error| errors::usage_error(py, error.to_string()))
}

/// Ends a call that was cancelled before its handler began: no response is sent.
pub(crate) fn abandon(call: mcpline::Call) {
    call.reply(Err(HandlerError::Tool("the request was cancelled".into())));
}

/// Ends the calls of a server that has ended, and whose I/O thread no longer can.
pub(crate) fn reply_here(actions: Vec<IoAction>) {
    for action in actions {
        if let IoAction::Reply(call, outcome) = action {
            call.reply(outcome);
        }
    }
}
