//! Access tokens that a Python function verifies.

use std::sync::{Arc, Mutex};

use mcpline::Error;
use mcpline::auth::{Caller, ResourceServerBuilder, VerifyError};
use mcpline::foreign::options::{self, CallerOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::event_loop::lock;
use crate::exit::InterpreterGuard;

/// A function that is called with a token. It returns the caller as JSON bytes, or the reason for a rejection as a
/// string.
#[derive(Clone, Default)]
pub(crate) struct Verifier(Arc<Mutex<Option<Py<PyAny>>>>);

impl Verifier {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Self {
        Self(Arc::new(Mutex::new(function)))
    }

    /// Makes the function verify every token, on a thread that may wait: the I/O thread continues meanwhile.
    pub(crate) fn added_to(
        &self,
        builder: ResourceServerBuilder,
    ) -> Result<ResourceServerBuilder, Error> {
        let this = self.clone();
        Ok(builder.verifier(move |token| {
            let this = this.clone();
            async move {
                let check = move || this.check(token.expose());
                tokio::task::spawn_blocking(check)
                    .await
                    .unwrap_or_else(|error| Err(VerifyError::Unavailable(error.to_string())))
            }
        }))
    }

    fn check(&self, token: &str) -> Result<Caller, VerifyError> {
        let _entered = InterpreterGuard::enter()
            .ok_or_else(|| failed(&"the Python interpreter is shutting down"))?;
        Python::attach(|py| {
            let function = lock(&self.0)
                .as_ref()
                .map(|function| function.clone_ref(py));
            let function = function.ok_or_else(|| failed(&"the server has ended"))?;
            let said = function
                .bind(py)
                .call1((token,))
                .map_err(|error| failed(&described(py, &error)))?;
            if let Ok(why) = said.cast::<PyString>() {
                return Err(VerifyError::Invalid(why.to_string_lossy().into_owned()));
            }
            let json = said.cast::<PyBytes>().map_err(|error| failed(&error))?;
            let caller: CallerOptions =
                options::read("what the verifier returned", json.as_bytes())
                    .map_err(|error| failed(&error))?;
            Ok(caller.authorized())
        })
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(function) => visit.call(&*function),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        let function = self
            .0
            .try_lock()
            .ok()
            .and_then(|mut function| function.take());
        drop(function);
    }
}

/// Says what an exception is and where it was raised, without its text: `KEYS[token]` raises one whose text is the token.
fn described(py: Python<'_>, error: &PyErr) -> String {
    let name = error.get_type(py).name();
    let name = name.map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    match raise_location(py, error) {
        Ok(Some(place)) => format!("{name} at {place}"),
        _ => name,
    }
}

/// Returns the file and the line in which an exception was raised.
fn raise_location(py: Python<'_>, error: &PyErr) -> PyResult<Option<String>> {
    let Some(traceback) = error.traceback(py) else {
        return Ok(None);
    };
    let mut last = traceback.into_any();
    loop {
        let next = last.getattr("tb_next")?;
        if next.is_none() {
            break;
        }
        last = next;
    }
    let file = last
        .getattr("tb_frame")?
        .getattr("f_code")?
        .getattr("co_filename")?;
    Ok(Some(format!("{file}:{}", last.getattr("tb_lineno")?)))
}

fn failed(error: &dyn std::fmt::Display) -> VerifyError {
    VerifyError::Unavailable(format!("the verifier failed: {error}"))
}
