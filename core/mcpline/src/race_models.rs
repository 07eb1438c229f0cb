//! Runs models, and lets them wait.
//!
//! A model is a test whose threads are switched by shuttle's own scheduler, in many runs: wherever the code uses a lock
//! or an atomic of [`sync`](crate::sync), another thread may continue. Assertions must hold in every run; a thread that
//! waits forever also fails the model. `tools/models` builds and runs models, and documents how to repeat a failed run.

use std::cell::RefCell;

use shuttle::future::AbortHandle;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Condvar;
use shuttle::{Config, Runner};
use tokio::sync::oneshot;

use crate::sync::{Mutex, OnceLock};

/// Number of runs of a model with each scheduler.
const ITERATIONS: usize = 300;

/// Nearly all races need two or three switches at the wrong moment.
const DEPTH: usize = 3;

/// Handlers run on the stack of the code that passes them a message, in a build without optimizations.
const STACK_BYTES: usize = 1024 * 1024;

thread_local! {
    /// For each task, its abort handle and a receiver that resolves when it has ended. All threads of a model are one.
    static TASKS: RefCell<Vec<(AbortHandle, oneshot::Receiver<()>)>> = const { RefCell::new(Vec::new()) };
}

/// Runs a model with the random scheduler and with PCT.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    // The modelled code needs a tokio runtime, although its tasks are shuttle's.
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().expect("a runtime")
    });
    let _entered = runtime.enter();
    let model = std::sync::Arc::new(model);
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = STACK_BYTES;
        let model = model.clone();
        Runner::new(scheduler, config).run(move || {
            TASKS.take();
            model();
        });
    };
    if let Ok(schedule) = std::env::var("MCPLINE_MODEL_SCHEDULE") {
        let scheduler = shuttle::scheduler::ReplayScheduler::new_from_encoded(&schedule);
        return run(Box::new(scheduler));
    }
    match std::env::var("MCPLINE_MODEL_ITERATIONS") {
        Ok(iterations) => {
            let iterations = iterations.parse().expect("a number of iterations");
            run(Box::new(RandomScheduler::new(iterations)));
            run(Box::new(PctScheduler::new(DEPTH, iterations)));
        }
        // The same in every run, so that a failure is due to a change of the code.
        Err(_) => {
            run(Box::new(RandomScheduler::new_from_seed(1, ITERATIONS)));
            run(Box::new(PctScheduler::new_from_seed(1, DEPTH, ITERATIONS)));
        }
    }
}

/// Starts a task of a model.
pub(crate) fn spawn<F>(task: F) -> shuttle::future::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (ended, end) = oneshot::channel::<()>();
    // Dropped in this order when the task ends or is aborted, even if it has never run.
    let both = (Box::pin(task), ended);
    let task = shuttle::future::spawn(async move {
        let mut both = both;
        both.0.as_mut().await
    });
    TASKS.with_borrow_mut(|tasks| tasks.push((task.abort_handle(), end)));
    task
}

/// Waits until every task has ended, including those that tasks start.
pub(crate) fn settle() {
    while let Some((_, end)) = TASKS.with_borrow_mut(Vec::pop) {
        // An error means that it has ended.
        let _ = shuttle::future::block_on(end);
    }
}

/// Aborts every task, like a runtime that is dropped.
pub(crate) fn end_runtime() {
    while let Some((task, end)) = TASKS.with_borrow_mut(Vec::pop) {
        task.abort();
        let _ = shuttle::future::block_on(end);
    }
}

/// A record of events that other threads can read and wait for.
pub(crate) struct Record<T> {
    entries: Mutex<Vec<T>>,
    more: Condvar,
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self {
            entries: Mutex::new(Vec::new()),
            more: Condvar::new(),
        }
    }
}

impl<T: Clone> Record<T> {
    pub(crate) fn add(&self, entry: T) {
        self.entries.lock().expect("no panic").push(entry);
        self.more.notify_all();
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.entries.lock().expect("no panic").clone()
    }

    /// Waits for the entry with this number and returns it.
    pub(crate) fn wait_for(&self, number: usize) -> T {
        let mut entries = self.entries.lock().expect("no panic");
        while entries.len() <= number {
            entries = self.more.wait(entries).expect("no panic");
        }
        entries[number].clone()
    }
}
