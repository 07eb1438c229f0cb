//! Changes of a client's connection, for hosts that show whether a server can be reached.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

use crate::client_error::ClientError;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ClientBuilder;

/// Maximum number of events that wait to be read before further ones are dropped, except the last: `Closed`. Each loss
/// is followed by an attempt to connect, so a host that reads at all is never so far behind.
const MAX_WAITING: usize = 256;

/// A change of a client's connection. The first is always connected. After a loss, attempts to connect again follow until
/// one succeeds, or all that are allowed have failed. The last is closed.
///
/// There is no event before the first connection: the function that connects returns its error.
///
/// Over HTTP a connection is what keeps client and server together: a session of the handshake revisions. 2026-07-28 has
/// no sessions, so that a failed request does not lose the connection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The client has connected for the first time.
    Connected,
    /// The connection or its session was lost, or could not be opened again, for this reason. The next request opens a
    /// new one; a client that listens for changes makes one attempt by itself.
    Lost(ClientError),
    /// The client opens a new connection, possibly after a pause (`Reconnect`).
    Retrying,
    /// A new connection has taken the place of the lost one.
    Restored,
    /// The client does not connect again for now: the last attempt that [`Reconnect`](super::Reconnect) allows has failed,
    /// for this reason. Requests fail with this error; after 30 seconds, a request makes another attempt, unless none are
    /// allowed.
    GivenUp(ClientError),
    /// The client was closed. No event follows.
    Closed,
}

impl ConnectionEvent {
    /// Returns the stable name: `connected`, `lost`, `retrying`, `restored`, `given_up` or `closed`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Lost(_) => "lost",
            Self::Retrying => "retrying",
            Self::Restored => "restored",
            Self::GivenUp(_) => "given_up",
            Self::Closed => "closed",
        }
    }

    /// Returns why there is no connection, if the event has a reason.
    pub const fn error(&self) -> Option<&ClientError> {
        match self {
            Self::Lost(error) | Self::GivenUp(error) => Some(error),
            _ => None,
        }
    }
}

/// Receives connection events. Runs on an I/O thread and must not block.
pub(super) type ConnectionListener = Arc<dyn Fn(&ConnectionEvent) + Send + Sync>;

/// Delivers events in the order in which they happened, one at a time, while no lock is held.
pub(super) struct ConnectionAnnouncer {
    listeners: Vec<ConnectionListener>,
    state: Mutex<Announcements>,
}

#[derive(Default)]
struct Announcements {
    waiting: VecDeque<ConnectionEvent>,
    is_delivering: bool,
}

impl ConnectionAnnouncer {
    pub(super) fn new(listeners: Vec<ConnectionListener>) -> Self {
        Self {
            listeners,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Announcements> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. Called with the client's state locked, which determines the order; call
    /// [`deliver`](Self::deliver) after the lock is released.
    pub(super) fn add(&self, event: ConnectionEvent) {
        if !self.listeners.is_empty() {
            self.lock().waiting.push_back(event);
        }
    }

    /// Calls the listeners with the waiting events, unless another thread does so already.
    pub(super) fn deliver(&self) {
        if std::mem::replace(&mut self.lock().is_delivering, true) {
            return;
        }
        loop {
            let next = {
                let mut state = self.lock();
                let next = state.waiting.pop_front();
                state.is_delivering = next.is_some();
                next
            };
            let Some(event) = next else {
                return;
            };
            for listener in &self.listeners {
                listener(&event);
            }
        }
    }
}

/// The connection events of a client, as a stream. Made by [`ClientBuilder::connection_events`].
///
/// It is a [`Stream`]; [`ConnectionEvents::next`] needs no other crate. It ends after [`ConnectionEvent::Closed`].
/// Dropping the stream leaves the client as it is.
#[derive(Debug)]
pub struct ConnectionEvents {
    received: mpsc::Receiver<ConnectionEvent>,
}

impl ConnectionEvents {
    /// Waits for the next event; `None` after the client was closed.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        self.received.recv().await
    }
}

impl Stream for ConnectionEvents {
    type Item = ConnectionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ConnectionEvent>> {
        self.received.poll_recv(cx)
    }
}

impl ClientBuilder {
    /// Sets a listener for changes of the connection. It receives them in order, on an I/O thread, and must not block.
    #[must_use]
    pub fn on_connection(
        mut self,
        listener: impl Fn(&ConnectionEvent) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.connection_listeners.push(Arc::new(listener));
        self
    }

    /// Returns the changes of the connection as a stream, next to the builder. A stream that is not read keeps 256
    /// events; further ones are dropped, except `Closed`.
    ///
    /// ```
    /// use mcpline::Server;
    /// use mcpline::client::{Client, ClientError, ConnectionEvent};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// let (builder, mut events) = Client::builder("host", "1.0.0").connection_events();
    /// let client = builder.connect(Server::new("acme", "1.0.0")).await?;
    /// client.close().await;
    /// assert_eq!(events.next().await, Some(ConnectionEvent::Connected));
    /// assert_eq!(events.next().await, Some(ConnectionEvent::Closed));
    /// assert_eq!(events.next().await, None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn connection_events(self) -> (Self, ConnectionEvents) {
        // With room for `Closed`.
        let (sender, received) = mpsc::channel(MAX_WAITING + 1);
        let sender = Mutex::new(Some(sender));
        let builder = self.on_connection(move |event| {
            let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
            let is_last = *event == ConnectionEvent::Closed;
            if let Some(sender) = &*sender
                && (is_last || sender.capacity() > 1)
            {
                // Fails only if the stream was dropped.
                let _ = sender.try_send(event.clone());
            }
            if is_last {
                *sender = None;
            }
        });
        (builder, ConnectionEvents { received })
    }
}
