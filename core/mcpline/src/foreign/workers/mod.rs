//! A thread pool for blocking handlers of foreign code: which job is next, and when another worker joins.
//!
//! The threads belong to the binding: those of C are threads of the standard library, those of Python interpreter
//! threads. The binding starts them on demand, and each [takes](Worker::take) jobs, runs them and
//! [sleeps](Worker::sleep) in between. This module contains the policy:
//!
//! - **Order.** Peers take turns (`FairQueue`), so a client that floods a server only delays its own jobs.
//! - **Bounds.** Above [`MAX_WAITING_CALLS`] a call is refused. Jobs that must run in any case
//!   ([`push_unlimited`](WorkerPool::push_unlimited)) are bounded by the code that pushes them.
//! - **Wake-ups.** Waking a thread costs more than most handlers. A pool without a running worker wakes one after the
//!   runtime has processed everything that has arrived, and a running worker takes the jobs that have gathered. Results
//!   are collected in the same way: the runtime is woken when no job is left, after [a number of
//!   them](Limits::max_unsent_results), or after a tick (`TICK`).
//! - **Growth.** One worker is enough until jobs wait although it is running. Then the pool checks every `TICK`
//!   (`watch`): if fewer jobs were taken since the last check than waited then, workers join, twice as many with each
//!   check. Where handlers share one lock ([`Limits::runs_in_parallel`]), workers join only if the running ones take
//!   few jobs, which means that they block: another thread would otherwise compete for the lock and slow all of them
//!   down.
//! - **Spare workers.** Turns are counted by job, and long jobs may occupy all workers. While no job is taken, the pool
//!   adds workers beyond the limit for peers without a running job ([`Limits::max_spare`]). While more workers run than
//!   the limit, a worker only takes jobs of such peers, and rests if there are none.
//! - **Reserve.** Before a worker takes a job it starts another one if none is idle ([`WorkerStep::StartAnother`]): in
//!   Python only a thread of the interpreter can start another one, so all other threads only have to wake it. In C
//!   this keeps the cost of a new thread off the I/O thread.
//! - **Blocked workers.** A worker that waits for a client's answer ([`waiting`](WorkerPool::waiting)) is replaced
//!   meanwhile, unless its peer already has as many blocked workers as are left for all others
//!   ([`MAX_BLOCKED_WORKERS`]). Surplus workers end afterwards.

mod handler;
#[cfg(all(test, mcpline_models))]
mod race_models;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::background;
use crate::fair_queue::{FairQueue, PeerId};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use super::io_thread_queue::{IoAction, IoThreadQueue};

pub use handler::too_many_calls;
pub use worker::{Worker, WorkerStep, is_worker};

/// Maximum number of calls that wait for foreign code: enough for one of every client of a busy server, and few enough
/// that their memory stays small compared to the process.
pub const MAX_WAITING_CALLS: usize = 65_536;

/// Maximum number of workers of a pool that wait for an answer at once. Each is a thread with its stack. A peer may
/// have no more of them than are left for all others: half if it is alone, a third each if two take as many as
/// possible. So a peer without blocked workers always finds one. Workers that [close
/// something](WorkerPool::mark_blocked_anyway) are not limited: they are as few as the things that they close.
pub const MAX_BLOCKED_WORKERS: usize = 1_024;

/// Default number of spare workers of a pool: workers beyond [`Limits::max_running`], each for a peer without a running
/// job. Long calls may occupy all workers; a client without any of them need not wait for their end. Enough for the
/// clients that call while a few others occupy all workers, and few enough to do no harm as threads.
pub const MAX_SPARE_WORKERS: usize = 32;

/// How long jobs may wait before another worker joins: long compared to handlers that are worth gathering, short
/// compared to what a user notices.
const TICK: Duration = Duration::from_millis(1);

/// A worker that takes more jobs than this in a [`TICK`] does not block.
const QUICK_JOBS: u64 = 4;

/// Limits of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of workers that take jobs. Workers that wait for an answer do not count, nor do spare ones
    /// ([`max_spare`](Self::max_spare)). A worker that has its answer finishes its job beside those that have replaced
    /// it, because one of them may wait for a lock that it holds: for that time more run.
    pub max_running: usize,
    /// Number of workers beyond `max_running`, each for a peer without a running job: [`MAX_SPARE_WORKERS`], or 0 if
    /// `max_running` is a guarantee.
    pub max_spare: usize,
    /// Whether handlers of several workers can run in parallel: not if all need one interpreter lock.
    pub runs_in_parallel: bool,
    /// Number of results that wait for the runtime while workers have more to do: about as many as handlers return in a
    /// fraction of a millisecond, so that the runtime sends responses meanwhile.
    pub max_unsent_results: usize,
}

