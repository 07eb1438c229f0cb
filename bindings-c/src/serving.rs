//! Transports that run in the background, and waiting for their end.

use std::ffi::c_void;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[cfg(feature = "sharing-check")]
use mcpline::foreign::SharingCheck;
use mcpline::transport::{self, Stop, Transport};
#[cfg(feature = "http")]
use tokio::runtime::Handle;

use crate::callback_tracker::{Latch, Waiter};
use crate::event_loop::deadline;
use crate::mcpl_status::MCPL_WAIT_TIMED_OUT;
use crate::server::{Server, mcpl_server};
use crate::signals::TerminationSignals;
use crate::status::{Fault, FaultResult, entry, mcpl_error, mcpl_status};
use crate::user_data::{UserData, mcpl_finalizer};

/// Called when the last transport of a server has ended.
///
/// - `error`: `NULL` after a normal end, else why it failed. Valid until the callback returns.
pub type mcpl_server_ended = Option<
    unsafe extern "C" fn(server: *mut mcpl_server, error: *const mcpl_error, user: *mut c_void),
>;

/// The running transports of one server.
pub(crate) struct Serving(Mutex<State>);

struct State {
    /// Stops the transports that are running now.
    stop: Stop,
    /// Whether the server is closed or closing: no further transport begins.
    is_closed: bool,
    running: usize,
    /// The first failure that was not reported yet.
    failed: Option<Fault>,
    waiting: Vec<Latch<()>>,
    ended: Option<(
        unsafe extern "C" fn(*mut mcpl_server, *const mcpl_error, *mut c_void),
        Arc<UserData>,
    )>,
}

impl Serving {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            stop: Stop::new(),
            is_closed: false,
            running: 0,
            failed: None,
            waiting: Vec::new(),
            ended: None,
        }))
    }

    /// Stops the transports that are running now, and prevents further ones.
    pub(crate) fn close(&self) {
        // First: one that begins in between would be stopped, and one that begins later is refused.
        self.lock().is_closed = true;
        self.stop();
    }

    /// Stops the transports that are running now.
    pub(crate) fn stop(&self) {
        let stop = std::mem::take(&mut self.lock().stop);
        stop.stop();
    }

    /// Waits until no transport runs. Returns `false` if the time is over first. A negative time means no limit.
    pub(crate) fn wait(&self, waiter: &Waiter<'_>, timeout_ms: i64) -> FaultResult<bool> {
        let latch = {
            let mut state = self.lock();
            if state.running == 0 {
                return Ok(true);
            }
            let latch = Latch::new();
            state.waiting.push(latch.clone());
            latch
        };
        Ok(waiter.wait(&latch, deadline(timeout_ms))?.is_some())
    }

    /// Like [`Self::wait`], but fails with the first failure of a transport, if there was one.
    pub(crate) fn outcome(&self, waiter: &Waiter<'_>, timeout_ms: i64) -> FaultResult {
        if !self.wait(waiter, timeout_ms)? {
            return Err(Fault::new(
                MCPL_WAIT_TIMED_OUT,
                "the wait timed out: transports of the server are still running",
            ));
        }
        self.lock().failed.take().map_or(Ok(()), Err)
    }

    /// Begins to serve. The transport must end when the returned signal is set, and has ended when the guard is
    /// dropped.
    fn begin(&self, server: &Arc<Server>) -> FaultResult<(Stop, Running)> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Fault::closed("server"));
        }
        state.running += 1;
        Ok((state.stop.clone(), Running(server.clone())))
    }

    fn end(&self, server: &Arc<Server>) {
        let (waiting, ended, failed) = {
            let mut state = self.lock();
            state.running -= 1;
            if state.running > 0 {
                return;
            }
            let ended = state.ended.clone();
            (
                std::mem::take(&mut state.waiting),
                ended,
                state.failed.clone(),
            )
        };
        if let Some((ended, data)) = ended {
            let token = server.token;
            server.owner.call_back(move || {
                let error = failed.map(mcpl_error::from);
                let error = error.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
                // SAFETY: the error outlives the call, and the data is released after the last callback.
                unsafe { ended(token.handle(), error, data.pointer()) }
            });
        }
        waiting.iter().for_each(|latch| latch.set(()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running transport. It has ended when this is dropped.
struct Running(Arc<Server>);

impl Running {
    fn failed(&self, fault: Fault) {
        self.0.serving.lock().failed.get_or_insert(fault);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.serving.end(&self.0);
    }
}

impl Server {
    /// Runs a transport on the I/O thread until it ends.
    pub(crate) fn spawn<F>(
        self: &Arc<Self>,
        serve: impl FnOnce(mcpline::Server, Stop) -> F + Send + 'static,
    ) -> FaultResult
    where
        F: Future<Output = FaultResult> + Send + 'static,
    {
        let (stop, running) = self.serving.begin(self)?;
        let core = self.core();
        #[cfg(feature = "http")]
        let sharing = self.sharing();
        self.owner.library().spawn(async move {
            #[cfg(feature = "http")]
            let sharing = sharing.map(|sharing| sharing.enter(&Handle::current()));
            let outcome = serve(core, stop).await;
            // Before the transport has ended for the program: its functions may not be callable afterwards.
            #[cfg(feature = "http")]
            if let Some(sharing) = sharing {
                sharing.leave().await;
            }
            if let Err(fault) = outcome {
                running.failed(fault);
            }
        });
        Ok(())
    }

    /// Runs a check of functions that share state. It does not use the shared state of the server, as serving would.
    #[cfg(feature = "sharing-check")]
    pub(crate) fn check_sharing(self: &Arc<Self>, check: SharingCheck) -> FaultResult {
        let (stop, running) = self.serving.begin(self)?;
        let core = self.core();
        self.owner.library().spawn(async move {
            if let Err(fault) = serve(core, check, stop).await {
                running.failed(fault);
            }
        });
        Ok(())
    }

    #[cfg(feature = "stdio")]
    fn start_stdio(self: &Arc<Self>) -> FaultResult {
        self.spawn(|core, stop| async move { serve(core, transport::stdio(), stop).await })
    }
}

pub(crate) async fn serve(
    core: mcpline::Server,
    transport: impl Transport,
    stop: Stop,
) -> Result<(), Fault> {
    core.serve_until(transport, stop).await.map_err(Fault::from)
}

/// Serves over the standard input and output of this process, and waits until the client disconnects or
/// `mcpl_server_stop` is called (`basic/transports`, stdio).
///
/// Meanwhile, reads from the process's own standard input return end of file, and its standard output goes to standard
/// error, so that printed text does not mix with messages. SIGINT and SIGTERM end the process and its calls at once;
/// see `mcpl_server_stop_on_signals`. If the server uses a loop and this is the loop's thread, callbacks are dispatched
/// here. In debug mode it waits at the end, up to one second, until all messages are logged.
///
/// Returns `MCPL_TRANSPORT_ERROR` if the transport failed, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within
/// `mcpl_loop_dispatch`.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_run_stdio(server: *mut mcpl_server) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        let waiter = server.owner.waiter()?;
        server.start_stdio()?;
        let outcome = server.serving.outcome(&waiter, -1);
        server.flush_log();
        outcome
    })
}

