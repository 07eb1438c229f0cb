//! A task that runs one call after another and is parked in between.
//!
//! Creating a task costs more than running a short handler in it. Therefore a task whose call has ended awaits its
//! slot, which acts as its future. The slot keeps the callback that wakes the task, and the next call uses it to step
//! the task manually, in the task's context. The call sees a real task: `asyncio.timeout`, task groups,
//! `current_task()` and anyio work. A task is reused only if no other code references it or waits for its end, and its
//! context is unchanged. Without [`crate::asyncio_internals::AsyncioInternals`], a task runs one call and ends.

use std::sync::{Arc, Mutex};

use mcpline::Call as CoreCall;
use mcpline::foreign::IoAction;
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::asyncio_internals;
use crate::context::WaitMode;
use crate::event_loop::{Event, Loop, lock, step_arguments};
use crate::plan::SharedPlan;

/// The future that a parked task awaits, and the call that it runs.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct ReusableTask {
    event_loop: Py<Loop>,
    state: Mutex<State>,
}

struct State {
    /// The call that the next step begins.
    next: Option<(Arc<SharedPlan>, CoreCall)>,
    /// The running call.
    current: Option<(Arc<SharedPlan>, CoreCall)>,
    /// Number of calls that have begun.
    number: u64,
    task: Option<Py<PyAny>>,
    /// The task's context and its `run`.
    context: Option<(Py<PyAny>, Py<PyAny>)>,
    /// Arguments for `run` to step the parked task: its wakeup callback, and the slot.
    step: Option<Py<PyTuple>>,
    /// Whether asyncio lists it among all tasks.
    registered: bool,
    /// Whether the task must end and not be parked again.
    retired: bool,
    /// Whether the task was cancelled while it was parked.
    cancelled: bool,
    yielded: bool,
}

impl ReusableTask {
    /// Creates a slot whose task begins with this call; in the self-test, without one.
    pub(crate) fn new(event_loop: Py<Loop>, next: Option<(Arc<SharedPlan>, CoreCall)>) -> Self {
        Self {
            event_loop,
            state: Mutex::new(State {
                next,
                current: None,
                number: 0,
                task: None,
                context: None,
                step: None,
                registered: true,
                retired: false,
                cancelled: false,
                yielded: false,
            }),
        }
    }

    /// Sets the task of the slot. Its call has begun already if the task started eagerly.
    pub(crate) fn set_task(&self, slf: &Bound<'_, Self>, task: Bound<'_, PyAny>) {
        let mut state = lock(&self.state);
        state.task = Some(task.unbind());
        if let Some((_, call)) = state.current.as_ref().or(state.next.as_ref()) {
            let context = call.context();
            drop(state);
            on_cancel(slf, &context, 1);
        }
    }

    /// Runs a call in the parked task until it waits for something.
    pub(crate) fn resume(
        &self,
        slf: &Bound<'_, Self>,
        next: Option<(Arc<SharedPlan>, CoreCall)>,
    ) -> PyResult<()> {
        let py = slf.py();
        lock(&self.state).next = next;
        let stepped = self.step(py);
        let suspended = {
            let state = lock(&self.state);
            state
                .current
                .as_ref()
                .map(|(_, call)| (call.context(), state.number))
        };
        if let Some((context, number)) = suspended {
            on_cancel(slf, &context, number);
            self.register(py)?;
        }
        stepped
    }

