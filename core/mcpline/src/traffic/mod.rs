//! Records of the messages that a server or client exchanges with its peer: their text without secrets, and the file that
//! they are appended to.

mod excerpt;
mod file;
mod free_text;
mod shown;
mod tokens;

pub(crate) use excerpt::excerpt;
pub use file::TRAFFIC_FILE_VARIABLE;
pub(crate) use file::{FileRecord, RecordedMessage, Role, TrafficFile, flush_files};

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
