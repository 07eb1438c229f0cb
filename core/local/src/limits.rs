//! Limits of what is kept in this process and in the directory, each with its reason.

use std::time::Duration;

use mcpline_protocol::session::Rate;

/// Bytes of the operations that wait in this process for its thread. Above it events and messages are dropped, then requests
/// fail; removals of sessions are always kept. It holds two of the largest messages that a server accepts by default, or seconds
/// of events while the disk is busy.
pub(crate) const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// Memory of a queued operation besides its message: the names of its session and stream, and its entry.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Operations that the thread takes at once. Messages for other processes are written after each batch.
pub(crate) const MAX_BATCH_OPERATIONS: usize = 256;

/// How long an operation waits for its result. A file system that takes longer is stuck, and clients would give up.
pub(crate) const OPERATION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the lock on a session. It is held for less than a millisecond, unless the process that holds it is
/// stopped, or a busy machine does not run it. Less than [`OPERATION_TIMEOUT`], so that the operation that waits can still be
/// done.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Attempts to lock before a process goes on without the lock. A process that was itself stopped for the time above makes one or
/// two in that time, which says nothing about the process that holds the lock.
pub(crate) const MIN_LOCK_ATTEMPTS: u32 = 100;

/// Attempts to get a lock that this process has gone on without, and has not had since: its holder is stopped, and each operation
/// would wait for the time above.
pub(crate) const GIVEN_UP_LOCK_ATTEMPTS: u32 = 10;

/// The delay between two attempts to lock.
pub(crate) const LOCK_RETRY: Duration = Duration::from_millis(1);

/// Bytes of one session in its file: one of the largest messages that a server accepts by default.
pub(crate) const MAX_SESSION_STATE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of the events of one stream: as many as a stream of a single process keeps by default (`max_kept_bytes`). A file grows
/// to twice as many before its older half is dropped, and its latest event is kept whatever its size.
pub(crate) const MAX_STREAM_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes of the events of a stream that are returned at once: they are held in memory until they are passed on.
pub(crate) const MAX_READ_BYTES: usize = 1024 * 1024;

/// Positions in streams of other processes that a process remembers, of the clients that resume them: as many clients as it may have
/// to continue at once, after another process with thousands of sessions has ended. Above it, all are forgotten: each reader then
/// reads its file, of at most twice [`MAX_STREAM_BYTES`], once as a whole.
pub(crate) const MAX_POSITIONS: usize = 4_096;

/// What an event takes in addition to its bytes in the process that reads it. It counts towards [`MAX_STREAM_BYTES`].
pub(crate) const EVENT_BYTES: u64 = 128;

/// Bytes of all streams of one session: one of the largest messages that a server accepts by default, or four full streams.
/// Above it the oldest are dropped. Checked when a stream begins and after each [`STREAM_CHECK_BYTES`].
pub(crate) const MAX_SESSION_STREAM_BYTES: u64 = 16 * 1024 * 1024;

/// Bytes of a stream between two checks of its session's limits.
pub(crate) const STREAM_CHECK_BYTES: u64 = 1024 * 1024;

/// Streams of one session. A client resumes only the streams of its requests in flight; streams beyond this number have ended,
/// and their client has read them.
pub(crate) const MAX_SESSION_STREAMS: usize = 64;

/// Bytes of all sessions in the directory, as the file system counts them: some 32,000 sessions, each of which takes a page.
/// Above it those are removed that were never loaded or saved again, the largest first, and then those used longest ago.
pub(crate) const MAX_SESSIONS_BYTES: u64 = 128 * 1024 * 1024;

/// Bytes of all streams in the directory. Above it those without new events for the longest time are removed.
pub(crate) const MAX_STREAMS_BYTES: u64 = 128 * 1024 * 1024;

/// Bytes that a process writes before it checks the two limits above, if it has not been time to. Together, processes exceed the
/// limits by this much each at most.
pub(crate) const SWEEP_BYTES: u64 = 16 * 1024 * 1024;

