//! Tasks that are started rarely: with a connection, a lost one, a question.
//!
//! The runtime's part in a task is compiled for each kind of future that is given to it. These are given as one kind, at
//! the price of an allocation, but for those that are started with each call.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub use tokio::task::{AbortHandle, JoinHandle};

/// What the runtime is given.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A task that something else than a runtime is to start, a `JoinSet` for instance.
pub fn task<T>(task: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Box::pin(task)
}

/// Starts a task on this runtime.
pub fn spawn<T: Send + 'static>(
    runtime: &Handle,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    runtime.spawn(self::task(task))
}

/// Starts a task on the runtime that the caller runs on.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn spawn_here<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(&Handle::current(), task)
}

/// Starts a task that is started so often that an allocation for each costs more than code for this kind of future.
pub fn spawn_unboxed<F>(runtime: &Handle, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    runtime.spawn(task)
}

/// Does something on a thread that may wait, for a disk or a program. `None` if it panicked, or the runtime is ending.
pub async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (give, given) = oneshot::channel();
    let act: Box<dyn FnOnce() + Send> = Box::new(move || {
        // Nobody may be waiting any more.
        let _ = give.send(act());
    });
    tokio::task::spawn_blocking(act);
    given.await.ok()
}