    /// Ends the parked task. Must not be called within another task.
    pub(crate) fn retire(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.state).retired = true;
        self.step(py)
    }

    /// Ends the parked task in the loop's next iteration.
    pub(crate) fn retire_soon(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.state).retired = true;
        let Some((run, arguments)) = self.take_step(py) else {
            return Ok(());
        };
        let arguments = arguments.bind(py);
        self.event_loop
            .get()
            .objects
            .event_loop
            .bind(py)
            .call_method1(
                intern!(py, "call_soon"),
                (run, arguments.get_item(0)?, arguments.get_item(1)?),
            )
            .map(drop)
    }

    /// Whether no other code references the parked task or waits for its end.
    pub(crate) fn is_unshared(&self, py: Python<'_>) -> bool {
        let state = lock(&self.state);
        let (Some(task), false) = (&state.task, state.retired) else {
            return false;
        };
        asyncio_internals::is_unshared(task.bind(py))
    }

    /// Cancels the call with this number if it is still running.
    pub(crate) fn cancel_call(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let task = {
            let state = lock(&self.state);
            let begun = state.current.is_some() && state.number == number;
            let waiting = state.next.is_some() && state.number + 1 == number;
            match &state.task {
                Some(task) if begun || waiting => task.clone_ref(py),
                _ => return Ok(()),
            }
        };
        task.call_method0(py, intern!(py, "cancel")).map(drop)
    }

    /// Steps the parked task.
    fn step(&self, py: Python<'_>) -> PyResult<()> {
        let Some((run, arguments)) = self.take_step(py) else {
            return Ok(());
        };
        run.bind(py).call1(arguments.bind(py)).map(drop)
    }

    fn take_step(&self, py: Python<'_>) -> Option<(Py<PyAny>, Py<PyTuple>)> {
        let mut state = lock(&self.state);
        let arguments = state.step.take()?;
        let (_, run) = state.context.as_ref()?;
        Some((run.clone_ref(py), arguments))
    }

    /// Adds the task to asyncio's list while its call is suspended.
    fn register(&self, py: Python<'_>) -> PyResult<()> {
        let task = {
            let mut state = lock(&self.state);
            if std::mem::replace(&mut state.registered, true) {
                return Ok(());
            }
            state.task.as_ref().map(|task| task.clone_ref(py))
        };
        match (&self.event_loop.get().objects.internals, task) {
            (Some(internals), Some(task)) => internals.get().register(task.bind(py)),
            _ => Ok(()),
        }
    }

    fn unregister(&self, py: Python<'_>) -> PyResult<()> {
        let task = {
            let mut state = lock(&self.state);
            if !std::mem::replace(&mut state.registered, false) {
                return Ok(());
            }
            state.task.as_ref().map(|task| task.clone_ref(py))
        };
        match (&self.event_loop.get().objects.internals, task) {
            (Some(internals), Some(task)) => internals.get().unregister(task.bind(py)),
            _ => Ok(()),
        }
    }

    /// Whether the task, whose call has ended, is as good as new.
    fn is_clean(&self, py: Python<'_>) -> PyResult<bool> {
        let (task, context, suspended) = {
            let state = lock(&self.state);
            let task = match &state.task {
                Some(task) if !state.retired => task.clone_ref(py),
                _ => return Ok(false),
            };
            let context = state.context.as_ref().map(|(own, _)| own.clone_ref(py));
            (task, context, state.registered)
        };
        let task = task.bind(py);
        let Some(internals) = &self.event_loop.get().objects.internals else {
            return Ok(false);
        };
        // A done callback that the handler added must run now that its call has ended, so the task has to end.
        if !internals.get().can_park(task) || asyncio_internals::has_callbacks(task)? {
            return Ok(false);
        }
        // If a task that was never suspended was cancelled, it gets the cancellation when it parks.
        if suspended
            && let Some(cancelling) = task.getattr_opt(intern!(py, "cancelling"))?
            && cancelling.call0()?.is_truthy()?
        {
            return Ok(false);
        }
        let context = match context {
            Some(context) => context.into_bound(py),
            None => crate::event_loop::copy_context(py)?,
        };
        self.event_loop.get().is_base_context(&context)
    }
}

