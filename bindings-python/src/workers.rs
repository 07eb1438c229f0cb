//! Runs sync handlers on a pool of threads that grows with demand. `mcpline::foreign::workers` decides which call is
//! next and how many threads there are; this module makes the calls.
//!
//! The threads are Python threads that run `mcpline._workers.work`, so that a handler has no native frame below it: if
//! the interpreter ends while a handler runs, its thread ends like any daemon thread. Only such threads can start
//! others.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpline::Call as CoreCall;
use mcpline::foreign::workers::{
    self, Limits, MAX_SPARE_WORKERS, WorkerPool, WorkerStep, WorkerThreadStarter,
};
use mcpline::foreign::{self, IoAction};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::context::WaitMode;
use crate::event_loop::lock;
use crate::outcome::abandon;
use crate::plan::SharedPlan;

/// Default of the maximum number of handlers that run at once. Blocking handlers mostly wait, and 64 threads cost
/// little; more would only wait for the interpreter lock.
const THREADS: usize = 64;
/// How long the end of serving waits for cancelled handlers, so that those that check for it can clean up.
const LAST_MOMENT: Duration = Duration::from_millis(250);

/// A call that waits for a thread, with the plan of its handler.
type QueuedCall = (Arc<SharedPlan>, CoreCall);

/// State that the threads of a pool share.
pub(crate) type Pool = WorkerPool<QueuedCall>;

/// Creates a pool without threads. `max_running`: the number of threads that the author has set.
pub(crate) fn new_pool(max_running: Option<NonZeroUsize>) -> Arc<Pool> {
    let limits = Limits {
        max_running: max_running.map_or(THREADS, NonZeroUsize::get),
        // An author who sets the number wants no spare workers.
        max_spare: max_running.map_or(MAX_SPARE_WORKERS, |_| 0),
        runs_in_parallel: false,
        max_unsent_results: 8,
    };
    WorkerPool::new(limits, WorkerThreadStarter::default())
}

/// The next step of a thread.
#[derive(IntoPyObject)]
enum Work<'py> {
    /// Calls a function with arguments and passes the return value to the job.
    Call(
        Bound<'py, PyAny>,
        Bound<'py, PyTuple>,
        Option<Bound<'py, PyDict>>,
        Bound<'py, Job>,
    ),
    /// Starts another thread: an empty tuple.
    StartAnother(Bound<'py, PyTuple>),
}

/// The threads that run a server's sync handlers.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Workers {
    pool: Arc<Pool>,
    is_closed: AtomicBool,
}

impl Workers {
    fn of(pool: &Arc<Pool>) -> Self {
        pool.open();
        Self {
            pool: pool.clone(),
            is_closed: AtomicBool::new(false),
        }
    }
}

#[pymethods]
impl Workers {
    /// Begins to run a server's sync handlers. A thread works as long as `take` of its `Worker` returns something, and
    /// ends with `leave`.
    #[new]
    fn new(server: &crate::server::Server) -> Self {
        Self::of(server.pool())
    }

    /// Begins to run sync functions that implement a server's shared state, on threads of their own: handlers that wait for
    /// something slow leave them room, and the other way round. `None` if the server has none.
    #[staticmethod]
    fn for_sharing(server: &crate::server::Server) -> Option<Self> {
        server.sharing_pool().map(Self::of)
    }

    /// Whether a thread has to be started because none is waiting for calls. Python starts it, not this function: the
    /// interpreter may end as soon as the thread has made a call, and ends other threads safely only if they have no
    /// native frame.
    fn expect_worker(&self) -> bool {
        self.pool.expect_worker()
    }

    /// Reports that the expected thread could not be started.
    fn worker_not_started(&self) {
        self.pool.worker_not_started();
    }

    /// Creates the worker of a thread that `spawn` has started.
    fn worker(slf: &Bound<'_, Self>) -> Worker {
        Worker {
            worker: Mutex::new(Some(slf.get().pool.worker())),
            workers: slf.clone().unbind(),
            process: std::process::id(),
        }
    }

