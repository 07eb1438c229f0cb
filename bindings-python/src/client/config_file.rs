//! Servers in configuration files.

use std::path::PathBuf;

use mcpline::foreign::client::configured_server as core_configured_server;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// Returns the server that an entry of a configuration file describes, as JSON.
#[pyfunction]
#[pyo3(signature = (path, name))]
pub(crate) fn configured_server<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let server = core_configured_server(path, name).map_err(|error| errors::core(py, &error))?;
    Ok(PyBytes::new(py, server.as_bytes()))
}