/// Serves over the standard input and output of this process in the background. Otherwise like `mcpl_server_run_stdio`.
///
/// Any thread.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_start_stdio(server: *mut mcpl_server) -> mcpl_status {
    entry(|| Server::get(server)?.start_stdio())
}

/// Stops the server on SIGINT and SIGTERM, as `mcpl_server_stop` does, so that `mcpl_server_run_stdio`,
/// `mcpl_server_run_unix`, `mcpl_server_run_http` and `mcpl_server_wait` return. On Windows it stops on Ctrl-C, Ctrl-Break, and
/// when the console is closed, the user signs out or the system shuts down.
///
/// For programs that are nothing but a server: from now on these signals no longer end the process, even after the
/// server is freed. In other programs call `mcpl_server_stop` from a thread that waits for signals.
///
/// Returns `MCPL_TRANSPORT_ERROR` if the signal handlers cannot be installed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_stop_on_signals(server: *mut mcpl_server) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        let _entered = server.owner.library().handle().enter();
        let mut signals = TerminationSignals::take()
            .map_err(|error| Fault::new(mcpl_status::MCPL_TRANSPORT_ERROR, error.to_string()))?;
        let stopping = Arc::downgrade(&server);
        server.owner.library().spawn(async move {
            while signals.next().await.is_some() {
                let Some(server) = Weak::upgrade(&stopping) else {
                    return;
                };
                server.serving.stop();
            }
        });
        Ok(())
    })
}

/// Stops all transports of the server, without waiting for their end. The server can be served again.
///
/// Calls in flight have the server's `shutdown_timeout` to end. Then they are cancelled, and answered with an error that
/// says that the server is shutting down.
///
/// Any thread, but not from a signal handler: this function takes locks. Use `mcpl_server_stop_on_signals`, or a thread
/// that waits for signals with `sigwait`.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_stop(server: *mut mcpl_server) -> mcpl_status {
    entry(|| {
        Server::get(server)?.serving.stop();
        Ok(())
    })
}

/// Waits until all transports of the server have ended.
///
/// - `timeout_ms`: how long to wait at most, in milliseconds; negative for no limit.
///
/// Returns `MCPL_WAIT_TIMED_OUT` after that time, `MCPL_TRANSPORT_ERROR` if a transport failed, and
/// `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_wait(server: *mut mcpl_server, timeout_ms: i64) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        server.serving.outcome(&server.owner.waiter()?, timeout_ms)
    })
}

/// Sets the callback that is called each time the server's last transport has ended, where callbacks run.
///
/// - `ended`: the callback. Replaces an earlier one.
/// - `user`, `finalize`: passed to the callback, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if `ended` is `NULL`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_end(
    server: *mut mcpl_server,
    ended: mcpl_server_ended,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        let ended = ended.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        server.owner.keep(&data);
        let before = server.serving.lock().ended.replace((ended, data));
        drop(before);
        Ok(())
    })
}
