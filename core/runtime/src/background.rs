//! Tasks that are started rarely, for example for a new connection, a lost one, or an input request.
//!
//! The runtime's code for a task is compiled for each type of future. These tasks are passed as one type, at the cost
//! of an allocation, except for those that are started with each call.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub use tokio::task::{AbortHandle, JoinHandle};

/// A boxed future, the common type of all tasks.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Boxes a task that something other than a runtime starts, for example a `JoinSet`.
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

/// Starts a task on the current runtime.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn spawn_here<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(&Handle::current(), task)
}

/// Starts a task without boxing it, for tasks that start so often that an allocation costs more than separate code.
pub fn spawn_unboxed<F>(runtime: &Handle, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    runtime.spawn(task)
}

/// Runs a function on a thread that may block on a disk or a program. `None` if it panicked, or the runtime is shutting
/// down.
pub async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (give, given) = oneshot::channel();
    let act: Box<dyn FnOnce() + Send> = Box::new(move || {
        // The caller may be gone.
        let _ = give.send(act());
    });
    tokio::task::spawn_blocking(act);
    given.await.ok()
}
