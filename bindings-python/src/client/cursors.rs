//! Follows the cursors of a list; the core decides when to stop.

use std::sync::Mutex;

use pyo3::prelude::*;

use crate::event_loop::lock;

use super::failure::exception;

/// The cursors of one list so far.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Cursors(Mutex<mcpline::client::Cursors>);

#[pymethods]
impl Cursors {
    /// Creates the cursors of a list that this method returns.
    #[new]
    fn new(method: &str) -> Self {
        Self(Mutex::new(mcpline::client::Cursors::new(method)))
    }

    /// Returns whether there is a further page, after one with this `nextCursor`.
    fn follow(&self, py: Python<'_>, next: Option<&str>) -> PyResult<bool> {
        let followed = lock(&self.0).follow(next);
        followed.map_err(|error| exception(py, &error, ""))
    }
}
