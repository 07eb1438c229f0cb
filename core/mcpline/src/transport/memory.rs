//! A connection within the process: for tests, for programs that are host and server at once, and as the
//! inner end of a custom transport.

use std::collections::VecDeque;

use bytes::Bytes;
use mcpline_protocol::session::Scope;
use mcpline_protocol::wire;
use tokio::sync::Notify;

use crate::lane::{Kind, Lane};
use crate::server::Server;
use crate::server::connection::{Connection, Opening};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The client's end of a connection to a server in this process.
///
/// Messages go in by [`Memory::send`] and come out by [`Memory::receive`]. Closing, or dropping, it ends the
/// connection and cancels what is in flight.
pub struct Memory {
    connection: Arc<Connection>,
    lane: Arc<dyn Lane>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    filled: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    closed: bool,
}

impl Queue {
    /// What is there can still be received; nothing more comes.
    fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane for Queue {
    fn write(&self, _: Kind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            state.messages.push_back(message.into());
        }
        self.filled.notify_one();
    }
}

impl Server {
    /// Connects to this server within the process, over a channel that carries one message at a time.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn connect(&self) -> Memory {
        let queue = Arc::new(Queue::default());
        let lane: Arc<dyn Lane> = queue.clone();
        self.inner().start(&tokio::runtime::Handle::current());
        let connection = Connection::open(
            self.inner(),
            Opening {
                scope: Scope::Connection,
                limits: self.inner().settings.session,
                general: lane.clone(),
                session_id: None,
                principal: String::new(),
                transport: self.inner().next_transport(),
                client: self.inner().clients().sole_client(),
            },
        );
        let dead = queue.clone();
        connection.on_dead(move || dead.close());
        Memory {
            connection,
            lane,
            queue,
        }
    }
}

impl Memory {
    /// Hands one message (or batch) to the server. Never blocks; handlers that finish at once have
    /// answered when it returns.
    ///
    /// Call it within a tokio runtime, where Rust handlers run.
    pub fn send(&self, message: impl Into<Bytes>) {
        let limits = self.connection.server().settings.wire;
        let incoming = wire::read_within(message.into(), limits);
        self.connection.receive(incoming, &self.lane, None);
    }

    /// The server's next message; `None` once everything was received and the connection is closed, which it also is when
    /// the client doesn't answer pings.
    pub async fn receive(&self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.queue.lock();
                if let Some(message) = state.messages.pop_front() {
                    return Some(message);
                }
                if state.closed {
                    return None;
                }
            }
            self.queue.filled.notified().await;
        }
    }

    /// The server's next message, if there is one already.
    pub fn try_receive(&self) -> Option<Bytes> {
        self.queue.lock().messages.pop_front()
    }

    /// Begins an orderly end: questions to the client fail, listening ends, calls in flight go on. Receive until
    /// [`Memory::is_idle`], or [`shut_down`](Memory::shut_down) when the grace period is over, then close.
    pub fn wind_down(&self) {
        self.connection.end_listening();
        self.connection.fail_asks();
    }

    /// Ends what is in flight with an error that says that the server shuts down: handlers are cancelled. Receive the
    /// answers, then close.
    pub fn shut_down(&self) {
        self.connection.shut_down();
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.connection.is_idle()
    }

    /// Ends the connection. What is in flight is cancelled, suspended handlers too: their client is gone.
    pub fn close(&self) {
        self.connection.close();
        let server = self.connection.server();
        server.cancel_suspended_of(&self.connection);
        self.queue.close();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}
