//! Where callbacks run, and what a thread may do there.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpline::Call;
use mcpline::foreign::workers::{self, Refused};
use mcpline::foreign::{self, IoThreadQueue, PeerId};

use crate::callback_tracker::RunningCallback;
use crate::event_loop::Loop;
use crate::handler::RegisteredHandler;
use crate::pool::Pool;
use crate::status::{Fault, FaultResult};

/// A job for a callback thread.
pub(crate) enum Job {
    /// A call of a server's handler, and the queue of the I/O thread that it came from.
    Call(
        Arc<RegisteredHandler>,
        Call,
        RunningCallback,
        Option<IoThreadQueue>,
    ),
    /// Anything else.
    Run(Box<dyn FnOnce() + Send>),
}

impl Job {
    pub(crate) fn run(self) {
        match self {
            Self::Call(registered, call, entered, io_queue) => {
                foreign::record_queue_time(&call);
                registered.run(call, &entered, io_queue);
            }
            Self::Run(run) => run(),
        }
    }

    /// Handles a job without the callback threads, because too many calls wait. A call fails as busy; anything else
    /// runs here.
    pub(crate) fn refuse(self) {
        match self {
            Self::Call(registered, call, _entered, io_queue) => {
                registered.refuse(call, io_queue.as_ref());
            }
            Self::Run(run) => run(),
        }
    }
}

/// Where the callbacks of one server or client run.
#[derive(Clone)]
pub(crate) enum CallbackExecutor {
    Pool(Arc<Pool>),
    /// The host's loop, and the pool that takes over when the loop is freed.
    Loop(Arc<Loop>, Arc<Pool>),
}

impl CallbackExecutor {
    /// Queues a job after earlier jobs of the same peer. Peers take turns.
    ///
    /// # Errors
    ///
    /// Returns the job itself if nothing runs any more, or too many calls wait.
    pub(crate) fn run(&self, peer: PeerId, job: Job) -> Result<(), Refused<Job>> {
        match self {
            Self::Pool(pool) => pool.push(peer, job),
            Self::Loop(one, pool) => match one.push(peer, job) {
                Err(Refused::Closed(job)) => pool.push(peer, job),
                done => done,
            },
        }
    }
}

/// Identifies a thread. Unlike `std::thread::current`, it keeps no memory for threads of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(u64);

thread_local! {
    static NUMBER: ThreadNumber = {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ThreadNumber(LAST.fetch_add(1, Ordering::Relaxed))
    };
    static IO: Cell<bool> = const { Cell::new(false) };
    /// The queue of this thread, if it is an I/O thread of an HTTP server.
    static IO_QUEUE: RefCell<Option<IoThreadQueue>> = const { RefCell::new(None) };
    static DISPATCHING: Cell<bool> = const { Cell::new(false) };
    /// The callback or finalizer that runs on this thread, innermost. A pointer needs no destructor: a callback may call
    /// `exit`, and the functions and destructors that run then find what runs although the thread's storage is destroyed.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// A callback or finalizer that runs on this thread.
struct Frame {
    /// The number of its owner.
    gate: usize,
    /// The frame that it runs within, or null.
    outer: *const Frame,
}

/// Returns the number of this thread.
pub(crate) fn this_thread() -> ThreadNumber {
    NUMBER.with(|number| *number)
}

/// Marks this thread as an I/O thread. Those of HTTP servers have a queue of their own.
pub(crate) fn become_io_thread(io_queue: Option<IoThreadQueue>) {
    IO.set(true);
    IO_QUEUE.set(io_queue);
}

/// Returns the queue of this I/O thread; `None` for the library's own one, and on any other thread.
pub(crate) fn own_io_queue() -> Option<IoThreadQueue> {
    if !is_io_thread() {
        return None;
    }
    // A handler on this thread may call `exit`, after which the functions of the host find it destroyed.
    IO_QUEUE
        .try_with(|io_queue| io_queue.borrow().clone())
        .ok()
        .flatten()
}

pub(crate) fn is_io_thread() -> bool {
    IO.get()
}

/// Whether the library started this thread, and so must not wait for its end here.
pub(crate) fn is_library_thread() -> bool {
    is_io_thread() || workers::is_worker()
}

pub(crate) fn is_dispatching() -> bool {
    DISPATCHING.get()
}

/// Marks this thread as dispatching until the guard is dropped.
pub(crate) fn dispatching() -> impl Drop {
    /// Whether it was dispatching before: a callback may dispatch, too.
    struct ResetOnDrop(bool);
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            DISPATCHING.set(self.0);
        }
    }
    ResetOnDrop(DISPATCHING.replace(true))
}

/// Checks that this thread may wait.
///
/// # Errors
///
/// Would deadlock: this is the I/O thread, or it is dispatching a loop.
pub(crate) fn may_wait() -> FaultResult {
    if is_io_thread() || is_dispatching() {
        return Err(Fault::would_deadlock());
    }
    Ok(())
}

/// Runs a callback or a finalizer of the owner with this number.
pub(crate) fn running<T>(gate: usize, run: impl FnOnce() -> T) -> T {
    struct FrameGuard(*const Frame);
    impl Drop for FrameGuard {
        fn drop(&mut self) {
            INNERMOST.set(self.0);
        }
    }
    let outer = INNERMOST.get();
    let frame = Frame { gate, outer };
    INNERMOST.set(&raw const frame);
    // Dropped before the frame.
    let _over = FrameGuard(outer);
    run()
}

/// Whether a callback or a finalizer of the owner with this number runs on this thread.
pub(crate) fn runs_here(gate: usize) -> bool {
    let mut frame = INNERMOST.get();
    // SAFETY: frames are on the stack of this thread, and are taken off the list before they end.
    while let Some(one) = unsafe { frame.as_ref() } {
        if one.gate == gate {
            return true;
        }
        frame = one.outer;
    }
    false
}

/// Whether this thread runs any callback or finalizer.
pub(crate) fn is_within_a_callback() -> bool {
    !INNERMOST.get().is_null()
}