/// How the binding's threads are started and woken.
#[derive(Default)]
pub struct WorkerThreadStarter {
    /// Starts a worker from any thread, and returns whether it did: the new thread must use [`WorkerPool::worker`].
    /// `None` if only workers can start others ([`Worker::take`]).
    pub start: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Whether this thread calls [`WorkerPool::wake_before_sleep`] before it sleeps. Otherwise a task of the runtime wakes
    /// workers.
    pub rests: Option<fn() -> bool>,
}

/// Why a job was not accepted.
#[derive(Debug)]
pub enum Refused<J> {
    /// The pool is closed.
    Closed(J),
    /// [`MAX_WAITING_CALLS`] are waiting already.
    Full(J),
}

/// The maximum number of handlers waits already: see [`MAX_BLOCKED_WORKERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "too many handlers are waiting for responses of clients ({of_peer} of this client, {all} in all); try again later"
)]
pub struct TooManyBlocked {
    /// Number of waiting handlers of this peer.
    pub of_peer: usize,
    /// Total number of waiting handlers.
    pub all: usize,
}

/// Numbers of a pool's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Threads that were started and have not ended.
    pub all: usize,
    /// Threads that run a job, without those that wait for an answer.
    pub running: usize,
    /// Threads that wait for an answer.
    pub blocked: usize,
}

/// Jobs that wait for worker threads, and the state of the threads.
pub struct WorkerPool<J> {
    state: Mutex<State<J>>,
    /// Idle workers wait here.
    woken: Condvar,
    /// Callers of `wait_for_end` wait here.
    ended: Condvar,
    limits: Limits,
    threads: WorkerThreadStarter,
    io_queue: Mutex<Option<Arc<IoThreadQueue>>>,
    /// Results for which the runtimes were not woken yet.
    unsent: AtomicUsize,
    /// Queues with such results, other than the attached one.
    unsent_elsewhere: Mutex<Vec<IoThreadQueue>>,
    /// This thread has to wake a worker before it sleeps.
    wake_is_due: AtomicBool,
    /// A task watches the waiting jobs.
    is_watched: AtomicBool,
    this: Weak<Self>,
}

struct State<J> {
    queue: FairQueue<WaitingJob<J>>,
    /// Number of calls among the jobs.
    calls: usize,
    /// Number of jobs taken so far.
    taken: u64,
    threads: usize,
    /// Workers that run a job or are about to look for one.
    running: usize,
    /// Workers that sleep, or were started and have not begun.
    idle: usize,
    /// Workers that were woken and have not noticed yet; they count as running.
    woken: usize,
    /// Workers that wait for an answer.
    blocked: usize,
    /// The activity of each worker, by its number.
    activities: Vec<Activity>,
    /// Unused worker numbers.
    free_numbers: Vec<usize>,
    /// Number of threads that gather jobs: workers are woken when they are done.
    gathering: usize,
    /// Number of [users](WorkerPool::open) of the pool.
    users: usize,
    closed: bool,
    runtime: Option<Handle>,
}

struct WaitingJob<J> {
    job: J,
    is_call: bool,
}

/// The activity of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Runs no job.
    None,
    /// Runs a job of this peer.
    Running(PeerId),
    /// Runs a job of this peer that waits for an answer.
    Blocked(PeerId),
}

