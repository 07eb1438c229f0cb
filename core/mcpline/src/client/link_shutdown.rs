//! Ends a link's task: one side requests it, the other reports it.

use tokio::sync::watch;

use crate::stop::Stop;

use super::link::LinkFuture;

/// The link's side. Requests the end on drop.
pub(super) struct LinkShutdown {
    stop: Stop,
    over: watch::Receiver<bool>,
}

/// The task's side. Reports the end on drop, however the task ends.
pub(super) struct LinkTaskGuard {
    pub(super) stop: Stop,
    over: watch::Sender<bool>,
}

/// Returns both sides for one task.
pub(super) fn link_shutdown() -> (LinkShutdown, LinkTaskGuard) {
    let stop = Stop::new();
    let (sender, receiver) = watch::channel(false);
    let running = LinkTaskGuard {
        stop: stop.clone(),
        over: sender,
    };
    let closing = LinkShutdown {
        stop,
        over: receiver,
    };
    (closing, running)
}

impl LinkShutdown {
    /// Requests the end, and resolves when the task has ended. Can be called repeatedly.
    pub(super) fn close(&self) -> LinkFuture {
        self.stop.stop();
        let mut over = self.over.clone();
        Box::pin(async move {
            // An error means that the task is gone.
            let _ = over.wait_for(|over| *over).await;
        })
    }
}

impl Drop for LinkShutdown {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl Drop for LinkTaskGuard {
    fn drop(&mut self) {
        self.over.send_replace(true);
    }
}
