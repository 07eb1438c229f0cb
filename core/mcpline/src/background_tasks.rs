//! The tasks of a client beside those of its links: connections, subscriptions, input requests. Closing ends them and
//! waits until they are gone.

use std::time::Duration;

use tokio::sync::watch;

use crate::stop::Stop;
use crate::sync::Arc;

/// How long closing waits for stopped tasks, which end when they are next polled.
const ENDED_WITHIN: Duration = Duration::from_secs(1);

/// The tasks of one client. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundTasks {
    count: Arc<watch::Sender<usize>>,
    stop: Stop,
}

impl Default for BackgroundTasks {
    fn default() -> Self {
        Self {
            count: Arc::new(watch::Sender::new(0)),
            stop: Stop::new(),
        }
    }
}

/// Counts a task as running until dropped.
pub(crate) struct TaskGuard(Arc<watch::Sender<usize>>);

impl BackgroundTasks {
    /// Counts a task that has to end by itself when the client is closed.
    pub(crate) fn begin(&self) -> TaskGuard {
        self.count.send_modify(|count| *count += 1);
        TaskGuard(self.count.clone())
    }

    /// Counts a task that is dropped when the client is closed. Returns `None` in that case.
    pub(crate) fn until_closed<F: Future>(
        &self,
        task: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        let (alive, stop) = (self.begin(), self.stop.clone());
        async move {
            let _alive = alive;
            tokio::select! {
                biased;
                () = stop.stopped() => None,
                output = task => Some(output),
            }
        }
    }

    /// Stops the tasks and waits until they are gone.
    pub(crate) async fn close(&self) {
        self.stop();
        if !self.ended().await {
            tracing::warn!(
                "client closed, but some of its background tasks are still running: a handler or transport may be blocking its thread"
            );
        }
    }

    /// Stops the tasks.
    pub(crate) fn stop(&self) {
        self.stop.stop();
    }

    /// Waits for a short time until the stopped tasks are gone. Returns whether they are.
    pub(crate) async fn ended(&self) -> bool {
        let mut count = self.count.subscribe();
        let gone = count.wait_for(|count| *count == 0);
        tokio::time::timeout(ENDED_WITHIN, gone).await.is_ok()
    }
}

impl Clone for TaskGuard {
    fn clone(&self) -> Self {
        self.0.send_modify(|count| *count += 1);
        Self(self.0.clone())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
