//! Plan of how to call a handler: decode the raw arguments, fill the parameters, call.
//!
//! A plan is created in Python when a handler is registered (`mcpline._plans`). It is shared between Python, which owns
//! the objects in it, and the core's registry, which only refers to it.

use std::sync::{Arc, RwLock, RwLockReadGuard};

use mcpline::server::CallKind;
use mcpline::{Call as CoreCall, foreign};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::context::{Call, WaitMode};
use crate::errors;

/// A handler and how to call it.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Plan {
    pub(crate) planned: Arc<SharedPlan>,
}

/// The part of a [`Plan`] that the registry shares.
pub(crate) struct SharedPlan {
    pub(crate) kind: CallKind,
    pub(crate) is_async: bool,
    pub(crate) inline: bool,
    /// `None` once the garbage collector has cleared them.
    objects: RwLock<Option<PlanObjects>>,
}

/// The Python objects of a plan.
pub(crate) struct PlanObjects {
    call: Py<PyAny>,
    decode: Option<Py<PyAny>>,
    recover: Option<Py<PyAny>>,
    positional: Vec<Py<PyString>>,
    keywords: Vec<Py<PyString>>,
    /// The parameter for the context: an index among the positional arguments, and the name if it is a keyword.
    context: Option<(usize, Option<Py<PyString>>)>,
    context_type: Py<PyAny>,
    server: Py<PyAny>,
    pub(crate) convert: Py<PyAny>,
    pub(crate) encode: Option<Py<PyAny>>,
    pub(crate) special: Py<PyTuple>,
    pub(crate) fail: Py<PyAny>,
}

/// A function and its arguments, ready to be called.
pub(crate) struct PreparedCall<'py> {
    pub(crate) function: Bound<'py, PyAny>,
    pub(crate) arguments: Bound<'py, PyTuple>,
    pub(crate) keywords: Option<Bound<'py, PyDict>>,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (*, kind, call, is_async, inline, decode, recover, positional, keywords,
        context, context_type, server, convert, encode, special, fail))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        kind: &str,
        call: Py<PyAny>,
        is_async: bool,
        inline: bool,
        decode: Option<Py<PyAny>>,
        recover: Option<Py<PyAny>>,
        positional: Vec<Py<PyString>>,
        keywords: Vec<Py<PyString>>,
        context: Option<(usize, Option<Py<PyString>>)>,
        context_type: Py<PyAny>,
        server: Py<PyAny>,
        convert: Py<PyAny>,
        encode: Option<Py<PyAny>>,
        special: Py<PyTuple>,
        fail: Py<PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            planned: Arc::new(SharedPlan {
                kind: foreign::call_kind(kind).map_err(|error| errors::core(py, &error))?,
                is_async,
                inline,
                objects: RwLock::new(Some(PlanObjects {
                    call,
                    decode,
                    recover,
                    positional,
                    keywords,
                    context,
                    context_type,
                    server,
                    convert,
                    encode,
                    special,
                    fail,
                })),
            }),
        })
    }

    /// Whether the handler runs on the event loop.
    #[getter]
    fn is_async(&self) -> bool {
        self.planned.is_async
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.planned.traverse(&visit)
    }

    fn __clear__(&self) {
        self.planned.clear();
    }
}

