//! What looks after jobs that wait: a task on the runtime, for as long as some do.

use crate::background;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{MutexGuard, Weak};

use super::{QUICK_JOBS, State, TICK, WorkerPool};

/// What a look found, for the next one to compare with.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolSnapshot {
    /// How many jobs were taken by then.
    taken: u64,
    /// How many will be taken when none is left of those that waited then.
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
    /// Has a task look every [`TICK`] as long as jobs wait, unless one does already.
    pub(super) fn watch(&self, state: MutexGuard<'_, State<J>>) {
        if self.is_watched.load(Ordering::Acquire) {
            return;
        }
        let Some(runtime) = state.runtime.clone() else {
            return;
        };
        let mut seen = state.snapshot();
        // A runtime that has ended drops the task at once, and that takes no lock of the pool's.
        drop(state);
        if self.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut watching = Watching {
            pool: self.this.clone(),
            is_over: false,
        };
        background::spawn_unboxed(&runtime, async move {
            loop {
                background::sleep(TICK).await;
                let Some(pool) = watching.pool.upgrade() else {
                    return;
                };
                // Jobs and results that come from now on start another watch; this one sees those that came before.
                pool.is_watched.store(false, Ordering::Release);
                // See `complete_early`.
                fence(Ordering::SeqCst);
                watching.is_over = true;
                let Some(next) = pool.look(seen) else { return };
                if pool.is_watched.swap(true, Ordering::AcqRel) {
                    return;
                }
                watching.is_over = false;
                seen = next;
            }
        });
    }

    /// Does what workers have left, and has others join if jobs wait too long. `None` if none waits.
    pub(super) fn look(&self, seen: PoolSnapshot) -> Option<PoolSnapshot> {
        let state = loop {
            self.run_completions();
            let state = self.lock();
            if !state.queue.is_empty() {
                break state;
            }
            // A worker may have left a result meanwhile and taken the last job: it sends the result only after that job, and
            // no other watch follows this one.
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

    /// Sends the results that wait.
    fn run_completions(&self) {
        if self.unsent.swap(0, Ordering::AcqRel) > 0
            && let Some(completions) = self.completions()
        {
            completions.run();
        }
    }

    /// Whether all workers were held up by jobs of other peers than one that waits, since the last look.
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

/// Takes back that jobs are watched if the runtime drops the task.
struct Watching<J: Send + 'static> {
    pool: Weak<WorkerPool<J>>,
    is_over: bool,
}

impl<J: Send + 'static> Drop for Watching<J> {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(pool) = self.pool.upgrade()
        {
            pool.is_watched.store(false, Ordering::Release);
        }
    }
}
