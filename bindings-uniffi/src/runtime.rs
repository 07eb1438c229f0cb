//! The I/O thread, which all servers and clients of the process share: it starts with the first and ends with the last.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcpline::ErrorKind;
use mcpline::foreign::{IoAction, IoThreadQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::handler_calls::HandlerQueues;

/// A running I/O thread.
pub(crate) struct Runtime {
    handle: Handle,
    queue: IoThreadQueue,
    handler_queues: HandlerQueues,
    /// Dropped to end the thread.
    _stop: oneshot::Sender<()>,
}

static CURRENT: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

impl Runtime {
    /// Returns the I/O thread; starts it if there is none.
    ///
    /// # Errors
    ///
    /// The system is out of file descriptors or threads.
    pub(crate) fn shared() -> Result<Arc<Self>, Failure> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = current.upgrade() {
            return Ok(running);
        }
        let started = Self::start();
        let started =
            started.map_err(|error| Failure::new(ErrorKind::Transport, error.to_string()))?;
        let started = Arc::new(started);
        *current = Arc::downgrade(&started);
        Ok(started)
    }

    fn start() -> std::io::Result<Self> {
        // One thread, which runs the tasks of `RequestsInFlight` in order.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let queue = IoThreadQueue::start(&handle);
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("mcpline-io".into())
            .spawn(move || {
                block_sigpipe();
                // Dropping the sender ends the wait.
                let _ = runtime.block_on(stopped);
                // Does not wait for blocking reads: on a terminal one would last until the user presses Enter.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            handle,
            queue,
            handler_queues: HandlerQueues::new(),
            _stop: stop,
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn queue(&self) -> &IoThreadQueue {
        &self.queue
    }

    /// The calls of handlers that have numbers.
    pub(crate) fn handler_queues(&self) -> &HandlerQueues {
        &self.handler_queues
    }

    /// Runs a function on the I/O thread, after everything that was handed to it before.
    pub(crate) fn run(&self, run: impl FnOnce() + Send + 'static) {
        self.queue.push(IoAction::Run(Box::new(run)));
    }
}

/// Makes writes to closed pipes and sockets fail on this thread, and on the threads that it starts. Programs in Rust and on a
/// JVM ignore `SIGPIPE`; one in Swift would end.
#[cfg(unix)]
fn block_sigpipe() {
    // SAFETY: a set of signals is plain numbers, and the functions initialize it.
    unsafe {
        let mut blocked = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut blocked);
        libc::sigaddset(&raw mut blocked, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut());
    }
}

#[cfg(not(unix))]
fn block_sigpipe() {}
