//! In-process connections: for tests, for programs that are host and server at once, and as the basis of custom
//! transports.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::background;
use crate::caller::Caller;
use crate::message_sink::{MessageKind, MessageSink};
use crate::server::Server;
use crate::server::connection::Connection;
use crate::server::traffic::TransportKind;
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::line_io::outbox::OUTBOX_LIMIT;

use super::single_connection;

/// Memory overhead of each message.
const ENTRY_BYTES: usize = 64;

/// Limits of messages that a client has not received.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Above it, messages of the client are not processed, and notifications to it are dropped.
    waiting: usize,
    /// Above it, in both directions together, the connection ends.
    most: usize,
}

const LIMITS: Limits = Limits {
    // As for a pipe, which is not read further.
    waiting: OUTBOX_LIMIT,
    // Room for responses to requests in flight, and for what the client sends meanwhile.
    most: MAX_UNRECEIVED_BYTES,
};

/// Maximum number of bytes that an in-process client may leave unreceived, together with those that it has sent
/// meanwhile, before its connection ends.
const MAX_UNRECEIVED_BYTES: usize = 8 * OUTBOX_LIMIT;

/// The client's end of a connection to a server in this process.
///
/// [`MemoryTransport::send`] sends messages, [`MemoryTransport::receive`] receives them. Closing or dropping it ends the connection and
/// cancels what is in flight.
///
/// While the client leaves more than 32 MiB unreceived, its messages wait, and notifications to it are dropped. At 256
/// MiB, in both directions together, the connection is closed.
pub struct MemoryTransport {
    connection: Arc<Connection>,
    sink: Arc<dyn MessageSink>,
    queue: Arc<Queue>,
}

/// What handlers see of a client in this process: for tests of what depends on the caller or on HTTP.
#[derive(Clone, Default)]
pub struct MemoryTransportOptions {
    principal: Option<Caller>,
    #[cfg(feature = "http")]
    headers: Option<http::HeaderMap>,
}

impl MemoryTransportOptions {
    /// Creates options of an anonymous client without headers, which may use everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the authenticated caller, as for [`Server::connect_as`].
    #[must_use]
    pub fn with_principal(mut self, principal: Caller) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Sets the headers that handlers find in [`Context::http`](crate::Context::http). The server itself does not read
    /// them: an `Authorization` header authenticates no one.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    #[must_use]
    pub fn with_headers(mut self, headers: http::HeaderMap) -> Self {
        self.headers = Some(headers);
        self
    }
}

impl From<Caller> for MemoryTransportOptions {
    fn from(principal: Caller) -> Self {
        Self::new().with_principal(principal)
    }
}

/// Omits the headers, which may hold credentials.
impl std::fmt::Debug for MemoryTransportOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTransportOptions")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

struct Queue {
    state: Mutex<QueueState>,
    filled: Notify,
    /// Notified when no message of the client waits any more.
    looked_at: Notify,
    limits: Limits,
    /// The connection, once it is known.
    connection: OnceLock<Weak<Connection>>,
}

#[derive(Default)]
struct QueueState {
    /// To the client.
    messages: VecDeque<Bytes>,
    /// Size of `messages`.
    bytes: usize,
    /// From the client, waiting until it has received more of `messages`.
    sent: VecDeque<Bytes>,
    sent_bytes: usize,
    /// A message of the client is being processed: later ones must not overtake it.
    is_taking: bool,
    closed: bool,
}

impl QueueState {
    fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len() + ENTRY_BYTES;
        Some(message)
    }

    /// Closes the queue if it exceeds the limit. Returns whether it does.
    fn overflow(&mut self, limits: Limits) -> bool {
        let overflows = self.bytes + self.sent_bytes > limits.most;
        if overflows {
            *self = Self {
                is_taking: self.is_taking,
                closed: true,
                ..Self::default()
            };
        }
        overflows
    }
}

impl Queue {
    fn new(limits: Limits) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            looked_at: Notify::new(),
            limits,
            connection: OnceLock::new(),
        }
    }

    /// Closes the queue for new messages. Those in it can still be received.
    fn close(&self) {
        let sent = {
            let mut state = self.lock();
            state.closed = true;
            state.sent_bytes = 0;
            std::mem::take(&mut state.sent)
        };
        drop(sent);
        self.filled.notify_one();
        self.looked_at.notify_waiters();
    }

    /// Takes the client's next message, if it may be processed now.
    fn take_sent(&self) -> Option<(Bytes, ProcessingGuard<'_>)> {
        let mut state = self.lock();
        if state.is_taking || state.bytes > self.limits.waiting {
            return None;
        }
        let next = state.sent.pop_front()?;
        state.sent_bytes -= next.len() + ENTRY_BYTES;
        state.is_taking = true;
        Some((next, ProcessingGuard(self)))
    }

    /// Ends the connection of a client that does not receive. Another task does so, because its session may be locked
    /// here.
    fn give_up(&self) {
        tracing::warn!("closing an in-memory connection: its client does not read messages");
        self.filled.notify_one();
        self.looked_at.notify_waiters();
        let connection = self.connection.get().and_then(Weak::upgrade);
        if let Some(connection) = connection {
            let runtime = connection.runtime().clone();
            background::spawn(&runtime, async move { end(&connection) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guards the processing of a client's message.
struct ProcessingGuard<'q>(&'q Queue);

impl Drop for ProcessingGuard<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.lock();
            state.is_taking = false;
            state.sent.is_empty()
        };
        if is_last {
            self.0.looked_at.notify_waiters();
        }
    }
}

