//! State that all servers, clients and loops of the process share: the I/O thread and the worker pool. They start with
//! the first object and end with the last.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;

#[cfg(feature = "http")]
use mcpline::foreign::IoThreadHooks;
use mcpline::foreign::IoThreadQueue;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::callback_tracker::Latch;
use crate::diagnostics;
use crate::executor;
use crate::fork::RunningThreads;
use crate::mcpl_status::MCPL_TRANSPORT_ERROR;
use crate::pool::Pool;
use crate::status::{Fault, FaultResult};
use crate::threads;

/// The I/O thread and the worker pool.
pub(crate) struct SharedRuntime {
    handle: Handle,
    io_queue: IoThreadQueue,
    pool: Arc<Pool>,
    ending: Mutex<Option<IoThread>>,
    /// The I/O threads of HTTP servers, which end after their servers.
    server_threads: Mutex<Vec<JoinHandle<()>>>,
    threads: Mutex<Option<RunningThreads>>,
}

/// The means to end the I/O thread.
struct IoThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The library in use, and the number of servers, clients and loops that use it.
static CURRENT: Mutex<(usize, Option<Arc<SharedRuntime>>)> = Mutex::new((0, None));

/// Adds a user of the library, which starts with the first one.
///
/// # Errors
///
/// Transport error: the system is out of file descriptors or threads.
pub(crate) fn enter() -> FaultResult<Arc<SharedRuntime>> {
    let mut current = current();
    if current.1.is_none() {
        let started = SharedRuntime::start();
        let started =
            started.map_err(|error| Fault::new(MCPL_TRANSPORT_ERROR, error.to_string()))?;
        current.1 = Some(started);
    }
    match &current.1 {
        Some(library) => {
            let library = library.clone();
            current.0 += 1;
            Ok(library)
        }
        None => Err(Fault::closed("library")),
    }
}

/// Removes a user of the library. With the last one the threads end. They have ended when this returns, unless it is
/// called on one of them or within a callback, which they may wait for.
pub(crate) fn leave() {
    let last = {
        let mut current = current();
        current.0 -= 1;
        match current.0 {
            0 => current.1.take(),
            _ => None,
        }
    };
    let Some(last) = last else { return };
    if executor::is_library_thread()
        || executor::is_dispatching()
        || executor::is_within_a_callback()
    {
        // A thread cannot wait for its own end.
        let ending = last.clone();
        if in_background("mcpline-end", move || ending.end()).is_err() {
            last.stop();
        }
    } else {
        last.end();
    }
}

/// Runs a function on a new thread.
///
/// # Errors
///
/// The system is out of threads.
pub(crate) fn in_background(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    #[cfg(test)]
    if NO_THREADS.get() {
        return Err(std::io::Error::other("no threads, as the test wants it"));
    }
    // The thread starts after its handle is dropped, so that it frees what both share. The other order is safe as well,
    // but ThreadSanitizer does not see it.
    let detached = Latch::new();
    let start = detached.clone();
    let begun = move || {
        start.take(None);
        run();
    };
    let handle = threads::start(name, Box::new(begun))?;
    drop(handle);
    detached.set(());
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// Simulates that no thread can be started from this thread.
    pub(crate) static NO_THREADS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn current() -> MutexGuard<'static, (usize, Option<Arc<SharedRuntime>>)> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedRuntime {
    pub(crate) fn start() -> std::io::Result<Arc<Self>> {
        let running = RunningThreads::new();
        let started = Latch::new();
        let starting = started.clone();
        let (stop, stopped) = oneshot::channel();
        let thread = threads::start("mcpline-io", Box::new(move || run(&starting, stopped)))?;
        let started = started.take(None);
        let (handle, io_queue, pool) = started
            .unwrap_or_else(|| Err(std::io::Error::other("the I/O thread has not started")))?;
        Ok(Arc::new(Self {
            handle,
            io_queue,
            pool,
            ending: Mutex::new(Some(IoThread { stop, thread })),
            server_threads: Mutex::default(),
            threads: Mutex::new(Some(running)),
        }))
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Starts a task that is rarely started. Boxed, so that the runtime's code for it is compiled once for all such
    /// tasks.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
        self.handle.spawn(task);
    }

    pub(crate) fn io_queue(&self) -> &IoThreadQueue {
        &self.io_queue
    }

    /// Returns what makes a thread of an HTTP server an I/O thread of the library, which ends with it.
    #[cfg(feature = "http")]
    pub(crate) fn io_thread_hooks(self: &Arc<Self>) -> IoThreadHooks {
        let (library, pool) = (Arc::downgrade(self), Arc::downgrade(&self.pool));
        IoThreadHooks {
            start: Arc::new(move |name, runtime, run| {
                let ended = || std::io::Error::other("the library is being closed");
                let library = library.upgrade().ok_or_else(ended)?;
                let mut started = library.lock_server_threads();
                // Those of servers that have ended before.
                for thread in started.extract_if(.., |thread| thread.is_finished()) {
                    // A panic was reported by the thread itself.
                    let _ = thread.join();
                }
                let io_queue = library.io_queue.start_other(runtime);
                let run = move || {
                    executor::become_io_thread(Some(io_queue));
                    run();
                };
                started.push(threads::start(name, Box::new(run))?);
                Ok(())
            }),
            before_sleep: Arc::new(move || {
                if let Some(pool) = pool.upgrade() {
                    pool.before_io_sleep();
                }
            }),
        }
    }

    fn lock_server_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.server_threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Ends the threads: first the pool, whose last results must still reach the I/O thread; last the one that logs the
    /// messages of servers in debug mode, if the log takes them in time.
    pub(crate) fn end(&self) {
        self.pool.close();
        if let Some(thread) = self.stop() {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
        let server_threads = std::mem::take(&mut *self.lock_server_threads());
        for thread in server_threads {
            let _ = thread.join();
        }
        diagnostics::flush();
        let ended = self.threads.lock();
        drop(ended.unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Signals the I/O thread to end.
    fn stop(&self) -> Option<JoinHandle<()>> {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.take().map(|IoThread { stop, thread }| {
            drop(stop);
            thread
        })
    }
}

type StartResult = std::io::Result<(Handle, IoThreadQueue, Arc<Pool>)>;

/// Main function of the I/O thread. The runtime is created here, so that it leaves no thread-local state on threads of
/// the host.
fn run(started: &Latch<StartResult>, stopped: oneshot::Receiver<()>) {
    executor::become_io_thread(None);
    let resting = Arc::new(OnceLock::<Weak<Pool>>::new());
    let rests = resting.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            if let Some(pool) = rests.get().and_then(Weak::upgrade) {
                pool.before_io_sleep();
            }
        })
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return started.set(Err(error)),
    };
    let handle = runtime.handle().clone();
    let io_queue = IoThreadQueue::start(&handle);
    let pool = Pool::new(handle.clone(), io_queue.clone());
    // Set only here.
    let _ = resting.set(Arc::downgrade(&pool));
    started.set(Ok((handle, io_queue.clone(), pool)));
    runtime.block_on(async {
        // Dropping the sender ends the wait as well.
        let _ = stopped.await;
        // Results that workers have queued since the last run.
        io_queue.run();
    });
    // Does not wait for blocking reads: on a terminal one would last until the user presses Enter.
    runtime.shutdown_background();
}
