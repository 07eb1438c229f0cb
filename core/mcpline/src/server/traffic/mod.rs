//! Traffic of a server: a record of each message, in debug mode for `tracing` and for a binding's log, and for the traffic
//! file if there is one.
//!
//! Every transport reads its client's messages with [`read`], and a connection wraps each of its message sinks
//! ([`sink`]): all messages pass [`TrafficLog::record`], with their exact bytes.

mod sink;

use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use bytes::Bytes;
use mcpline_protocol::Revision;
use mcpline_protocol::wire::{self, Incoming, ReadError};

use crate::span::shortened;
use crate::sync::Arc;
use crate::timestamp::Rfc3339;
use crate::traffic::{FileRecord, LatestRevision, RecordedMessage, Role, TrafficFile, excerpt};

use super::Server;
use super::inner::Inner;

pub use crate::traffic::Direction;
pub(super) use sink::recorded;

/// Maximum length of a message in the log in bytes: enough for most messages, and too little for an image to hide the
/// messages around it. With the rest of its line it is less than 4,096 bytes, which Linux writes to a pipe at once.
const MAX_SHOWN_BYTES: usize = 3_840;

/// One message, as debug mode shows it. See [`Server::on_traffic`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrafficRecord<'a> {
    /// Whether the server has received or sent it.
    pub direction: Direction,
    /// When.
    pub time: SystemTime,
    /// The kind of transport.
    pub transport: TransportKind,
    /// Number of the connection, which tells clients apart; over HTTP of the request, if it names no session; otherwise
    /// `None`.
    pub connection: Option<u64>,
    /// The first eight characters of the session's id, over HTTP on handshake revisions.
    pub session: Option<&'a str>,
    /// The client's revision, once it is known.
    pub revision: Option<Revision>,
    /// Length of the whole message in bytes; of a line that is too long, the limit.
    pub bytes: usize,
    /// The message on one line: secrets are replaced by `"[redacted]"`, control characters are escaped, and what exceeds
    /// 3,840 bytes is replaced by `…` and the length of the whole message. So the line is shorter than 4,096 bytes.
    pub text: &'a str,
}

/// The kind of transport of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// Standard input and output.
    Stdio,
    /// A Unix socket.
    Unix,
    /// Lines of another byte stream.
    Lines,
    /// A client in this process, or a transport of the program.
    Memory,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    HttpSse,
}

impl TransportKind {
    /// All kinds.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: &'static [Self] = &[
        Self::Stdio,
        Self::Unix,
        Self::Lines,
        Self::Memory,
        Self::Http,
        Self::HttpSse,
    ];

    /// Returns the name: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Unix => "unix",
            Self::Lines => "lines",
            Self::Memory => "memory",
            Self::Http => "http",
            Self::HttpSse => "http+sse",
        }
    }
}

