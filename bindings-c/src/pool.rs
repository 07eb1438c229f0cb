//! The worker threads that callbacks run on by default.
//!
//! Waking a thread costs more than most callbacks, so it is done in batches: the I/O thread wakes a worker once it has
//! nothing else to do, a worker takes whatever has gathered, and tells the I/O thread of its results when nothing is
//! left. So that a slow callback holds nobody up, a watch on the I/O thread looks after a millisecond whether something
//! still waits, and wakes another worker, and another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mcpline::foreign::{Completion, Completions};
use tokio::runtime::Handle;

use crate::mcpl_status::MCPL_BUSY;
use crate::place::{self, CALLS_WAITING, Job, Refused};
use crate::status::{Done, Fault};

/// How long something may wait before another worker is woken: long beside the callbacks that are worth gathering,
/// short beside what anybody notices.
const PATIENCE: Duration = Duration::from_millis(1);
/// After how many callbacks a worker tells of their results though more are to do.
const BATCH: usize = 32;
/// How many workers may wait for an answer at once. Each is a thread with its stack.
const BLOCKED: usize = 1_024;
/// The fewest workers by default: callbacks wait for disks and networks more than they compute.
const FEWEST: usize = 4;

/// What `mcpl_set_worker_threads` has set; 0 for the default.
static MOST: AtomicU32 = AtomicU32::new(0);

pub(crate) fn set_most(most: u32) {
    MOST.store(most, Ordering::Relaxed);
}

