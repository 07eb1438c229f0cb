//! Tasks and sleeping, from [`mcpline_runtime`]. In a model they are shuttle's ([`sync`](crate::sync)).

#[cfg(not(all(test, mcpline_models)))]
pub(crate) use mcpline_runtime::background::{
    AbortHandle, JoinHandle, spawn, spawn_here, spawn_unboxed,
};
pub(crate) use mcpline_runtime::background::{blocking, task};
#[cfg(all(feature = "server", not(all(test, mcpline_models))))]
pub(crate) use tokio::time::sleep;

#[cfg(all(test, mcpline_models))]
pub(crate) use shuttle::future::{AbortHandle, JoinHandle};

#[cfg(all(test, mcpline_models))]
use tokio::runtime::Handle;

/// Starts a task of the model.
#[cfg(all(test, mcpline_models))]
pub(crate) fn spawn<T: Send + 'static>(
    runtime: &Handle,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn_unboxed(runtime, task)
}

/// Starts a task of the model.
#[cfg(all(test, mcpline_models))]
pub(crate) fn spawn_here<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(&Handle::current(), task)
}

/// Starts a task of the model.
#[cfg(all(test, mcpline_models))]
pub(crate) fn spawn_unboxed<F>(_: &Handle, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    crate::race_models::spawn(task)
}

/// Lets other threads run, because time does not pass in a model.
#[cfg(all(feature = "server", test, mcpline_models))]
pub(crate) async fn sleep(_: std::time::Duration) {
    shuttle::future::yield_now().await;
}
