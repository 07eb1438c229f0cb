//! Transports written in Python. Messages are passed as bytes in both directions.

use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::foreign::channel::{Channel as CoreChannel, LAST_MESSAGES, OpenChannel};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::runtime::Handle;

use crate::errors;
use crate::event_loop::lock;
use crate::runtime::Runtime;

use super::event_queue::{Event, EventQueue, LoopQueue};
use super::events::Host;
use super::failure::ClientFutureValue;

/// A connection over a transport written in Python.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Channel {
    core: Arc<CoreChannel>,
    runtime: Handle,
    /// The I/O thread of a server, kept until the channel is closed. The clients' I/O thread is never stopped.
    kept: Mutex<Option<Arc<Runtime>>>,
}

/// Resolves a future; with no value if it is dropped before.
struct FutureResolver(Option<(Arc<EventQueue>, Py<PyAny>)>);

impl FutureResolver {
    fn resolve(&mut self, given: ClientFutureValue) {
        if let Some((event_queue, future)) = self.0.take() {
            event_queue.post_at_once(Event::Resolve(future, given));
        }
    }
}

impl Drop for FutureResolver {
    fn drop(&mut self) {
        self.resolve(ClientFutureValue::DONE);
    }
}

#[pymethods]
impl Channel {
    /// Creates an open channel, for a client of this server.
    #[new]
    fn new(py: Python<'_>, server: &crate::server::Server) -> PyResult<Self> {
        let runtime = server.start_runtime(py)?;
        Ok(Self {
            core: CoreChannel::new(),
            runtime: runtime.handle().clone(),
            kept: Mutex::new(Some(runtime)),
        })
    }

    /// Reports that the channel is open or, with a reason, could not be opened.
    fn opened(&self, failure: Option<String>) {
        // Fails if the client no longer needs the channel.
        let _ = self.core.opened(failure.map_or(Ok(()), Err));
    }

    /// Delivers a message, or a batch, from the peer. Returns whether there is room for another.
    fn receive(&self, py: Python<'_>, message: &[u8]) -> PyResult<bool> {
        let received = self.core.receive(Bytes::copy_from_slice(message));
        received.map_err(|_| errors::closed(py, "the channel is closed"))
    }

    /// Resolves `future` when there is room for a message from the peer.
    fn ready_into(&self, loop_queue: &LoopQueue, future: Py<PyAny>) {
        let core = self.core.clone();
        self.resolve(loop_queue, future, async move {
            core.ready().await;
            ClientFutureValue::DONE
        });
    }

    /// Waits until there is room for a message from the peer.
    fn ready(&self, py: Python<'_>) {
        let core = self.core.clone();
        self.wait(py, async move { core.ready().await });
    }

    /// Resolves `future` with the next messages for the peer; with `None` when there are no more. The call also
    /// confirms that the messages before have been sent.
    fn next_into(&self, loop_queue: &LoopQueue, future: Py<PyAny>) {
        let core = self.core.clone();
        self.resolve(loop_queue, future, async move {
            core.next()
                .await
                .map_or(ClientFutureValue::DONE, ClientFutureValue::Messages)
        });
    }

    /// Waits for the next messages for the peer; `None` when there are no more.
    fn next<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        let core = self.core.clone();
        let messages = self.wait(py, async move { core.next().await }).flatten()?;
        let messages = messages.iter().map(|message| PyBytes::new(py, message));
        Some(messages.collect())
    }

    /// Resolves `future` when unsent messages may be abandoned: some time after the channel was closed.
    fn unsent_timeout_into(&self, loop_queue: &LoopQueue, future: Py<PyAny>) {
        let core = self.core.clone();
        self.resolve(loop_queue, future, async move {
            core.wait_until_sent(std::future::pending()).await;
            ClientFutureValue::DONE
        });
    }

    /// Waits until the core no longer needs the channel, except for unsent messages. Returns the number of seconds to
    /// wait for these.
    fn ended(&self, py: Python<'_>) -> f64 {
        let core = self.core.clone();
        self.wait(py, async move { core.ended().await });
        LAST_MESSAGES.as_secs_f64()
    }

    /// Reports that the peer has disconnected; with a reason if it failed.
    fn hang_up(&self, failure: Option<String>) {
        self.core.hang_up(failure);
    }

    /// Closes the channel for both sides.
    fn close(&self, py: Python<'_>) {
        self.core.close();
        let kept = lock(&self.kept).take();
        if let Some(runtime) = kept
            && let Some(runtime) = Arc::into_inner(runtime)
        {
            runtime.close(py);
        }
    }
}

impl Channel {
    pub(crate) fn core(&self) -> &Arc<CoreChannel> {
        &self.core
    }

    fn resolve(
        &self,
        loop_queue: &LoopQueue,
        future: Py<PyAny>,
        given: impl Future<Output = ClientFutureValue> + Send + 'static,
    ) {
        let mut resolver = FutureResolver(Some((loop_queue.event_queue().clone(), future)));
        self.runtime.spawn(async move {
            let given = given.await;
            resolver.resolve(given);
        });
    }

    /// Waits without the interpreter lock; `None` if the I/O thread has ended.
    fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        outcome: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(outcome.await);
        });
        py.detach(move || receiver.recv().ok())
    }
}

/// Makes the host open channels, on its loop or thread.
pub(super) struct ChannelOpener {
    pub(super) event_queue: Arc<EventQueue>,
    pub(super) host: Arc<Host>,
    pub(super) runtime: Handle,
}

impl OpenChannel for ChannelOpener {
    fn open(&self, core: Arc<CoreChannel>) {
        let runtime = self.runtime.clone();
        self.event_queue.post(Event::OpenChannel {
            host: self.host.clone(),
            channel: Channel {
                core,
                runtime,
                kept: Mutex::default(),
            },
        });
    }
}
