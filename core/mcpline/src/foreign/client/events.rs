//! What reaches foreign code without being requested.

use mcpline_protocol::vocabulary::Progress;
use mcpline_protocol::wire::{Notification, Raw};

use crate::backlog::{Backlog, BacklogLimits, BacklogSlot};
use crate::client::ProgressListener;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

use super::input_requests::{InputRequest, InputRequests};

/// How many notifications, progress reports and stderr lines of one server wait for its client's listeners: any burst of a
/// well-behaved server.
pub const MAX_WAITING_NOTIFICATIONS: usize = 4_096;

/// How many bytes of them wait: two of the longest messages.
pub const MAX_WAITING_NOTIFICATION_BYTES: usize = 32 * 1024 * 1024;

/// A listener that is slower than its server loses what arrives while the backlog is full, and nothing else. To stop reading
/// instead would be a deadlock wherever a listener waits for a response of the same server.
const LISTENER_LIMITS: BacklogLimits = BacklogLimits {
    messages: MAX_WAITING_NOTIFICATIONS,
    bytes: MAX_WAITING_NOTIFICATION_BYTES,
    overflow: "a listener is slower than its server: notifications are dropped until it has caught up",
};

/// How many input requests of one server wait until its client's host takes them, those that were withdrawn included: as many
/// as a client answers at once.
pub const MAX_WAITING_INPUT_REQUESTS: usize = 256;

/// How many bytes their parameters have: two of the longest messages.
pub const MAX_WAITING_INPUT_REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Withdrawing a request frees the place that it has in the session, not the one that it has in a queue of foreign code.
pub(super) const INPUT_REQUEST_LIMITS: BacklogLimits = BacklogLimits {
    messages: MAX_WAITING_INPUT_REQUESTS,
    bytes: MAX_WAITING_INPUT_REQUEST_BYTES,
    overflow: "the host is slower than its server: input requests are refused until it has caught up",
};

/// A backlog of what waits for the listeners of one client.
pub fn listener_backlog() -> Backlog {
    Backlog::new(LISTENER_LIMITS)
}

/// Takes the events of one client to foreign code. A binding implements it.
///
/// Called on an I/O thread, in the order in which the server sent them: no function may block or run foreign code. Each
/// queues its event for the thread of the language.
pub trait ClientEvents: Send + Sync + 'static {
    /// The server, or the library (`auth/…`, `host/…`), asks the host. Answered by [`InputRequests::answer`] from any thread,
    /// now or later. Its slot is dropped when the host has taken it.
    fn input_request(&self, requests: &Arc<InputRequests>, request: InputRequest);

    /// No one waits for the answer to this input request any more.
    fn withdrawn(&self, number: u64);

    /// The server sent a notification, which the host wants. `slot` is dropped when the listener has taken it.
    fn notification(&self, _method: &str, _params: Option<Raw>, _slot: BacklogSlot) {}

    /// The server's process wrote a line to its stderr, which the host wants. `slot` is dropped when the listener has taken
    /// it.
    fn stderr(&self, _line: &str, _slot: BacklogSlot) {}
}

/// Passes notifications on: log messages, and all others as soon as `all` is set.
pub fn notification_listener(
    events: Arc<dyn ClientEvents>,
    backlog: Backlog,
    all: Arc<AtomicBool>,
) -> impl Fn(&Notification) + Send + Sync + 'static {
    move |notification| {
        let method = notification.method.as_str();
        if method != "notifications/message" && !all.load(Ordering::Relaxed) {
            return;
        }
        let params = notification.params.as_ref();
        // A slice would keep the whole message in memory, of which only the parameters are counted.
        let params = params.map(|params| params.raw().detached());
        let bytes = method.len() + params.as_ref().map_or(0, |params| params.as_bytes().len());
        if let Some(slot) = backlog.admit(bytes) {
            events.notification(method, params, slot);
        }
    }
}

/// Passes the lines of a process's stderr on.
pub fn stderr_listener(
    events: Arc<dyn ClientEvents>,
    backlog: Backlog,
) -> impl Fn(&str) + Send + Sync + 'static {
    move |line| {
        if let Some(slot) = backlog.admit(line.len()) {
            events.stderr(line, slot);
        }
    }
}

/// Passes the progress of one request on, to `report`.
pub fn progress_listener(
    backlog: Backlog,
    report: impl Fn(Progress, BacklogSlot) + Send + Sync + 'static,
) -> ProgressListener {
    Arc::new(move |progress| {
        let bytes = progress.message.as_ref().map_or(0, String::len);
        if let Some(slot) = backlog.admit(bytes) {
            report(progress, slot);
        }
    })
}
