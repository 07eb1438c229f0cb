//! The watch: a task on the runtime that runs while jobs wait.

use crate::background;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{MutexGuard, Weak};

use super::{QUICK_JOBS, State, TICK, WorkerPool};

/// The state at one check, for comparison with the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolSnapshot {
    /// Number of jobs taken until then.
    taken: u64,
    /// Number of jobs taken when all that waited then have been taken.
    waiting_until: u64,
}

impl<J> State<J> {
    pub(super) fn snapshot(&self) -> PoolSnapshot {
        PoolSnapshot {
            taken: self.taken,
            waiting_until: self.taken + self.queue.len() as u64,
        }
    }
}

impl<J: Send + 'static> WorkerPool<J> {
    /// Starts a task that checks every [`TICK`] while jobs wait, unless one is running.
    pub(super) fn watch(&self, state: MutexGuard<'_, State<J>>) {
        if self.is_watched.load(Ordering::Acquire) {
            return;
        }
        let Some(runtime) = state.runtime.clone() else {
            return;
        };
        let mut seen = state.snapshot();
        // Dropped first: a runtime that has ended drops the task at once, and that must not lock the pool.
        drop(state);
        if self.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut watching = WatchGuard {
            pool: self.this.clone(),
            is_over: false,
        };
        background::spawn_unboxed(&runtime, async move {
            loop {
                background::sleep(TICK).await;
                let Some(pool) = watching.pool.upgrade() else {
                    return;
                };
                // Later jobs and results start another watch; this one sees the earlier ones.
                pool.is_watched.store(false, Ordering::Release);
                // See `complete_early`.
                fence(Ordering::SeqCst);
                watching.is_over = true;
                let Some(next) = pool.check_progress(seen) else {
                    return;
                };
                if pool.is_watched.swap(true, Ordering::AcqRel) {
                    return;
                }
                watching.is_over = false;
                seen = next;
            }
        });
    }

    /// Sends the results that workers have left, and makes others join if jobs wait too long. Returns `None` if none
    /// waits.
    pub(super) fn check_progress(&self, seen: PoolSnapshot) -> Option<PoolSnapshot> {
        let state = loop {
            self.run_completions();
            let state = self.lock();
            if !state.queue.is_empty() {
                break state;
            }
            // A worker may have left a result meanwhile and taken the last job: it sends the result only after that
            // job, and no other watch follows this one.
            if self.unsent.load(Ordering::Acquire) == 0 {
                return None;
            }
        };
        let next = state.snapshot();
        if state.running >= self.limits.max_running {
            if self.needs_spare(&state, seen) {
                self.wake_up_to(state, 1, self.limits.max_running + self.limits.max_spare);
            }
            return Some(next);
        }
        let joining = self.count_joining(&state, seen);
        if joining > 0 {
            self.wake_workers(state, joining);
        }
        Some(next)
    }

    /// Sends the waiting results.
    fn run_completions(&self) {
        if self.unsent.swap(0, Ordering::AcqRel) > 0 {
            // Their results need not wait for those that this thread runs.
            self.wake_elsewhere();
            if let Some(io_queue) = self.io_queue() {
                io_queue.run();
            }
        }
    }

    /// Whether, since the last check, jobs of other peers than a waiting one have occupied all workers.
    fn needs_spare(&self, state: &State<J>, seen: PoolSnapshot) -> bool {
        self.limits.max_spare > 0
            && state.taken == seen.taken
            && state.woken == 0
            && state.has_job_of_idle_peer()
    }

    fn count_joining(&self, state: &State<J>, seen: PoolSnapshot) -> usize {
        if state.running == 0 {
            return 1;
        }
        let progress = state.taken - seen.taken;
        let is_behind = state.taken < seen.waiting_until;
        let would_help =
            self.limits.runs_in_parallel || progress <= QUICK_JOBS * state.running as u64;
        match is_behind && would_help {
            true => state.running.min(state.queue.len()),
            false => 0,
        }
    }
}

/// Clears the flag of the watch if the runtime drops the task.
struct WatchGuard<J: Send + 'static> {
    pool: Weak<WorkerPool<J>>,
    is_over: bool,
}

impl<J: Send + 'static> Drop for WatchGuard<J> {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(pool) = self.pool.upgrade()
        {
            pool.is_watched.store(false, Ordering::Release);
        }
    }
}
