//! The request context of a handler: the native half of `mcpline.Context`.

use std::sync::Arc;
use std::sync::mpsc;

use mcpline::foreign::{self, IoAction};
use mcpline::middleware::MiddlewareOutcome;
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::wire::Raw;
use mcpline::{Context, InputRequest};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::errors;
use crate::event_loop::{Event, FutureValue, Hub};
use crate::http_app::AsgiScope;
use crate::outcome::{checked, input_request_method, trusted};
use crate::workers::Pool;

/// How a handler waits for the answer to an input request; this depends on where the handler runs.
#[derive(Clone)]
pub(crate) enum WaitMode {
    /// On the event loop, with a future.
    Loop(Arc<Hub>),
    /// On a pool thread, which blocks.
    Pool(Arc<Pool>),
    /// On the I/O thread, which must not wait.
    Inline,
}

/// One request that a handler serves.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Call {
    context: Context,
    wait_mode: WaitMode,
}

impl Call {
    pub(crate) fn new(context: Context, wait_mode: WaitMode) -> Self {
        Self { context, wait_mode }
    }
}

#[pymethods]
impl Call {
    /// Reports progress.
    #[pyo3(signature = (progress, total, message))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.context.progress(progress, total, message);
    }

    /// Sends a log message; `data` is JSON.
    #[pyo3(signature = (level, logger, data))]
    fn log(
        &self,
        py: Python<'_>,
        level: &str,
        logger: Option<&str>,
        data: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let level = LoggingLevel::parse(level)
            .ok_or_else(|| errors::usage_error(py, format!("unknown log level {level}")))?;
        self.context.log_raw(level, logger, &trusted(data));
        Ok(())
    }

    /// Sends a custom notification; `params` is JSON.
    #[pyo3(signature = (method, params))]
    fn notify(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<()> {
        let params = params.map(trusted);
        self.context
            .notify(method, params.as_ref())
            .map_err(|error| errors::core(py, &error))
    }

    /// Closes the response stream while the call continues.
    fn close_stream(&self) {
        self.context.close_stream();
    }

    /// Sends an input request and sets the result of `future` to the answer, which is JSON.
    #[pyo3(signature = (method, params, key, future))]
    fn request_input_into(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<Vec<u8>>,
        key: Option<String>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let WaitMode::Loop(hub) = &self.wait_mode else {
            return Err(errors::usage_error(
                py,
                "only a handler on the event loop can await an answer",
            ));
        };
        let input_request = input_request(py, method, params, key)?;
        let (sink_hub, method) = (hub.clone(), input_request.method.clone());
        let sink = move |answer| {
            sink_hub.post(Event::Resolve(future, FutureValue::Answer(answer, method)))
        };
        hub.push(
            py,
            IoAction::InputRequest(self.context.clone(), input_request, Box::new(sink)),
        )
    }

    /// Sends an input request and waits for the answer, which is JSON.
    #[pyo3(signature = (method, params, key))]
    fn request_input<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        params: Option<Vec<u8>>,
        key: Option<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let WaitMode::Pool(pool) = &self.wait_mode else {
            return Err(errors::usage_error(
                py,
                "an inline handler cannot wait for the client: remove `inline`, or write it as `async def`",
            ));
        };
        let input_request = input_request(py, method, params, key)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let sink = move |answer| {
            // The handler's thread receives until the answer arrives.
            let _ = sender.send(answer);
        };
        let action = IoAction::InputRequest(self.context.clone(), input_request, Box::new(sink));
        let send_and_wait = move || {
            pool.deliver(action);
            receiver.recv()
        };
        let asked = py.detach(|| pool.waiting(send_and_wait));
        let answer = asked.map_err(|busy| errors::limit_exceeded(py, &busy.to_string()))?;
        match answer {
            Ok(Ok(answer)) => Ok(PyBytes::new(py, answer.as_bytes())),
            Ok(Err(error)) => Err(errors::input_request(py, &error, method)),
            Err(_) => {
                let lost = InputRequestError::ConnectionLost;
                Err(errors::input_request(py, &lost, method))
            }
        }
    }

    /// Passes the request of a middleware on, with other parameters if `params`, which are JSON, are given, and sets the
    /// result of `future` to the result, which is JSON.
    #[pyo3(signature = (params, future))]
    fn run_next_into(
        &self,
        py: Python<'_>,
        params: Option<&Bound<'_, PyBytes>>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let WaitMode::Loop(hub) = &self.wait_mode else {
            return Err(errors::usage_error(
                py,
                "only a middleware on the event loop can await the result of a request",
            ));
        };
        let (sink_hub, context) = (hub.clone(), self.context.clone());
        let callback = move |outcome| {
            let value = FutureValue::Outcome(next_outcome(&context, outcome));
            sink_hub.post(Event::Resolve(future, value));
        };
        let params = params.map(trusted);
        hub.push(py, foreign::run_next(&self.context, params, callback))
    }

    /// Passes the request of a middleware on, and waits for the result; see `run_next_into`.
    #[pyo3(signature = (params))]
    fn run_next<'py>(
        &self,
        py: Python<'py>,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let WaitMode::Pool(pool) = &self.wait_mode else {
            return Err(errors::usage_error(
                py,
                "a middleware on the event loop must await the result of a request",
            ));
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        let context = self.context.clone();
        let callback = move |outcome| {
            // The middleware's thread receives until the outcome arrives.
            let _ = sender.send(next_outcome(&context, outcome));
        };
        let action = foreign::run_next(&self.context, params.map(trusted), callback);
        let run_and_wait = move || {
            pool.deliver(action);
            receiver.recv()
        };
        let outcome = py.detach(|| pool.waiting(run_and_wait));
        match outcome.map_err(|busy| errors::limit_exceeded(py, &busy.to_string()))? {
            Ok(Some(Ok(result))) => Ok(PyBytes::new(py, result.as_bytes())),
            Ok(Some(Err(error))) => Err(errors::rpc(py, &error)),
            Ok(None) | Err(_) => Err(errors::cancelled(py)),
        }
    }

    /// `Implementation` of the client, as JSON.
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let peer = self.context.peer();
        peer.info.as_ref().map(|info| to_py_bytes(py, info))
    }

    /// `ClientCapabilities`, as JSON.
    #[getter]
    fn client_capabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_py_bytes(py, &self.context.peer().capabilities)
    }

    #[getter]
    fn tool_name(&self) -> Option<String> {
        self.context.tool_name()
    }

    #[getter]
    fn prompt_name(&self) -> Option<String> {
        self.context.prompt_name()
    }

    #[getter]
    fn uri(&self) -> Option<String> {
        self.context.uri()
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.context.revision().as_str()
    }

    #[getter]
    fn transport(&self) -> &'static str {
        self.context.transport()
    }

    /// The attributes of the spans of input requests.
    fn span_attributes(&self) -> Vec<(&'static str, String)> {
        foreign::span_attributes(&self.context)
    }

    /// The request's id, as JSON.
    #[getter]
    fn request_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_py_bytes(py, &self.context.request_id())
    }

    #[getter]
    fn session_id(&self) -> Option<String> {
        self.context.session_id()
    }

    /// The dictionary that lives as long as the client's session.
    #[getter]
    fn session_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::server::session_state(py, &self.context)
    }

    /// The HTTP headers; values that are not UTF-8 are read as Latin-1.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let Some(http) = self.context.http() else {
            return Vec::new();
        };
        http.headers
            .iter()
            .map(|(name, value)| {
                let value = value.as_bytes().iter().map(|byte| *byte as char).collect();
                (name.as_str().to_owned(), value)
            })
            .collect()
    }

    /// The ASGI scope, if the server is part of an ASGI application. Without the token if the server has verified it:
    /// the token is for the server only.
    #[getter]
    fn scope(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let Some(http) = self.context.http() else {
            return Ok(None);
        };
        let Some(AsgiScope(scope)) = http.extensions.get::<AsgiScope>() else {
            return Ok(None);
        };
        match http.auth {
            Some(_) => Ok(Some(without_token(scope.bind(py), &http.headers)?.unbind())),
            None => Ok(Some(scope.clone_ref(py))),
        }
    }

    /// The request of a route: its head as JSON, and its body.
    #[getter]
    fn http_request<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (head, body) = foreign::route_request(&self.context).ok_or_else(|| {
            errors::internal_error("a call that is not one of a route has no request")
        })?;
        Ok((PyBytes::new(py, head.as_bytes()), PyBytes::new(py, &body)))
    }

    /// The request that the HTTP client of an imported API sends: its head as JSON, and its body.
    #[getter]
    fn api_request<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (head, body) = foreign::api_request(&self.context).ok_or_else(|| {
            errors::internal_error("a call that is not one of an HTTP client sends none")
        })?;
        Ok((PyBytes::new(py, head.as_bytes()), PyBytes::new(py, &body)))
    }

    /// The arguments of a request to shared state.
    #[getter]
    fn sharing_arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let request = foreign::sharing_request(&self.context).ok_or_else(|| {
            errors::internal_error("a call that is not one of shared state has no request")
        })?;
        crate::sharing::arguments(py, request)
    }

    /// The authenticated caller as JSON.
    #[getter]
    fn auth<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let auth = self.context.auth()?;
        Some(PyBytes::new(py, auth.to_json().to_string().as_bytes()))
    }

    /// Returns the error for missing scopes as JSON, if the caller lacks one of these.
    fn missing_scopes<'py>(
        &self,
        py: Python<'py>,
        scopes: Vec<String>,
    ) -> Option<Bound<'py, PyBytes>> {
        let error = self.context.require_scopes(scopes).err()?;
        let json = serde_json::to_vec(&error).ok()?;
        Some(PyBytes::new(py, &json))
    }

    /// The request's `_meta`, as JSON.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.context.meta().map(|meta| to_py_bytes(py, &meta))
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Answers to the input requests that the handler returned, as JSON.
    #[getter]
    fn input_responses<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.context
            .input_responses()
            .map(|responses| to_py_bytes(py, &responses))
    }

    #[getter]
    fn request_state(&self) -> Option<String> {
        self.context.request_state()
    }
}

