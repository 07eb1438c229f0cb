//! Limits of what is kept in this process and in Valkey, each with its reason.

use std::time::Duration;

use mcpline_protocol::session::Rate;

/// Bytes of the operations that wait in this process to be written; above it the oldest events and messages are dropped, and
/// then the oldest changes of sessions. It holds two of the
/// largest messages that a server accepts by default, or half a minute without Valkey at 1 MB/s of events.
pub(crate) const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// Uses that wait in this process to be recorded. A request waits half a second for its own, which are 20,000 a second; more would
/// delay changes of sessions.
pub(crate) const MAX_QUEUED_USES: usize = 10_000;

/// Memory of a queued operation besides its message: the names of its session and stream, and its entry.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Bytes of the operations that are sent together. They wait for one response, so more would delay a session that is
/// saved behind them; with fewer, the round trip of each costs throughput.
pub(crate) const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// Operations that are sent together, for the same reason.
pub(crate) const MAX_BATCH_OPERATIONS: usize = 256;

/// Values that a queued session may replace: the one that the caller names, and those of earlier attempts that Valkey may have
/// executed. Above it the oldest is forgotten; then the session may not be saved, and its process merges it with what is stored.
pub(crate) const MAX_REPLACED: usize = 4;

/// How many times an operation that exceeds a batch is sent without an answer in time, before it is dropped: others wait for
/// it. With the delays in between, this is 10 s or more, so that most interruptions cost nothing.
pub(crate) const MAX_TIMEOUTS: u32 = 5;

/// Events of one stream in Valkey: as many as a stream of a single process keeps by default (`max_kept_events`).
pub(crate) const MAX_STREAM_EVENTS: usize = 1_024;

/// Bytes of one stream in Valkey, besides its latest event: as many as a stream of a single process keeps by default
/// (`max_kept_bytes`).
pub(crate) const MAX_STREAM_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of all streams of one session in Valkey, besides the stream of the latest event: one of the largest messages
/// that a server accepts by default, or four full streams. Above it the session's oldest streams are dropped.
pub(crate) const MAX_SESSION_BYTES: usize = 16 * 1024 * 1024;

/// Streams of one session in Valkey. A client resumes only the streams of its requests in flight; streams beyond this
/// number have ended, and their client has read them.
pub(crate) const MAX_SESSION_STREAMS: usize = 64;

/// Memory in Valkey that an event takes in addition to its message. It counts towards the limits above.
pub(crate) const EVENT_BYTES: usize = 128;

/// How long a stream is kept if its session is not saved (yet), since its latest event. The streams of a saved session
/// live as long as the session.
pub(crate) const STREAM_LIFETIME: Duration = Duration::from_secs(3_600);

/// How long the key of a removed session remains, with an empty value: longer than a process that reaches Valkey takes to
/// write what it saved before it received that the session ended.
pub(crate) const REMOVED_LIFETIME: Duration = Duration::from_secs(300);

/// Events on the bus in Valkey: how many a process may miss while it reconnects. 10,000 are some seconds of a large
/// service.
pub(crate) const MAX_BUS_EVENTS: usize = 10_000;

/// Bytes of the events on the bus in Valkey, for the same reason.
pub(crate) const MAX_BUS_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of one message for the bus: the largest message that a server accepts by default, and its envelope. A larger one would
/// push all others out of the bus, and every process would have to read it.
pub(crate) const MAX_BUS_MESSAGE_BYTES: usize = MAX_BUS_BYTES + 1024;

/// How long events stay on the bus after the latest one: longer than any process needs to reconnect.
pub(crate) const BUS_LIFETIME: Duration = Duration::from_secs(3_600);

/// Events of the bus that are read at once.
pub(crate) const MAX_READ_EVENTS: usize = 256;

/// How many times in a row one message of the bus is not read in time before it is dropped, if it is large: others wait for it.
pub(crate) const MAX_READ_TIMEOUTS: u32 = 2;

/// Streams that are read at once: each may take [`MAX_PART_BYTES`], or one event, which are held in memory until they are passed
/// on.
pub(crate) const MAX_READ_STREAMS: usize = 8;

/// Events of a stream that are read at once: a quarter of those that a stream of a single process keeps by default, so that the
/// next part fits while the client reads this one.
pub(crate) const MAX_PART_EVENTS: usize = 256;

/// Bytes of the events of a stream that are read at once, for the same reason. One event is always read.
pub(crate) const MAX_PART_BYTES: usize = 1024 * 1024;

/// How long one request for events of the bus waits in Valkey. A connection that is lost without a trace is noticed
/// after this time and the timeout.
pub(crate) const BUS_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Senders whose latest message number is remembered: ten times the processes of a large service, because a process
/// that is restarted counts as a new sender.
pub(crate) const MAX_SENDERS: usize = 10_000;

/// The delay before the second attempt to connect; it doubles with each further one.
pub(crate) const FIRST_DELAY: Duration = Duration::from_millis(50);

/// The longest delay between two attempts to connect: short compared with the timeouts of clients, because sessions
/// cannot move until the connection is back. Even a thousand processes that connect this often are little load.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(2);

/// How long a server that shuts down tries to write what is queued.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Warnings of one kind: enough to notice an outage, and too few to fill the log during one.
pub(crate) const WARNINGS: Rate = Rate {
    burst: 4,
    per_second: 1,
};
