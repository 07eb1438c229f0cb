use std::sync::mpsc;

use super::*;

type Job = Box<dyn FnOnce() + Send>;
type Started = Arc<std::sync::Mutex<Vec<std::thread::JoinHandle<()>>>>;

const LIMITS: Limits = Limits {
    max_running: 4,
    max_spare: MAX_SPARE_WORKERS,
    runs_in_parallel: true,
    max_unsent_results: 32,
};

/// A pool whose workers are threads of the standard library, with the started threads.
struct Pool {
    pool: Arc<WorkerPool<Job>>,
    threads: Started,
}

impl Pool {
    fn new(limits: Limits) -> Self {
        let threads = Started::default();
        let this: Arc<std::sync::OnceLock<Weak<WorkerPool<Job>>>> = Arc::default();
        let (kept, starting) = (threads.clone(), this.clone());
        let start = move || {
            let pool = starting.get().and_then(Weak::upgrade).expect("a pool");
            start_thread(&pool, &kept)
        };
        let pool = WorkerPool::new(
            limits,
            WorkerThreadStarter {
                start: Some(Box::new(start)),
                rests: None,
            },
        );
        this.set(Arc::downgrade(&pool)).expect("set once");
        Self { pool, threads }
    }

    fn push(&self, peer: PeerId, job: impl FnOnce() + Send + 'static) {
        let pushed = self.pool.push(peer, Box::new(job));
        assert!(pushed.is_ok(), "the pool is open and not full");
    }

    fn close(self) {
        self.pool.close();
        loop {
            let thread = self.threads.lock().expect("no panic").pop();
            let Some(thread) = thread else { break };
            thread.join().expect("no panic");
        }
        assert_eq!(self.pool.thread_counts().all, 0);
    }
}

fn start_thread(pool: &Arc<WorkerPool<Job>>, started: &Started) -> bool {
    let (pool, threads) = (pool.clone(), started.clone());
    let thread = std::thread::spawn(move || work(&pool, &threads));
    started.lock().expect("no panic").push(thread);
    true
}

fn work(pool: &Arc<WorkerPool<Job>>, threads: &Started) {
    let mut worker = pool.worker();
    loop {
        match worker.take() {
            WorkerStep::Job(job) => job(),
            WorkerStep::StartAnother => drop(start_thread(pool, threads)),
            WorkerStep::Nothing => worker.sleep(),
            WorkerStep::Ended => return,
        }
    }
}

#[test]
fn clients_take_turns_however_many_jobs_one_has() {
    let pool = Pool::new(Limits {
        max_running: 1,
        ..LIMITS
    });
    let (flood, neighbour) = (PeerId::new(), PeerId::new());
    let (begun, begin) = mpsc::channel();
    let (go, going) = mpsc::channel::<()>();
    let (done, ran) = mpsc::channel();
    pool.push(flood, move || {
        begun.send(()).expect("somebody waits");
        going.recv().expect("it is told to go on");
    });
    begin.recv().expect("it begins");
    // All of these wait, because the only worker is busy.
    for _ in 0..10_000 {
        let done = done.clone();
        pool.push(flood, move || done.send("flood").expect("somebody listens"));
    }
    for _ in 0..3 {
        let done = done.clone();
        pool.push(neighbour, move || {
            done.send("neighbour").expect("somebody listens")
        });
    }
    go.send(()).expect("it waits");
    drop(done);
    let order: Vec<_> = ran.iter().collect();
    let of_neighbour = order.iter().rposition(|who| *who == "neighbour");
    assert_eq!(of_neighbour, Some(5), "{:?}", &order[..8]);
    assert_eq!(order.len(), 10_003);
    pool.close();
}

#[test]
fn calls_past_the_limit_are_refused_and_other_jobs_are_not() {
    let pool = WorkerPool::<u8>::new(LIMITS, WorkerThreadStarter::default());
    let peer = PeerId::new();
    for _ in 0..MAX_WAITING_CALLS {
        assert!(pool.push(peer, 0).is_ok());
    }
    assert!(matches!(pool.push(PeerId::new(), 1), Err(Refused::Full(1))));
    assert!(pool.push_unlimited(peer, 2).is_ok());
    pool.close();
    assert!(matches!(
        pool.push_unlimited(peer, 3),
        Err(Refused::Closed(3))
    ));
}

