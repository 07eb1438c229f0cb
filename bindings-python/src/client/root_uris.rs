//! Converts roots to URIs, with the core.

use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;

use mcpline::protocol::root_uri as core_root_uri;
use pyo3::prelude::*;

use crate::errors;

/// Returns the `file://` URI of a root that `os.fsencode` has encoded.
#[pyfunction]
pub(crate) fn root_uri(py: Python<'_>, root: &[u8]) -> PyResult<String> {
    #[cfg(unix)]
    let given: &OsStr = OsStr::from_bytes(root);
    // On other systems, paths are Unicode.
    #[cfg(not(unix))]
    let text = String::from_utf8_lossy(root);
    #[cfg(not(unix))]
    let given: &OsStr = OsStr::new(text.as_ref());
    core_root_uri(given).map_err(|error| errors::usage_error(py, error.to_string()))
}
