//! Decides when computations begin that are moved off the threads that serve connections.

use std::sync::mpsc;

use tokio::sync::oneshot;

/// Occupies the only thread on which the runtime of a test computes (`#[runtimes::test(one_blocking_thread)]`): no computation
/// begins before this is dropped, however fast it is and however slow the test. What ends before was computed on a thread
/// that serves connections.
pub(crate) struct HeldComputations {
    _release: mpsc::Sender<()>,
}

impl HeldComputations {
    pub(crate) async fn hold() -> Self {
        let (release, released) = mpsc::channel();
        let (occupy, occupied) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _ = occupy.send(());
            // Ends with an error, when the sender is dropped.
            let _: Result<(), _> = released.recv();
        });
        occupied.await.expect("the thread is free");
        Self { _release: release }
    }
}