/// A line for a log: `2026-07-28T09:30:00.123Z sent over http, session 1a2b3c4d, 2025-11-25: {"jsonrpc":…`.
impl fmt::Display for TrafficRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", Rfc3339(self.time))?;
        write!(
            f,
            "{} over {}",
            self.direction.name(),
            self.transport.name()
        )?;
        if let Some(connection) = self.connection {
            write!(f, ", connection {connection}")?;
        }
        if let Some(session) = self.session {
            write!(f, ", session {session}")?;
        }
        if let Some(revision) = self.revision {
            write!(f, ", {revision}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// The client whose messages are recorded.
pub(crate) struct TrafficOrigin {
    transport: TransportKind,
    /// `None` in a session over HTTP.
    connection: Option<u64>,
    /// The beginning of the session's id.
    session: Option<String>,
    /// The revision of the client's latest message.
    revision: LatestRevision,
}

impl TrafficOrigin {
    /// Returns the client of a connection with this number, or with this session id over HTTP.
    pub(crate) fn new(transport: TransportKind, connection: u64, session: Option<&str>) -> Self {
        Self {
            transport,
            connection: session.is_none().then_some(connection),
            session: session.map(|id| shortened(id).to_owned()),
            revision: LatestRevision::default(),
        }
    }

    /// Sets the revision of the client's latest message.
    pub(crate) fn set_revision(&self, revision: Revision) {
        self.revision.set(revision);
    }

    /// Returns the number of the connection; `None` in a session over HTTP.
    pub(crate) fn connection(&self) -> Option<u64> {
        self.connection
    }

    /// Returns the revision of the client's latest message, once it is known.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.revision.get()
    }
}

type Listener = Arc<dyn Fn(&TrafficRecord<'_>) + Send + Sync>;

/// Records the messages of a server.
pub(crate) struct TrafficLog {
    /// Name of the server.
    name: String,
    /// Whether messages are logged, as debug mode does.
    is_shown: bool,
    listener: RwLock<Option<Listener>>,
    file: Option<Arc<TrafficFile>>,
}

impl Server {
    /// Calls `listener` with each message that a client and the server exchange while the server is in debug mode
    /// ([`Settings::debug`](super::Settings::debug)), and never otherwise. Replaces an earlier one.
    ///
    /// It runs on the threads that read and write messages, while the connection may be locked: it must neither block nor
    /// use the server. Each record is a `tracing` event as well, of level INFO and with the target `mcpline::traffic`.
    ///
    /// What the server receives is recorded before it is read, also if it is invalid. What it sends is recorded when it is
    /// passed to the transport, which logs a warning if it drops a message of a client that does not read. HTTP headers are
    /// no part of messages.
    pub fn on_traffic(&self, listener: impl Fn(&TrafficRecord<'_>) + Send + Sync + 'static) {
        if let Some(log) = self.inner().traffic.as_ref().filter(|log| log.is_shown) {
            let listener: Listener = Arc::new(listener);
            let before = log
                .listener
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .replace(listener);
            drop(before);
        }
    }
}

impl TrafficLog {
    /// Returns the log of a server; `None` if its messages are not recorded.
    pub(super) fn new(
        name: &str,
        is_debugged: bool,
        file: Option<Arc<TrafficFile>>,
    ) -> Option<Self> {
        (is_debugged || file.is_some()).then(|| Self {
            name: name.to_owned(),
            is_shown: is_debugged,
            listener: RwLock::default(),
            file,
        })
    }

    /// Records a message: a JSON value, or any text that is none.
    pub(crate) fn record(&self, direction: Direction, origin: &TrafficOrigin, message: &[u8]) {
        if self.is_shown {
            let text = excerpt(message, MAX_SHOWN_BYTES).text;
            self.show(direction, origin, message.len(), &text);
        }
        self.write(direction, origin, RecordedMessage::Message(message));
    }

    /// Records that a line was received which is longer than `limit` bytes, and was therefore not kept.
    pub(crate) fn record_too_long(&self, origin: &TrafficOrigin, limit: usize) {
        if self.is_shown {
            let text = format!("… (more than {limit} bytes)");
            self.show(Direction::Received, origin, limit, &text);
        }
        self.write(Direction::Received, origin, RecordedMessage::TooLong(limit));
    }

    /// Writes a record to the file.
    fn write(&self, direction: Direction, origin: &TrafficOrigin, message: RecordedMessage<'_>) {
        if let Some(file) = &self.file {
            file.record(&FileRecord {
                role: Role::Server,
                name: &self.name,
                direction,
                transport: origin.transport.name(),
                connection: origin.connection,
                session: origin.session.as_deref(),
                revision: origin.revision(),
                message,
            });
        }
    }

    /// Logs a record.
    fn show(&self, direction: Direction, origin: &TrafficOrigin, bytes: usize, text: &str) {
        let record = TrafficRecord {
            direction,
            time: SystemTime::now(),
            transport: origin.transport,
            connection: origin.connection,
            session: origin.session.as_deref(),
            revision: origin.revision(),
            bytes,
            text,
        };
        tracing::info!(
            target: "mcpline::traffic",
            time = %Rfc3339(record.time),
            transport = record.transport.name(),
            connection = record.connection,
            session = record.session,
            revision = record.revision.map(Revision::as_str),
            bytes = record.bytes,
            "{} {}",
            direction.name(),
            record.text
        );
        let listener = self
            .listener
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(listener) = listener {
            listener(&record);
        }
    }
}

/// Reads the content of one line or body of a client, records it, and counts its bytes.
#[inline]
pub(crate) fn read(
    server: &Inner,
    transport: TransportKind,
    origin: Option<&TrafficOrigin>,
    message: Bytes,
) -> Result<Incoming, ReadError> {
    if let Some(metrics) = &server.metrics {
        metrics.add_received(transport, message.len());
    }
    if let (Some(log), Some(origin)) = (&server.traffic, origin) {
        log.record(Direction::Received, origin, &message);
    }
    wire::read_within(message, server.settings.wire)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let mut record = TrafficRecord {
            direction: Direction::Received,
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_785_229_800_123),
            transport: TransportKind::Stdio,
            connection: Some(1),
            session: None,
            revision: None,
            bytes: 2,
            text: "{}",
        };
        assert_eq!(
            record.to_string(),
            "2026-07-28T09:10:00.123Z received over stdio, connection 1: {}"
        );
        record.direction = Direction::Sent;
        record.transport = TransportKind::Http;
        record.connection = None;
        record.session = Some("1a2b3c4d");
        record.revision = Some(Revision::V2025_11_25);
        assert_eq!(
            record.to_string(),
            "2026-07-28T09:10:00.123Z sent over http, session 1a2b3c4d, 2025-11-25: {}"
        );
    }

    #[test]
    fn the_longest_line_is_written_to_a_pipe_at_once() {
        let message = vec![b'x'; 2 * MAX_SHOWN_BYTES];
        let text = excerpt(&message, MAX_SHOWN_BYTES).text;
        let record = TrafficRecord {
            direction: Direction::Received,
            time: SystemTime::UNIX_EPOCH,
            transport: TransportKind::HttpSse,
            connection: Some(u64::MAX),
            session: Some("1a2b3c4d"),
            revision: Some(Revision::V2025_11_25),
            bytes: message.len(),
            text: &text,
        };
        // The largest length instead of this one, and a line feed.
        let length = record.to_string().len() + 20 + 1;
        assert!(length <= 4_096, "{length}");
    }
}
