//! Sync handlers on a pool of threads that grows with the demand.
//!
//! The threads are Python's own and run `mcpline._workers.work`, so that a handler stands on no frame of ours:
//! when the interpreter ends while a handler runs, its thread ends as any daemon thread does. One thread
//! works as long as handlers are quick, which keeps the interpreter lock where it is; further ones join when
//! calls wait although the others do not get on, because handlers block. A thread that waits for a client's
//! answer is not counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcpline::Call as CoreCall;
use mcpline::foreign::{CallQueue, Completion, Completions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::call::Asker;
use crate::event_loop::lock;
use crate::outcome::{abandon, end_here};
use crate::plan::Planned;

/// How many calls may wait for a thread; see the same bound of the event loop.
const CAPACITY: usize = 65_536;
/// How many handlers may run at once. Blocking handlers wait for something else most of the time, and 64
/// threads cost little; more would only queue up for the interpreter lock.
const THREADS: usize = 64;
/// How long a call may wait before another thread joins.
const TICK: Duration = Duration::from_millis(1);
/// How many ticks without anything to do let the monitor sleep.
const CALM_TICKS: u32 = 20;
/// A thread that ends more calls than this in one tick isn't blocked: another would not help.
const QUICK: u64 = 4;
/// How long the end of serving waits for handlers that were cancelled: those that look for it tidy up.
const LAST_MOMENT: Duration = Duration::from_millis(250);
/// How long a result may wait for the results of the calls after it.
const PATIENCE: Duration = Duration::from_micros(200);

/// What the threads of a pool share.
pub(crate) struct Pool {
    jobs: OnceLock<CallQueue<Arc<Planned>>>,
    state: Mutex<State>,
    /// Threads wait here for calls.
    available: Condvar,
    /// Whoever closes the pool waits here for its threads.
    left: Condvar,
    monitor: Mutex<Monitor>,
    monitor_armed: Condvar,
    completions: Mutex<Option<Completions>>,
    pending: Mutex<Pending>,
    /// Calls taken so far.
    taken: AtomicU64,
    armed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Threads that exist.
    threads: usize,
    /// Threads that wait for a call.
    idle: usize,
    /// Threads that run a handler, without those that wait for a client.
    active: usize,
    /// Threads whose handler waits for a client.
    blocked: usize,
    closed: bool,
}

#[derive(Default)]
struct Monitor {
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

#[derive(Default)]
struct Pending {
    completions: Vec<Completion>,
    since: Option<Instant>,
}

impl Pool {
    pub(crate) fn new() -> Arc<Self> {
        let pool = Arc::new(Self {
            jobs: OnceLock::new(),
            state: Mutex::default(),
            available: Condvar::new(),
            left: Condvar::new(),
            monitor: Mutex::default(),
            monitor_armed: Condvar::new(),
            completions: Mutex::default(),
            pending: Mutex::default(),
            taken: AtomicU64::new(0),
            armed: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&pool);
        let queue = CallQueue::new(CAPACITY, move || {
            if let Some(pool) = weak.upgrade() {
                pool.demand();
            }
        });
        // Set once, here.
        let _ = pool.jobs.set(queue);
        pool
    }

    /// The queue of calls.
    pub(crate) fn jobs(&self) -> &CallQueue<Arc<Planned>> {
        // `Pool::new` sets it before anybody has the pool.
        self.jobs.get().expect("a pool has its queue")
    }

    /// Where results go from now on.
    pub(crate) fn set_completions(&self, completions: Option<Completions>) {
        *lock(&self.completions) = completions;
    }

    /// Hands one completion over at once.
    pub(crate) fn push(&self, completion: Completion) {
        let completions = lock(&self.completions).clone();
        if let Some(completions) = completions {
            completions.push(completion);
        }
    }

    /// Runs `wait` without the interpreter lock, and without counting this thread.
    pub(crate) fn while_blocked<T: Send>(
        &self,
        py: Python<'_>,
        wait: impl FnOnce() -> T + Send,
    ) -> T {
        self.hand_over();
        {
            let mut state = lock(&self.state);
            state.active = state.active.saturating_sub(1);
            state.blocked += 1;
        }
        if !self.jobs().is_empty() {
            self.demand();
        }
        let result = py.detach(wait);
        let mut state = lock(&self.state);
        state.active += 1;
        state.blocked -= 1;
        drop(state);
        result
    }

    /// Calls wait: wakes a thread if none works, else has the monitor see whether one is enough.
    fn demand(&self) {
        let alone = {
            let state = lock(&self.state);
            state.active == 0 && state.idle > 0
        };
        if alone {
            self.available.notify_one();
        } else if !self.armed.swap(true, Ordering::AcqRel) {
            let _monitor = lock(&self.monitor);
            self.monitor_armed.notify_one();
        }
    }

    fn hand_over(&self) {
        let mut pending = lock(&self.pending);
        pending.since = None;
        if pending.completions.is_empty() {
            return;
        }
        let completions = lock(&self.completions).clone();
        match completions {
            Some(completions) => completions.push_all(&mut pending.completions),
            // The server has ended, and with it everything that waits for an answer.
            None => {
                let left = std::mem::take(&mut pending.completions);
                drop(pending);
                end_here(left);
            }
        }
    }

    /// Takes the result of a call, to be handed over with those of the calls after it.
    fn complete(&self, completion: Completion) {
        let now = Instant::now();
        let waits_long = {
            let mut pending = lock(&self.pending);
            pending.completions.push(completion);
            let since = *pending.since.get_or_insert(now);
            now - since > PATIENCE
        };
        if waits_long || self.jobs().is_empty() {
            self.hand_over();
        }
    }

    /// The next call; waits for one. `None` when the pool is closed.
    fn next(&self, py: Python<'_>) -> Option<(Arc<Planned>, CoreCall)> {
        let mut job = Vec::with_capacity(1);
        loop {
            self.jobs().drain(1, &mut job);
            if let Some(job) = job.pop() {
                self.taken.fetch_add(1, Ordering::Relaxed);
                lock(&self.state).active += 1;
                return Some(job);
            }
            self.hand_over();
            if !py.detach(|| self.wait()) {
                return None;
            }
        }
    }

    /// Waits until calls may be there; `false` when the pool is closed.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        if state.closed {
            return false;
        }
        state.idle += 1;
        // Looked at with the lock held, so that no demand can pass between looking and waiting.
        if self.jobs().is_empty() {
            state = self
                .available
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        !state.closed
    }

    /// Joins further threads in while calls wait and those at work don't get on.
    fn watch(&self) {
        let mut calm = 0;
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            {
                let mut monitor = lock(&self.monitor);
                while !monitor.closed && !self.armed.load(Ordering::Acquire) {
                    monitor = self
                        .monitor_armed
                        .wait(monitor)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                if monitor.closed {
                    return;
                }
            }
            std::thread::sleep(TICK);
            self.hand_over();
            let now = self.taken.load(Ordering::Relaxed);
            let progress = now - std::mem::replace(&mut taken, now);
            if self.jobs().is_empty() {
                calm += 1;
                if calm >= CALM_TICKS {
                    calm = 0;
                    self.armed.store(false, Ordering::Release);
                    // A demand may have come just before, and found it armed.
                    if !self.jobs().is_empty() {
                        self.armed.store(true, Ordering::Release);
                    }
                }
                continue;
            }
            calm = 0;
            self.join_in(progress);
        }
    }

    fn join_in(&self, progress: u64) {
        let wanted = {
            let state = lock(&self.state);
            let active = state.active;
            if active >= THREADS || progress > QUICK * active as u64 {
                0
            } else {
                // Doubled with each tick, so that a burst of blocking calls is soon under way.
                active.max(1).min(THREADS - active).min(self.jobs().len())
            }
        };
        for _ in 0..wanted {
            self.available.notify_one();
        }
    }
}

/// A function, its arguments, and the job that takes what it returns.
type Work<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyTuple>,
    Option<Bound<'py, PyDict>>,
    Bound<'py, Job>,
);

/// The threads that run a server's sync handlers.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Workers {
    pool: Arc<Pool>,
    /// Starts one more thread.
    spawn: Py<PyAny>,
    process: u32,
}