/// Time between two removals of what has expired, by any process of the service. 32,000 sessions take 0.1 s of a thread.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Time between two looks at whether the interval above is over, and whether the own socket is still there.
pub(crate) const TICK: Duration = Duration::from_secs(5);

/// How long streams are kept if their session is not saved (yet), since their latest event.
pub(crate) const STREAM_LIFETIME: Duration = Duration::from_secs(3_600);

/// How long the mark of a removed session remains: longer than a process takes to write what it saved before it received that the
/// session ended.
pub(crate) const REMOVED_LIFETIME: Duration = Duration::from_secs(300);

/// Marks of removed sessions in the directory: each takes an inode, of which a file system in memory has few. As many as there
/// may be sessions. Above it the oldest are removed: more than 30,000 sessions were removed since, which takes longer than a
/// save.
pub(crate) const MAX_ENDED_MARKS: usize = 32_768;

/// What a mark counts as towards [`SWEEP_BYTES`]: a process sweeps at once after it has written as many as there may be.
pub(crate) const MARK_BYTES: u64 = SWEEP_BYTES / MAX_ENDED_MARKS as u64;

/// Keys of what was used once in the directory: each takes an inode, as a mark does, until its lifetime is over and a process
/// sweeps. 65,536 are 270 DPoP proofs a second, each of which is valid for three minutes by default. Above it those are removed
/// whose lifetime ends first.
pub(crate) const MAX_USED_KEYS: usize = 65_536;

/// What a key counts as towards [`SWEEP_BYTES`], for the same reason as a mark.
pub(crate) const USED_KEY_BYTES: u64 = SWEEP_BYTES / MAX_USED_KEYS as u64;

/// Buckets of rate limits in the directory that are not full: each takes a page of 4 KiB, so this is 64 MiB. One process keeps
/// 10,000 keys of a limit. Above it those are removed, and are full again, that would be full first.
pub(crate) const MAX_BUCKETS: usize = 16_384;

/// What a new bucket counts as towards [`SWEEP_BYTES`], for the same reason as a mark.
pub(crate) const BUCKET_BYTES: u64 = SWEEP_BYTES / MAX_BUCKETS as u64;

/// How long a bucket is kept after it is full again: a process may be about to take tokens of it, and writing its file changes
/// the time for a moment.
pub(crate) const FULL_BUCKET_LIFETIME: Duration = Duration::from_secs(60);

/// How long a file that is being written may exist: it was left by a process that was killed.
pub(crate) const TEMPORARY_LIFETIME: Duration = Duration::from_secs(60);

/// Bytes of one message between processes: several times the largest message of a client by default. A connection that announces
/// more is closed.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of the messages that wait for one other process. Above it the oldest are dropped. It holds one of the largest messages
/// that a server accepts by default.
pub(crate) const MAX_OUTBOX_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of the messages that are written to another process together: they are copied into one buffer.
pub(crate) const MAX_WRITE_BYTES: usize = 64 * 1024;

/// How long another process may take to read what was written. A process that is stopped takes longer: messages for it are then
/// dropped, because what they hold is charged to clients.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The delay between attempts to connect to a process that has too many connections waiting.
pub(crate) const CONNECT_DELAY: Duration = Duration::from_millis(100);

/// Processes of one service on one machine; each has a connection to each other. As many as large machines have cores.
pub(crate) const MAX_PEERS: usize = 512;

/// Connections that may wait until they are accepted: more than there may be.
pub(crate) const BACKLOG: i32 = 1_024;

/// How long a process that ends tries to send what waits for other processes.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Warnings of one kind: enough to notice a failing disk, and too few to fill the log meanwhile.
pub(crate) const WARNINGS: Rate = Rate {
    burst: 4,
    per_second: 1,
};

/// How old the latest change of a directory must be for a later one to have another time: file systems round times to the ticks
/// of the kernel, which are at most 10 ms apart.
pub(crate) const LISTING_AGE: Duration = Duration::from_millis(50);
