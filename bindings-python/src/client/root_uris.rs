//! Roots as URIs, which the core makes of them.

use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;

use mcpline::protocol::root_uri as core_root_uri;
use pyo3::prelude::*;

use crate::errors;

/// The `file://` URI of a root, as `os.fsencode` writes it.
#[pyfunction]
pub(crate) fn root_uri(py: Python<'_>, root: &[u8]) -> PyResult<String> {
    #[cfg(unix)]
    let given: &OsStr = OsStr::from_bytes(root);
    // There a path is Unicode.
    #[cfg(not(unix))]
    let text = String::from_utf8_lossy(root);
    #[cfg(not(unix))]
    let given: &OsStr = OsStr::new(text.as_ref());
    core_root_uri(given).map_err(|error| errors::misuse(py, error.to_string()))
}
