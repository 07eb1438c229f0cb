//! What a link reports, while the conversation is being opened and from then on.

use bytes::Bytes;
use mcpline_protocol::Printable;
use mcpline_protocol::client::CallKey;
use mcpline_protocol::wire::{self, Incoming, Message, ReadError};
use tokio::sync::mpsc;

use crate::client::link::Reports;
use crate::client_error::ClientError;
use crate::sync::{self, Arc, Mutex, OnceLock, PoisonError, Weak};

use super::Session;

/// What a link reports while the conversation is being opened.
#[derive(Debug)]
pub(in crate::client) enum Report {
    Message(Incoming),
    Unreadable(ReadError, Option<u64>),
    Failed(u64, ClientError),
    Held(Option<u64>, bool),
    Ended(ClientError),
}

/// Takes what a link reports: to whoever opens the conversation, then to the conversation.
pub(in crate::client) struct Reception {
    opening: mpsc::UnboundedSender<Report>,
    session: OnceLock<Weak<Session>>,
    /// Held while reports are handed over, so that none overtakes another.
    order: Mutex<()>,
}

impl Reception {
    pub(in crate::client) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Report>) {
        let (opening, reports) = mpsc::unbounded_channel();
        let reception = Self {
            opening,
            session: OnceLock::new(),
            order: Mutex::new(()),
        };
        (Arc::new(reception), reports)
    }

    /// From now on the conversation hears everything, first what `reports` still holds.
    pub(in crate::client) fn hand_over(
        &self,
        session: &Arc<Session>,
        reports: &mut mpsc::UnboundedReceiver<Report>,
    ) {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(report) = reports.try_recv() {
            session.take(report);
        }
        sync::switch();
        // Nobody else sets it.
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// The conversation; `None` if it is over. `Err` while it is being opened, with the report queued.
    fn session(&self, report: impl FnOnce() -> Report) -> Result<Option<Arc<Session>>, ()> {
        if let Some(session) = self.session.get() {
            return Ok(session.upgrade());
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match self.session.get() {
            Some(session) => Ok(session.upgrade()),
            None => {
                // The opening may have been given up.
                let _ = self.opening.send(report());
                Err(())
            }
        }
    }
}

impl Reports for Reception {
    fn message(&self, message: Bytes, request: Option<u64>) -> bool {
        let read = wire::read(message);
        if let Some(session) = self.session.get() {
            return session
                .upgrade()
                .is_none_or(|session| session.hear(read, request.map(CallKey::from_number)));
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
        let course = request.map(CallKey::from_number);
        let kept = read.clone();
        match self.session(|| match kept {
            Ok(message) => Report::Message(message),
            Err(error) => Report::Unreadable(error, request),
        }) {
            Ok(Some(session)) => session.hear(read, course),
            _ => answered,
        }
    }

    fn failed(&self, request: u64, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Report::Failed(request, queued)) {
            session.fail(CallKey::from_number(request), error);
        }
    }

    fn held(&self, request: Option<u64>, held: bool) {
        if let Ok(Some(session)) = self.session(|| Report::Held(request, held)) {
            session.hold(request, held);
        }
    }

    fn ended(&self, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Report::Ended(queued)) {
            session.end(&error);
        }
    }

    fn warning(&self, text: String) {
        tracing::warn!("{}", Printable(text));
    }
}
