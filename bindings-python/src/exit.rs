//! The end of the interpreter: threads of the core must have left it by then, because a thread that enters an interpreter
//! which is being finalized crashes the process.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::event_loop::lock;
use crate::per_process::PerProcess;

/// How long the end of the interpreter waits for each kind of thread.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The threads that run Python code for the core at the moment.
#[derive(Default)]
struct InterpreterThreads {
    entered: Mutex<ThreadCount>,
    /// Notified when one leaves.
    left: Condvar,
}

#[derive(Default)]
struct ThreadCount {
    threads: usize,
    /// Whether the interpreter is about to end.
    has_ended: bool,
}

/// A forked child has none of its parent's threads.
static THREADS: PerProcess<InterpreterThreads> = PerProcess::new(InterpreterThreads::default);

/// Kept by a thread while it runs Python code, or waits for it.
pub(crate) struct InterpreterGuard(());

impl InterpreterGuard {
    /// Returns `None` once the interpreter is about to end: it must not be entered any more.
    pub(crate) fn enter() -> Option<Self> {
        let mut entered = lock(&THREADS.get().entered);
        if entered.has_ended {
            return None;
        }
        entered.threads += 1;
        Some(Self(()))
    }
}

impl Drop for InterpreterGuard {
    fn drop(&mut self) {
        let threads = THREADS.get();
        let mut entered = lock(&threads.entered);
        // In a forked child, the count began anew.
        entered.threads = entered.threads.saturating_sub(1);
        threads.left.notify_all();
    }
}

/// Makes the interpreter call [`end`] before it ends. Functions that are registered later are called earlier, so this is
/// repeated once `logging` is imported: its handlers are open then.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, py)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// Ends the log thread, and waits for threads that run Python code. Threads that begin later do not enter the interpreter.
#[pyfunction]
fn end(py: Python<'_>) {
    py.detach(|| {
        crate::log::end();
        mcpline::foreign::flush_traffic(END_TIMEOUT);
        let deadline = Instant::now() + END_TIMEOUT;
        let threads = THREADS.get();
        let mut entered = lock(&threads.entered);
        let had_ended = std::mem::replace(&mut entered.has_ended, true);
        while entered.threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = threads.left.wait_timeout(entered, left);
            entered = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        drop(entered);
        if !had_ended {
            crate::log::report_lost_entries();
        }
    });
}
