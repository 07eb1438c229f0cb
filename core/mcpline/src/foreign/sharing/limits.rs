//! Limits of shared state in foreign code.

use std::time::Duration;

/// Number of functions that run at once, in all parts: as many threads are enough for functions that block. One that does not
/// return in time counts until it returns.
pub const MAX_RUNNING_FUNCTIONS: usize = MAX_RUNNING_SESSION_REQUESTS
    + MAX_RUNNING_READS
    + MAX_WRITTEN_STREAMS
    + MAX_RUNNING_BUS_REQUESTS;
/// Number of functions of the session store that run at once.
pub(super) const MAX_RUNNING_SESSION_REQUESTS: usize = 16;
/// Number of streams that are read at once.
pub(super) const MAX_RUNNING_READS: usize = 5;
/// Number of streams whose events are written at once.
pub(super) const MAX_WRITTEN_STREAMS: usize = 8;
/// Number of functions of the bus that run at once: one each to publish, to subscribe, and to end the subscription.
const MAX_RUNNING_BUS_REQUESTS: usize = 3;

/// Number of requests for sessions and streams that run or wait: as many as one session may have in flight by default. Further
/// ones fail.
pub(super) const MAX_WAITING_REQUESTS: usize = 1_024;
/// Bytes of requests for sessions that run or wait: as much as the queue of `mcpline-local` and `mcpline-valkey` holds.
pub(super) const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of events that wait for the event log or are written, above which the oldest are dropped: as for sessions.
pub(super) const MAX_WAITING_EVENT_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of messages in one direction of the bus that wait, above which the oldest are dropped: as for sessions.
pub(super) const MAX_WAITING_MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// Memory size of an event or a message that waits, without its bytes.
pub(super) const ENTRY_BYTES: usize = 128;

/// Number of events in one `append`: a statement with so many rows is still a small one for databases.
pub(super) const MAX_APPENDED_EVENTS: usize = 256;
/// Bytes of the events in one `append`, besides the first: a part of what is written at once in other stores.
pub(super) const MAX_APPENDED_BYTES: usize = 1024 * 1024;
/// Bytes of the events of one `read` that are used, besides the first: as many as a stream keeps by default (`max_kept_bytes`).
pub(super) const MAX_READ_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of a session that a store returns: as many as a message from a client may have by default.
pub(super) const MAX_SESSION_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a message that the bus passes to `receive`: as many as a message from a client may have by default, and what comes
/// with it.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024 + 64 * 1024;
/// Bytes of the text of an error in foreign code: enough for a database's, and few lines of a log.
pub(super) const MAX_REASON_BYTES: usize = 1_024;

/// Timeout of a request: that of `mcpline-valkey`.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a message waits for the bus before it is dropped. Who waits for an answer for longer has usually ended the request.
pub(super) const MAX_MESSAGE_AGE: Duration = Duration::from_secs(30);
/// How long the end of serving waits for what is queued, and for the end of the subscription.
pub(super) const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// How soon a subscription that has failed is tried again.
pub(super) const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How soon it is tried again after it has failed many times.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
