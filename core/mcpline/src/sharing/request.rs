//! Requests to shared state as values, for stores in another language.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::LoggedEvents;

/// A request to shared state that another language implements: a method of [`SessionStore`](super::SessionStore),
/// [`EventLog`](super::EventLog) or [`Bus`](super::Bus), with its arguments.
#[derive(Clone)]
pub enum SharingRequest {
    /// [`SessionStore::save`](super::SessionStore::save), answered with [`SharingReply::Done`] or
    /// [`SharingReply::Conflict`].
    Save {
        /// The id of the session.
        id: String,
        /// The session.
        session: Bytes,
        /// What it replaces.
        replaces: Bytes,
        /// How long it is kept; `None` if it does not end.
        lifetime: Option<Duration>,
    },
    /// [`SessionStore::load`](super::SessionStore::load), answered with [`SharingReply::Session`].
    Load {
        /// The id of the session.
        id: String,
    },
    /// [`SessionStore::remove`](super::SessionStore::remove), answered with [`SharingReply::Done`].
    Remove {
        /// The id of the session.
        id: String,
    },
    /// [`EventLog::append`](super::EventLog::append) for events that follow each other, answered with
    /// [`SharingReply::Done`].
    Append {
        /// The name of the stream.
        stream: String,
        /// The number of the first event.
        number: u64,
        /// The events: at least one.
        events: Vec<Bytes>,
    },
    /// [`EventLog::end`](super::EventLog::end), answered with [`SharingReply::Done`].
    End {
        /// The name of the stream.
        stream: String,
        /// The number of its last event.
        last: u64,
    },
    /// [`EventLog::read`](super::EventLog::read), answered with [`SharingReply::Events`].
    Read {
        /// The name of the stream.
        stream: String,
        /// The number of the event before the first one to return.
        after: u64,
    },
    /// [`Bus::publish`](super::Bus::publish), answered with [`SharingReply::Done`].
    Publish {
        /// The message.
        message: Bytes,
    },
    /// [`Bus::subscribe`](super::Bus::subscribe), answered with [`SharingReply::Done`] once messages arrive.
    Subscribe {
        /// Called with each message, from any thread. It does not block.
        receive: Arc<dyn Fn(Bytes) + Send + Sync>,
    },
    /// Ends the subscription, answered with [`SharingReply::Done`].
    Unsubscribe,
}

/// The answer to a [`SharingRequest`].
#[derive(Debug, Clone)]
pub enum SharingReply {
    /// It is done.
    Done,
    /// The session is stored under this id, or there is none.
    Session(Option<Bytes>),
    /// The session was not saved: another process has changed it to this.
    Conflict(Bytes),
    /// The part of the stream; `None` if it is unknown, or events are missing.
    Events(Option<LoggedEvents>),
}

impl SharingRequest {
    /// Returns the part of the shared state and its method, such as `sessions.save`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Save { .. } => "sessions.save",
            Self::Load { .. } => "sessions.load",
            Self::Remove { .. } => "sessions.remove",
            Self::Append { .. } => "events.append",
            Self::End { .. } => "events.end",
            Self::Read { .. } => "events.read",
            Self::Publish { .. } => "bus.publish",
            Self::Subscribe { .. } => "bus.subscribe",
            Self::Unsubscribe => "bus.unsubscribe",
        }
    }

    /// Returns the size of what it carries, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Save {
                session, replaces, ..
            } => session.len() + replaces.len(),
            Self::Append { events, .. } => events.iter().map(Bytes::len).sum(),
            Self::Publish { message } => message.len(),
            _ => 0,
        }
    }
}

impl SharingReply {
    /// Returns the size of what it carries, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Session(Some(session)) | Self::Conflict(session) => session.len(),
            Self::Events(Some(part)) => part.events.iter().map(Bytes::len).sum(),
            _ => 0,
        }
    }
}

/// Omits the contents, which are secret.
impl fmt::Debug for SharingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
