//! The end of a link's task: asked for from one side, told from the other.

use tokio::sync::watch;

use crate::stop::Stop;

use super::link::Ending;

/// The link's side. Dropped, it asks for the end.
pub(super) struct Closing {
    stop: Stop,
    over: watch::Receiver<bool>,
}

/// The task's side. Dropped, however the task ends, it tells that it is over.
pub(super) struct Running {
    pub(super) stop: Stop,
    over: watch::Sender<bool>,
}

/// Both sides of one task.
pub(super) fn closing() -> (Closing, Running) {
    let stop = Stop::new();
    let (sender, receiver) = watch::channel(false);
    let running = Running {
        stop: stop.clone(),
        over: sender,
    };
    let closing = Closing {
        stop,
        over: receiver,
    };
    (closing, running)
}

impl Closing {
    /// Asks for the end; resolves when the task is over. Any number of times.
    pub(super) fn close(&self) -> Ending {
        self.stop.stop();
        let mut over = self.over.clone();
        Box::pin(async move {
            // An error is the task being gone.
            let _ = over.wait_for(|over| *over).await;
        })
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.over.send_replace(true);
    }
}
