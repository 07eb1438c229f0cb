//! A thread pool for handlers of foreign code that block: which job is next, and when another worker joins.
//!
//! The threads are the binding's: those of C are threads of the standard library, those of Python interpreter threads. The
//! binding starts them when it is asked to, and each [takes](Worker::take) jobs, runs them and [sleeps](Worker::sleep) in
//! between. This module holds the policy:
//!
//! - **Order.** Peers take turns (`TurnQueue`), so a client that floods a server waits behind its
//!   own jobs alone.
//! - **Bounds.** Past [`MAX_WAITING_CALLS`] a call is refused. What has to run in any case
//!   ([`push_always`](WorkerPool::push_always)) is bounded by the code that pushes it.
//! - **Wake-ups.** Waking a thread costs more than most handlers. A pool without a running worker wakes one when the runtime
//!   has taken in whatever else has arrived, and a running worker takes what has gathered. Results are collected likewise:
//!   the runtime is woken when no job is left, after [a number of them](Limits::max_unsent_results), or after a tick (`TICK`).
//! - **Growth.** One worker is enough until jobs wait although a worker runs. While some do, the pool looks every
//!   `TICK` (`watch`): if fewer jobs were taken since the last look than waited then, workers join, twice as many
//!   with each look. Where handlers share one lock ([`Limits::runs_in_parallel`]), they join only if those that run take few jobs,
//!   which means that they block: another thread would otherwise compete for the lock, and all would be slower.
//! - **Spare workers.** Turns are taken by the job, and jobs that take long may hold all workers. While no job is taken, the pool
//!   adds workers beyond the limit for peers of whose jobs none runs ([`Limits::max_spare`]). When more run than the limit says, a
//!   worker takes only jobs of such peers, and rests if there are none.
//! - **Reserve.** Before a worker takes a job it starts another one if none is idle ([`WorkerStep::StartAnother`]), because in Python only a thread of the
//!   interpreter can start another: all that others have to do is to wake it. In C it keeps the cost of a new thread away
//!   from the I/O thread.
//! - **Waiting.** A worker that waits for a client's answer ([`waiting`](WorkerPool::waiting)) is replaced meanwhile, unless its
//!   peer has as many that wait as all others may still have ([`MAX_BLOCKED_WORKERS`]). Those that are too many afterwards
//!   end.

mod handler;
#[cfg(all(test, mcpline_models))]
mod models;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::background;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use crate::turn_queue::{PeerId, TurnQueue};

use super::io_queue::{IoAction, IoQueue};

pub use handler::too_many_calls;
pub use worker::{Worker, WorkerStep, is_worker};

/// How many calls may wait for foreign code: enough for every client of a busy server to have one waiting, and few enough
/// that what they hold in memory stays small beside the process.
pub const MAX_WAITING_CALLS: usize = 65_536;

/// How many workers of a pool may wait for an answer at once. Each is a thread with its stack. A peer may have no more of
/// them than are left for all others: half if it is alone, a third each if two take what they can get. However many it
/// takes, a peer that has none finds one. Those that [close something](WorkerPool::block_anyway) wait in any case: they are
/// as few as what they close.
pub const MAX_BLOCKED_WORKERS: usize = 1_024;

/// How many spare workers a pool has by default: workers beyond [`Limits::max_running`], each for a peer of whose jobs none runs.
/// Calls that take long may hold all workers; a client that has none of them need not wait for their end. Enough for the
/// clients that call while a few others hold all workers, and few enough that they do no harm as threads.
pub const MAX_SPARE_WORKERS: usize = 32;

/// How long jobs may wait before another worker joins: long beside handlers that are worth gathering, short beside what a
/// user notices.
const TICK: Duration = Duration::from_millis(1);

/// A worker that takes more jobs than this in a [`TICK`] doesn't block.
const QUICK_JOBS: u64 = 4;