#[test]
fn a_worker_that_waits_is_replaced_and_the_surplus_ends() {
    const WAITING: usize = 24;
    let pool = Pool::new(LIMITS);
    let all = Arc::new(std::sync::Barrier::new(WAITING + 1));
    for _ in 0..WAITING {
        let (inner, all) = (pool.pool.clone(), all.clone());
        pool.push(PeerId::new(), move || {
            let waited = inner.waiting(|| all.wait());
            assert!(waited.is_ok());
        });
    }
    // Passes once all of them have begun, although no more than four run at once.
    all.wait();
    let most = LIMITS.max_running + 1;
    while pool.pool.thread_counts().all > most {
        std::thread::yield_now();
    }
    pool.close();
}

#[test]
fn a_pool_ends_with_the_last_of_its_users_and_may_be_used_again() {
    let pool = WorkerPool::<u8>::new(LIMITS, WorkerThreadStarter::default());
    let peer = PeerId::new();
    for _ in 0..2 {
        pool.open();
        pool.open();
        assert!(!pool.close(), "another one uses it");
        assert!(pool.push(peer, 0).is_ok());
        assert!(pool.close());
        assert!(matches!(pool.push(peer, 1), Err(Refused::Closed(1))));
    }
}

/// Makes a job of this peer wait for an answer until the returned sender is dropped.
fn begin_to_wait(pool: &Pool, peer: PeerId) -> Result<mpsc::Sender<()>, TooManyBlocked> {
    let (going, go) = mpsc::channel();
    let (begun, begin) = mpsc::channel();
    let inner = pool.pool.clone();
    pool.push(peer, move || {
        let waited = inner.waiting(|| {
            begun.send(Ok(())).expect("somebody waits");
            // An error means the end.
            let _ = go.recv();
        });
        if let Err(refused) = waited {
            begun.send(Err(refused)).expect("somebody waits");
        }
    });
    begin.recv().expect("it begins").map(|()| going)
}

#[test]
fn waiting_workers_are_bounded_and_one_peer_does_not_take_them_all() {
    let pool = Pool::new(LIMITS);
    let peers = [PeerId::new(), PeerId::new()];
    let mut waiting = Vec::new();
    let mut fill = |peer| loop {
        match begin_to_wait(&pool, peer) {
            Ok(one) => waiting.push(one),
            Err(TooManyBlocked { of_peer, all }) => return (of_peer, all),
        }
    };
    let half = MAX_BLOCKED_WORKERS / 2;
    assert_eq!(fill(peers[0]), (half, half));
    // The next peer gets half of what is left, and one without blocked workers gets one.
    assert_eq!(fill(peers[1]), (half / 2, half + half / 2));
    assert_eq!(fill(peers[0]), (half, half + half / 2));
    while pool.pool.thread_counts().blocked < MAX_BLOCKED_WORKERS {
        assert_ne!(fill(PeerId::new()).0, 0);
    }
    assert_eq!(fill(PeerId::new()), (0, MAX_BLOCKED_WORKERS));
    waiting.clear();
    while pool.pool.thread_counts().blocked > 0 {
        std::thread::yield_now();
    }
    assert!(begin_to_wait(&pool, peers[0]).is_ok());
    pool.close();
}

#[test]
fn a_thread_of_another_kind_waits_without_being_counted() {
    let (pool, other) = (Pool::new(LIMITS), Pool::new(LIMITS));
    let counts = pool
        .pool
        .waiting(|| pool.pool.thread_counts())
        .expect("room");
    assert_eq!(counts.blocked, 0);
    let (send, receive) = mpsc::channel();
    let waited_for = other.pool.clone();
    pool.push(PeerId::new(), move || {
        let counts = waited_for.waiting(|| waited_for.thread_counts());
        send.send(counts.expect("room").blocked)
            .expect("somebody waits");
    });
    assert_eq!(receive.recv(), Ok(0));
    pool.close();
    other.close();
}

/// A pool whose running workers are counted without threads.
fn counted(runs_in_parallel: bool, running: usize, waiting: usize) -> Arc<WorkerPool<u8>> {
    let limits = Limits {
        max_running: 16,
        max_spare: MAX_SPARE_WORKERS,
        runs_in_parallel,
        max_unsent_results: 32,
    };
    let pool = WorkerPool::new(limits, WorkerThreadStarter::default());
    let mut state = pool.lock();
    state.running = running;
    state.idle = 16;
    for _ in 0..waiting {
        let job = WaitingJob {
            job: 0,
            is_call: false,
        };
        state.queue.push(PeerId::new(), job);
    }
    drop(state);
    pool
}

/// Returns the number of running workers after a check that follows `taken` more jobs.
fn running_after(pool: &WorkerPool<u8>, taken: usize) -> usize {
    let seen = pool.lock().snapshot();
    for _ in 0..taken {
        let mut state = pool.lock();
        state.queue.pop();
        state.taken += 1;
    }
    pool.check_progress(seen);
    pool.lock().running
}

