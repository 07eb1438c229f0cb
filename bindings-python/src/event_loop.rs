//! Runs calls and other events on an asyncio event loop.
//!
//! The core's queue gathers calls and wakes the loop once, through a descriptor that the loop watches. The loop then
//! calls [`Loop::drain`], which starts every queued call under a parked task ([`ReusableTask`]), and hands over all
//! results at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline::foreign::{CallQueue, IoAction, IoThreadQueue, MAX_WAITING_CALLS};
use mcpline::middleware::MiddlewareOutcome;
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::wire::Raw;
use mcpline::{Call as CoreCall, InputRequestMethod};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::asyncio_internals::AsyncioInternals;
use crate::errors;
use crate::http_app::PartialResponse;
use crate::outcome::{abandon, reply_here};
use crate::plan::SharedPlan;
use crate::reusable_task::ReusableTask;
use crate::wakeup_fd::WakeupFd;

/// Number of calls that are taken from the queue at once.
const BATCH: usize = 32;
/// Maximum duration of a drain before the loop's other tasks get their turn.
const BUDGET: Duration = Duration::from_millis(2);
/// How long a result may wait for the results of the calls after it.
const MAX_RESULT_DELAY: Duration = Duration::from_micros(500);
/// Maximum number of parked tasks: about as many calls as are ever suspended and resumed at once.
pub(crate) const PARKED: usize = 128;

/// Something that must dispatch_event on the event loop.
pub(crate) enum Event {
    /// Sets the result of a future.
    Resolve(Py<PyAny>, FutureValue),
    /// Cancels the call with this number in this slot.
    Cancel(Py<ReusableTask>, u64),
}

/// The value that a future resolves to.
pub(crate) enum FutureValue {
    /// The answer to an input request of this method, as JSON.
    Answer(Result<Raw, InputRequestError>, InputRequestMethod),
    /// The outcome of a request that middleware passed on; `None` if the request has ended.
    Outcome(Option<MiddlewareOutcome>),
    /// The end of serving.
    Ended(Option<Arc<mcpline::Error>>),
    /// A message or a piece of a body; `None` after the last one.
    Chunk(Option<Bytes>),
    /// The available part of an HTTP response.
    Response(PartialResponse),
    /// Whether the core is waiting for the next piece of a request's body.
    Wanted(bool),
}

/// State that the core's threads and the event loop share. It may outlive a loop.
pub(crate) struct Hub {
    calls: OnceLock<CallQueue<Arc<SharedPlan>>>,
    events: Mutex<Vec<Event>>,
    wake: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    io_queue: Mutex<Option<IoThreadQueue>>,
}

impl Hub {
    pub(crate) fn new() -> Arc<Self> {
        let hub = Arc::new(Self {
            calls: OnceLock::new(),
            events: Mutex::default(),
            wake: Mutex::default(),
            io_queue: Mutex::default(),
        });
        let weak = Arc::downgrade(&hub);
        let queue = CallQueue::new(MAX_WAITING_CALLS, move || {
            if let Some(hub) = weak.upgrade() {
                hub.wake();
            }
        });
        // Set only here.
        let _ = hub.calls.set(queue);
        hub
    }

    /// The queue of calls.
    pub(crate) fn calls(&self) -> &CallQueue<Arc<SharedPlan>> {
        // `Hub::new` sets it before the hub is shared.
        self.calls.get().expect("a hub has its queue")
    }

    /// Sets the queue that receives results from now on.
    pub(crate) fn set_io_queue(&self, io_queue: Option<IoThreadQueue>) {
        *lock(&self.io_queue) = io_queue;
    }

    pub(crate) fn io_queue(&self) -> Option<IoThreadQueue> {
        lock(&self.io_queue).clone()
    }

    /// Hands over one action at once.
    pub(crate) fn push(&self, py: Python<'_>, action: IoAction) -> PyResult<()> {
        match self.io_queue() {
            Some(io_queue) => {
                io_queue.push(action);
                Ok(())
            }
            None => Err(errors::closed(py, "the server has ended")),
        }
    }