impl SharedPlan {
    /// Returns the objects, unless the garbage collector has cleared them.
    pub(crate) fn lock_objects(&self) -> PyResult<PlanObjectsGuard<'_>> {
        let guard = self
            .objects
            .read()
            .map_err(|_| errors::internal_error("a plan's lock is poisoned"))?;
        if guard.is_none() {
            return Err(errors::internal_error("the server was garbage-collected"));
        }
        Ok(PlanObjectsGuard(guard))
    }

    /// Visits the objects on behalf of the owner of the plan.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A plan that is locked for writing is being cleared, and owns nothing any more.
        let Ok(guard) = self.objects.try_read() else {
            return Ok(());
        };
        let Some(objects) = &*guard else {
            return Ok(());
        };
        visit.call(&objects.call)?;
        visit.call(&objects.decode)?;
        visit.call(&objects.recover)?;
        visit.call(&objects.context_type)?;
        visit.call(&objects.server)?;
        visit.call(&objects.convert)?;
        visit.call(&objects.encode)?;
        visit.call(&objects.special)?;
        visit.call(&objects.fail)
    }

    /// Drops the objects, unless a call is using them.
    pub(crate) fn clear(&self) {
        if let Ok(mut guard) = self.objects.try_write() {
            let taken = guard.take();
            drop(guard);
            drop(taken);
        }
    }

    /// Decodes the arguments of a call and fills the parameters.
    pub(crate) fn prepare<'py>(
        &self,
        py: Python<'py>,
        objects: &PlanObjects,
        call: &CoreCall,
        wait_mode: &WaitMode,
    ) -> PyResult<PreparedCall<'py>> {
        let decoded = match &objects.decode {
            Some(decode) => Some(decoded(py, objects, decode, call.arguments().as_bytes())?),
            None => None,
        };
        let context = match &objects.context {
            Some(_) => {
                let native = Call::new(call.context(), wait_mode.clone());
                let context_type = objects.context_type.bind(py);
                Some(context_type.call1((native, objects.server.bind(py)))?)
            }
            None => None,
        };
        Ok(PreparedCall {
            function: self.in_span(py, objects.call.bind(py), call)?,
            arguments: objects.arguments(py, decoded.as_ref(), context.as_ref())?,
            keywords: objects.keywords(py, decoded.as_ref(), context.as_ref())?,
        })
    }

    /// Returns the handler so that it runs in the span of its request, if the request has one.
    fn in_span<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, PyAny>,
        call: &CoreCall,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(number) = foreign::span_number_of_call(call) else {
            return Ok(function.clone());
        };
        let begun = foreign::begin_span(&call.context());
        let begun = begun.map(|(_, description)| PyBytes::new(py, description.as_bytes()));
        py.import("mcpline._open_telemetry")?
            .call_method1("begin_handler", (function, self.is_async, number, begun))
    }

    /// Calls the handler.
    pub(crate) fn invoke<'py>(
        &self,
        py: Python<'py>,
        objects: &PlanObjects,
        call: &CoreCall,
        wait_mode: &WaitMode,
    ) -> PyResult<Bound<'py, PyAny>> {
        let prepared = self.prepare(py, objects, call, wait_mode)?;
        prepared
            .function
            .call(prepared.arguments, prepared.keywords.as_ref())
    }
}

/// A read lock on a plan's objects.
pub(crate) struct PlanObjectsGuard<'a>(RwLockReadGuard<'a, Option<PlanObjects>>);

impl std::ops::Deref for PlanObjectsGuard<'_> {
    type Target = PlanObjects;

    fn deref(&self) -> &PlanObjects {
        // `SharedPlan::lock_objects` creates a guard only if there are objects, and the lock prevents their removal.
        self.0
            .as_ref()
            .expect("a plan that is read has its objects")
    }
}

impl PlanObjects {
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        decoded: Option<&Bound<'py, PyAny>>,
        context: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let at = match &self.context {
            Some((at, None)) => Some(*at),
            _ => None,
        };
        let mut values = Vec::with_capacity(self.positional.len() + 1);
        for name in &self.positional {
            if at == Some(values.len()) {
                values.extend(context.cloned());
            }
            values.push(field(decoded, name.bind(py))?);
        }
        if at == Some(values.len()) {
            values.extend(context.cloned());
        }
        PyTuple::new(py, values)
    }

    fn keywords<'py>(
        &self,
        py: Python<'py>,
        decoded: Option<&Bound<'py, PyAny>>,
        context: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let keyword = match &self.context {
            Some((_, Some(keyword))) => Some(keyword),
            _ => None,
        };
        if self.keywords.is_empty() && keyword.is_none() {
            return Ok(None);
        }
        let keywords = PyDict::new(py);
        for name in &self.keywords {
            keywords.set_item(name, field(decoded, name.bind(py))?)?;
        }
        if let Some(keyword) = keyword {
            keywords.set_item(keyword, context)?;
        }
        Ok(Some(keywords))
    }
}

fn field<'py>(
    decoded: Option<&Bound<'py, PyAny>>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    match decoded {
        Some(decoded) => decoded.getattr(name),
        None => Err(errors::internal_error(
            "a handler with parameters has no decoder",
        )),
    }
}

fn decoded<'py>(
    py: Python<'py>,
    objects: &PlanObjects,
    decode: &Py<PyAny>,
    arguments: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, arguments);
    decode
        .bind(py)
        .call1((&bytes,))
        .or_else(|error| match &objects.recover {
            Some(recover) => recover.bind(py).call1((bytes, error.value(py))),
            None => Err(error),
        })
}
