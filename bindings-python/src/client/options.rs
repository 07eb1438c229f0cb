//! The options that Python passes with one request.

use mcpline::client::RequestOptions;
use mcpline::foreign::client::ClientHandle;
use mcpline::foreign::options::CallOptions;
use pyo3::prelude::*;

use crate::errors;
use crate::outcome::checked;

/// Timeouts without progress and in total, the listener of progress, `_meta`, the log level, whether to reissue,
/// whether to bypass the cache, and whether results with input requests are returned.
pub(super) type RequestOptionArguments = (
    Option<f64>,
    Option<f64>,
    Option<Py<PyAny>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
    bool,
    bool,
);

/// Returns the options of one request, and its listener of progress.
pub(super) fn request_options(
    py: Python<'_>,
    handle: &ClientHandle,
    given: Option<RequestOptionArguments>,
) -> PyResult<(RequestOptions, Option<Py<PyAny>>)> {
    let Some(given) = given else {
        return Ok((RequestOptions::new(), None));
    };
    let (timeout, total_timeout, progress, meta, log_level, reissue, fresh, manual_results) = given;
    let options = handle.options(CallOptions {
        timeout,
        total_timeout,
        meta: meta.map(|meta| checked(py, meta)).transpose()?,
        log_level,
        reissue,
        fresh,
        manual_results,
    });
    Ok((options.map_err(|error| errors::core(py, &error))?, progress))
}
