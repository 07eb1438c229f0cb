//! The I/O thread of one JavaScript thread: a single-threaded runtime that its servers and clients share.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use mcpline::foreign::{IoAction, IoThreadQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Maximum time to wait at the end for actions that were handed over. They are done at once, unless the thread is
/// stuck.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running I/O thread. It ends with the environment.
pub(crate) struct Runtime {
    handle: Handle,
    io_queue: IoThreadQueue,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system is out of file descriptors or threads.
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let io_queue = IoThreadQueue::start(&handle);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("mcpline-io".into())
            .spawn(move || {
                // Dropping the sender ends the wait as well.
                let _ = runtime.block_on(stopped);
                // Does not wait for blocking reads: on a terminal one would last until the user presses Enter.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            handle,
            io_queue,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn io_queue(&self) -> &IoThreadQueue {
        &self.io_queue
    }

    /// Ends the thread after the actions that were handed over, and waits for its end.
    pub(crate) fn close(mut self) {
        let (sender, receiver) = sync_channel(1);
        self.io_queue.push(IoAction::Run(Box::new(move || {
            // Fails if the wait has timed out.
            let _ = sender.send(());
        })));
        // Either they are done, or the thread is stuck or gone: there is nothing more to wait for.
        let settled = receiver.recv_timeout(DRAIN_TIMEOUT);
        drop(self.stop.take());
        if let (Ok(()), Some(thread)) = (settled, self.thread.take()) {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
    }
}
