//! One thread of a pool.

use std::cell::Cell;

use crate::sync::atomic::Ordering;
use crate::sync::{Arc, PoisonError, thread_local};

use super::{Activity, WorkerPool};

thread_local! {
    /// The address of the pool that this thread works for, and the worker's number there.
    static THIS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Returns whether this thread is a worker of any pool.
pub fn is_worker() -> bool {
    THIS.with(Cell::get).is_some()
}

/// Returns this thread's worker number in the pool. There may be several pools, and a job of one may wait for another
/// one.
pub(super) fn this_threads_number<J>(pool: &WorkerPool<J>) -> Option<usize> {
    let address = std::ptr::from_ref(pool).addr();
    THIS.with(Cell::get)
        .filter(|(pool, _)| *pool == address)
        .map(|(_, number)| number)
}

/// The state of a pool's thread, from its start to its end.
///
/// It takes jobs until there are none, then sleeps, and takes more after it was woken:
///
/// ```text
/// loop {
///     match worker.take() {
///         WorkerStep::Job(job) => job.run(),
///         WorkerStep::StartAnother => start another thread, or call `worker_not_started`,
///         WorkerStep::Nothing => worker.sleep(),
///         WorkerStep::Ended => return,
///     }
/// }
/// ```
pub struct Worker<J: Send + 'static> {
    pool: Arc<WorkerPool<J>>,
    number: usize,
    phase: Phase,
    /// Whether it has requested another worker since its last job.
    has_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Counts as idle, or was woken.
    Idle,
    /// Counts as running.
    Running,
    /// No longer counts.
    Ended,
}

/// What a worker has to do next.
#[derive(Debug)]
pub enum WorkerStep<J> {
    /// Run this job.
    Job(J),
    /// Start another worker, because none is idle, then take a job. The new worker counts as idle from now on. If it
    /// cannot be started, call [`WorkerPool::worker_not_started`], and jobs wait for the existing workers.
    StartAnother,
    /// Sleep.
    Nothing,
    /// End.
    Ended,
}

impl<J: Send + 'static> WorkerPool<J> {
    /// Returns the state of this thread, which was started for the pool.
    pub fn worker(self: &Arc<Self>) -> Worker<J> {
        let number = self.lock().add_worker();
        let address = Arc::as_ptr(self).addr();
        THIS.with(|this| this.set(Some((address, number))));
        Worker {
            pool: self.clone(),
            number,
            phase: Phase::Idle,
            has_asked: false,
        }
    }

    /// Returns whether a worker must be started because none is idle, for a binding whose other threads cannot start
    /// one. It counts as idle from now on.
    pub fn expect_worker(&self) -> bool {
        let mut state = self.lock();
        let expects = !state.closed && state.idle == 0;
        if expects {
            state.add_idle();
        }
        expects
    }

    /// Reports that the [expected](Self::expect_worker) worker could not be started.
    pub fn worker_not_started(&self) {
        self.lock().remove_idle();
        self.ended.notify_all();
    }
}

impl<J: Send + 'static> Worker<J> {
    /// Takes the next job, or returns what to do instead.
    pub fn take(&mut self) -> WorkerStep<J> {
        let pool = &*self.pool;
        let mut state = pool.lock();
        if self.phase == Phase::Ended {
            return WorkerStep::Ended;
        }
        if self.phase == Phase::Idle {
            return match state.closed && state.queue.is_empty() {
                true => WorkerStep::Ended,
                false => WorkerStep::Nothing,
            };
        }
        state.activities[self.number] = Activity::None;
        // One idle worker is kept beside the running ones, also for spare workers.
        let most = pool.limits.max_running + pool.limits.max_spare.max(1);
        if state.idle == 0
            && !self.has_asked
            && !state.closed
            && state.running < most
            && !state.queue.is_empty()
        {
            self.has_asked = true;
            state.add_idle();
            return WorkerStep::StartAnother;
        }
        loop {
            if let Some((peer, waiting)) = state.pop(&pool.limits) {
                self.has_asked = false;
                state.activities[self.number] = Activity::Running(peer);
                state.taken += 1;
                state.calls -= usize::from(waiting.is_call);
                let unsent = pool.unsent.load(Ordering::Acquire);
                drop(state);
                if unsent >= pool.limits.max_unsent_results {
                    pool.hand_over();
                }
                return WorkerStep::Job(waiting.job);
            }
            if pool.unsent.load(Ordering::Acquire) > 0 {
                drop(state);
                pool.hand_over();
                state = pool.lock();
                continue;
            }
            // One more than may run may be idle. There are more after replaced workers have returned.
            if state.closed || state.running + state.idle > pool.limits.max_running + 1 {
                // Uncounted at once, so that only the surplus ends.
                state.running -= 1;
                state.threads -= 1;
                self.phase = Phase::Ended;
                return WorkerStep::Ended;
            }
            state.running -= 1;
            state.idle += 1;
            self.phase = Phase::Idle;
            return WorkerStep::Nothing;
        }
    }

    /// Sleeps until it is woken or the pool is closed.
    pub fn sleep(&mut self) {
        if self.phase != Phase::Idle {
            return;
        }
        let mut state = self.pool.lock();
        while state.woken == 0 && !state.closed {
            state = self
                .pool
                .woken
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.woken > 0 {
            state.woken -= 1;
        } else if state.queue.is_empty() {
            // The pool is closed, so it ends without having run.
            return;
        } else {
            state.idle -= 1;
            state.running += 1;
        }
        self.phase = Phase::Running;
    }
}

impl<J: Send + 'static> Drop for Worker<J> {
    fn drop(&mut self) {
        if this_threads_number(&self.pool) == Some(self.number) {
            THIS.with(|this| this.set(None));
        }
        let mut state = self.pool.lock();
        state.remove_worker(self.number);
        match self.phase {
            Phase::Idle => state.remove_idle(),
            Phase::Running => {
                state.threads -= 1;
                state.running -= 1;
            }
            Phase::Ended => {}
        }
        // Jobs that have just arrived found this worker running.
        if state.running == 0 && !state.queue.is_empty() {
            self.pool.wake_workers(state, 1);
        } else {
            drop(state);
        }
        self.pool.ended.notify_all();
    }
}

impl<J: Send + 'static> std::fmt::Debug for Worker<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