    /// Posts an event to the loop. From any thread.
    pub(crate) fn post(&self, event: Event) {
        let first = {
            let mut events = lock(&self.events);
            events.push(event);
            events.len() == 1
        };
        if first {
            self.wake();
        }
    }

    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.wake).is_some()
    }

    /// Replaces the function that is called when there is something to drain, unless the loop is gone.
    fn set_wake(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        if let Some(attached) = &mut *lock(&self.wake) {
            *attached = wake;
        }
    }

    fn wake(&self) {
        let wake = lock(&self.wake).clone();
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// An event loop that runs the async handlers of one server.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Loop {
    pub(crate) hub: Arc<Hub>,
    wake: Arc<WakeupFd>,
    pub(crate) objects: LoopObjects,
    draining: AtomicBool,
    flush_scheduled: AtomicBool,
    closed: AtomicBool,
    /// Whether the loop's thread drives the I/O, so that no other thread must be woken.
    driven: AtomicBool,
    pending: Mutex<Vec<IoAction>>,
    parked: Mutex<Vec<Py<ReusableTask>>>,
    /// Tasks that were just parked: not reused before it is certain that no other code references them.
    fresh: Mutex<Vec<Py<ReusableTask>>>,
}

/// Python objects that every call on a loop needs.
pub(crate) struct LoopObjects {
    pub(crate) event_loop: Py<PyAny>,
    /// Runs the calls of one slot, one after another.
    drive: Py<PyAny>,
    /// Creates and starts a task for the coroutine that `drive` returns.
    start: Py<PyAny>,
    /// The context in which calls begin.
    base: Py<PyAny>,
    /// `None`: tasks are not parked, and each call runs in a new one.
    pub(crate) internals: Option<Py<AsyncioInternals>>,
    pub(crate) cancelled: Py<PyAny>,
}

#[pymethods]
impl Loop {
    /// Attaches a server's calls to the running loop. The loop must watch `fileno()` and call `drain()`; otherwise
    /// `notify` is called, from another thread, whenever there is something to drain.
    ///
    /// `start` creates a task for a coroutine and starts it, at once or in the loop's next iteration.
    #[staticmethod]
    #[pyo3(signature = (server, event_loop, drive, start, base, internals, cancelled, notify))]
    #[expect(
        clippy::too_many_arguments,
        reason = "called in one place, by keywords"
    )]
    fn attach(
        py: Python<'_>,
        server: &crate::server::Server,
        event_loop: Py<PyAny>,
        drive: Py<PyAny>,
        start: Py<PyAny>,
        base: Py<PyAny>,
        internals: Option<Py<AsyncioInternals>>,
        cancelled: Py<PyAny>,
        notify: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let objects = LoopObjects {
            event_loop,
            drive,
            start,
            base,
            internals,
            cancelled,
        };
        Self::make(py, server.hub().clone(), objects, notify)
    }

    /// A loop without a server, for the self-test of `mcpline._asyncio_internals`.
    #[staticmethod]
    fn for_self_test(
        py: Python<'_>,
        event_loop: Py<PyAny>,
        drive: Py<PyAny>,
        start: Py<PyAny>,
        base: Py<PyAny>,
        internals: Py<AsyncioInternals>,
        cancelled: Py<PyAny>,
    ) -> PyResult<Self> {
        let objects = LoopObjects {
            event_loop,
            drive,
            start,
            base,
            internals: Some(internals),
            cancelled,
        };
        Self::make(py, Hub::new(), objects, None)
    }

    /// Starts or steps a task like a call, but without one. For the self-test.
    fn start_empty_call(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().start_next(slf, None)
    }

    /// The descriptor that becomes readable when there is something to drain.
    fn fileno(&self) -> i64 {
        self.wake.reader()
    }

    /// Processes everything that was posted since the last drain. Called by the loop.
    fn drain(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        if !this.driven.load(Ordering::Relaxed) {
            this.wake.clear();
        }
        this.draining.store(true, Ordering::Relaxed);
        let drained = this.drain_all(slf);
        this.draining.store(false, Ordering::Relaxed);
        this.hand_over();
        drained
    }

    /// Hands over new results. Called by the loop, at most once per iteration.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        this.flush_scheduled.store(false, Ordering::Relaxed);
        this.hand_over();
        this.park_fresh(slf.py())
    }

    /// Hands over results immediately, for callers that are about to end their receiver.
    #[pyo3(name = "hand_over")]
    fn hand_over_now(&self) {
        self.hand_over();
    }

    /// Number of parked tasks.
    #[getter]
    fn parked(&self) -> usize {
        lock(&self.parked).len() + lock(&self.fresh).len()
    }

    /// Detaches the server from the loop and ends the parked tasks. Called on the loop.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        if this.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        *lock(&this.hub.wake) = None;
        // Futures that are still awaited get the results that have arrived for them.
        let events = std::mem::take(&mut *lock(&this.hub.events));
        for event in events {
            this.dispatch_event(slf.py(), event)?;
        }
        this.hand_over();
        let slots: Vec<_> = lock(&this.parked)
            .drain(..)
            .chain(lock(&this.fresh).drain(..))
            .collect();
        for slot in slots {
            slot.bind(slf.py()).get().retire_soon(slf.py())?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.objects.event_loop)?;
        visit.call(&self.objects.drive)?;
        visit.call(&self.objects.start)?;
        visit.call(&self.objects.base)?;
        visit.call(&self.objects.internals)?;
        visit.call(&self.objects.cancelled)?;
        for slots in [&self.parked, &self.fresh] {
            if let Ok(slots) = slots.try_lock() {
                for slot in &*slots {
                    visit.call(slot)?;
                }
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        for slots in [&self.parked, &self.fresh] {
            let taken = match slots.try_lock() {
                Ok(mut slots) => std::mem::take(&mut *slots),
                Err(_) => continue,
            };
            drop(taken);
        }
    }
}

