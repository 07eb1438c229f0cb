//! The thread that does the I/O of one server: a single-threaded runtime of its own.

use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mcpline::foreign::{Completion, Completions};
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::errors;
use crate::event_loop::lock;

/// How long the end waits for what was handed over to the I/O thread: it is done at once, unless a handler that
/// runs inline is stuck.
const SETTLING: Duration = Duration::from_secs(1);

/// A running I/O thread. It ends when the last owner lets go of it.
pub(crate) struct Runtime {
    handle: Handle,
    completions: Completions,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

/// Where a server finds the I/O thread that it has, or makes one.
#[derive(Default)]
pub(crate) struct RuntimeSlot {
    current: Mutex<Weak<Runtime>>,
}

impl RuntimeSlot {
    /// The running I/O thread, or a new one. After a fork the parent's is none of ours.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        let mut current = lock(&self.current);
        if let Some(runtime) = current.upgrade() {
            if runtime.process == std::process::id() {
                return Ok(runtime);
            }
            // Dropping it would wait for a thread that this process doesn't have.
            std::mem::forget(runtime);
        }
        let runtime = Arc::new(Runtime::start(py)?);
        *current = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// The running I/O thread, if there is one.
    pub(crate) fn running(&self) -> Option<Arc<Runtime>> {
        lock(&self.current)
            .upgrade()
            .filter(|runtime| runtime.process == std::process::id())
    }
}

impl Runtime {
    fn start(py: Python<'_>) -> PyResult<Self> {
        let failed = |error: std::io::Error| errors::transport(py, &error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let completions = Completions::start(&handle);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("mcpline-io".into())
            .spawn(move || {
                // Ends when it is told to, or when nobody is left to tell it.
                let _ = runtime.block_on(stopped);
                release_thread_state();
            })
            .map_err(failed)?;
        Ok(Self {
            handle,
            completions,
            stop: Mutex::new(Some(stop)),
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn completions(&self) -> &Completions {
        &self.completions
    }

    /// Ends the thread and waits for its end.
    pub(crate) fn close(&self, py: Python<'_>) {
        if self.process != std::process::id() {
            // The thread is the parent's.
            return;
        }
        self.settle(py);
        self.tell();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been reported by its own thread.
            let _ = py.detach(|| thread.join());
        }
    }

    /// Waits until everything that was handed over has been done, but not for ever.
    fn settle(&self, py: Python<'_>) {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.completions.push(Completion::Run(Box::new(move || {
            // Nobody waits any more if it took too long.
            let _ = sender.send(());
        })));
        // Either it is done, or the thread is stuck or gone: there is nothing more to wait for.
        let _ = py.detach(move || receiver.recv_timeout(SETTLING));
    }

    fn tell(&self) {
        if let Some(stop) = lock(&self.stop).take() {
            // The thread may have ended already.
            let _ = stop.send(());
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.tell();
        }
    }
}

thread_local! {
    static THREAD_STATE: std::cell::Cell<Option<KeptState>> = const { std::cell::Cell::new(None) };
}

/// What keeps a thread's Python state alive between the calls that it makes into Python.
#[derive(Clone, Copy)]
struct KeptState {
    gil: pyo3::ffi::PyGILState_STATE,
    thread: *mut pyo3::ffi::PyThreadState,
}

/// Keeps this thread's Python state from now on: making one for every call costs more than the call.
pub(crate) fn keep_thread_state() {
    if THREAD_STATE.get().is_some() {
        return;
    }
    // SAFETY: the interpreter runs while a server of it does. `PyGILState_Ensure` makes the state and takes
    // the lock, `PyEval_SaveThread` gives the lock back; `release_thread_state` undoes both.
    let kept = unsafe {
        let gil = pyo3::ffi::PyGILState_Ensure();
        KeptState {
            gil,
            thread: pyo3::ffi::PyEval_SaveThread(),
        }
    };
    THREAD_STATE.set(Some(kept));
}

fn release_thread_state() {
    let Some(kept) = THREAD_STATE.take() else {
        return;
    };
    // SAFETY: the state is this thread's own, made by `keep_thread_state`, and nothing else was made since
    // that is not undone. An interpreter that has ended has freed it.
    unsafe {
        if pyo3::ffi::Py_IsInitialized() != 0 {
            pyo3::ffi::PyEval_RestoreThread(kept.thread);
            pyo3::ffi::PyGILState_Release(kept.gil);
        }
    }
}