    /// If nothing else serves the server, ends the threads that wait for calls, and waits for their end, up to
    /// `timeout` seconds. Threads that run a handler had the server's grace period, and get [`LAST_MOMENT`]; they end
    /// after their handler, or with the process.
    fn close(&self, py: Python<'_>, timeout: f64) {
        let pool = &self.pool;
        if self.is_closed.swap(true, Ordering::AcqRel) || !pool.close() {
            return;
        }
        let now = Instant::now();
        let deadline = now + Duration::from_secs_f64(timeout.clamp(0.0, 3600.0));
        py.detach(|| {
            pool.wait_for_end(
                |threads| match threads.all > threads.running + threads.blocked {
                    true => deadline,
                    false => now + LAST_MOMENT,
                },
            );
        });
        pool.hand_over();
    }

    /// The number of threads, and how many of them run a handler.
    #[getter]
    fn threads(&self) -> (usize, usize) {
        let threads = self.pool.thread_counts();
        (threads.all, threads.running)
    }
}

/// A thread of the pool.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Worker {
    /// `Some` until the thread leaves. Used only by that thread.
    worker: Mutex<Option<workers::Worker<QueuedCall>>>,
    workers: Py<Workers>,
    process: u32,
}

#[pymethods]
impl Worker {
    /// Returns the next call to make: a function, its arguments and its job. Waits for one; `None` at the end. An empty
    /// tuple means that another thread must be started first, by Python, because the interpreter may end meanwhile.
    fn take<'py>(&self, py: Python<'py>) -> Option<Work<'py>> {
        let mut held = lock(&self.worker);
        let worker = held.as_mut()?;
        let workers = self.workers.get();
        loop {
            if self.process != std::process::id() {
                // A handler has forked, and this is the child: the calls belong to its parent.
                return None;
            }
            let (planned, call) = match worker.take() {
                WorkerStep::Job(job) => job,
                WorkerStep::StartAnother => return Some(Work::StartAnother(PyTuple::empty(py))),
                WorkerStep::Nothing => {
                    py.detach(|| worker.sleep());
                    continue;
                }
                WorkerStep::Ended => return None,
            };
            foreign::record_queue_time(&call);
            if call.context().is_cancelled() {
                abandon(call);
                continue;
            }
            let wait_mode = WaitMode::Pool(workers.pool.clone());
            let prepared = planned
                .lock_objects()
                .and_then(|objects| planned.prepare(py, &objects, &call, &wait_mode));
            let prepared = prepared.and_then(|prepared| {
                let job = Job {
                    pool: workers.pool.clone(),
                    current: Mutex::new(None),
                };
                Ok((prepared, Bound::new(py, job)?))
            });
            match prepared {
                Ok((prepared, job)) => {
                    *lock(&job.get().current) = Some((planned, call));
                    return Some(Work::Call(
                        prepared.function,
                        prepared.arguments,
                        prepared.keywords,
                        job,
                    ));
                }
                Err(error) => {
                    let outcome = Err(planned.failure(py, &error));
                    workers.pool.complete(IoAction::Reply(call, outcome));
                }
            }
        }
    }

    /// Reports that the thread ends.
    fn leave(&self) {
        let worker = lock(&self.worker).take();
        if self.process == std::process::id() {
            drop(worker);
        } else {
            // The parent's pool may have been locked at the time of the fork.
            std::mem::forget(worker);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.workers)
    }
}

/// A call that a thread runs.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Job {
    pool: Arc<Pool>,
    current: Mutex<Option<QueuedCall>>,
}

#[pymethods]
impl Job {
    /// Ends the call with the return value of the handler.
    fn finish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) {
        if let Some((planned, call)) = lock(&self.current).take() {
            let outcome = planned.outcome(py, || call.name(), value);
            self.pool.complete(IoAction::Reply(call, outcome));
        }
    }

    /// Ends the call with the exception of the handler.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        if let Some((planned, call)) = lock(&self.current).take() {
            let outcome = Err(planned.failure(py, &PyErr::from_value(error)));
            self.pool.complete(IoAction::Reply(call, outcome));
        }
    }
}
