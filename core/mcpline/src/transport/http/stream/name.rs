//! Names of streams, as in the ids of their events and in the log that processes share.

use crate::sharing::EventLog;
use crate::sync::Arc;

/// A stream's name within its session, which is the first part of each event id: a number, and if there are several
/// processes the one that assigned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct StreamName {
    pub(in super::super) number: u64,
    pub(in super::super) process: Option<u32>,
}

impl StreamName {
    /// Parses an event id into the stream's name and the event's number.
    pub(in super::super) fn of_event(id: &str) -> Option<(Self, u64)> {
        let (name, event) = id.split_once('-')?;
        let (number, process) = match name.split_once('.') {
            Some((number, process)) => (number, Some(u32::from_str_radix(process, 16).ok()?)),
            None => (name, None),
        };
        let number = number.parse().ok()?;
        Some((Self { number, process }, event.parse().ok()?))
    }

    /// Whether it is the session's own stream, which belongs to no request.
    pub(in super::super) fn is_general(self) -> bool {
        self.number == 0
    }
}

impl std::fmt::Display for StreamName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            Some(process) => write!(f, "{}.{process:x}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// A stream's place in the log that processes share.
pub(in super::super) struct StreamLog {
    pub(in super::super) log: Arc<dyn EventLog>,
    pub(in super::super) name: String,
}
