//! Tasks that are started rarely: with a connection, a lost one, a question.
//!
//! The runtime's part in a task is compiled for each kind of future that is given to it. These are given as one kind, at
//! the price of an allocation; what is started with each call is spawned on the runtime itself.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Starts a task on this runtime.
pub(crate) fn spawn<T: Send + 'static>(
    runtime: &Handle,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let task: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(task);
    runtime.spawn(task)
}

/// Starts a task on the runtime that the caller runs on.
pub(crate) fn spawn_here<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(&Handle::current(), task)
}
