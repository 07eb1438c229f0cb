//! Undocumented parts of asyncio and CPython: the native half of `mcpline._asyncio_internals`, which lists the assumptions.
//!
//! `_asyncio_internals` creates an [`AsyncioInternals`] only if its self-test confirms all of them on the running interpreter.
//! Without one, [`crate::reusable_task`] parks no tasks, and each call runs in a new one.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};

/// References to a parked task that are not the user's: those of the slot and of the callback that steps the task.
const OWN_REFERENCES: isize = 2;

/// The internals for parking asyncio's tasks and stepping them manually.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct AsyncioInternals {
    /// asyncio's C implementation, the only type whose tasks are parked.
    task: Py<PyAny>,
    register: Py<PyAny>,
    unregister: Py<PyAny>,
    current: Py<PyAny>,
    enter: Py<PyAny>,
    leave: Py<PyAny>,
}

#[pymethods]
impl AsyncioInternals {
    /// `register` and `unregister` take a task, and change what `all_tasks` returns. `current` takes a loop; `enter`
    /// and `leave` take a loop and a task, and set its current task.
    #[new]
    fn new(
        task: Py<PyAny>,
        register: Py<PyAny>,
        unregister: Py<PyAny>,
        current: Py<PyAny>,
        enter: Py<PyAny>,
        leave: Py<PyAny>,
    ) -> Self {
        Self {
            task,
            register,
            unregister,
            current,
            enter,
            leave,
        }
    }

    /// Calls `step` while the loop has no current task.
    #[pyo3(name = "without_current_task")]
    fn call_without_current_task(
        &self,
        event_loop: &Bound<'_, PyAny>,
        step: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.without_current_task(event_loop, || step.call0().map(drop))?
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)?;
        visit.call(&self.register)?;
        visit.call(&self.unregister)?;
        visit.call(&self.current)?;
        visit.call(&self.enter)?;
        visit.call(&self.leave)
    }
}

impl AsyncioInternals {
    /// Whether tasks of this type can be parked.
    pub(crate) fn can_park(&self, task: &Bound<'_, PyAny>) -> bool {
        task.get_type().is(&self.task)
    }

    /// Adds a task to those that `asyncio.all_tasks` returns.
    pub(crate) fn register(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        self.register.bind(task.py()).call1((task,)).map(drop)
    }

    /// Removes a task from those that `asyncio.all_tasks` returns.
    pub(crate) fn unregister(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        self.unregister.bind(task.py()).call1((task,)).map(drop)
    }

    /// Calls `step` while the loop has no current task, so that it can step tasks within the step of another one.
    pub(crate) fn without_current_task<T>(
        &self,
        event_loop: &Bound<'_, PyAny>,
        step: impl FnOnce() -> T,
    ) -> PyResult<T> {
        let py = event_loop.py();
        let current = self.current.bind(py).call1((event_loop,))?;
        if current.is_none() {
            return Ok(step());
        }
        self.leave.call1(py, (event_loop, &current))?;
        let done = step();
        self.enter.call1(py, (event_loop, &current))?;
        Ok(done)
    }
}

/// Whether no user code references a parked task.
pub(crate) fn is_unshared(task: &Bound<'_, PyAny>) -> bool {
    // SAFETY: `task` keeps it alive.
    let references = unsafe { pyo3::ffi::Py_REFCNT(task.as_ptr()) };
    references <= OWN_REFERENCES
}

/// Whether a task has done callbacks.
pub(crate) fn has_callbacks(task: &Bound<'_, PyAny>) -> PyResult<bool> {
    let callbacks = task.getattr(intern!(task.py(), "_callbacks"))?;
    Ok(!callbacks.is_none())
}