impl Loop {
    fn make(
        py: Python<'_>,
        hub: Arc<Hub>,
        objects: LoopObjects,
        notify: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let wake = WakeupFd::new().map_err(|error| errors::transport(py, &error.to_string()))?;
        let wake = Arc::new(wake);
        {
            let mut attached = lock(&hub.wake);
            if attached.is_some() {
                return Err(errors::usage_error(
                    py,
                    "the server's handlers run on another event loop already: create a server for each event loop",
                ));
            }
            *attached = Some(match notify {
                None => {
                    let wake = wake.clone();
                    Arc::new(move || wake.wake())
                }
                Some(notify) => notifier(notify),
            });
        }
        // Calls may be waiting already: the core may serve before there is a loop.
        hub.wake();
        Ok(Self {
            hub,
            wake,
            objects,
            draining: AtomicBool::new(false),
            flush_scheduled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            driven: AtomicBool::new(false),
            pending: Mutex::default(),
            parked: Mutex::default(),
            fresh: Mutex::default(),
        })
    }

    /// Records that the loop's thread drives the I/O from now on and is woken by `wake`; or, without it, no longer
    /// drives.
    pub(crate) fn set_driven(&self, wake: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.driven.store(wake.is_some(), Ordering::Relaxed);
        let own = self.wake.clone();
        self.hub
            .set_wake(wake.unwrap_or_else(|| Arc::new(move || own.wake())));
        // Events that were signalled in the previous way must be signalled in the new one.
        self.wake.clear();
        self.hub.wake();
        self.hand_over();
    }

    /// Drains within the step of another task, and replies at once to the calls that have ended. Within the runtime's
    /// context.
    pub(crate) fn drain_within(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let was_draining = this.draining.swap(true, Ordering::Relaxed);
        let drained = match &this.objects.internals {
            Some(internals) => {
                let event_loop = this.objects.event_loop.bind(py);
                let drain = || this.drain_all(slf);
                internals.get().without_current_task(event_loop, drain)
            }
            // A new task starts in the loop's next iteration, or replaces the current task while it starts.
            None => Ok(this.drain_all(slf)),
        };
        this.draining.store(was_draining, Ordering::Relaxed);
        let ended = std::mem::take(&mut *lock(&this.pending));
        for action in ended {
            action.run();
        }
        drained?
    }

