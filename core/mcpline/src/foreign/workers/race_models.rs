//! Models of the pool: threads that push race workers that take, sleep, wait for an answer and end. Each job runs once,
//! no worker sleeps while a job waits that no other one is to run, closing ends all threads, and each result reaches
//! the runtime. If jobs wait although no worker blocks, the watch makes others join.

use std::time::{Duration, Instant};

use shuttle::thread;
use tokio::runtime::Handle;

use crate::fair_queue::PeerId;
use crate::race_models::{Record, check, end_runtime, settle};
use crate::sync::{Arc, Mutex, OnceLock, Weak};

use super::super::io_thread_queue::{IoAction, IoThreadQueue};
use super::{Limits, MAX_SPARE_WORKERS, Refused, WorkerPool, WorkerStep, WorkerThreadStarter};

type Job = Box<dyn FnOnce() + Send>;
type Started = Arc<Mutex<Vec<thread::JoinHandle<()>>>>;

/// A pool with its threads. With `from_any_thread` as in C; otherwise only workers start others, as in Python.
struct Pool {
    pool: Arc<WorkerPool<Job>>,
    started: Started,
}

impl Pool {
    fn new(max_running: usize, from_any_thread: bool) -> Self {
        let started = Started::default();
        let this: Arc<OnceLock<Weak<WorkerPool<Job>>>> = Arc::default();
        let (found, starting) = (this.clone(), started.clone());
        let start = move || {
            let pool = found.get().and_then(Weak::upgrade).expect("a pool");
            start_thread(&pool, &starting)
        };
        let threads = WorkerThreadStarter {
            start: from_any_thread.then(|| Box::new(start) as Box<dyn Fn() -> bool + Send + Sync>),
            rests: None,
        };
        let limits = Limits {
            max_running,
            max_spare: MAX_SPARE_WORKERS,
            runs_in_parallel: true,
            max_unsent_results: 32,
        };
        let pool = WorkerPool::new(limits, threads);
        this.set(Arc::downgrade(&pool)).expect("set once");
        if !from_any_thread && pool.expect_worker() {
            start_thread(&pool, &started);
        }
        Self { pool, started }
    }

    /// Creates a pool that is watched on the model's runtime and sends its results there.
    fn attached(max_running: usize, from_any_thread: bool) -> Self {
        let pool = Self::new(max_running, from_any_thread);
        pool.attach();
        pool
    }

    fn attach(&self) {
        let runtime = Handle::current();
        self.pool
            .attach(runtime.clone(), IoThreadQueue::start(&runtime));
    }

    fn push(&self, peer: PeerId, job: impl FnOnce() + Send + 'static) {
        assert!(self.pool.push(peer, Box::new(job)).is_ok());
    }

    /// Closes the pool and waits for the end of its threads.
    fn end(&self) {
        self.pool.close();
        // Including those that another thread is about to start.
        self.pool
            .wait_for_end(|_| Instant::now() + Duration::from_secs(3_600));
        loop {
            let thread = self.started.lock().expect("no panic").pop();
            let Some(thread) = thread else { break };
            thread.join().expect("no panic");
        }
        let counts = self.pool.thread_counts();
        assert_eq!((counts.all, counts.running, counts.blocked), (0, 0, 0));
        assert!(self.pool.is_empty());
    }
}

fn start_thread(pool: &Arc<WorkerPool<Job>>, started: &Started) -> bool {
    let (pool, starting) = (pool.clone(), started.clone());
    let thread = thread::spawn(move || {
        let mut worker = pool.worker();
        loop {
            match worker.take() {
                WorkerStep::Job(job) => job(),
                WorkerStep::StartAnother => drop(start_thread(&pool, &starting)),
                WorkerStep::Nothing => worker.sleep(),
                WorkerStep::Ended => return,
            }
        }
    });
    started.lock().expect("no panic").push(thread);
    true
}

/// Two threads push while workers take, sleep and are woken. Only pushing wakes them.
fn pushed_jobs_are_run(from_any_thread: bool) {
    check(move || {
        const EACH: usize = 2;
        let pool = Pool::new(2, from_any_thread);
        let done: Arc<Record<usize>> = Arc::default();
        let pushing: Vec<_> = (0..2)
            .map(|thread| {
                let (pool, done) = (pool.pool.clone(), done.clone());
                thread::spawn(move || {
                    let peer = PeerId::new();
                    for number in 0..EACH {
                        let done = done.clone();
                        let job = Box::new(move || done.add(thread * EACH + number));
                        assert!(pool.push(peer, job).is_ok());
                    }
                })
            })
            .collect();
        // Blocks the model forever if a job is lost.
        let _ = done.wait_for(2 * EACH - 1);
        pushing
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
        pool.end();
        let mut done = done.all();
        done.sort_unstable();
        assert_eq!(done, (0..2 * EACH).collect::<Vec<_>>());
    });
}

