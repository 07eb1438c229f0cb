//! Threads that read and write the connections of one HTTP server ([`HttpOptions::io_threads`]), so that it uses several
//! cores.
//!
//! Each has a runtime of its own, and serves a connection from its first byte to its last. A runtime that moves tasks
//! between its threads wakes these for most requests, which costs more than the requests save by it: figures are in
//! `docs/performance.md`.
//!
//! [`HttpOptions::io_threads`]: super::HttpOptions::io_threads

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::Error;

/// Maximum number of threads: more than any machine has cores, and far below the number of threads that a process may
/// have.
pub(super) const MAX_IO_THREADS: usize = 1_024;

/// Maximum number of threads for blocking work that the I/O threads of a server have together: as many as one runtime of
/// tokio has.
const MAX_BLOCKING_THREADS: usize = 512;

/// What a binding does with the I/O threads of its HTTP servers.
#[derive(Clone)]
pub struct IoThreadHooks {
    /// Starts a thread.
    pub start: StartThread,
    /// Called on a thread before it waits for its connections.
    pub before_sleep: Arc<dyn Fn() + Send + Sync>,
}

/// Starts a thread with a name that runs this function, in which the runtime of this handle runs.
pub type StartThread =
    Arc<dyn Fn(&str, &Handle, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync>;

impl fmt::Debug for IoThreadHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoThreadHooks").finish_non_exhaustive()
    }
}

impl Default for IoThreadHooks {
    fn default() -> Self {
        Self {
            start: Arc::new(|name, _runtime, run| {
                let thread = std::thread::Builder::new().name(name.into());
                thread.spawn(run).map(drop)
            }),
            before_sleep: Arc::new(|| {}),
        }
    }
}

/// The I/O threads of one server. If this is dropped, they end with what they are doing.
#[derive(Debug, Default)]
pub(super) struct IoThreads(Vec<IoThread>);

#[derive(Debug)]
struct IoThread {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
    /// Ends the thread when it is dropped.
    running: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

/// A connection that counts as served by an I/O thread until this is dropped.
struct Served(Arc<AtomicUsize>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl IoThreads {
    /// Starts threads.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the system is out of threads or file descriptors.
    pub(super) fn start(count: usize, hooks: &IoThreadHooks) -> Result<Self, Error> {
        let blocking = MAX_BLOCKING_THREADS.div_ceil(count.max(1));
        let threads = (0..count).map(|_| IoThread::start(hooks, blocking));
        let threads = threads.collect::<io::Result<_>>().map_err(|error| {
            Error::transport(
                "listen",
                "cannot start the I/O threads of the server",
                error,
            )
        })?;
        Ok(Self(threads))
    }

    /// Returns the runtime that serves the next connection, and counts it there: one with the fewest connections.
    /// `None` without threads.
    pub(super) fn assign(&self) -> Option<Assignment> {
        let used = |thread: &&IoThread| thread.connections.load(Ordering::Relaxed);
        let thread = self.0.iter().min_by_key(used)?;
        thread.connections.fetch_add(1, Ordering::Relaxed);
        Some(Assignment {
            runtime: thread.runtime.clone(),
            served: Served(thread.connections.clone()),
        })
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the threads and waits until `deadline` for their last tasks: a handler could block one.
    pub(super) async fn end(self, deadline: Instant) {
        let ended: Vec<_> = self.0.into_iter().map(IoThread::end).collect();
        let all_ended = async {
            for ended in ended {
                // The last thing that the thread does.
                let _ = ended.await;
            }
        };
        if tokio::time::timeout_at(deadline, all_ended).await.is_err() {
            tracing::warn!("an I/O thread does not end: a handler blocks it");
        }
    }
}

/// The I/O thread of a connection.
pub(super) struct Assignment {
    pub(super) runtime: Handle,
    served: Served,
}

impl Assignment {
    /// Serves a connection that another runtime has accepted, on this one.
    ///
    /// # Errors
    ///
    /// The system does not watch the socket.
    pub(super) fn serve<F: Future>(
        self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F,
    ) -> io::Result<impl Future<Output = ()>> {
        let stream = stream.into_std()?;
        Ok(async move {
            let _served = self.served;
            match TcpStream::from_std(stream) {
                Ok(stream) => drop(serve(stream).await),
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
        })
    }
}

impl IoThread {
    fn start(hooks: &IoThreadHooks, blocking: usize) -> io::Result<Self> {
        let before_sleep = hooks.before_sleep.clone();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(blocking)
            .on_thread_park(move || before_sleep())
            .build()?;
        let handle = runtime.handle().clone();
        let runtime = OwnRuntime(Some(runtime));
        let (running, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        (hooks.start)(
            "mcpline-io",
            &handle,
            Box::new(move || {
                runtime.run(stopped);
                // Nobody may be waiting.
                let _ = end.send(());
            }),
        )?;
        Ok(Self {
            runtime: handle,
            connections: Arc::default(),
            running,
            ended,
        })
    }

    fn end(self) -> oneshot::Receiver<()> {
        drop(self.running);
        self.ended
    }
}

/// A runtime that may be dropped anywhere, and does not wait for functions that block.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// Runs its tasks until the sender is dropped.
    fn run(self, stopped: oneshot::Receiver<()>) {
        if let Some(runtime) = &self.0 {
            let _ = runtime.block_on(stopped);
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