/// Ends a connection and cancels everything in flight, including suspended handlers, because their client is gone.
fn end(connection: &Arc<Connection>) {
    connection.close();
    connection.server().cancel_suspended_of(connection);
}

impl MessageSink for Queue {
    fn write(&self, kind: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        let overflows = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            if state.bytes > self.limits.waiting && kind == MessageKind::Notification {
                tracing::debug!("dropped a notification to a client that does not read messages");
                return;
            }
            state.bytes += message.len() + ENTRY_BYTES;
            state.messages.push_back(message.into());
            state.overflow(self.limits)
        };
        match overflows {
            true => self.give_up(),
            false => self.filled.notify_one(),
        }
    }
}

impl Server {
    /// Connects to this server within the process.
    ///
    /// The client is anonymous and may use everything, which is right for a client in the same process or of the same
    /// user. Transports that others can reach should name their clients with [`Server::connect_as`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn connect(&self) -> MemoryTransport {
        self.connect_with(MemoryTransportOptions::new())
    }

    /// Connects to this server as [`Server::connect`] does, in the name of a principal that the transport has
    /// authenticated.
    ///
    /// The principal is fixed for as long as the connection lasts. Handlers find it in
    /// [`Context::auth`](crate::Context::auth). Scopes of tools, resources, prompts and custom methods hold as over HTTP:
    /// lists leave out what the principal may not use, and a request without the scopes is refused with the JSON-RPC error
    /// -31001, whose data names them. Suspended calls are bound to the principal, and what its connections hold counts
    /// together, as one client of the server. An expiry of the principal is for handlers to see: to end its access, close
    /// the connection.
    ///
    /// ```
    /// use mcpline::Server;
    /// use mcpline::server::Caller;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = Server::new("files", "1.0.0");
    /// let alice = Caller::new().with_subject("alice").with_scopes(["files:read"]);
    /// let connection = server.connect_as(alice);
    /// connection.send(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#);
    /// assert!(connection.receive().await.is_some());
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn connect_as(&self, principal: Caller) -> MemoryTransport {
        self.connect_with(principal.into())
    }

    /// Connects to this server as [`Server::connect`] does; handlers see the client as `options` describe it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn connect_with(&self, options: MemoryTransportOptions) -> MemoryTransport {
        self.connect_within(options, LIMITS)
    }

    fn connect_within(&self, options: MemoryTransportOptions, limits: Limits) -> MemoryTransport {
        let queue = Arc::new(Queue::new(limits));
        let sink: Arc<dyn MessageSink> = queue.clone();
        let kind = TransportKind::Memory;
        let peer = options.principal.into();
        #[cfg(feature = "http")]
        let connection = match options.headers {
            Some(headers) => single_connection::open_with_headers(self, peer, headers, kind, &sink),
            None => single_connection::open(self, peer, kind, &sink),
        };
        #[cfg(not(feature = "http"))]
        let connection = single_connection::open(self, peer, kind, &sink);
        let _ = queue.connection.set(Arc::downgrade(&connection));
        let dead = queue.clone();
        connection.on_ping_timeout(move || dead.close());
        MemoryTransport {
            connection,
            sink,
            queue,
        }
    }
}

impl MemoryTransport {
    /// Sends one message, or a batch, to the server. Never blocks.
    ///
    /// Handlers that finish immediately have answered when it returns, unless too much is unreceived. Call it within a
    /// tokio runtime, which runs Rust handlers.
    pub fn send(&self, message: impl Into<Bytes>) {
        let message = message.into();
        let overflows = {
            let mut state = self.queue.lock();
            if state.closed {
                return;
            }
            state.sent_bytes += message.len() + ENTRY_BYTES;
            state.sent.push_back(message);
            state.overflow(self.queue.limits)
        };
        match overflows {
            true => self.queue.give_up(),
            false => self.process_sent(),
        }
    }

    /// Processes the messages that were sent.
    fn process_sent(&self) {
        while let Some((message, _taking)) = self.queue.take_sent() {
            single_connection::receive(&self.connection, &self.sink, message);
        }
    }

    /// Waits until the server has processed all [sent](Self::send) messages, or the connection is closed.
    ///
    /// Transports that wait for it before they read the next message slow down clients that do not receive, instead of
    /// buffering their messages.
    pub async fn ready(&self) {
        loop {
            let mut looked_at = std::pin::pin!(self.queue.looked_at.notified());
            looked_at.as_mut().enable();
            {
                let state = self.queue.lock();
                if state.closed || (state.sent.is_empty() && !state.is_taking) {
                    return;
                }
            }
            looked_at.await;
        }
    }