/// What a pool is made for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many workers take jobs. Those that wait for an answer aren't counted, nor are spare ones
    /// ([`max_spare`](Self::max_spare)). A worker that has its answer ends its job beside those that have taken its place
    /// meanwhile, for one of them may wait for a lock that it holds: for so long more run.
    pub max_running: usize,
    /// How many workers may run jobs beyond `max_running`, each for a peer of whose jobs none runs: [`MAX_SPARE_WORKERS`], or 0
    /// where `max_running` is a promise.
    pub max_spare: usize,
    /// Whether handlers of several workers can run at the same moment: not where all need one interpreter lock.
    pub runs_in_parallel: bool,
    /// How many results wait for the runtime while workers have more to do: about as many as handlers return in a fraction
    /// of a millisecond, so that the runtime sends responses meanwhile.
    pub max_unsent_results: usize,
}

/// How the binding's threads are started and woken.
#[derive(Default)]
pub struct WorkerThreadStarter {
    /// Starts a worker from any thread, and returns whether it has: the new thread is to use [`WorkerPool::worker`]. `None`
    /// where only workers can start others ([`Worker::take`]).
    pub start: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Whether this thread calls [`WorkerPool::wake_at_rest`] before it sleeps. Otherwise a task of the runtime wakes workers.
    pub rests: Option<fn() -> bool>,
}

/// Why a job was not taken.
#[derive(Debug)]
pub enum Refused<J> {
    /// The pool is closed.
    Closed(J),
    /// [`MAX_WAITING_CALLS`] wait already.
    Full(J),
}

/// As many handlers wait as may: see [`MAX_BLOCKED_WORKERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "too many handlers wait for an answer ({of_peer} of this client, {all} in all); try again later"
)]
pub struct TooManyBlocked {
    /// How many of this peer's wait.
    pub of_peer: usize,
    /// How many wait in all.
    pub all: usize,
}

/// How many threads a pool has, and what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCounts {
    /// All that were started and have not ended.
    pub all: usize,
    /// Those that run a job, without those that wait for an answer.
    pub running: usize,
    /// Those that wait for an answer.
    pub blocked: usize,
}

/// Jobs that wait for worker threads, and what is known of the threads.
pub struct WorkerPool<J> {
    state: Mutex<State<J>>,
    /// Idle workers wait here.
    woken: Condvar,
    /// Whoever waits for the end of threads does so here.
    ended: Condvar,
    limits: Limits,
    threads: WorkerThreadStarter,
    completions: Mutex<Option<Arc<IoQueue>>>,
    /// Results that the runtime was not woken for.
    unsent: AtomicUsize,
    /// This thread is to wake a worker before it sleeps.
    wake_is_due: AtomicBool,
    /// A task looks after what waits.
    is_watched: AtomicBool,
    this: Weak<Self>,
}

struct State<J> {
    queue: TurnQueue<Waiting<J>>,
    /// How many calls are among the jobs.
    calls: usize,
    /// How many jobs were taken so far.
    taken: u64,
    threads: usize,
    /// Workers that run a job or are about to look for one.
    running: usize,
    /// Workers that sleep, or were started and have not begun.
    idle: usize,
    /// Workers that were woken and have not noticed yet: they count as running.
    woken: usize,
    /// Workers that wait for an answer.
    blocked: usize,
    /// What each worker does, by its number.
    activities: Vec<Activity>,
    /// The numbers that no worker has.
    free_numbers: Vec<usize>,
    /// How many threads gather jobs: workers are woken when they have done so.
    gathering: usize,
    /// How many [use](WorkerPool::open) the pool.
    users: usize,
    closed: bool,
    runtime: Option<Handle>,
}

struct Waiting<J> {
    job: J,
    is_call: bool,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It runs no job.
    None,
    /// It runs a job of this peer.
    Running(PeerId),
    /// The job of this peer that it runs waits for an answer.
    Blocked(PeerId),
}

