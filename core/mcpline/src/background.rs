//! Tasks that are started rarely: with a connection, a lost one, a question.
//!
//! The runtime's part in a task is compiled for each kind of future that is given to it. These are given as one kind, at
//! the price of an allocation, but for those that are started with each call.
//!
//! In a model all of them are shuttle's ([`sync`](crate::sync)).

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

#[cfg(not(all(test, mcpline_models)))]
pub(crate) use tokio::task::{AbortHandle, JoinHandle};

#[cfg(all(test, mcpline_models))]
pub(crate) use shuttle::future::{AbortHandle, JoinHandle};

/// What the runtime is given.
pub(crate) type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A task that something else than a runtime is to start, a `JoinSet` for instance.
pub(crate) fn task<T>(task: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Box::pin(task)
}

/// Starts a task on this runtime.
pub(crate) fn spawn<T: Send + 'static>(
    runtime: &Handle,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn_unboxed(runtime, self::task(task))
}

/// Starts a task that is started so often that an allocation for each costs more than code for this kind of future.
pub(crate) fn spawn_unboxed<F>(runtime: &Handle, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    #[cfg(not(all(test, mcpline_models)))]
    return runtime.spawn(task);
    #[cfg(all(test, mcpline_models))]
    return {
        let _ = runtime;
        crate::models::spawn(task)
    };
}

/// Waits for so long. In a model time does not pass: other threads may go on, then the wait is over.
#[cfg(feature = "server")]
pub(crate) async fn sleep(time: std::time::Duration) {
    #[cfg(not(all(test, mcpline_models)))]
    tokio::time::sleep(time).await;
    #[cfg(all(test, mcpline_models))]
    {
        let _ = time;
        shuttle::future::yield_now().await;
    }
}

/// Starts a task on the runtime that the caller runs on.
pub(crate) fn spawn_here<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(&Handle::current(), task)
}

/// Does something on a thread that may wait, for a disk or a program. `None` if it panicked, or the runtime is ending.
pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, given) = oneshot::channel();
    let act: Box<dyn FnOnce() + Send> = Box::new(move || {
        // Nobody may be waiting any more.
        let _ = give.send(act());
    });
    tokio::task::spawn_blocking(act);
    given.await.ok()
}