#[pymethods]
impl Workers {
    /// Begins to run a server's sync handlers. `spawn` starts a thread that works as long as `take`
    /// returns something, and ends with `leave`.
    #[new]
    fn new(server: &crate::server::Server, spawn: Py<PyAny>) -> PyResult<Self> {
        let pool = server.pool().clone();
        lock(&pool.state).closed = false;
        let mut monitor = lock(&pool.monitor);
        monitor.closed = false;
        if monitor.thread.is_none() {
            let watched = pool.clone();
            let thread = std::thread::Builder::new()
                .name("mcpline-monitor".into())
                .spawn(move || watched.watch())?;
            monitor.thread = Some(thread);
        }
        drop(monitor);
        Ok(Self {
            pool,
            spawn,
            process: std::process::id(),
        })
    }

    /// Starts a thread, unless one waits already.
    fn ensure_idle(&self, py: Python<'_>) -> PyResult<()> {
        {
            let mut state = lock(&self.pool.state);
            if state.closed || state.threads > state.active + state.blocked {
                return Ok(());
            }
            state.threads += 1;
        }
        let started = self.spawn.call0(py);
        if started.is_err() {
            lock(&self.pool.state).threads -= 1;
        }
        started.map(drop)
    }

    /// The next call to make: a function, its arguments and its job. Waits for one; `None` at the end.
    fn take<'py>(&self, py: Python<'py>) -> Option<Work<'py>> {
        loop {
            if self.process != std::process::id() {
                // A handler has forked, and this is the child: the calls are its parent's.
                return None;
            }
            let (planned, call) = self.pool.next(py)?;
            // Another thread is ready before this one may block, because only Python can start it. Without
            // one the calls wait for this thread, which is better than to fail.
            let _ = self.ensure_idle(py);
            if call.context().is_cancelled() {
                abandon(call);
                self.done();
                continue;
            }
            let asker = Asker::Pool(self.pool.clone());
            let prepared = planned
                .objects()
                .and_then(|objects| planned.prepare(py, &objects, &call, &asker));
            let prepared = prepared.and_then(|prepared| {
                let job = Job {
                    pool: self.pool.clone(),
                    current: Mutex::new(None),
                };
                Ok((prepared, Bound::new(py, job)?))
            });
            match prepared {
                Ok((prepared, job)) => {
                    *lock(&job.get().current) = Some((planned, call));
                    return Some((
                        prepared.function,
                        prepared.arguments,
                        prepared.keywords,
                        job,
                    ));
                }
                Err(error) => {
                    let outcome = Err(planned.failure(py, &error));
                    self.pool.complete(Completion::Reply(call, outcome));
                    self.done();
                }
            }
        }
    }

    /// The thread ends.
    fn leave(&self) {
        let mut state = lock(&self.pool.state);
        state.threads = state.threads.saturating_sub(1);
        drop(state);
        self.pool.left.notify_all();
    }

    /// Ends the threads that wait for calls, and waits for their end, up to `patience` seconds. Those that run
    /// a handler had the server's grace period, and get [`LAST_MOMENT`]; they end after it, or with the process.
    fn close(&self, py: Python<'_>, patience: f64) {
        let now = Instant::now();
        let deadline = now + Duration::from_secs_f64(patience.clamp(0.0, 3600.0));
        {
            let mut state = lock(&self.pool.state);
            state.closed = true;
        }
        self.pool.available.notify_all();
        let monitor = {
            let mut monitor = lock(&self.pool.monitor);
            monitor.closed = true;
            monitor.thread.take()
        };
        self.pool.monitor_armed.notify_all();
        let pool = &self.pool;
        py.detach(|| {
            if let Some(monitor) = monitor {
                // It ends within a tick; a panic there has been reported by its own thread.
                let _ = monitor.join();
            }
            let mut state = lock(&pool.state);
            while state.threads > 0 {
                let until = match state.threads > state.active + state.blocked {
                    true => deadline,
                    false => now + LAST_MOMENT,
                };
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return;
                }
                state = pool
                    .left
                    .wait_timeout(state, left)
                    .map_or_else(|error| error.into_inner().0, |(state, _)| state);
            }
        });
        self.pool.hand_over();
    }

    /// How many threads there are, and how many of them run a handler.
    #[getter]
    fn threads(&self) -> (usize, usize) {
        let state = lock(&self.pool.state);
        (state.threads, state.active)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.spawn)
    }
}

impl Workers {
    fn done(&self) {
        let mut state = lock(&self.pool.state);
        state.active = state.active.saturating_sub(1);
    }
}

/// One call that a thread runs.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Job {
    pool: Arc<Pool>,
    current: Mutex<Option<(Arc<Planned>, CoreCall)>>,
}

#[pymethods]
impl Job {
    /// Ends the call with what the handler returned.
    fn finish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) {
        if let Some((planned, call)) = lock(&self.current).take() {
            let outcome = planned.outcome(py, || call.name(), value);
            self.end(call, outcome);
        }
    }

    /// Ends the call with what the handler raised.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        if let Some((planned, call)) = lock(&self.current).take() {
            let outcome = Err(planned.failure(py, &PyErr::from_value(error)));
            self.end(call, outcome);
        }
    }
}

impl Job {
    fn end(&self, call: CoreCall, outcome: crate::outcome::Outcome) {
        {
            let mut state = lock(&self.pool.state);
            state.active = state.active.saturating_sub(1);
        }
        self.pool.complete(Completion::Reply(call, outcome));
    }
}