impl<J: Send + 'static> WorkerPool<J> {
    /// A pool without threads.
    pub fn new(limits: Limits, threads: WorkerThreadStarter) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            state: Mutex::new(State {
                queue: TurnQueue::default(),
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
            completions: Mutex::new(None),
            unsent: AtomicUsize::new(0),
            wake_is_due: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// Has results go to this runtime from now on, and watches jobs on it.
    pub fn attach(&self, runtime: Handle, completions: IoQueue) {
        self.lock().runtime = Some(runtime);
        let mut attached = self
            .completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = attached.replace(Arc::new(completions));
        drop(attached);
        drop(before);
    }

    /// Queues a call of a peer.
    ///
    /// # Errors
    ///
    /// The job: the pool is closed, or too many calls wait.
    pub fn push(&self, peer: PeerId, job: J) -> Result<(), Refused<J>> {
        self.enqueue(peer, job, true)
    }

    /// Queues what has to run however many calls wait.
    ///
    /// # Errors
    ///
    /// The job: the pool is closed.
    pub fn push_always(&self, peer: PeerId, job: J) -> Result<(), Refused<J>> {
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
        state.queue.push(peer, Waiting { job, is_call });
        let wakes = state.running == 0 && state.gathering == 0;
        self.watch(state);
        if wakes {
            self.wake_soon();
        }
        Ok(())
    }

    /// Wakes a worker once this thread has taken in whatever else has arrived.
    fn wake_soon(&self) {
        if self.threads.rests.is_some_and(|rests| rests()) {
            self.wake_is_due.store(true, Ordering::Relaxed);
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => {
                if !self.wake_is_due.swap(true, Ordering::AcqRel) {
                    let waking = Waking(self.this.clone());
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

    /// Wakes a worker if none runs though jobs wait: for a thread that [rests](Threads::rests), before it sleeps.
    pub fn wake_at_rest(&self) {
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

    /// Gathers jobs until the returned guard is dropped: if some are left by then, a worker is woken at once.
    pub fn gather(&self) -> WorkerWakeupHold<'_, J> {
        self.lock().gathering += 1;
        WorkerWakeupHold(self)
    }

    /// Hands over the result of a job that has ended. The runtime is woken for it when the worker finds no other job, or soon.
    pub fn complete(&self, completion: IoAction) {
        match self.completions() {
            Some(completions) => {
                completions.leave(completion);
                self.unsent.fetch_add(1, Ordering::AcqRel);
            }
            // No runtime has served the call that could be woken.
            None => completion.run(),
        }
    }

    /// As [`Self::complete`], of a job that may go on: the runtime is woken soon however long that takes.
    pub fn complete_early(&self, completion: IoAction) {
        self.complete(completion);
        // Either the watch that is ending sees the result, or this sees that it has ended.
        fence(Ordering::SeqCst);
        if !self.is_watched.load(Ordering::Acquire) {
            self.watch(self.lock());
        }
    }

    /// Hands over something that the runtime is to do at once, after the results before it.
    pub fn deliver(&self, completion: IoAction) {
        if let Some(completions) = self.completions() {
            self.unsent.store(0, Ordering::Release);
            completions.push(completion);
        }
    }

    /// Wakes the runtime for the results that wait.
    pub fn hand_over(&self) {
        if self.unsent.swap(0, Ordering::AcqRel) > 0
            && let Some(completions) = self.completions()
        {
            completions.wake();
        }
    }

    /// Runs something that waits for an answer. If this thread is one of the pool's workers, another one replaces it
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Too many workers wait already, of the peer whose job this one runs or in all ([`MAX_BLOCKED_WORKERS`]).
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> Result<T, TooManyBlocked> {
        let _blocked = self.block()?;
        Ok(wait())
    }

    /// Counts this thread as a worker that waits, until the guard is dropped. `None` if it runs no job of the pool's.
    ///
    /// # Errors
    ///
    /// As [`Self::waiting`].
    pub fn block(&self) -> Result<Option<Blocked<'_, J>>, TooManyBlocked> {
        self.block_within(MAX_BLOCKED_WORKERS)
    }

    /// As [`Self::block`], for what is not to be refused however many workers wait: the end of a connection, which is what
    /// others may wait for.
    pub fn block_anyway(&self) -> Option<Blocked<'_, J>> {
        self.block_within(usize::MAX).unwrap_or_default()
    }

    fn block_within(&self, most: usize) -> Result<Option<Blocked<'_, J>>, TooManyBlocked> {
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
        Ok(Some(Blocked {
            pool: self,
            worker,
            peer,
        }))
    }

    /// Wakes or starts up to so many workers.
    fn wake_workers(&self, state: MutexGuard<'_, State<J>>, count: usize) {
        self.wake_up_to(state, count, self.limits.max_running);
    }

    /// Wakes or starts up to so many workers, as long as fewer than `max_running` run.
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
            // Counted here, so that no other is woken for the same job.
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

    /// Counts one more user of the pool, and takes jobs again if it was closed. Wants a [`close`](Self::close).
    pub fn open(&self) {
        let mut state = self.lock();
        state.users += 1;
        state.closed = false;
    }

    /// Ends one [use](Self::open) of the pool, or the only one if it was never opened. After the last one, workers do what is left
    /// and end, and jobs that come are refused. Returns whether it was the last.
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

    /// Waits until no thread is left, or the time is over that `deadline` gives for those that are.
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

    /// Takes the jobs that are left once the pool is closed and its threads have ended, which is none unless no thread could
    /// be started for them.
    pub fn take_left(&self) -> Vec<J> {
        let mut state = self.lock();
        state.calls = 0;
        std::iter::from_fn(|| state.queue.pop())
            .map(|waiting| waiting.job)
            .collect()
    }

    /// How many threads there are.
    pub fn thread_counts(&self) -> ThreadCounts {
        self.lock().counts()
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn completions(&self) -> Option<Arc<IoQueue>> {
        self.completions
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

    /// The peers whose jobs run, without those that wait.
    fn running_peers(&self) -> Vec<PeerId> {
        let activities = self.activities.iter();
        let running = activities.filter_map(|activity| match activity {
            Activity::Running(peer) => Some(*peer),
            Activity::None | Activity::Blocked(_) => None,
        });
        running.collect()
    }

    /// Whether a peer has a job that waits, and none that runs. Looks at one more peer than workers run, at most.
    fn has_job_of_idle_peer(&self) -> bool {
        let running = self.running_peers();
        self.queue.has_of(|peer| !running.contains(&peer))
    }

    /// The next job; if more workers run than `max_running`, of a peer of whose jobs none runs; if more than the spare ones do,
    /// because some are back that have waited, none.
    fn pop(&mut self, limits: &Limits) -> Option<(PeerId, Waiting<J>)> {
        if self.running <= limits.max_running {
            return self.queue.pop_with_peer();
        }
        if self.running > limits.max_running + limits.max_spare {
            return None;
        }
        let running = self.running_peers();
        self.queue.pop_of(|peer| !running.contains(&peer))
    }

    /// How many workers wait that run jobs of this peer. There are few workers, and those that wait do so for long.
    fn count_blocked(&self, peer: PeerId) -> usize {
        let activities = self.activities.iter();
        activities
            .filter(|activity| **activity == Activity::Blocked(peer))
            .count()
    }

    /// The number of a worker that begins.
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

    /// A worker that did not begin to run is not there. If it was woken meanwhile, that is taken back.
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

/// Wakes a worker when it is dropped, also by a runtime that ends.
struct Waking<J: Send + 'static>(Weak<WorkerPool<J>>);

impl<J: Send + 'static> Drop for Waking<J> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.wake_is_due.store(false, Ordering::Release);
            pool.wake_now();
        }
    }
}

/// Keeps workers from being woken. See [`WorkerPool::gather`].
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

/// A worker that waits. See [`WorkerPool::block`].
pub struct Blocked<'p, J: Send + 'static> {
    pool: &'p WorkerPool<J>,
    worker: usize,
    peer: PeerId,
}

impl<J: Send + 'static> Drop for Blocked<'_, J> {
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

impl<J: Send + 'static> std::fmt::Debug for Blocked<'_, J> {
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
