//! A Python thread that waits for an outcome. It sleeps on a descriptor, so that a signal can wake it.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mcpline::foreign::client::{BacklogSlot, Outcome};
use mcpline::protocol::vocabulary::Progress;
use pyo3::prelude::*;

use crate::errors;
use crate::event_loop::lock;
use crate::per_process::PerProcess;
use crate::wakeup_fd::WakeupFd;

use super::event_queue::report_arguments;

/// Maximum delay of a signal that arrives just before the wait begins.
const SLICE: Duration = Duration::from_millis(200);

thread_local! {
    /// The descriptor that wakes this thread, and the process that created it: a fork shares its parent's.
    static WAKE: RefCell<Option<(u32, Arc<WakeupFd>)>> = const { RefCell::new(None) };
}

/// The number of threads that wait, and what is notified when one has stopped.
#[derive(Default)]
struct WaitingThreads(Mutex<usize>, Condvar);

/// A forked child has none of its parent's threads.
static WAITING: PerProcess<WaitingThreads> = PerProcess::new(WaitingThreads::default);

/// Counts a thread from before it releases the interpreter until it has it again.
struct CountedThread;

impl CountedThread {
    fn new() -> Self {
        *lock(&WAITING.get().0) += 1;
        Self
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        let WaitingThreads(threads, changed) = WAITING.get();
        let mut threads = lock(threads);
        // In a forked child, the count began anew.
        *threads = threads.saturating_sub(1);
        changed.notify_all();
    }
}

/// Waits until no thread waits for an outcome, at most for `timeout`: an interpreter that ends kills threads that want it again, and
/// the process with them if they are in native code.
pub(super) fn wait_for_waiting_threads(timeout: Duration) {
    let WaitingThreads(threads, changed) = WAITING.get();
    let threads = lock(threads);
    drop(changed.wait_timeout_while(threads, timeout, |threads| *threads > 0));
}

/// A waiting thread.
pub(super) struct ThreadWaiter {
    state: Mutex<State>,
    wake: Arc<WakeupFd>,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    progress: Vec<(Progress, BacklogSlot)>,
}

impl ThreadWaiter {
    /// Creates a waiter for the calling thread.
    pub(super) fn new(py: Python<'_>) -> PyResult<Arc<Self>> {
        let process = std::process::id();
        let wake = WAKE.with_borrow_mut(|kept| match kept {
            Some((owner, wake)) if *owner == process => Ok(wake.clone()),
            _ => {
                let wake = WakeupFd::new().map(Arc::new);
                let wake = wake.map_err(|error| errors::transport(py, &error.to_string()))?;
                *kept = Some((process, wake.clone()));
                Ok::<_, PyErr>(wake)
            }
        })?;
        Ok(Arc::new(Self {
            state: Mutex::default(),
            wake,
        }))
    }

    pub(super) fn give(&self, outcome: Outcome) {
        lock(&self.state).outcome = Some(outcome);
        self.wake.wake();
    }

    pub(super) fn progress(&self, progress: Progress, slot: BacklogSlot) {
        lock(&self.state).progress.push((progress, slot));
        self.wake.wake();
    }

    /// Waits for the outcome, and reports progress meanwhile.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, or of the progress listener.
    pub(super) fn wait(&self, py: Python<'_>, listener: Option<&Py<PyAny>>) -> PyResult<Outcome> {
        let _counted = CountedThread::new();
        loop {
            let (outcome, progress) = {
                let mut state = lock(&self.state);
                match state.progress.is_empty() {
                    true => (state.outcome.take(), Vec::new()),
                    false => (None, std::mem::take(&mut state.progress)),
                }
            };
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
            if !progress.is_empty() {
                for (progress, _slot) in progress {
                    if let Some(listener) = listener {
                        let arguments = report_arguments(py, &progress)?;
                        listener.bind(py).call1(arguments)?;
                    }
                }
                continue;
            }
            py.check_signals()?;
            py.detach(|| {
                self.wake.wait_for(SLICE);
                self.wake.clear();
            });
        }
    }
}