    fn drain_all(&self, slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let mut failed = None;
        let events = std::mem::take(&mut *lock(&self.hub.events));
        for event in events {
            if let Err(error) = self.dispatch_event(py, event) {
                failed.get_or_insert(error);
            }
        }
        let began = Instant::now();
        let mut handed = began;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            self.hub.calls().drain(BATCH, &mut batch);
            if batch.is_empty() {
                break;
            }
            for (planned, call) in batch.drain(..) {
                if let Err(error) = self.start(slf, planned, call) {
                    failed.get_or_insert(error);
                }
                let now = Instant::now();
                if now - handed > MAX_RESULT_DELAY {
                    self.hand_over();
                    handed = now;
                }
            }
            let budget = match self.driven.load(Ordering::Relaxed) {
                // Nothing is written meanwhile.
                true => MAX_RESULT_DELAY,
                false => BUDGET,
            };
            if handed - began > budget || began.elapsed() > budget {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Starts a call and runs it until it waits for something.
    fn start(
        &self,
        slf: &Bound<'_, Self>,
        planned: Arc<SharedPlan>,
        call: CoreCall,
    ) -> PyResult<()> {
        if call.context().is_cancelled() {
            abandon(call);
            return Ok(());
        }
        self.start_next(slf, Some((planned, call)))
    }

    fn start_next(
        &self,
        slf: &Bound<'_, Self>,
        next: Option<(Arc<SharedPlan>, CoreCall)>,
    ) -> PyResult<()> {
        let py = slf.py();
        match self.take_parked(py) {
            Some(slot) => {
                let slot = slot.bind(py);
                let stepped = slot.get().resume(slot, next);
                self.park_fresh(py)?;
                stepped
            }
            None => self.start_task(slf, next),
        }
    }

    fn take_parked(&self, py: Python<'_>) -> Option<Py<ReusableTask>> {
        let mut parked = lock(&self.parked);
        while let Some(slot) = parked.pop() {
            if slot.bind(py).get().is_unshared(py) {
                return Some(slot);
            }
        }
        None
    }

    /// Starts a call in a new task, which may be parked when the call has ended.
    fn start_task(
        &self,
        slf: &Bound<'_, Self>,
        next: Option<(Arc<SharedPlan>, CoreCall)>,
    ) -> PyResult<()> {
        let py = slf.py();
        let slot = Bound::new(py, ReusableTask::new(slf.clone().unbind(), next))?;
        let coroutine = self.objects.drive.bind(py).call1((&slot,))?;
        // A task starts with a copy of the context in which it is created.
        let base = self.objects.base.call_method0(py, intern!(py, "copy"))?;
        let start = self.objects.start.bind(py);
        let task = base
            .bind(py)
            .call_method1(intern!(py, "run"), (start, coroutine))?;
        slot.get().set_task(&slot, task);
        Ok(())
    }

    /// Whether a task may be parked rather than ended: there is room, and no other loop has replaced this one.
    pub(crate) fn may_park(&self) -> bool {
        self.objects.internals.is_some()
            && !self.closed.load(Ordering::Relaxed)
            && lock(&self.parked).len() + lock(&self.fresh).len() < PARKED
    }

    /// Adds a slot whose task has parked.
    pub(crate) fn has_parked(&self, slot: Py<ReusableTask>) {
        lock(&self.fresh).push(slot);
    }

    /// Keeps the newly parked tasks that no other code references, and ends the others.
    fn park_fresh(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            let Some(slot) = lock(&self.fresh).pop() else {
                return Ok(());
            };
            let state = slot.bind(py).get();
            if state.is_unshared(py) {
                lock(&self.parked).push(slot);
            } else {
                state.retire(py)?;
            }
        }
    }

    /// Whether a context is unchanged from the one in which calls begin.
    pub(crate) fn is_base_context(&self, context: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = context.py();
        let base = self.objects.base.bind(py);
        let length = context.len()?;
        if length != base.len()? {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        for variable in base.try_iter()? {
            let variable = variable?;
            let own = base.get_item(&variable)?;
            let now = context.call_method1(intern!(py, "get"), (variable,))?;
            if !now.is(&own) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Accepts the result of a call.
    pub(crate) fn complete(&self, slf: &Bound<'_, Self>, action: IoAction) -> PyResult<()> {
        if self.driven.load(Ordering::Relaxed)
            && let Some(io_queue) = self.hub.io_queue()
        {
            // The thread that drives finds it here, even if the next handler blocks.
            io_queue.push_and_wake_other(action);
        } else {
            lock(&self.pending).push(action);
        }
        self.schedule_flush(slf)
    }

    /// Schedules `flush` for this iteration of the loop, unless `drain` is about to do the same.
    ///
    /// # Errors
    ///
    /// What `call_soon` raises: also the exception of a signal handler, which may run in it. Results are handed over.
    pub(crate) fn schedule_flush(&self, slf: &Bound<'_, Self>) -> PyResult<()> {
        if self.draining.load(Ordering::Relaxed)
            || self.flush_scheduled.swap(true, Ordering::Relaxed)
        {
            return Ok(());
        }
        let py = slf.py();
        let event_loop = self.objects.event_loop.bind(py);
        let scheduled = slf
            .getattr(intern!(py, "flush"))
            .and_then(|flush| event_loop.call_method1(intern!(py, "call_soon"), (flush,)));
        scheduled.map(drop).inspect_err(|_| {
            // The loop may not flush, and later results must not wait for that.
            self.flush_scheduled.store(false, Ordering::Relaxed);
            self.hand_over();
        })
    }

    fn hand_over(&self) {
        let mut pending = lock(&self.pending);
        if pending.is_empty() {
            return;
        }
        match self.hub.io_queue() {
            Some(io_queue) => io_queue.push_all(&mut pending),
            // The server has ended, so no request is waiting for a response.
            None => {
                let left = std::mem::take(&mut *pending);
                drop(pending);
                reply_here(left);
            }
        }
    }

    fn dispatch_event(&self, py: Python<'_>, event: Event) -> PyResult<()> {
        match event {
            Event::Cancel(slot, number) => slot.bind(py).get().cancel_call(py, number),
            Event::Resolve(future, value) => resolve(py, future.bind(py), value),
        }
    }
}

/// Sets the result of a future, unless it has one or was cancelled.
fn resolve(py: Python<'_>, future: &Bound<'_, PyAny>, value: FutureValue) -> PyResult<()> {
    if future.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    let result = match value {
        FutureValue::Answer(Ok(answer), _) => Ok(PyBytes::new(py, answer.as_bytes()).into_any()),
        FutureValue::Answer(Err(error), method) => {
            Err(errors::input_request(py, &error, method.as_str()))
        }
        FutureValue::Outcome(Some(Ok(result))) => {
            Ok(PyBytes::new(py, result.as_bytes()).into_any())
        }
        FutureValue::Outcome(Some(Err(error))) => Err(errors::rpc(py, &error)),
        FutureValue::Outcome(None) => {
            return future.call_method0(intern!(py, "cancel")).map(drop);
        }
        FutureValue::Ended(None) | FutureValue::Chunk(None) => Ok(py.None().into_bound(py)),
        FutureValue::Ended(Some(error)) => Err(errors::core(py, &error)),
        FutureValue::Chunk(Some(chunk)) => Ok(PyBytes::new(py, &chunk).into_any()),
        FutureValue::Response(answer) => answer.into_python(py),
        FutureValue::Wanted(wanted) => Ok(PyBool::new(py, wanted).to_owned().into_any()),
    };
    match result {
        Ok(result) => future.call_method1(intern!(py, "set_result"), (result,))?,
        Err(error) => future.call_method1(intern!(py, "set_exception"), (error.value(py),))?,
    };
    Ok(())
}

/// Calls `contextvars.copy_context()`.
pub(crate) fn copy_context(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static COPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    crate::imported(py, &COPY, "contextvars", "copy_context")?.call0()
}

/// Starts a thread that calls `notify`, for loops that cannot watch descriptors, so that the I/O thread never waits for
/// Python.
pub(crate) fn notifier(notify: Py<PyAny>) -> Arc<dyn Fn() + Send + Sync> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(1);
    let run = move || {
        while receiver.recv().is_ok() {
            // The call fails if the loop is closed; then there is nothing to drain.
            let _ = Python::attach(|py| notify.call0(py).map(drop));
        }
        Python::attach(|_| drop(notify));
    };
    // Without the thread nothing is drained: if the system has no thread left, calls time out.
    let _ = std::thread::Builder::new()
        .name("mcpline-wake".into())
        .spawn(run);
    Arc::new(move || {
        // If the channel is full, the thread is about to notify already.
        let _ = sender.try_send(());
    })
}

/// Locks data that stays valid after a panic: lists and flags.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the arguments of the call that steps a task.
pub(crate) fn step_arguments<'py>(
    py: Python<'py>,
    wakeup: &Bound<'py, PyAny>,
    slot: &Bound<'py, ReusableTask>,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [wakeup, slot.as_any()])
}