#[test]
fn pushed_jobs_are_run_by_threads_that_any_thread_starts() {
    pushed_jobs_are_run(true);
}

#[test]
fn pushed_jobs_are_run_by_threads_that_workers_start() {
    pushed_jobs_are_run(false);
}

/// The only worker that may run waits for the result of another job.
fn waiting_workers_are_replaced(from_any_thread: bool) {
    check(move || {
        let pool = Pool::new(1, from_any_thread);
        let given: Arc<Record<()>> = Arc::default();
        let ended: Arc<Record<()>> = Arc::default();
        for _ in 0..2 {
            let (inner, given, ended) = (pool.pool.clone(), given.clone(), ended.clone());
            let waiting = Box::new(move || {
                assert!(inner.waiting(|| given.wait_for(0)).is_ok());
                ended.add(());
            });
            assert!(pool.pool.push(PeerId::new(), waiting).is_ok());
        }
        let giving = given.clone();
        let job = Box::new(move || giving.add(()));
        assert!(pool.pool.push(PeerId::new(), job).is_ok());
        ended.wait_for(1);
        pool.end();
    });
}

#[test]
fn workers_that_wait_are_replaced_by_threads_that_any_thread_starts() {
    waiting_workers_are_replaced(true);
}

#[test]
fn workers_that_wait_are_replaced_by_threads_that_workers_start() {
    waiting_workers_are_replaced(false);
}

/// Accepted jobs run, refused ones do not.
#[test]
fn end_of_pool_races_jobs() {
    check(|| {
        let pool = Pool::new(2, true);
        let done: Arc<Record<usize>> = Arc::default();
        let (pushing, noted) = (pool.pool.clone(), done.clone());
        let pusher = thread::spawn(move || {
            let peer = PeerId::new();
            let mut taken = 0;
            for number in 0..3 {
                let noted = noted.clone();
                match pushing.push(peer, Box::new(move || noted.add(number))) {
                    Ok(()) => taken += 1,
                    Err(Refused::Closed(_)) => {}
                    Err(Refused::Full(_)) => unreachable!("there is room"),
                }
            }
            taken
        });
        pool.pool.close();
        let taken = pusher.join().expect("no panic");
        pool.end();
        let mut done = done.all();
        done.sort_unstable();
        assert_eq!(done, (0..taken).collect::<Vec<_>>());
    });
}

/// One thread gathers jobs while another one pushes.
#[test]
fn gathered_jobs_are_run() {
    check(|| {
        let pool = Pool::new(1, true);
        let done: Arc<Record<usize>> = Arc::default();
        let job = |number: usize| -> Job {
            let done = done.clone();
            Box::new(move || done.add(number))
        };
        let (other, pushed) = (pool.pool.clone(), job(0));
        let pusher = thread::spawn(move || assert!(other.push(PeerId::new(), pushed).is_ok()));
        let gathering = pool.pool.gather();
        assert!(pool.pool.push(PeerId::new(), job(1)).is_ok());
        drop(gathering);
        let _ = done.wait_for(1);
        pusher.join().expect("no panic");
        pool.end();
    });
}

/// WorkerThreadStarter push jobs that leave their results to the pool. Only that makes the runtime take them.
fn results_reach_the_runtime(from_any_thread: bool) {
    check(move || {
        const EACH: usize = 2;
        let pool = Arc::new(Pool::attached(2, from_any_thread));
        let sent: Arc<Record<usize>> = Arc::default();
        let pushing: Vec<_> = (0..2)
            .map(|thread| {
                let (pool, sent) = (pool.clone(), sent.clone());
                thread::spawn(move || {
                    let peer = PeerId::new();
                    for number in 0..EACH {
                        let (inner, sent) = (pool.pool.clone(), sent.clone());
                        let result = move || sent.add(thread * EACH + number);
                        pool.push(peer, move || {
                            inner.complete(IoAction::Run(Box::new(result)));
                        });
                    }
                })
            })
            .collect();
        // Blocks the model forever if a result gets stuck.
        let _ = sent.wait_for(2 * EACH - 1);
        for thread in pushing {
            thread.join().expect("no panic");
        }
        pool.end();
        drop(pool);
        settle();
        let mut sent = sent.all();
        sent.sort_unstable();
        assert_eq!(sent, (0..2 * EACH).collect::<Vec<_>>());
    });
}

#[test]
fn results_reach_the_runtime_of_threads_that_any_thread_starts() {
    results_reach_the_runtime(true);
}

#[test]
fn results_reach_the_runtime_of_threads_that_workers_start() {
    results_reach_the_runtime(false);
}

