//! Closes the clients of a process, or a part of it, that ends, so that no child process is left.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long this waits for connections: a child process has two seconds to exit by itself, and two more after SIGTERM.
pub const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);

/// Closes several clients and waits for all of them, but not longer than a deadline.
#[derive(Debug)]
pub struct ClientCloser {
    sender: Sender<()>,
    closed: Receiver<()>,
}

impl Default for ClientCloser {
    fn default() -> Self {
        let (sender, closed) = channel();
        Self { sender, closed }
    }
}

impl ClientCloser {
    /// Returns the task with which an I/O thread closes a client. If it is dropped instead, its client is not waited
    /// for.
    pub fn task(
        &self,
        closing: impl Future<Output = ()> + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            tokio::spawn(async move {
                closing.await;
                // The wait may have timed out.
                let _ = sender.send(());
            });
        }
    }

    /// Waits until all are closed. Returns whether they are.
    pub fn wait(self, timeout: Duration) -> bool {
        drop(self.sender);
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.closed.recv_timeout(left) {
                Ok(()) => {}
                Err(error) => return error == std::sync::mpsc::RecvTimeoutError::Disconnected,
            }
        }
    }
}
