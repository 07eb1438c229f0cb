//! The thread that does the I/O of one server, with a single-threaded runtime. If this package runs the event loop
//! itself, the loop's thread does the I/O instead, and this thread stands by ([`crate::io_driver_handoff`]).

use std::cell::Cell;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mcpline::foreign::{IoAction, IoThreadQueue};
use pyo3::prelude::*;
use tokio::runtime::Handle;

use crate::errors;
use crate::event_loop::lock;
use crate::io_driver_handoff::IoDriverHandoff;

/// Maximum time to wait at the end for actions that were handed to the I/O thread. They are done at once, unless a
/// handler that runs inline is stuck.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running I/O thread. It ends when the last owner drops it.
pub(crate) struct Runtime {
    shared: Arc<Shared>,
    io_queue: IoThreadQueue,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

/// State that the I/O thread owns as well: in a forked child, which has no such thread, it is never dropped.
struct Shared {
    /// `Some` until it is dropped.
    runtime: Option<tokio::runtime::Runtime>,
    baton: IoDriverHandoff,
}

impl Shared {
    fn runtime(&self) -> &tokio::runtime::Runtime {
        // Only `drop` takes it.
        self.runtime
            .as_ref()
            .expect("a runtime is there until it is dropped")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait for blocking reads: on a terminal one would last until the user presses Enter.
            runtime.shutdown_background();
        }
    }
}

/// The I/O thread of a server, started on demand.
#[derive(Default)]
pub(crate) struct RuntimeSlot {
    current: Mutex<Weak<Runtime>>,
}

impl RuntimeSlot {
    /// Returns the running I/O thread, or starts one. After a fork, the parent's thread does not exist in this process.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        let mut current = lock(&self.current);
        if let Some(runtime) = current.upgrade() {
            if !runtime.is_foreign() {
                return Ok(runtime);
            }
            // Dropping it would wait for a thread that does not exist in this process.
            std::mem::forget(runtime);
        }
        let runtime = Arc::new(Runtime::start(py)?);
        *current = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// Returns the running I/O thread, if there is one.
    pub(crate) fn running(&self) -> Option<Arc<Runtime>> {
        lock(&self.current)
            .upgrade()
            .filter(|runtime| !runtime.is_foreign())
    }
}

impl Runtime {
    pub(crate) fn start(py: Python<'_>) -> PyResult<Self> {
        let failed = |error: std::io::Error| errors::transport(py, &error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let io_queue = IoThreadQueue::start(runtime.handle());
        let shared = Arc::new(Shared {
            runtime: Some(runtime),
            baton: IoDriverHandoff::default(),
        });
        let thread = std::thread::Builder::new()
            .name("mcpline-io".into())
            .spawn({
                let (shared, io_queue) = (shared.clone(), io_queue.clone());
                move || {
                    IS_IO_THREAD.set(true);
                    shared.baton.run_io_thread(|baton| {
                        io_queue.set_attended(true);
                        shared.runtime().block_on(async {
                            // Actions that a loop has left behind that drove before.
                            io_queue.run();
                            baton.wait_until_wanted().await;
                        });
                        io_queue.set_attended(false);
                    });
                    drop(io_queue);
                    // Before the thread's Python state is released: values that are dropped here may hold Python
                    // objects.
                    drop(shared);
                    release_thread_state();
                }
            })
            .map_err(failed)?;
        Ok(Self {
            shared,
            io_queue,
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.shared.runtime().handle()
    }

    #[cfg(unix)]
    pub(crate) fn baton(&self) -> &IoDriverHandoff {
        &self.shared.baton
    }

    /// Runs a future on this thread, together with all other tasks of the runtime, unless another thread does.
    #[cfg(unix)]
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.shared.runtime().block_on(future)
    }

    /// Whether it belongs to the parent, and this process is a fork.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    pub(crate) fn io_queue(&self) -> &IoThreadQueue {
        &self.io_queue
    }

    /// Ends the thread and waits for its end.
    pub(crate) fn close(&self, py: Python<'_>) {
        if self.is_foreign() {
            // The thread belongs to the parent.
            return;
        }
        self.drain_io_queue(py);
        self.shared.baton.stop();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic was reported by the thread itself.
            let _ = py.detach(|| thread.join());
        }
    }

    /// Waits until all actions that were handed over are done, for a limited time.
    fn drain_io_queue(&self, py: Python<'_>) {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.io_queue.push(IoAction::Run(Box::new(move || {
            // Fails if the wait has timed out.
            let _ = sender.send(());
        })));
        // Either they are done, or the thread is stuck or gone: there is nothing more to wait for.
        let _ = py.detach(move || receiver.recv_timeout(DRAIN_TIMEOUT));
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.is_foreign() {
            self.shared.baton.stop();
        }
    }
}

thread_local! {
    static THREAD_STATE: Cell<Option<SavedThreadState>> = const { Cell::new(None) };
    /// Whether this is an I/O thread. Other threads that drive a runtime are Python threads with their own state.
    static IS_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// The Python state of a thread, kept alive between its calls into Python.
#[derive(Clone, Copy)]
struct SavedThreadState {
    gil: pyo3::ffi::PyGILState_STATE,
    thread: *mut pyo3::ffi::PyThreadState,
}

/// Keeps an I/O thread's Python state from now on: creating one for every call costs more than the call.
pub(crate) fn keep_thread_state() {
    if IS_IO_THREAD.get() {
        keep_state_of_this_thread();
    }
}

/// Keeps the Python state of a thread of ours until [`release_thread_state`].
///
/// A thread that often creates and deletes its state is a danger to programs that fork: both hold a lock of the interpreter, and in
/// Python 3.10 a child whose parent was forked at that moment never gets this lock.
pub(crate) fn keep_state_of_this_thread() {
    if THREAD_STATE.get().is_some() {
        return;
    }
    // SAFETY: the interpreter runs while a server of it does. `PyGILState_Ensure` creates the state and takes the lock,
    // `PyEval_SaveThread` releases the lock; `release_thread_state` undoes both.
    let kept = unsafe {
        let gil = pyo3::ffi::PyGILState_Ensure();
        SavedThreadState {
            gil,
            thread: pyo3::ffi::PyEval_SaveThread(),
        }
    };
    THREAD_STATE.set(Some(kept));
}

/// Undoes [`keep_state_of_this_thread`].
pub(crate) fn release_thread_state() {
    let Some(kept) = THREAD_STATE.take() else {
        return;
    };
    // SAFETY: the state belongs to this thread, was created by `keep_state_of_this_thread`, and nothing since then is left to
    // be undone. An interpreter that has ended has freed it.
    unsafe {
        if pyo3::ffi::Py_IsInitialized() != 0 {
            pyo3::ffi::PyEval_RestoreThread(kept.thread);
            pyo3::ffi::PyGILState_Release(kept.gil);
        }
    }
}
