//! The tasks of a client beside those of its links: connections, listening, questions. Closing ends them and waits until
//! they are gone.

use std::time::Duration;

use tokio::sync::watch;

use crate::stop::Stop;
use crate::sync::Arc;

/// How long closing waits for tasks that were told to end: they end when they are next polled.
const ENDED_WITHIN: Duration = Duration::from_secs(1);

/// The tasks of one client. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    count: Arc<watch::Sender<usize>>,
    stop: Stop,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            count: Arc::new(watch::Sender::new(0)),
            stop: Stop::new(),
        }
    }
}

/// A task that is alive until this is dropped.
pub(crate) struct TaskGuard(Arc<watch::Sender<usize>>);

impl Tasks {
    /// Counts a task, which has to end by itself when the client is closed.
    pub(crate) fn begin(&self) -> TaskGuard {
        self.count.send_modify(|count| *count += 1);
        TaskGuard(self.count.clone())
    }

    /// Counts a task that is dropped when the client is closed; `None` if that was before its end.
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

    /// Ends the tasks, and waits until they are gone.
    pub(crate) async fn close(&self) {
        self.stop();
        if !self.ended().await {
            tracing::warn!("tasks are still running after their client was closed");
        }
    }

    /// Tells the tasks to end.
    pub(crate) fn stop(&self) {
        self.stop.stop();
    }

    /// Waits until the tasks, which were told to end, are gone; not for long. Returns whether they are.
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
