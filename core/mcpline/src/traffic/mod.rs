//! Traffic files: the messages that a server or client exchanges with its peer, without their secrets. `docs/traffic-files.md`
//! specifies their format, and [`TrafficReader`] reads it.

mod excerpt;
mod file;
mod free_text;
mod limited_text;
mod reader;
mod tokens;

use mcpline_protocol::Revision;

use crate::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use excerpt::excerpt;
pub use file::TRAFFIC_FILE_VARIABLE;
pub(crate) use file::{FileRecord, RecordedMessage, TrafficFile, flush_files};
pub use reader::{TrafficContent, TrafficEntry, TrafficError, TrafficMessage, TrafficReader};

/// The revision of a peer's latest message. Each request of 2026-07-28 names one.
#[derive(Default)]
pub(crate) struct LatestRevision {
    /// An index of [`Revision::ALL`] plus one; 0 if it is not known.
    index: AtomicUsize,
}

impl LatestRevision {
    pub(crate) fn set(&self, revision: Revision) {
        let index = Revision::ALL.iter().position(|other| *other == revision);
        self.index
            .store(index.map_or(0, |index| index + 1), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Revision> {
        let index = self.index.load(Ordering::Relaxed).checked_sub(1)?;
        Revision::ALL.get(index).copied()
    }
}

/// Who has recorded a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The server.
    Server,
    /// The client.
    Client,
}

impl Role {
    /// Returns the name: `server` or `client`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer.
    Received,
    /// To the peer.
    Sent,
}

impl Direction {
    /// Returns the name: `received` or `sent`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Sent => "sent",
        }
    }
}
