//! The worker threads that callbacks run on by default. `mcpline::foreign::workers` decides which callback is next and
//! how many threads there are; this module starts the threads and runs the callbacks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcpline::foreign::workers::{
    BlockedWorkerGuard, Limits, MAX_SPARE_WORKERS, Refused, WorkerPool, WorkerStep,
    WorkerThreadStarter,
};
use mcpline::foreign::{IoAction, IoThreadQueue, PeerId};
use tokio::runtime::Handle;

use crate::executor::{self, Job};
use crate::mcpl_status::MCPL_LIMIT_EXCEEDED;
use crate::status::{Fault, FaultResult};
use crate::threads;

/// Minimum number of workers by default: callbacks wait for disks and networks more than they compute.
const FEWEST: usize = 4;

/// The number set by `mcpl_set_worker_threads`; 0 for the default.
static MOST: AtomicU32 = AtomicU32::new(0);

pub(crate) fn set_max_threads(most: u32) {
    MOST.store(most, Ordering::Relaxed);
}

/// A worker that is waiting, if this thread is one.
pub(crate) type BlockedWorker<'p> = BlockedWorkerGuard<'p, Job>;

/// Worker threads and the jobs that wait for them.
pub(crate) struct Pool {
    workers: Arc<WorkerPool<Job>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(crate) fn new(io: Handle, io_queue: IoThreadQueue) -> Arc<Self> {
        let processors = || std::thread::available_parallelism().map_or(FEWEST, usize::from);
        let (max_running, max_spare) = match MOST.load(Ordering::Relaxed) as usize {
            0 => (processors().max(FEWEST), MAX_SPARE_WORKERS),
            // A host that sets the number wants no spare workers.
            most => (most, 0),
        };
        let limits = Limits {
            max_running,
            max_spare,
            runs_in_parallel: true,
            max_unsent_results: 32,
        };
        Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let threads = WorkerThreadStarter {
                start: Some(Box::new(move || {
                    this.upgrade().is_some_and(|pool| pool.start())
                })),
                rests: Some(executor::is_io_thread),
            };
            let workers = WorkerPool::new(limits, threads);
            workers.attach(io, io_queue);
            Self {
                workers,
                threads: Mutex::default(),
            }
        })
    }

    /// Queues a job for a worker. Peers take turns.
    pub(crate) fn push(&self, peer: PeerId, job: Job) -> Result<(), Refused<Job>> {
        match &job {
            Job::Call(..) => self.workers.push(peer, job),
            Job::Run(_) => self.workers.push_unlimited(peer, job),
        }
    }

    /// Wakes no worker for queued jobs until the guard is dropped.
    pub(crate) fn gather(&self) -> impl Drop {
        self.workers.gather()
    }

    /// Hands over the result of a callback that may continue afterwards, to the I/O thread of `io_queue` or the library's
    /// own one. For callback threads.
    pub(crate) fn leave(&self, action: IoAction, io_queue: Option<&IoThreadQueue>) {
        self.workers.complete_early(action, io_queue);
    }

    /// Wakes the I/O threads for what was left.
    pub(crate) fn hand_over(&self) {
        self.workers.hand_over();
    }

    /// Reports that the I/O thread is about to sleep.
    pub(crate) fn before_io_sleep(&self) {
        self.workers.wake_before_sleep();
    }

    /// Marks this thread as waiting until the guard is dropped. If it is a worker, another one replaces it.
    ///
    /// # Errors
    ///
    /// Limit exceeded: too many workers wait already, for the client whose callback this is or in total.
    pub(crate) fn mark_blocked(&self) -> FaultResult<Option<BlockedWorker<'_>>> {
        let blocked = self.workers.mark_blocked();
        blocked.map_err(|busy| Fault::new(MCPL_LIMIT_EXCEEDED, busy.to_string()))
    }

    /// Like [`Self::mark_blocked`], but never refused.
    pub(crate) fn mark_blocked_anyway(&self) -> Option<BlockedWorker<'_>> {
        self.workers.mark_blocked_anyway()
    }

    /// Runs the remaining jobs, ends the workers and waits for their end. Must not be called by a worker.
    pub(crate) fn close(&self) {
        self.workers.close();
        // Callbacks may take long, and another thread may be about to start a worker.
        self.workers
            .wait_for_end(|_| Instant::now() + Duration::from_secs(3_600));
        let threads = std::mem::take(&mut *self.lock());
        for thread in threads {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
        self.workers
            .take_remaining()
            .into_iter()
            .for_each(Job::refuse);
    }

    /// Starts a worker. Returns whether that succeeded.
    fn start(self: &Arc<Self>) -> bool {
        let mut threads = self.lock();
        let pool = self.clone();
        let started = threads::start_worker(Box::new(move || pool.work()));
        match started {
            Ok(thread) => threads.push(thread),
            // Callbacks wait for the existing workers, and the pool tries again.
            Err(error) => {
                tracing::warn!(%error, "cannot start another worker thread: callbacks wait for the running ones (raise the thread limit of the process, or set fewer with `mcpl_set_worker_threads`)");
                return false;
            }
        }
        true
    }

    /// Main function of a worker.
    fn work(self: &Arc<Self>) {
        let mut worker = self.workers.worker();
        loop {
            match worker.take() {
                WorkerStep::Job(job) => job.run(),
                WorkerStep::StartAnother => {
                    if !self.start() {
                        self.workers.worker_not_started();
                    }
                }
                WorkerStep::Nothing => worker.sleep(),
                WorkerStep::Ended => return self.join_ended(),
            }
        }
    }

    /// Joins the workers that ended before this one. If a handle were dropped instead, its thread might still run its
    /// last steps when the pool is closed or the library is unloaded.
    fn join_ended(&self) {
        let ended: Vec<_> = self
            .lock()
            .extract_if(.., |thread| thread.is_finished())
            .collect();
        for thread in ended {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;
    use crate::callback_tracker::Latch;
    use crate::shared_runtime;

    fn job(run: impl FnOnce() + Send + 'static) -> Job {
        Job::Run(Box::new(run))
    }

    /// A generous limit that only prevents a test from hanging.
    fn guard() -> Option<Instant> {
        Instant::now().checked_add(Duration::from_secs(60))
    }

    #[test]
    fn a_slow_callback_delays_no_other_callback() {
        let library = shared_runtime::enter().unwrap();
        let (first, second) = (Latch::new(), Latch::new());
        let (waiting, giving) = (first.clone(), second.clone());
        // Pushed from the I/O thread, like calls: both are queued before a worker is woken.
        let (pool, peer) = (library.pool().clone(), PeerId::new());
        library.handle().spawn(async move {
            drop(pool.push(
                peer,
                job(move || {
                    waiting.take(guard());
                }),
            ));
            drop(pool.push(peer, job(move || giving.set(()))));
        });
        assert_eq!(second.take(guard()), Some(()));
        first.set(());
        shared_runtime::leave();
    }

    #[test]
    fn a_worker_of_another_pool_may_block_without_being_replaced() {
        let library = shared_runtime::enter().unwrap();
        let other = Pool::new(
            library.handle().clone(),
            IoThreadQueue::start(library.handle()),
        );
        let (begun, done) = (Latch::new(), Latch::new());
        let (pool, beginning, ending) = (other.clone(), begun.clone(), done.clone());
        let waiting = move || {
            // The other pool must treat this thread like one of the host.
            let blocked = pool.mark_blocked().unwrap();
            let given = Latch::new();
            let giving = given.clone();
            assert!(
                pool.push(PeerId::new(), job(move || giving.set(())))
                    .is_ok()
            );
            let waited = given.take(guard());
            drop(blocked);
            beginning.set(());
            ending.set(waited);
        };
        assert!(library.pool().push(PeerId::new(), job(waiting)).is_ok());
        assert_eq!(begun.take(guard()), Some(()));
        assert_eq!(done.take(guard()), Some(Some(())));
        other.close();
        shared_runtime::leave();
    }

    #[test]
    fn a_waiting_callback_is_replaced_by_another_worker() {
        let library = shared_runtime::enter().unwrap();
        let pool = library.pool().clone();
        let many = 24;
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
                let _blocked = pool.mark_blocked().unwrap();
                let gone = go.0.lock().unwrap();
                drop(go.1.wait_while(gone, |gone| !*gone).unwrap());
            };
            assert!(library.pool().push(PeerId::new(), job(waiting)).is_ok());
        }
        // All callbacks have begun though none has ended.
        assert_eq!(all.take(guard()), Some(()));
        *go.0.lock().unwrap() = true;
        go.1.notify_all();
        shared_runtime::leave();
    }
}
