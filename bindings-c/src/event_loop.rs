//! The host's event loop: a file descriptor to poll, and callbacks that run when the host dispatches them.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcpline::foreign::workers::Refused;
use mcpline::foreign::{FairQueue, MAX_WAITING_CALLS, PeerId};

use crate::executor::{self, Job, ThreadNumber};
use crate::handles::{HandleTable, HandleToken};
use crate::shared_runtime::{self, SharedRuntime};
use crate::status::{Fault, FaultResult, entry, entry_or, mcpl_status};
use crate::text::put;

/// A queue of callbacks for programs with an event loop: callbacks run on the thread that dispatches the queue.
///
/// Servers and clients use it after `mcpl_server_use_loop` or `mcpl_client_use_loop`. All their callbacks then run
/// within `mcpl_loop_dispatch`, and within waiting functions that are called on the dispatching thread.
pub struct mcpl_loop {
    _token: [u8; 0],
}

static LOOPS: HandleTable<Arc<Loop>> = HandleTable::new("loop");

thread_local! {
    /// The loop that this thread has created or dispatched last.
    static LAST: Cell<Option<HandleToken>> = const { Cell::new(None) };
}

/// The queue of one loop.
pub(crate) struct Loop {
    token: HandleToken,
    state: Mutex<State>,
    /// Signalled when a job is queued or [`Loop::wake_waiters`] is called.
    stirred: Condvar,
    library: Arc<SharedRuntime>,
    /// Readable while a job is queued.
    poll: Socket,
    signal: Socket,
}

#[cfg(unix)]
type Socket = std::os::unix::net::UnixStream;
#[cfg(windows)]
type Socket = std::net::TcpStream;