    /// Returns the next message of the server; `None` when the connection is closed and everything was received. A
    /// client that does not answer pings is disconnected.
    pub async fn receive(&self) -> Option<Bytes> {
        loop {
            let (message, closed) = {
                let mut state = self.queue.lock();
                (state.pop(), state.closed)
            };
            if message.is_some() {
                self.process_sent();
                return message;
            }
            if closed {
                return None;
            }
            self.queue.filled.notified().await;
        }
    }

    /// Returns the next message of the server, if there already is one.
    pub fn try_receive(&self) -> Option<Bytes> {
        let message = self.queue.lock().pop();
        if message.is_some() {
            self.process_sent();
        }
        message
    }

    /// Begins a graceful shutdown: input requests to the client fail, subscriptions end, later requests are refused, calls in
    /// flight continue.
    ///
    /// Receive until [`MemoryTransport::is_idle`], or call [`shut_down`](MemoryTransport::shut_down) after the grace period; then close.
    pub fn wind_down(&self) {
        self.connection.wind_down();
    }

    /// Cancels handlers in flight and answers their calls with an error that says that the server is shutting down.
    /// Receive the responses, then close.
    pub fn shut_down(&self) {
        self.connection.end_with_shutdown_error();
    }

    /// Returns whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        let nothing_waits = self.queue.lock().sent.is_empty();
        nothing_waits && self.connection.is_idle()
    }

    /// Closes the connection and cancels what is in flight, including suspended handlers.
    pub fn close(&self) {
        end(&self.connection);
        self.queue.close();
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for MemoryTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTransport").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcpline_protocol::vocabulary::Tool;
    use serde_json::{Value, json};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::server::{Context, ToolOptions};

    const LIMITS: Limits = Limits {
        waiting: 100_000,
        most: 400_000,
    };

    /// A server with a tool that answers with 10,000 bytes, either inline or when it gets a permit.
    fn server(is_inline: bool) -> (Server, Arc<AtomicUsize>, Arc<Semaphore>) {
        let (server, begun) = (Server::new("test", "1"), Arc::new(AtomicUsize::new(0)));
        let go_on = Arc::new(Semaphore::new(0));
        let (counted, waited) = (begun.clone(), go_on.clone());
        let handler = move |_: Value, _: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            let waited = waited.clone();
            async move {
                if !is_inline {
                    waited.acquire().await.expect("open").forget();
                }
                "x".repeat(10_000)
            }
        };
        let tool = Tool::new("x", json!({"type": "object"}));
        let added = server.add_tool_fn(tool, ToolOptions::default(), handler);
        added.expect("a tool");
        (server, begun, go_on)
    }

    fn call(id: usize) -> Bytes {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": "x", "arguments": {}, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        call.to_string().into()
    }

    #[runtimes::test]
    async fn messages_wait_while_too_much_is_unreceived_and_none_is_lost() {
        let (server, begun, _) = server(true);
        let memory = server.connect_within(MemoryTransportOptions::new(), LIMITS);
        for id in 0..100 {
            memory.send(call(id));
        }
        assert!(begun.load(Ordering::SeqCst) <= 11);
        assert!(!memory.is_idle());
        for id in 0..100 {
            let answer = memory.receive().await.expect("an answer");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            assert_eq!(answer["id"], id);
        }
        assert!(memory.is_idle());
        let state = memory.queue.lock();
        assert_eq!((state.bytes, state.sent_bytes), (0, 0));
    }

    #[runtimes::test]
    async fn a_client_that_does_not_receive_loses_notifications_then_its_connection() {
        let (server, begun, go_on) = server(false);
        let memory = server.connect_within(MemoryTransportOptions::new(), LIMITS);
        for id in 0..60 {
            memory.send(call(id));
        }
        while begun.load(Ordering::SeqCst) < 60 {
            tokio::task::yield_now().await;
        }
        let notify = |bytes: usize| {
            let notification = "x".repeat(bytes);
            let mut encode = |out: &mut Vec<u8>| out.extend_from_slice(notification.as_bytes());
            memory
                .sink
                .write(MessageKind::Notification, bytes, &mut encode);
            memory.queue.lock().bytes
        };
        notify(150_000);
        assert_eq!(notify(150_000), 150_000 + ENTRY_BYTES);
        go_on.add_permits(60);
        // Its last responses exceed the limit.
        while !memory.queue.lock().closed {
            tokio::task::yield_now().await;
        }
        assert!(memory.queue.lock().messages.is_empty());
        assert_eq!(memory.receive().await, None);
        while !memory.is_idle() {
            tokio::task::yield_now().await;
        }
    }

    #[runtimes::test]
    async fn a_client_that_sends_without_receiving_loses_its_connection() {
        let (server, ..) = server(true);
        let memory = server.connect_within(MemoryTransportOptions::new(), LIMITS);
        for id in 0..2_000 {
            memory.send(call(id));
        }
        let state = memory.queue.lock();
        assert!(state.closed && state.sent.is_empty() && state.messages.is_empty());
    }
}
