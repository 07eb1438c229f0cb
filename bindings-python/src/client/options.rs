//! What Python gives with one request.

use mcpline::client::RequestOptions;
use mcpline::foreign::client::ClientHandle;
use mcpline::foreign::options::CallOptions;
use pyo3::prelude::*;

use crate::errors;
use crate::outcome::checked;

/// Timeouts without a sign of life and in all, who is told of progress, `_meta`, the log level, whether to reissue, whether a
/// kept result won't do, whether input requests are answered by hand.
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

/// The options of one request, and who is told of its progress.
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