#[test]
fn workers_join_in_twice_the_number_while_jobs_wait() {
    let pool = counted(false, 1, 100);
    assert_eq!(running_after(&pool, 0), 2);
    assert_eq!(running_after(&pool, 0), 4);
    assert_eq!(running_after(&pool, 0), 8);
    assert_eq!(running_after(&pool, 0), 16);
    assert_eq!(running_after(&pool, 0), 16);
}

#[test]
fn workers_join_quick_ones_only_where_handlers_run_in_parallel() {
    let quick = QUICK_JOBS as usize + 1;
    assert_eq!(running_after(&counted(false, 1, 100), quick), 1);
    assert_eq!(running_after(&counted(true, 1, 100), quick), 2);
}

/// Slow jobs of one peer occupy all workers.
#[runtimes::test]
async fn a_peer_without_a_running_job_gets_a_spare_worker_and_others_do_not() {
    let limits = Limits {
        max_running: 2,
        ..LIMITS
    };
    let pool = Pool::new(limits);
    let runtime = tokio::runtime::Handle::current();
    pool.pool
        .attach(runtime.clone(), IoThreadQueue::start(&runtime));
    let (slow, neighbours) = (PeerId::new(), [PeerId::new(), PeerId::new()]);
    let most = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(std::sync::Barrier::new(3));
    for _ in 0..2 {
        let go = go.clone();
        pool.push(slow, move || {
            go.wait();
        });
    }
    for _ in 0..100 {
        let (most, running) = (most.clone(), running.clone());
        pool.push(slow, move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    for neighbour in neighbours {
        let (ran, run) = tokio::sync::oneshot::channel();
        pool.push(neighbour, move || ran.send(()).expect("somebody waits"));
        run.await.expect("it is run though no worker is free");
    }
    let taken = most.load(Ordering::SeqCst);
    assert_eq!(taken, 0, "the spare workers took none of the slow peer's");
    tokio::task::spawn_blocking(move || {
        go.wait();
        pool.close();
    })
    .await
    .expect("no panic");
    assert!(most.load(Ordering::SeqCst) <= limits.max_running);
}

#[test]
fn spare_workers_are_few_and_only_for_peers_without_a_running_job() {
    let pool = WorkerPool::new(LIMITS, WorkerThreadStarter::default());
    let peer = PeerId::new();
    let waiting = || WaitingJob {
        job: 0,
        is_call: false,
    };
    let mut state = pool.lock();
    state.running = LIMITS.max_running;
    state.idle = MAX_SPARE_WORKERS + 1;
    state.activities = vec![Activity::Running(peer); LIMITS.max_running];
    state.queue.push(peer, waiting());
    drop(state);
    let look = || {
        let seen = pool.lock().snapshot();
        pool.check_progress(seen);
        let mut state = pool.lock();
        state.woken = 0;
        state.running - LIMITS.max_running
    };
    assert_eq!(look(), 0);
    pool.lock().queue.push(PeerId::new(), waiting());
    for spare in 1..=MAX_SPARE_WORKERS {
        assert_eq!(look(), spare);
    }
    assert_eq!(look(), MAX_SPARE_WORKERS);
}

#[test]
fn no_worker_joins_when_none_of_the_jobs_waited_for_a_whole_tick() {
    let pool = counted(true, 1, 3);
    let seen = pool.lock().snapshot();
    for _ in 0..3 {
        let mut state = pool.lock();
        state.queue.pop();
        state.taken += 1;
        let job = WaitingJob {
            job: 0,
            is_call: false,
        };
        state.queue.push(PeerId::new(), job);
    }
    assert!(pool.check_progress(seen).is_some());
    assert_eq!(pool.lock().running, 1);
}

#[test]
fn a_thread_that_does_not_start_is_not_counted() {
    let threads = WorkerThreadStarter {
        start: Some(Box::new(|| false)),
        rests: None,
    };
    let pool = WorkerPool::<u8>::new(LIMITS, threads);
    assert!(pool.push(PeerId::new(), 0).is_ok());
    let counts = pool.thread_counts();
    assert_eq!((counts.all, counts.running), (0, 0));
}

#[runtimes::test]
async fn a_slow_job_delays_no_other_and_its_early_result_is_sent() {
    let pool = Pool::new(LIMITS);
    let runtime = tokio::runtime::Handle::current();
    pool.pool
        .attach(runtime.clone(), IoThreadQueue::start(&runtime));
    let (go, going) = mpsc::channel::<()>();
    let (sent, result) = tokio::sync::oneshot::channel();
    let (ran, second) = tokio::sync::oneshot::channel();
    let inner = pool.pool.clone();
    pool.push(PeerId::new(), move || {
        let action = IoAction::Run(Box::new(move || sent.send(()).expect("somebody waits")));
        inner.complete_early(action, None);
        going.recv().expect("it is told to go on");
    });
    pool.push(PeerId::new(), move || ran.send(()).expect("somebody waits"));
    result.await.expect("it is sent although the job goes on");
    second.await.expect("another worker runs it");
    go.send(()).expect("it waits");
    tokio::task::spawn_blocking(move || pool.close())
        .await
        .expect("no panic");
}

#[test]
fn a_result_wakes_the_runtime_of_its_queue() {
    let [attached, other] = [(), ()].map(|()| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().expect("a runtime")
    });
    let pool = Pool::new(LIMITS);
    let io_queue = IoThreadQueue::start(attached.handle());
    let elsewhere = io_queue.start_other(other.handle());
    pool.pool.attach(attached.handle().clone(), io_queue);
    let inner = pool.pool.clone();
    let (ran, has_run) = tokio::sync::oneshot::channel();
    pool.push(PeerId::new(), move || {
        let action = IoAction::Run(Box::new(move || ran.send(()).expect("the test waits")));
        inner.complete_early(action, Some(&elsewhere));
    });
    // The attached runtime does not run, so neither does the watch: the worker that finds no other job wakes this one.
    let received = other.block_on(async {
        let limit = std::time::Duration::from_secs(60);
        tokio::time::timeout(limit, has_run).await
    });
    assert_eq!(received.expect("it is woken"), Ok(()));
    pool.close();
}

/// While the watch sends the waiting results, a worker leaves a result and takes the last job, which is slow.
#[runtimes::test]
async fn a_result_left_before_the_last_job_is_sent_while_that_job_runs() {
    let pool = counted(true, 1, 1);
    let runtime = tokio::runtime::Handle::current();
    pool.attach(runtime.clone(), IoThreadQueue::start(&runtime));
    let (worker, (sent, result)) = (pool.clone(), mpsc::channel());
    pool.complete(IoAction::Run(Box::new(move || {
        worker.complete(IoAction::Run(Box::new(move || {
            sent.send(()).expect("somebody waits");
        })));
        worker.lock().queue.pop();
    })));
    let seen = pool.lock().snapshot();
    assert!(pool.check_progress(seen).is_none());
    assert!(result.try_recv().is_ok(), "no other watch sends it");
}

#[test]
fn closing_something_waits_however_many_workers_are_blocked() {
    let pool = Pool::new(LIMITS);
    let peer = PeerId::new();
    let mut waiting = Vec::new();
    while let Ok(one) = begin_to_wait(&pool, peer) {
        waiting.push(one);
    }
    let (inner, (done, closed)) = (pool.pool.clone(), mpsc::channel());
    pool.push(peer, move || {
        let blocked = inner.mark_blocked_anyway();
        let counts = blocked.map(|_blocked| inner.thread_counts().blocked);
        done.send(counts).expect("somebody waits");
    });
    assert_eq!(closed.recv(), Ok(Some(waiting.len() + 1)));
    waiting.clear();
    pool.close();
}

#[test]
fn workers_that_return_from_waiting_replace_no_others() {
    let limits = Limits {
        max_spare: 0,
        ..LIMITS
    };
    let pool = WorkerPool::<u8>::new(limits, WorkerThreadStarter::default());
    assert!(pool.push(PeerId::new(), 0).is_ok());
    let mut state = pool.lock();
    state.running = limits.max_running + 1;
    assert!(state.pop(&limits).is_none());
    state.running -= 1;
    assert!(state.pop(&limits).is_some());
}

#[test]
fn the_end_of_the_pool_notices_a_thread_that_does_not_start() {
    let pool = WorkerPool::<u8>::new(LIMITS, WorkerThreadStarter::default());
    assert!(pool.push(PeerId::new(), 1).is_ok());
    assert!(pool.expect_worker());
    pool.close();
    let ((waits, waiting), (ends, ended)) = (mpsc::channel(), mpsc::channel());
    let ending = pool.clone();
    std::thread::spawn(move || {
        ending.wait_for_end(|_| {
            // Called while the pool is locked; the wait begins when it is unlocked.
            let _ = waits.send(());
            Instant::now() + Duration::from_secs(3_600)
        });
        ends.send(ending.take_remaining()).expect("somebody waits");
    });
    waiting.recv().expect("it is about to wait");
    pool.worker_not_started();
    let left = ended.recv_timeout(Duration::from_secs(60));
    assert_eq!(left, Ok(vec![1]));
    assert!(pool.is_empty());
}
