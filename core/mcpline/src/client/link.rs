//! The way that messages take to one server: what every transport of a client does, and what it reports.
//!
//! A [`Link`] lasts as long as one conversation: it is opened, used by the [opening](mcpline_protocol::client::Negotiation)
//! and by whatever follows, and closed; a new conversation gets a new link. It knows nothing of what messages mean
//! beyond what its transport needs, which is in [`Purpose`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::Revision;

use crate::client_error::ClientError;

/// What is said of an endpoint that answers the GET of HTTP+SSE with something else than an event stream.
pub(crate) const NO_EVENT_STREAM: &str = "the response to GET is not an event stream";

/// A future that a link hands out.
pub(crate) type LinkFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The client's end of a transport. Nothing here blocks.
pub(crate) trait Link: Send + Sync + 'static {
    /// Sends one message. What comes of it reaches the link's [`LinkEventSink`].
    fn send(&self, outgoing: Outgoing);

    /// Whether requests of 2026-07-28 repeat some of their members as headers.
    fn mirrors_params_as_headers(&self) -> bool {
        false
    }

    /// Nobody waits for the answer to this request any more. Transports that keep a stream open for it close it.
    fn abandon(&self, request: u64);

    /// The conversation is open, in this revision: from now on messages go out as a client of that revision sends
    /// them, and a transport with a stream of its own for what the server says unasked opens it.
    fn opened(&self, revision: Revision);

    /// Ends the conversation as the transport's page says, and resolves when nothing of it is left: no task, no
    /// descriptor, no process. The end begins with the call, not only when it is awaited. Any number of times.
    fn close(&self) -> LinkFuture;
}

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message, without a line end.
    pub(crate) message: Bytes,
    pub(crate) purpose: Purpose,
}

/// What a message is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// It asks for an answer.
    Request(RequestHead),
    /// It asks for none: a notification.
    Notification {
        /// The request of ours that it is about, such as one that is cancelled.
        about: Option<u64>,
    },
    /// It answers a question of the server.
    Answer,
}

/// What transports need to know of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The number that is its JSON-RPC id.
    pub(crate) number: u64,
    /// The revision that it is written in. An opening may try several.
    pub(crate) revision: Revision,
    /// `initialize`: what opens a session.
    pub(crate) opens: bool,
    /// The link may send it again if the server may have received it. Else whoever has sent it decides.
    pub(crate) is_repeatable: bool,
    /// On 2026-07-28, the headers that HTTP repeats of it: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-…`, with their
    /// values encoded (`basic/transports/streamable-http`).
    pub(crate) headers: Vec<(String, String)>,
}

/// Whom a link reports to. Called from the link's tasks, never with a lock of the link held.
pub(crate) trait LinkEventSink: Send + Sync + 'static {
    /// A message (or batch) arrived. `request` names the request on whose stream it came, if it came on one.
    /// Returns whether that request has its answer now, so that nothing more needs to be awaited on its stream.
    fn message(&self, message: Bytes, request: Option<u64>) -> bool;

    /// The request has no answer and will have none over this link.
    fn failed(&self, request: u64, error: ClientError);

    /// The request, or if none is named whatever request there is, waits for something that isn't the server's doing, such
    /// as a user who is asked for consent, or no longer does: its time stands still meanwhile.
    fn held(&self, request: Option<u64>, held: bool);

    /// Nothing more will come over this link: every request that is still open has failed with this.
    fn ended(&self, error: ClientError);

    /// Something that the user ought to know and that fails nothing: for a log.
    fn warning(&self, text: String);
}

/// Who hears of what comes over a link, shared.
pub(crate) type Sink = Arc<dyn LinkEventSink>;
