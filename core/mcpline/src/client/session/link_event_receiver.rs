//! Receives the reports of a link during negotiation and afterwards.

use bytes::Bytes;
use mcpline_protocol::Printable;
use mcpline_protocol::client::OutgoingRequestId;
use mcpline_protocol::wire::{self, Incoming, Message, ReadError};
use tokio::sync::mpsc;

use crate::backlog::{Backlog, BacklogLimits, BacklogSlot};
use crate::client::link::LinkEventSink;
use crate::client_error::ClientError;
use crate::sync::{self, Arc, Mutex, OnceLock, PoisonError, Weak};

use super::Session;

/// Maximum number of notifications and requests that wait during negotiation, and also of responses. A well-behaved
/// server sends few by then.
pub(in crate::client) const MAX_EARLY_MESSAGES: usize = 1_024;

/// Maximum number of their bytes: two of the longest messages.
const MAX_EARLY_BYTES: usize = 32 * 1024 * 1024;

/// A report of a link during negotiation.
#[derive(Debug)]
pub(in crate::client) enum LinkEvent {
    Message(
        Incoming,
        #[expect(dead_code, reason = "frees its room when it is dropped")] BacklogSlot,
    ),
    Unreadable(
        ReadError,
        Option<u64>,
        #[expect(dead_code, reason = "frees its room when it is dropped")] BacklogSlot,
    ),
    Failed(u64, ClientError),
    Held(Option<u64>, bool),
    Ended(ClientError),
}

/// Limits for reports that wait during negotiation.
const EARLY_LIMITS: BacklogLimits = BacklogLimits {
    messages: MAX_EARLY_MESSAGES,
    bytes: MAX_EARLY_BYTES,
    overflow: "dropping messages of the server: it sends too many during the handshake",
};

/// Receives the reports of a link, and passes them to the negotiation first and to the session later.
pub(in crate::client) struct LinkEventReceiver {
    opening: mpsc::UnboundedSender<LinkEvent>,
    session: OnceLock<Weak<Session>>,
    /// Waiting responses.
    early_answers: Backlog,
    /// Other reports, which wait for the session. They never take the room of the response that opens it.
    early_others: Backlog,
    /// Held while reports are handed over, to preserve their order.
    order: Mutex<()>,
}

impl LinkEventReceiver {
    pub(in crate::client) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<LinkEvent>) {
        let (opening, reports) = mpsc::unbounded_channel();
        let reception = Self {
            opening,
            session: OnceLock::new(),
            early_answers: Backlog::new(EARLY_LIMITS),
            early_others: Backlog::new(EARLY_LIMITS),
            order: Mutex::new(()),
        };
        (Arc::new(reception), reports)
    }

    /// Passes all reports to the session from now on, beginning with those that `reports` still holds.
    pub(in crate::client) fn hand_over(
        &self,
        session: &Arc<Session>,
        reports: &mut mpsc::UnboundedReceiver<LinkEvent>,
    ) {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(report) = reports.try_recv() {
            session.handle_early_event(report);
        }
        sync::yield_point();
        // Nothing else sets it.
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// Returns the session, or `None` if it is over. Queues the report and returns `Err` during negotiation.
    fn session(
        &self,
        report: impl FnOnce() -> Option<LinkEvent>,
    ) -> Result<Option<Arc<Session>>, ()> {
        if let Some(session) = self.session.get() {
            return Ok(session.upgrade());
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match self.session.get() {
            Some(session) => Ok(session.upgrade()),
            None => {
                if let Some(report) = report() {
                    // The negotiation may have been given up.
                    let _ = self.opening.send(report);
                }
                Err(())
            }
        }
    }
}

fn is_response(message: &Message) -> bool {
    matches!(message, Message::Response(_))
}

impl LinkEventSink for LinkEventReceiver {
    fn message(&self, message: Bytes, request: Option<u64>) -> bool {
        let bytes = message.len();
        let read = wire::read(message);
        if let Some(session) = self.session.get() {
            return session.upgrade().is_none_or(|session| {
                session.receive(read, request.map(OutgoingRequestId::from_number))
            });
        }
        let answers = |message: &Message| match message {
            Message::Response(response) => match (&response.id, request) {
                (Some(id), Some(number)) => id.as_integer() == Some(i128::from(number)),
                _ => true,
            },
            _ => false,
        };
        let answered = match &read {
            Ok(Incoming::Single(message)) => answers(message),
            Ok(Incoming::Batch(messages)) => messages.iter().flatten().any(answers),
            Err(_) => true,
        };
        let course = request.map(OutgoingRequestId::from_number);
        let kept = read.clone();
        let report = || {
            let is_answer = match &kept {
                Ok(Incoming::Single(message)) => is_response(message),
                Ok(Incoming::Batch(messages)) => messages.iter().flatten().any(is_response),
                Err(_) => true,
            };
            let early = match is_answer {
                true => &self.early_answers,
                false => &self.early_others,
            };
            let slot = early.admit(bytes)?;
            Some(match kept {
                Ok(message) => LinkEvent::Message(message, slot),
                Err(error) => LinkEvent::Unreadable(error, request, slot),
            })
        };
        match self.session(report) {
            Ok(Some(session)) => session.receive(read, course),
            _ => answered,
        }
    }

    fn failed(&self, request: u64, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Some(LinkEvent::Failed(request, queued))) {
            session.fail(OutgoingRequestId::from_number(request), error);
        }
    }

    fn set_timeout_paused(&self, request: Option<u64>, held: bool) {
        if let Ok(Some(session)) = self.session(|| Some(LinkEvent::Held(request, held))) {
            session.set_timeout_paused(request, held);
        }
    }

    fn ended(&self, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Some(LinkEvent::Ended(queued))) {
            session.end(&error);
        }
    }

    fn warning(&self, text: String) {
        tracing::warn!("{}", Printable(text));
    }
}

#[cfg(all(test, not(mcpline_models)))]
mod tests {
    use super::*;

    #[test]
    fn bounds_messages_that_arrive_during_negotiation() {
        for (length, kept) in [(100, MAX_EARLY_MESSAGES), (1024 * 1024, 31)] {
            let (reception, mut reports) = LinkEventReceiver::new();
            let text = "x".repeat(length);
            let note = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"text":"{text}"}}}}"#);
            let receive = |times: usize| {
                for _ in 0..times {
                    reception.message(note.clone().into(), None);
                }
            };
            receive(MAX_EARLY_MESSAGES + 10);
            assert_eq!(reports.len(), kept, "of {length} bytes");

            // Reports that were taken make room.
            drop(reports.try_recv());
            receive(2);
            assert_eq!(reports.len(), kept);
            let answer = r#"{"jsonrpc":"2.0","id":1,"result":5}"#;
            reception.message(answer.into(), None);
            reception.ended(ClientError::Closed);
            assert_eq!(
                reports.len(),
                kept + 2,
                "the answer and the end come through"
            );
        }
    }
}
