//! The options that Python passes with one request.

use std::sync::OnceLock;

use mcpline::client::RequestOptions;
use mcpline::foreign::client::{self, ClientHandle};
use mcpline::foreign::options::CallOptions;
use pyo3::prelude::*;

use crate::errors;
use crate::outcome::checked;

/// Timeouts without progress and in total, the listener of progress, `_meta`, the log level, whether to reissue,
/// whether to bypass the cache, whether results with input requests are returned, and what its span needs to know.
pub(super) type RequestOptionArguments = (
    Option<f64>,
    Option<f64>,
    Option<Py<PyAny>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
    bool,
    bool,
    Option<Py<SentRequest>>,
);

/// What is known of a request once it was sent, for its span.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct SentRequest(OnceLock<client::SentRequest>);

#[pymethods]
impl SentRequest {
    #[new]
    fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the attributes of the span.
    fn attributes(&self) -> Vec<(&'static str, String)> {
        self.0
            .get()
            .map_or_else(Vec::new, client::SentRequest::attributes)
    }
}

/// Returns the options of one request, and its listener of progress.
pub(super) fn request_options(
    py: Python<'_>,
    handle: &ClientHandle,
    given: Option<RequestOptionArguments>,
) -> PyResult<(RequestOptions, Option<Py<PyAny>>)> {
    let Some(given) = given else {
        return Ok((RequestOptions::new(), None));
    };
    let (timeout, total_timeout, progress, meta, log_level, reissue, fresh, manual_results, sent) =
        given;
    let options = handle.options(CallOptions {
        timeout,
        total_timeout,
        meta: meta.map(|meta| checked(py, meta)).transpose()?,
        log_level,
        reissue,
        fresh,
        manual_results,
    });
    let mut options = options.map_err(|error| errors::core(py, &error))?;
    if let Some(sent) = sent {
        // It is used for one request.
        let _ = sent.get().0.set(client::SentRequest::track(&mut options));
    }
    Ok((options, progress))
}
