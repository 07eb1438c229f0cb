//! Delays computations that are moved off the threads that serve connections.

use std::sync::mpsc;

use tokio::sync::oneshot;

/// Occupies the only blocking thread of a test's runtime (`#[runtimes::test(one_blocking_thread)]`). No computation
/// moved there begins before this is dropped, however fast it is and however slow the test: what completes earlier was
/// computed on a thread that serves connections.
pub(crate) struct HeldComputations {
    _release: mpsc::Sender<()>,
}

impl HeldComputations {
    pub(crate) async fn hold() -> Self {
        let (release, released) = mpsc::channel();
        let (occupy, occupied) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _ = occupy.send(());
            // Ends with an error when the sender is dropped.
            let _: Result<(), _> = released.recv();
        });
        occupied.await.expect("the thread is free");
        Self { _release: release }
    }
}
