//! The I/O thread of one JavaScript thread: a single-threaded runtime that its servers and clients share.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use mcpline::foreign::{IoAction, IoQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long the end waits for what was handed over to the I/O thread: it is done at once, unless that thread is stuck.
const SETTLING: Duration = Duration::from_secs(1);

/// A running I/O thread. It ends with the environment.
pub(crate) struct Runtime {
    handle: Handle,
    completions: IoQueue,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system has no descriptors or threads left.
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let completions = IoQueue::start(&handle);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("mcpline-io".into())
            .spawn(move || {
                // It ends with the sender, too.
                let _ = runtime.block_on(stopped);
                // Without waiting for a read that blocks: at a terminal that would be until somebody presses Enter.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            handle,
            completions,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn completions(&self) -> &IoQueue {
        &self.completions
    }

    /// Ends the thread, after what was handed over has been done, and waits for its end.
    pub(crate) fn close(mut self) {
        let (sender, receiver) = sync_channel(1);
        self.completions.push(IoAction::Run(Box::new(move || {
            // Nobody waits any more if it took too long.
            let _ = sender.send(());
        })));
        // Either it is done, or the thread is stuck or gone: there is nothing more to wait for.
        let settled = receiver.recv_timeout(SETTLING);
        drop(self.stop.take());
        if let (Ok(()), Some(thread)) = (settled, self.thread.take()) {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}
