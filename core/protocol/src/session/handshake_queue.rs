//! Messages that must not be sent before `notifications/initialized`.

use super::server::Outgoing;
use super::server_requests::{ServerRequestKey, ServerRequests};

/// Messages queued until the handshake is complete (every handshake revision, `basic/lifecycle`, initialization).
///
/// A client may never complete it. Requests to the client are kept only while they are open, which
/// [`SessionLimits::max_open_input_requests`](super::SessionLimits::max_open_input_requests) bounds; changes are kept once each.
#[derive(Debug, Default)]
pub(super) struct HandshakeQueue {
    messages: Vec<QueuedMessage>,
}

/// A message, with its key if it is a request to the client.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) server_request: Option<ServerRequestKey>,
    pub(super) outgoing: Outgoing,
}

impl HandshakeQueue {
    /// Queues a request to the client. Drops those that are no longer open.
    pub(super) fn push_server_request<A>(
        &mut self,
        server_request: ServerRequestKey,
        outgoing: Outgoing,
        server_requests: &ServerRequests<A>,
    ) {
        self.drop_closed(server_requests);
        self.messages.push(QueuedMessage {
            server_request: Some(server_request),
            outgoing,
        });
    }

    /// Queues a notification, unless the same one is queued already.
    pub(super) fn push_notification(&mut self, outgoing: Outgoing) {
        if !self.messages.iter().any(|held| held.outgoing == outgoing) {
            self.messages.push(QueuedMessage {
                server_request: None,
                outgoing,
            });
        }
    }

    /// Restores a message of a saved session.
    pub(super) fn restore(&mut self, message: QueuedMessage) {
        self.messages.push(message);
    }

    /// Removes and returns the messages that may be sent now.
    pub(super) fn take<A>(&mut self, server_requests: &ServerRequests<A>) -> Vec<Outgoing> {
        self.drop_closed(server_requests);
        let messages = std::mem::take(&mut self.messages);
        messages.into_iter().map(|held| held.outgoing).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.messages.iter()
    }

    pub(super) fn clear(&mut self) {
        self.messages = Vec::new();
    }

    fn drop_closed<A>(&mut self, server_requests: &ServerRequests<A>) {
        self.messages.retain(|held| {
            held.server_request
                .is_none_or(|server_request| server_requests.open.contains_key(&server_request))
        });
    }
}