/// Worker threads and what waits for them.
pub(crate) struct Pool {
    state: Mutex<State>,
    filled: Condvar,
    completions: Completions,
    io: Handle,
    /// How many run callbacks at once, those that wait for an answer not counted.
    most: usize,
    /// The I/O thread is to wake a worker before it sleeps.
    due: AtomicBool,
    /// Something is looked after.
    watching: AtomicBool,
    this: Weak<Self>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// How many jobs were taken so far.
    taken: u64,
    /// How many calls are among the jobs.
    calls: usize,
    /// Workers that run something or are about to.
    awake: usize,
    /// Workers that sleep.
    idle: usize,
    /// Workers that were woken and have not noticed yet; they count as awake.
    roused: usize,
    /// Workers that wait for an answer.
    blocked: usize,
    closed: bool,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn new(io: Handle, completions: Completions) -> Arc<Self> {
        let most = match MOST.load(Ordering::Relaxed) as usize {
            0 => {
                std::thread::available_parallelism().map_or(FEWEST, |count| count.get().max(FEWEST))
            }
            most => most,
        };
        Arc::new_cyclic(|this| Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            completions,
            io,
            most,
            due: AtomicBool::new(false),
            watching: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// Has a worker do it.
    pub(crate) fn push(&self, job: Job) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed(job));
        }
        if let Job::Call(..) = &job {
            if state.calls >= CALLS_WAITING {
                return Err(Refused::Full(job));
            }
            state.calls += 1;
        }
        state.jobs.push_back(job);
        if state.awake == 0 {
            if place::is_io_thread() {
                self.due.store(true, Ordering::Relaxed);
            } else {
                self.rouse(&mut state);
            }
        }
        drop(state);
        self.watch();
        Ok(())
    }

    /// Hands over a result, which the I/O thread learns of soon: when the batch is done that it is of, or after a
    /// millisecond. For callback threads.
    pub(crate) fn leave(&self, completion: Completion) {
        self.completions.leave(completion);
        self.watch();
    }

    /// Has somebody look whether something still waits after a while.
    fn watch(&self) {
        if !self.watching.swap(true, Ordering::AcqRel) {
            self.io.spawn(watch_over(self.this.clone()));
        }
    }

    /// The I/O thread has nothing else to do.
    pub(crate) fn io_rests(&self) {
        if self.due.swap(false, Ordering::Relaxed) {
            let mut state = self.lock();
            if state.awake == 0 && !state.jobs.is_empty() {
                self.rouse(&mut state);
            }
        }
    }

    /// Runs something that waits, on whatever thread. A worker lets another take its place meanwhile.
    ///
    /// # Errors
    ///
    /// Busy: too many wait already.
    pub(crate) fn waiting<T>(&self, wait: impl FnOnce() -> T) -> Done<T> {
        if !place::is_worker() {
            return Ok(wait());
        }
        self.completions.wake();
        {
            let mut state = self.lock();
            if state.blocked >= BLOCKED {
                let text = format!("{BLOCKED} callbacks wait for an answer already");
                return Err(Fault::new(MCPL_BUSY, text));
            }
            state.blocked += 1;
            state.awake -= 1;
            if state.awake == 0 && !state.jobs.is_empty() {
                self.rouse(&mut state);
            }
        }
        let waited = wait();
        let mut state = self.lock();
        state.blocked -= 1;
        state.awake += 1;
        Ok(waited)
    }

    /// Does what is left, and ends the workers. Waits for their end: not to be called by one of them.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closed = true;
            if state.awake == 0 && !state.jobs.is_empty() {
                self.rouse(&mut state);
            }
            std::mem::take(&mut state.threads)
        };
        self.filled.notify_all();
        for thread in threads {
            // What has panicked has been told by its own thread.
            let _ = thread.join();
        }
    }

    /// One more worker, if there may be one.
    fn rouse(&self, state: &mut State) {
        if state.idle > 0 {
            // Counted here, so that nobody else is woken for the same.
            state.idle -= 1;
            state.awake += 1;
            state.roused += 1;
            self.filled.notify_one();
            return;
        }
        if state.awake >= self.most {
            return;
        }
        state.threads.retain(|thread| !thread.is_finished());
        let Some(pool) = self.this.upgrade() else {
            return;
        };
        let started = std::thread::Builder::new()
            .name("mcpline-worker".into())
            .spawn(move || pool.work());
        match started {
            Ok(thread) => {
                state.awake += 1;
                state.threads.push(thread);
            }
            // What waits is done by the workers that there are; the watch tries again.
            Err(error) => tracing::warn!(%error, "no further worker thread can be started"),
        }
    }

    /// What a worker does.
    fn work(&self) {
        place::become_worker();
        let mut untold = 0;
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.taken += 1;
                if let Job::Call(..) = &job {
                    state.calls -= 1;
                }
                drop(state);
                job.run();
                untold += 1;
                if untold >= BATCH {
                    self.completions.wake();
                    untold = 0;
                }
                state = self.lock();
            } else if untold > 0 {
                drop(state);
                self.completions.wake();
                untold = 0;
                state = self.lock();
            } else if state.closed || state.awake + state.idle > self.most {
                // One that took the place of another who is back.
                state.awake -= 1;
                return;
            } else {
                state.awake -= 1;
                state.idle += 1;
                state = self.sleep(state);
            }
        }
    }

    /// Until somebody wakes this worker, who counts it as awake.
    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.roused == 0 && !state.closed {
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.roused > 0 {
            state.roused -= 1;
        } else {
            state.idle -= 1;
            state.awake += 1;
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as something waits: sees to it that it doesn't wait for one slow callback.
async fn watch_over(pool: Weak<Pool>) {
    let mut waiting_until = 0;
    loop {
        tokio::time::sleep(PATIENCE).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        // What comes from now on starts another watch; what came before is seen by this one.
        pool.watching.store(false, Ordering::Release);
        pool.completions.run();
        let mut state = pool.lock();
        if state.jobs.is_empty() {
            return;
        }
        // Whether some of what waited last time waits still.
        if state.taken < waiting_until || state.awake == 0 {
            pool.rouse(&mut state);
        }
        waiting_until = state.taken + state.jobs.len() as u64;
        drop(state);
        if pool.watching.swap(true, Ordering::AcqRel) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::library;
    use crate::owner::Latch;

    fn job(run: impl FnOnce() + Send + 'static) -> Job {
        Job::Run(Box::new(run))
    }

    /// Long beside anything that is waited for here; only a guard against waiting for ever.
    fn guard() -> Option<Instant> {
        Instant::now().checked_add(Duration::from_secs(60))
    }

    #[test]
    fn a_slow_callback_holds_nobody_up() {
        let library = library::enter().unwrap();
        let (first, second) = (Latch::new(), Latch::new());
        let (waiting, giving) = (first.clone(), second.clone());
        // From the I/O thread, as calls come: both are there before a worker is woken.
        let pool = library.pool().clone();
        library.handle().spawn(async move {
            drop(pool.push(job(move || {
                waiting.take(guard());
            })));
            drop(pool.push(job(move || giving.set(()))));
        });
        assert_eq!(second.take(guard()), Some(()));
        first.set(());
        library::leave();
    }

    #[test]
    fn a_callback_that_waits_is_replaced() {
        let library = library::enter().unwrap();
        let pool = library.pool().clone();
        let many = pool.most * 2;
        let all = Latch::new();
        let go = Arc::new((Mutex::new(false), Condvar::new()));
        let left = Arc::new(Mutex::new(many));
        for _ in 0..many {
            let (pool, go, all, left) = (pool.clone(), go.clone(), all.clone(), left.clone());
            let waiting = move || {
                let mut left = left.lock().unwrap();
                *left -= 1;
                if *left == 0 {
                    all.set(());
                }
                drop(left);
                pool.waiting(|| {
                    let gone = go.0.lock().unwrap();
                    drop(go.1.wait_while(gone, |gone| !*gone).unwrap());
                })
                .unwrap();
            };
            assert!(library.pool().push(job(waiting)).is_ok());
        }
        // All of them have begun though none has ended.
        assert_eq!(all.take(guard()), Some(()));
        *go.0.lock().unwrap() = true;
        go.1.notify_all();
        library::leave();
    }
}