/// Returns the outcome of a request that middleware passed on; `None` if the request has ended meanwhile.
fn next_outcome(context: &Context, outcome: MiddlewareOutcome) -> Option<MiddlewareOutcome> {
    match outcome {
        Err(_) if context.is_cancelled() => None,
        outcome => Some(outcome),
    }
}

/// Copies a scope without the headers that the core has removed from the request.
fn without_token<'py>(
    scope: &Bound<'py, PyDict>,
    kept: &http::HeaderMap,
) -> PyResult<Bound<'py, PyDict>> {
    let py = scope.py();
    let cleaned = scope.copy()?;
    if let Some(headers) = scope.get_item(intern!(py, "headers"))? {
        let rest = PyList::empty(py);
        for header in headers.try_iter()? {
            let header = header?;
            let name = header.get_item(0)?.cast_into::<PyBytes>()?;
            let name = String::from_utf8_lossy(name.as_bytes()).to_ascii_lowercase();
            let is_secret = name == "authorization" || name == "dpop";
            if !is_secret || kept.contains_key(&name) {
                rest.append(header)?;
            }
        }
        cleaned.set_item(intern!(py, "headers"), rest)?;
    }
    Ok(cleaned)
}

fn input_request(
    py: Python<'_>,
    method: &str,
    params: Option<Vec<u8>>,
    key: Option<String>,
) -> PyResult<InputRequest> {
    let params = params.map(|params| checked(py, params)).transpose()?;
    let mut input_request = InputRequest::new(input_request_method(py, method)?, params);
    input_request.key = key;
    Ok(input_request)
}

fn to_py_bytes<'py>(py: Python<'py>, json: &Raw) -> Bound<'py, PyBytes> {
    PyBytes::new(py, json.as_bytes())
}