/// Returns two connected sockets that do not block.
#[cfg(unix)]
fn socket_pair() -> std::io::Result<(Socket, Socket)> {
    let (one, other) = Socket::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

#[cfg(windows)]
use mcpline::foreign::socket_pair;

#[cfg(unix)]
fn number_of(socket: &Socket) -> c_int {
    std::os::fd::AsRawFd::as_raw_fd(socket)
}

/// Numbers of sockets, as those of all handles, fit into 32 bits.
#[cfg(windows)]
#[expect(clippy::cast_possible_truncation, reason = "as the comment says")]
fn number_of(socket: &Socket) -> c_int {
    std::os::windows::io::AsRawSocket::as_raw_socket(socket) as c_int
}

struct State {
    /// Peers take turns: the host may dispatch a few jobs at a time, and one peer may have queued thousands.
    jobs: FairQueue<Job>,
    calls: usize,
    signalled: bool,
    closed: bool,
    /// The host's thread: the one that created the loop, or dispatched it last.
    thread: ThreadNumber,
    dispatching: bool,
    /// Number of events that a waiting thread may be interested in.
    stirs: u64,
}

impl Loop {
    /// Returns the loop with this handle.
    pub(crate) fn get(handle: *const mcpl_loop) -> FaultResult<Arc<Self>> {
        LOOPS.get(handle)
    }

    /// Returns the loop that this thread has created or dispatched last, if the thread may dispatch it now.
    pub(crate) fn of_this_thread() -> Option<Arc<Self>> {
        let last = LOOPS.get(LAST.get()?.handle::<mcpl_loop>()).ok()?;
        last.is_mine().then_some(last)
    }

    /// Queues a job.
    pub(crate) fn push(&self, peer: PeerId, job: Job) -> Result<(), Refused<Job>> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed(job));
        }
        if let Job::Call(..) = &job {
            if state.calls >= MAX_WAITING_CALLS {
                return Err(Refused::Full(job));
            }
            state.calls += 1;
        }
        state.jobs.push(peer, job);
        if !state.signalled {
            state.signalled = true;
            // Never blocks: the socket holds at most this byte.
            let _ = (&self.signal).write(&[1]);
        }
        self.notify_waiters(state);
        Ok(())
    }

    /// Wakes threads that dispatch or wait, to check their condition again.
    pub(crate) fn wake_waiters(&self) {
        self.notify_waiters(self.lock());
    }

    /// Whether this thread dispatches the loop and may do so now.
    pub(crate) fn is_mine(&self) -> bool {
        let state = self.lock();
        state.thread == executor::this_thread() && !state.dispatching && !state.closed
    }

    /// Dispatches until `ready` returns `true`, checked after each callback, or until the deadline. Call it on the
    /// loop's thread.
    ///
    /// Returns whether `ready` was met in time.
    pub(crate) fn dispatch_until(
        &self,
        ready: &dyn Fn() -> bool,
        until: Option<Instant>,
    ) -> FaultResult<bool> {
        loop {
            let before = self.lock().stirs;
            if ready() {
                return Ok(true);
            }
            // Ends in time however many callbacks wait, and whatever they queue in turn.
            let is_over = || until.is_some_and(|until| until <= Instant::now());
            let done = self.dispatch(0, &|| ready() || is_over())?;
            if is_over() || (done == 0 && !self.wait_for_event(before, until)) {
                return Ok(ready());
            }
        }
    }

    /// Runs the jobs that are queued now, at most `most` (0 for all). Stops early if `stops` returns `true` after a
    /// job. A job may dispatch as well.
    fn dispatch(&self, most: u32, stops: &dyn Fn() -> bool) -> FaultResult<u32> {
        if executor::is_io_thread() {
            return Err(Fault::would_deadlock());
        }
        LAST.set(Some(self.token));
        let thread = executor::this_thread();
        let (count, is_nested) = {
            let mut state = self.lock();
            let is_nested = state.dispatching;
            if is_nested && state.thread != thread {
                return Err(Fault::invalid(
                    "another thread is dispatching this loop: dispatch it on one thread at a time",
                ));
            }
            if state.closed {
                return Err(Fault::stale_handle("loop"));
            }
            state.dispatching = true;
            state.thread = thread;
            let count = match most {
                0 => state.jobs.len(),
                most => state.jobs.len().min(most as usize),
            };
            (count, is_nested)
        };
        let _dispatching = Dispatching(self, is_nested);
        let _over = executor::dispatching();
        let mut done = 0;
        while (done as usize) < count {
            let job = {
                let mut state = self.lock();
                let job = state.jobs.pop();
                if let Some(Job::Call(..)) = &job {
                    state.calls -= 1;
                }
                job
            };
            let Some(job) = job else { break };
            job.run();
            done += 1;
            if stops() {
                break;
            }
        }
        Ok(done)
    }

    /// Waits for an event after `seen`. Returns `false` if the deadline passes first.
    fn wait_for_event(&self, seen: u64, until: Option<Instant>) -> bool {
        let mut state = self.lock();
        while state.stirs == seen {
            state = match until {
                None => self
                    .stirred
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.stirred.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    fn notify_waiters(&self, mut state: MutexGuard<'_, State>) {
        state.stirs += 1;
        drop(state);
        self.stirred.notify_all();
    }

    /// Moves the queued jobs to the pool: the loop is no longer dispatched.
    fn close(&self) {
        let pool = self.library.pool();
        let mut refused = Vec::new();
        {
            // No worker is woken before all jobs have moved and the loop is unlocked.
            let _gathering = pool.gather();
            let mut state = self.lock();
            // Locked until all jobs have moved: jobs that arrive meanwhile go to the pool behind them.
            while let Some((peer, job)) = state.jobs.pop_with_peer() {
                if let Err(Refused::Closed(job) | Refused::Full(job)) = pool.push(peer, job) {
                    refused.push(job);
                }
            }
            state.closed = true;
            self.notify_waiters(state);
        }
        refused.into_iter().for_each(Job::refuse);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the loop as being dispatched until this is dropped, also by a panic. Within another dispatch, the loop remains
/// so.
struct Dispatching<'l>(&'l Loop, bool);

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        let events = self.0;
        let mut state = events.lock();
        state.dispatching = self.1;
        if state.jobs.is_empty() && state.signalled {
            state.signalled = false;
            // Does not block: the byte was written before `signalled` was set.
            let _ = (&events.poll).read(&mut [0]);
        }
        events.notify_waiters(state);
        events.library.pool().hand_over();
    }
}

/// Returns the deadline of a wait of so many milliseconds; `None` for no limit.
pub(crate) fn deadline(timeout_ms: i64) -> Option<Instant> {
    let timeout = u64::try_from(timeout_ms).ok()?;
    // A deadline beyond the range of `Instant` counts as no limit.
    Instant::now().checked_add(Duration::from_millis(timeout))
}

/// Creates a loop. Release it with `mcpl_loop_free`.
///
/// Returns `NULL` if the system is out of file descriptors or threads; see `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn mcpl_loop_new() -> *mut mcpl_loop {
    entry_or(std::ptr::null_mut(), || {
        let library = shared_runtime::enter()?;
        let made = socket_pair();
        let (poll, signal) = match made {
            Ok(pair) => pair,
            Err(error) => {
                shared_runtime::leave();
                return Err(Fault::new(
                    mcpl_status::MCPL_TRANSPORT_ERROR,
                    error.to_string(),
                ));
            }
        };
        let mut token = None;
        LOOPS
            .open(|its| {
                token = Some(its);
                LAST.set(token);
                Arc::new(Loop {
                    token: its,
                    state: Mutex::new(State {
                        jobs: FairQueue::default(),
                        calls: 0,
                        signalled: false,
                        closed: false,
                        thread: executor::this_thread(),
                        dispatching: false,
                        stirs: 0,
                    }),
                    stirred: Condvar::new(),
                    library,
                    poll,
                    signal,
                })
            })
            .inspect_err(|_| shared_runtime::leave())?;
        Ok(token.map_or(std::ptr::null_mut(), HandleToken::handle))
    })
}