/// A quick job leaves its result, and the last job waits for that: only the watch, which may be about to end, can send
/// it.
fn quick_results_are_sent_while_the_last_job_runs(from_any_thread: bool) {
    check(move || {
        let pool = Pool::attached(1, from_any_thread);
        let (sent, ended): (Arc<Record<()>>, Arc<Record<()>>) = Default::default();
        let (inner, result) = (pool.pool.clone(), sent.clone());
        pool.push(PeerId::new(), move || {
            inner.complete(IoAction::Run(Box::new(move || result.add(()))));
        });
        let ending = ended.clone();
        pool.push(PeerId::new(), move || {
            sent.wait_for(0);
            ending.add(());
        });
        ended.wait_for(0);
        pool.end();
        drop(pool);
        settle();
    });
}

#[test]
fn quick_results_are_sent_by_threads_that_any_thread_starts() {
    quick_results_are_sent_while_the_last_job_runs(true);
}

#[test]
fn quick_results_are_sent_by_threads_that_workers_start() {
    quick_results_are_sent_while_the_last_job_runs(false);
}

/// A job has left its result and runs until that is sent: only the watch, which may be about to end, can send it.
#[test]
fn early_results_are_sent_while_their_jobs_go_on() {
    check(|| {
        let pool = Pool::attached(2, true);
        let ended: Arc<Record<()>> = Arc::default();
        for _ in 0..2 {
            let (inner, sent, ended) = (pool.pool.clone(), Arc::default(), ended.clone());
            pool.push(PeerId::new(), move || {
                let (given, sent): (Arc<Record<()>>, Arc<Record<()>>) = (sent, Arc::default());
                let (early, last) = (given.clone(), sent.clone());
                inner.complete_early(IoAction::Run(Box::new(move || early.add(()))), None);
                given.wait_for(0);
                inner.deliver(IoAction::Run(Box::new(move || last.add(()))));
                sent.wait_for(0);
                ended.add(());
            });
        }
        ended.wait_for(1);
        pool.end();
        drop(pool);
        settle();
    });
}

/// As above, for results that are left to two queues: each queue is woken for its own.
#[test]
fn results_of_two_queues_are_sent() {
    check(|| {
        let pool = Pool::new(2, true);
        let runtime = Handle::current();
        let io_queue = IoThreadQueue::start(&runtime);
        let elsewhere = io_queue.start_other(&runtime);
        pool.pool.attach(runtime, io_queue);
        let ended: Arc<Record<()>> = Arc::default();
        // The result of the last job.
        let left: Arc<Record<()>> = Arc::default();
        for number in 0..3 {
            let (inner, elsewhere) = (pool.pool.clone(), elsewhere.clone());
            let is_last = number == 2;
            let sent: Arc<Record<()>> = if is_last {
                left.clone()
            } else {
                Arc::default()
            };
            let ended = ended.clone();
            pool.push(PeerId::new(), move || {
                let sending = sent.clone();
                let io_queue = (number != 1).then_some(&elsewhere);
                inner.complete_early(IoAction::Run(Box::new(move || sending.add(()))), io_queue);
                // Only the watch sends it while the job runs, and the worker when the job has ended.
                if !is_last {
                    sent.wait_for(0);
                }
                ended.add(());
            });
        }
        drop(elsewhere);
        ended.wait_for(2);
        left.wait_for(0);
        pool.end();
        drop(pool);
        settle();
    });
}

/// Jobs occupy all workers until another job runs, of a peer without a running one: a spare worker runs it. Workers for
/// the same peer join up to the limit.
fn held_workers_are_joined(from_any_thread: bool) {
    check(move || {
        let pool = Pool::attached(2, from_any_thread);
        let (slow, neighbour) = (PeerId::new(), PeerId::new());
        let given: Arc<Record<()>> = Arc::default();
        let ended: Arc<Record<()>> = Arc::default();
        for _ in 0..3 {
            let (given, ended) = (given.clone(), ended.clone());
            pool.push(slow, move || {
                given.wait_for(0);
                ended.add(());
            });
        }
        let giving = given.clone();
        pool.push(neighbour, move || giving.add(()));
        ended.wait_for(2);
        pool.end();
        drop(pool);
        settle();
    });
}

#[test]
fn held_workers_are_joined_by_threads_that_any_thread_starts() {
    held_workers_are_joined(true);
}

#[test]
fn held_workers_are_joined_by_threads_that_workers_start() {
    held_workers_are_joined(false);
}

/// The runtime ends while jobs wait, and another one replaces it: the pool is watched there.
#[test]
fn another_runtime_replaces_one_that_ends() {
    check(|| {
        let pool = Pool::attached(1, true);
        let done: Arc<Record<()>> = Arc::default();
        let before = done.clone();
        pool.push(PeerId::new(), move || before.add(()));
        end_runtime();
        pool.attach();
        let given: Arc<Record<()>> = Arc::default();
        let (inner, giving) = (pool.pool.clone(), given.clone());
        let after = done.clone();
        pool.push(PeerId::new(), move || {
            inner.complete_early(IoAction::Run(Box::new(move || giving.add(()))), None);
            given.wait_for(0);
            after.add(());
        });
        done.wait_for(1);
        pool.end();
        drop(pool);
        settle();
    });
}
