//! The end of a link's task: asked for from one side, told from the other.

use tokio::sync::watch;

use crate::stop::Stop;

use super::link::LinkFuture;

/// The link's side. Dropped, it asks for the end.
pub(super) struct LinkShutdown {
    stop: Stop,
    over: watch::Receiver<bool>,
}

/// The task's side. Dropped, however the task ends, it tells that it is over.
pub(super) struct LinkTaskGuard {
    pub(super) stop: Stop,
    over: watch::Sender<bool>,
}

/// Both sides of one task.
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
    /// Asks for the end; resolves when the task is over. Any number of times.
    pub(super) fn close(&self) -> LinkFuture {
        self.stop.stop();
        let mut over = self.over.clone();
        Box::pin(async move {
            // An error is the task being gone.
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