#[pymethods]
impl ReusableTask {
    /// Begins the next call. Returns the awaitable of the handler.
    fn begin_call<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let Some((planned, call)) = lock(&this.state).next.take() else {
            // There is no further call: `drive` ends.
            return Err(PyStopAsyncIteration::new_err(()));
        };
        let wait_mode = WaitMode::Loop(this.event_loop.get().hub.clone());
        let begun = planned
            .lock_objects()
            .and_then(|objects| planned.invoke(py, &objects, &call, &wait_mode));
        let mut state = lock(&this.state);
        state.current = Some((planned, call));
        state.number += 1;
        begun
    }

    /// Ends the call with the return value of the handler.
    fn reply(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some((planned, call)) = lock(&self.state).current.take() else {
            return Ok(());
        };
        let outcome = planned.outcome(py, || call.name(), value);
        let event_loop = self.event_loop.bind(py);
        event_loop
            .get()
            .complete(event_loop, IoAction::Reply(call, outcome))
    }

    /// Ends the call with the exception of the handler.
    fn reply_error(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        let Some((planned, call)) = lock(&self.state).current.take() else {
            return Ok(());
        };
        let outcome = Err(planned.failure(py, &PyErr::from_value(error)));
        let event_loop = self.event_loop.bind(py);
        event_loop
            .get()
            .complete(event_loop, IoAction::Reply(call, outcome))
    }

    /// Whether the task should await the slot, to be reused, rather than end.
    fn should_park(&self, py: Python<'_>) -> bool {
        // A task that cannot be examined is not reused.
        self.event_loop.get().may_park() && self.is_clean(py).unwrap_or(false)
    }

    // The interface that a task expects of a future

    #[getter(_asyncio_future_blocking)]
    fn blocking(&self) -> bool {
        lock(&self.state).yielded
    }

    #[setter(_asyncio_future_blocking)]
    #[expect(clippy::unused_self, reason = "a setter has one")]
    fn set_blocking(&self, _blocking: &Bound<'_, PyBool>) {}

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.get().objects.event_loop.clone_ref(py)
    }

    /// Stores the callback that wakes the task: now the task is parked.
    #[pyo3(signature = (callback, *, context=None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: &Bound<'_, PyAny>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let context = match context {
            Some(context) => context.clone(),
            None => crate::event_loop::copy_context(py)?,
        };
        let arguments = step_arguments(py, callback, slf)?.unbind();
        {
            let mut state = lock(&this.state);
            if state
                .context
                .as_ref()
                .is_none_or(|(own, _)| !own.is(&context))
            {
                let run = context.getattr(intern!(py, "run"))?.unbind();
                state.context = Some((context.unbind(), run));
            }
            state.step = Some(arguments);
        }
        this.unregister(py)?;
        let event_loop = this.event_loop.bind(py);
        event_loop.get().has_parked(slf.clone().unbind());
        event_loop.get().schedule_flush(event_loop)
    }

    /// Ends the parked task, as asyncio expects of tasks when a loop is closed.
    #[pyo3(signature = (msg=None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let _ = msg;
        let py = slf.py();
        let this = slf.get();
        lock(&this.state).cancelled = true;
        this.retire_soon(py)?;
        Ok(true)
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        if lock(&self.state).cancelled {
            let error = self.event_loop.get().objects.cancelled.call0(py)?;
            return Err(PyErr::from_value(error.into_bound(py)));
        }
        Ok(())
    }

    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        lock(&slf.get().state).yielded = false;
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(slf: Bound<'_, Self>) -> Option<Bound<'_, Self>> {
        let first = !std::mem::replace(&mut lock(&slf.get().state).yielded, true);
        first.then_some(slf)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        visit.call(&state.task)?;
        if let Some((context, run)) = &state.context {
            visit.call(context)?;
            visit.call(run)?;
        }
        visit.call(&state.step)
    }

    fn __clear__(&self) {
        let taken = match self.state.try_lock() {
            Ok(mut state) => (state.task.take(), state.context.take(), state.step.take()),
            Err(_) => return,
        };
        drop(taken);
    }
}

/// Cancels the call on the loop when its request is cancelled.
fn on_cancel(slf: &Bound<'_, ReusableTask>, context: &mcpline::Context, number: u64) {
    let hub = slf.get().event_loop.get().hub.clone();
    let slot = slf.clone().unbind();
    context.on_cancel(move || hub.post(Event::Cancel(slot, number)));
}