impl<J: Send + 'static> WorkerPool<J> {
    /// Creates a pool without threads.
    pub fn new(limits: Limits, threads: WorkerThreadStarter) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            state: Mutex::new(State {
                queue: FairQueue::default(),
                calls: 0,
                taken: 0,
                threads: 0,
                running: 0,
                idle: 0,
                woken: 0,
                blocked: 0,
                activities: Vec::new(),
                free_numbers: Vec::new(),
                gathering: 0,
                users: 0,
                closed: false,
                runtime: None,
            }),
            woken: Condvar::new(),
            ended: Condvar::new(),
            limits,
            threads,
            io_queue: Mutex::new(None),
            unsent: AtomicUsize::new(0),
            unsent_elsewhere: Mutex::default(),
            wake_is_due: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// Sends results to this runtime from now on, and watches jobs on it.
    pub fn attach(&self, runtime: Handle, io_queue: IoThreadQueue) {
        self.lock().runtime = Some(runtime);
        let mut attached = self.io_queue.lock().unwrap_or_else(PoisonError::into_inner);
        let before = attached.replace(Arc::new(io_queue));
        drop(attached);
        drop(before);
    }

    /// Queues a call of a peer.
    ///
    /// # Errors
    ///
    /// Returns the job if the pool is closed or too many calls wait.
    pub fn push(&self, peer: PeerId, job: J) -> Result<(), Refused<J>> {
        self.enqueue(peer, job, true)
    }

    /// Queues a job that must run, however many calls wait.
    ///
    /// # Errors
    ///
    /// Returns the job if the pool is closed.
    pub fn push_unlimited(&self, peer: PeerId, job: J) -> Result<(), Refused<J>> {
        self.enqueue(peer, job, false)
    }

    fn enqueue(&self, peer: PeerId, job: J, is_call: bool) -> Result<(), Refused<J>> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed(job));
        }
        if is_call {
            if state.calls >= MAX_WAITING_CALLS {
                return Err(Refused::Full(job));
            }
            state.calls += 1;
        }
        state.queue.push(peer, WaitingJob { job, is_call });
        let wakes = state.running == 0 && state.gathering == 0;
        self.watch(state);
        if wakes {
            self.wake_soon();
        }
        Ok(())
    }

    /// Wakes a worker once this thread has processed everything that has arrived.
    fn wake_soon(&self) {
        if self.threads.rests.is_some_and(|rests| rests()) {
            self.wake_is_due.store(true, Ordering::Relaxed);
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => {
                if !self.wake_is_due.swap(true, Ordering::AcqRel) {
                    let waking = WakeOnDrop(self.this.clone());
                    background::spawn_unboxed(&runtime, async move {
                        let waking = waking;
                        tokio::task::yield_now().await;
                        drop(waking);
                    });
                }
            }
            Err(_) => self.wake_now(),
        }
    }

    /// Wakes a worker if jobs wait and none is running. For a thread that [rests](WorkerThreadStarter::rests), before it
    /// sleeps.
    pub fn wake_before_sleep(&self) {
        if self.wake_is_due.load(Ordering::Relaxed) {
            self.wake_is_due.store(false, Ordering::Release);
            self.wake_now();
        }
    }

    fn wake_now(&self) {
        let state = self.lock();
        if state.running == 0 && !state.queue.is_empty() {
            self.wake_workers(state, 1);
        }
    }

    /// Gathers jobs until the returned guard is dropped; if some are left then, a worker is woken at once.
    pub fn gather(&self) -> WorkerWakeupHold<'_, J> {
        self.lock().gathering += 1;
        WorkerWakeupHold(self)
    }

    /// Queues the result of a finished job. The runtime is woken for it when the worker finds no other job, or soon.
    pub fn complete(&self, action: IoAction) {
        match self.io_queue() {
            Some(io_queue) => {
                io_queue.push_without_wake(action);
                self.unsent.fetch_add(1, Ordering::AcqRel);
            }
            // No runtime that could be woken has served the call.
            None => action.run(),
        }
    }

    /// Like [`Self::complete`], for the I/O thread of another queue.
    fn complete_elsewhere(&self, io_queue: &IoThreadQueue, action: IoAction) {
        if io_queue.push_without_wake(action) {
            self.lock_unsent_elsewhere().push(io_queue.clone());
        }
        self.unsent.fetch_add(1, Ordering::AcqRel);
    }

    /// Like [`Self::complete`], for a job that may continue: the runtime is woken soon, however long the job takes. The
    /// action runs on the I/O thread of `io_queue`, or of the [attached](Self::attach) queue.
    pub fn complete_early(&self, action: IoAction, io_queue: Option<&IoThreadQueue>) {
        match io_queue {
            Some(io_queue) => self.complete_elsewhere(io_queue, action),
            None => self.complete(action),
        }
        // Either the ending watch sees the result, or this thread sees that it has ended.
        fence(Ordering::SeqCst);
        if !self.is_watched.load(Ordering::Acquire) {
            self.watch(self.lock());
        }
    }

    /// Queues an action that the runtime has to run at once, after the results before it.
    pub fn deliver(&self, action: IoAction) {
        if let Some(io_queue) = self.io_queue() {
            self.unsent.store(0, Ordering::Release);
            io_queue.push(action);
            self.wake_elsewhere();
        }
    }

    /// Wakes the runtimes for the waiting results.
    pub fn hand_over(&self) {
        if self.unsent.swap(0, Ordering::AcqRel) > 0 {
            if let Some(io_queue) = self.io_queue() {
                io_queue.wake();
            }
            self.wake_elsewhere();
        }
    }

    /// Wakes the runtimes of other queues than the attached one for their waiting results.
    fn wake_elsewhere(&self) {
        let unsent = std::mem::take(&mut *self.lock_unsent_elsewhere());
        for io_queue in unsent {
            io_queue.wake();
        }
    }

    fn lock_unsent_elsewhere(&self) -> MutexGuard<'_, Vec<IoThreadQueue>> {
        self.unsent_elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a closure that waits for an answer. If this thread is one of the pool's workers, another one replaces it
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Too many workers wait already, of this job's peer or in total ([`MAX_BLOCKED_WORKERS`]).
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> Result<T, TooManyBlocked> {
        let _blocked = self.mark_blocked()?;
        Ok(wait())
    }

    /// Counts this thread as a blocked worker until the guard is dropped. Returns `None` if it runs no job of the pool.
    ///
    /// # Errors
    ///
    /// As for [`Self::waiting`].
    pub fn mark_blocked(&self) -> Result<Option<BlockedWorkerGuard<'_, J>>, TooManyBlocked> {
        self.mark_blocked_within(MAX_BLOCKED_WORKERS)
    }

    /// Like [`Self::mark_blocked`], but never refused: for the end of a connection, which other workers may wait for.
    pub fn mark_blocked_anyway(&self) -> Option<BlockedWorkerGuard<'_, J>> {
        self.mark_blocked_within(usize::MAX).unwrap_or_default()
    }

    fn mark_blocked_within(
        &self,
        most: usize,
    ) -> Result<Option<BlockedWorkerGuard<'_, J>>, TooManyBlocked> {
        let Some(worker) = worker::this_threads_number(self) else {
            return Ok(None);
        };
        self.hand_over();
        let mut state = self.lock();
        let Activity::Running(peer) = state.activities[worker] else {
            return Ok(None);
        };
        let (all, of_peer) = (state.blocked, state.count_blocked(peer));
        if of_peer >= most.saturating_sub(all) {
            return Err(TooManyBlocked { of_peer, all });
        }
        state.activities[worker] = Activity::Blocked(peer);
        state.blocked += 1;
        state.running -= 1;
        if state.running == 0 && !state.queue.is_empty() {
            self.wake_workers(state, 1);
        }
        Ok(Some(BlockedWorkerGuard {
            pool: self,
            worker,
            peer,
        }))
    }

    /// Wakes or starts up to `count` workers.
    fn wake_workers(&self, state: MutexGuard<'_, State<J>>, count: usize) {
        self.wake_up_to(state, count, self.limits.max_running);
    }

    /// Wakes or starts up to `count` workers, while fewer than `max_running` run.
    fn wake_up_to(&self, mut state: MutexGuard<'_, State<J>>, count: usize, max_running: usize) {
        let mut to_start = 0;
        for _ in 0..count {
            if state.running >= max_running {
                break;
            }
            if state.idle == 0 {
                if self.threads.start.is_none() {
                    break;
                }
                state.add_idle();
                to_start += 1;
            }
            // Counted here, so that no other worker is woken for the same job.
            state.idle -= 1;
            state.running += 1;
            state.woken += 1;
            self.woken.notify_one();
        }
        drop(state);
        for _ in 0..to_start {
            let started = self.threads.start.as_ref().is_some_and(|start| start());
            if !started {
                self.worker_not_started();
            }
        }
    }

    /// Adds a user of the pool, and accepts jobs again if it was closed. Call [`close`](Self::close) once for each
    /// call of this function.
    pub fn open(&self) {
        let mut state = self.lock();
        state.users += 1;
        state.closed = false;
    }

    /// Removes a [user](Self::open) of the pool, or the only one if it was never opened. After the last one, workers
    /// finish the remaining jobs and end, and later jobs are refused. Returns whether it was the last.
    pub fn close(&self) -> bool {
        let mut state = self.lock();
        state.users = state.users.saturating_sub(1);
        if state.users > 0 {
            return false;
        }
        state.closed = true;
        if state.running == 0 && !state.queue.is_empty() {
            self.wake_workers(state, 1);
        } else {
            drop(state);
        }
        self.woken.notify_all();
        true
    }

    /// Waits until no thread is left, or until the deadline that `deadline` returns for the remaining ones.
    pub fn wait_for_end(&self, deadline: impl Fn(ThreadCounts) -> Instant) {
        let mut state = self.lock();
        while state.threads > 0 {
            let left = deadline(state.counts()).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self
                .ended
                .wait_timeout(state, left)
                .map_or_else(|error| error.into_inner().0, |(state, _)| state);
        }
    }

    /// Takes the remaining jobs once the pool is closed and its threads have ended. There are none, unless no thread
    /// could be started for them.
    pub fn take_remaining(&self) -> Vec<J> {
        let mut state = self.lock();
        state.calls = 0;
        std::iter::from_fn(|| state.queue.pop())
            .map(|waiting| waiting.job)
            .collect()
    }

    /// Returns the numbers of threads.
    pub fn thread_counts(&self) -> ThreadCounts {
        self.lock().counts()
    }

    /// Returns the number of waiting jobs.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Returns whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io_queue(&self) -> Option<Arc<IoThreadQueue>> {
        self.io_queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl<J> State<J> {
    fn counts(&self) -> ThreadCounts {
        ThreadCounts {
            all: self.threads,
            running: self.running,
            blocked: self.blocked,
        }
    }

    /// Returns the peers with running jobs, without those that wait.
    fn running_peers(&self) -> Vec<PeerId> {
        let activities = self.activities.iter();
        let running = activities.filter_map(|activity| match activity {
            Activity::Running(peer) => Some(*peer),
            Activity::None | Activity::Blocked(_) => None,
        });
        running.collect()
    }

    /// Whether a peer has a waiting job and no running one. Examines at most one more peer than workers run.
    fn has_job_of_idle_peer(&self) -> bool {
        let running = self.running_peers();
        self.queue.has_entry_of(|peer| !running.contains(&peer))
    }

    /// Takes the next job. While more workers run than `max_running`, only of a peer without a running job; while even
    /// more than the spare ones run, because some have returned from waiting, none.
    fn pop(&mut self, limits: &Limits) -> Option<(PeerId, WaitingJob<J>)> {
        if self.running <= limits.max_running {
            return self.queue.pop_with_peer();
        }
        if self.running > limits.max_running + limits.max_spare {
            return None;
        }
        let running = self.running_peers();
        self.queue.pop_of(|peer| !running.contains(&peer))
    }

    /// Returns the number of blocked workers with jobs of this peer. There are few workers, and blocked ones stay so
    /// for long.
    fn count_blocked(&self, peer: PeerId) -> usize {
        let activities = self.activities.iter();
        activities
            .filter(|activity| **activity == Activity::Blocked(peer))
            .count()
    }

    /// Returns the number of a new worker.
    fn add_worker(&mut self) -> usize {
        self.free_numbers.pop().unwrap_or_else(|| {
            self.activities.push(Activity::None);
            self.activities.len() - 1
        })
    }

    fn remove_worker(&mut self, number: usize) {
        self.activities[number] = Activity::None;
        self.free_numbers.push(number);
    }

    /// Counts a worker that is about to be started.
    fn add_idle(&mut self) {
        self.threads += 1;
        self.idle += 1;
    }

    /// Uncounts a worker that failed to start. If it was woken meanwhile, that is undone.
    fn remove_idle(&mut self) {
        self.threads -= 1;
        if self.idle > 0 {
            self.idle -= 1;
        } else {
            self.woken -= 1;
            self.running -= 1;
        }
    }
}

