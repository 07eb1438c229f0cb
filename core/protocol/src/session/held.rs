//! Messages that must not be sent before `notifications/initialized`.

use super::asks::{AskKey, AskTable};
use super::server::Outgoing;

/// Messages held back until the handshake is complete (every handshake revision, `basic/lifecycle`, initialization).
///
/// A client may never complete it. Requests to the client are kept only while they are open, which
/// [`SessionLimits::open_asks`](super::SessionLimits::open_asks) bounds; changes are kept once each.
#[derive(Debug, Default)]
pub(super) struct Held {
    messages: Vec<HeldMessage>,
}

/// One message, and the request to the client that it is, if it is one.
#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) ask: Option<AskKey>,
    pub(super) outgoing: Outgoing,
}

impl Held {
    /// Holds a request to the client. Drops those that are no longer open.
    pub(super) fn push_ask<A>(&mut self, ask: AskKey, outgoing: Outgoing, asks: &AskTable<A>) {
        self.drop_closed(asks);
        self.messages.push(HeldMessage {
            ask: Some(ask),
            outgoing,
        });
    }

    /// Holds a notification, unless the same is held already.
    pub(super) fn push_notification(&mut self, outgoing: Outgoing) {
        if !self.messages.iter().any(|held| held.outgoing == outgoing) {
            self.messages.push(HeldMessage {
                ask: None,
                outgoing,
            });
        }
    }

    /// Puts back a message of a session that was written out.
    pub(super) fn restore(&mut self, message: HeldMessage) {
        self.messages.push(message);
    }

    /// Hands out what may be sent now.
    pub(super) fn take<A>(&mut self, asks: &AskTable<A>) -> Vec<Outgoing> {
        self.drop_closed(asks);
        let messages = std::mem::take(&mut self.messages);
        messages.into_iter().map(|held| held.outgoing).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldMessage> {
        self.messages.iter()
    }

    pub(super) fn clear(&mut self) {
        self.messages = Vec::new();
    }

    fn drop_closed<A>(&mut self, asks: &AskTable<A>) {
        self.messages
            .retain(|held| held.ask.is_none_or(|ask| asks.open.contains_key(&ask)));
    }
}