/// Returns a file descriptor that is readable while callbacks are queued, for `poll`, `select`, `epoll` and similar
/// functions. On Windows it is a socket, for `WSAPoll`, `select`, or an event that `WSAEventSelect` sets.
///
/// Only poll it; do not read or close it. It is valid as long as the loop.
///
/// Returns -1 if the loop is `NULL` or was freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_loop_fd(r#loop: *mut mcpl_loop) -> c_int {
    entry_or(-1, || Ok(number_of(&Loop::get(r#loop)?.poll)))
}

/// Runs queued callbacks on this thread, without waiting for more.
///
/// - `most`: how many callbacks to run at most; 0 for all that are queued now.
/// - `count`: set to the number of callbacks that ran. May be `NULL`.
///
/// Only one thread at a time may dispatch a loop. A callback may dispatch it as well, for example while it shows a dialog
/// that has an event loop of its own: other callbacks run then, except those that must not overtake the one that runs, such
/// as the next notification of the same client.
///
/// Functions that wait for results return `MCPL_WOULD_DEADLOCK` within a callback, and this one does on the I/O thread.
/// Returns `MCPL_USAGE_ERROR` if another thread is dispatching.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_loop_dispatch(
    r#loop: *mut mcpl_loop,
    most: u32,
    count: *mut u32,
) -> mcpl_status {
    // SAFETY: guaranteed by the caller.
    unsafe { put(count, 0) };
    entry(|| {
        let done = Loop::get(r#loop)?.dispatch(most, &|| false)?;
        // SAFETY: guaranteed by the caller.
        unsafe { put(count, done) };
        Ok(())
    })
}

/// Waits until callbacks are queued, for programs that poll nothing else. Then call `mcpl_loop_dispatch`.
///
/// - `timeout_ms`: how long to wait at most, in milliseconds; negative for no limit.
///
/// Returns `MCPL_WAIT_TIMED_OUT` after that time, and `MCPL_WOULD_DEADLOCK` on the I/O thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_loop_wait(r#loop: *mut mcpl_loop, timeout_ms: i64) -> mcpl_status {
    entry(|| {
        let one = Loop::get(r#loop)?;
        if executor::is_io_thread() {
            return Err(Fault::would_deadlock());
        }
        let until = deadline(timeout_ms);
        loop {
            let before = {
                let state = one.lock();
                if state.closed {
                    return Err(Fault::stale_handle("loop"));
                }
                if !state.jobs.is_empty() {
                    return Ok(());
                }
                state.stirs
            };
            if !one.wait_for_event(before, until) {
                return Err(Fault::new(
                    mcpl_status::MCPL_WAIT_TIMED_OUT,
                    "the wait timed out: no callback was ready to dispatch",
                ));
            }
        }
    })
}

/// Releases a loop. `NULL` is ignored.
///
/// Call it on the thread that dispatches the loop, but not within a callback. Callbacks that are still queued, and
/// those of servers and clients that still use the loop, run on worker threads from then on.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_loop_free(r#loop: *mut mcpl_loop) {
    if r#loop.is_null() {
        return;
    }
    entry(|| {
        let one = LOOPS.end(r#loop)?;
        one.close();
        drop(one);
        shared_runtime::leave();
        Ok(())
    });
}

#[cfg(test)]
mod tests;
