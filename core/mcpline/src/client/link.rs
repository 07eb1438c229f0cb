//! The interface of a client's transports: what each of them does, and what it reports.
//!
//! A [`Link`] lasts for one connection: the [negotiation](mcpline_protocol::client::Negotiation) and then the session
//! use it; a new connection gets a new link. A link does not interpret messages, except for what its transport needs,
//! which is in [`OutgoingKind`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::Revision;

use crate::client_error::ClientError;

/// The error for an endpoint that answers the GET of HTTP+SSE with something other than an event stream.
pub(crate) const NO_EVENT_STREAM: &str = "the response to GET is not an event stream";

/// A future returned by a link.
pub(crate) type LinkFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The client's end of a transport. No method blocks.
pub(crate) trait Link: Send + Sync + 'static {
    /// Sends one message. Its results are reported to the link's [`LinkEventSink`].
    fn send(&self, outgoing: Outgoing);

    /// Whether requests of 2026-07-28 repeat some of their members as headers.
    fn mirrors_params_as_headers(&self) -> bool {
        false
    }

    /// Returns the value of `network.transport` in the OpenTelemetry semantic conventions, if they have one for the transport.
    fn network_transport(&self) -> Option<&'static str> {
        None
    }

    /// Returns the id of the session, on transports that have one. It gives access to the session.
    fn session_id(&self) -> Option<String> {
        None
    }

    /// Returns the id of the server's process, if the transport has started it.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// Stops waiting for the response to a request. Transports that keep a stream open for it close it.
    fn abandon(&self, request: u64);

    /// Reports that the session is open in this revision. From now on messages are sent as in that revision, and a
    /// transport with a stream for unsolicited messages of the server opens it.
    fn set_session_open(&self, revision: Revision);

    /// Closes the link as the transport's specification requires, and resolves when nothing is left: no task, no
    /// descriptor, no process. Closing begins with the call, not when the future is polled. Can be called repeatedly.
    fn close(&self) -> LinkFuture;
}

/// One outgoing message.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message, without a line end.
    pub(crate) message: Bytes,
    pub(crate) purpose: OutgoingKind,
}

/// The kind of a message.
#[derive(Debug)]
pub(crate) enum OutgoingKind {
    /// A request: expects a response.
    Request(RequestHead),
    /// A notification: expects none.
    Notification {
        /// The request of this client that it refers to, for example a cancelled one.
        about: Option<u64>,
    },
    /// A response to a request of the server.
    Answer,
}

/// What transports need of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The number that is its JSON-RPC id.
    pub(crate) number: u64,
    /// Its revision. A negotiation may try several.
    pub(crate) revision: Revision,
    /// Whether it is `initialize`, which opens a session.
    pub(crate) opens: bool,
    /// Whether the link may send it again if the server may have received it. Otherwise the sender of the request
    /// decides.
    pub(crate) is_repeatable: bool,
    /// On 2026-07-28, the headers that repeat members of it over HTTP: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-…`, with
    /// encoded values (`basic/transports/streamable-http`).
    pub(crate) headers: Vec<(String, String)>,
}

/// Receives the events of a link. Called from the link's tasks, never while a lock of the link is held.
pub(crate) trait LinkEventSink: Send + Sync + 'static {
    /// Receives a message or batch. `request` is the request whose stream it arrived on, if any. Returns whether that
    /// request now has its response, so that nothing more is expected on its stream.
    fn message(&self, message: Bytes, request: Option<u64>) -> bool;

    /// Reports that the request has no response and will get none over this link.
    fn failed(&self, request: u64, error: ClientError);

    /// Pauses or resumes the timeouts of a request, or of any request if there is no number, while it waits for
    /// something other than the server, such as the user's consent.
    fn set_timeout_paused(&self, request: Option<u64>, held: bool);

    /// Reports the end of the link: every open request has failed with this error.
    fn ended(&self, error: ClientError);

    /// Reports a problem that fails no request, for the log.
    fn warning(&self, text: String);
}

/// A shared receiver of a link's events.
pub(crate) type SharedEventSink = Arc<dyn LinkEventSink>;