/// Wakes a worker on drop, even if a runtime that shuts down drops it.
struct WakeOnDrop<J: Send + 'static>(Weak<WorkerPool<J>>);

impl<J: Send + 'static> Drop for WakeOnDrop<J> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.wake_is_due.store(false, Ordering::Release);
            pool.wake_now();
        }
    }
}

/// Prevents wake-ups of workers. See [`WorkerPool::gather`].
pub struct WorkerWakeupHold<'p, J: Send + 'static>(&'p WorkerPool<J>);

impl<J: Send + 'static> Drop for WorkerWakeupHold<'_, J> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.gathering -= 1;
        let wakes = state.gathering == 0 && state.running == 0 && !state.queue.is_empty();
        if wakes {
            self.0.wake_workers(state, 1);
        }
    }
}

/// A blocked worker. See [`WorkerPool::mark_blocked`].
pub struct BlockedWorkerGuard<'p, J: Send + 'static> {
    pool: &'p WorkerPool<J>,
    worker: usize,
    peer: PeerId,
}

impl<J: Send + 'static> Drop for BlockedWorkerGuard<'_, J> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.activities[self.worker] = Activity::Running(self.peer);
        state.blocked -= 1;
        state.running += 1;
    }
}

impl<J> std::fmt::Debug for WorkerPool<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("WorkerPool")
            .field("waiting", &state.queue.len())
            .field("threads", &state.counts())
            .finish_non_exhaustive()
    }
}

impl<J: Send + 'static> std::fmt::Debug for WorkerWakeupHold<'_, J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerWakeupHold").finish_non_exhaustive()
    }
}

impl<J: Send + 'static> std::fmt::Debug for BlockedWorkerGuard<'_, J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocked").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WorkerThreadStarter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerThreadStarter")
            .finish_non_exhaustive()
    }
}
