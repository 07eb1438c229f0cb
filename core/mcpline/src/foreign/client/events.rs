//! Events that reach foreign code unsolicited.

use mcpline_protocol::vocabulary::Progress;
use mcpline_protocol::wire::{Notification, Raw};

use crate::backlog::{Backlog, BacklogLimits, BacklogSlot};
use crate::client::{ConnectionEvent, ProgressListener};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

use super::input_requests::{HostInputRequest, InputRequests};

/// Maximum number of notifications, progress reports and stderr lines of one server that wait for the client's
/// listeners: any burst of a well-behaved server.
pub const MAX_WAITING_NOTIFICATIONS: usize = 4_096;

/// Maximum total size of these notifications, progress reports and stderr lines, in bytes: two of the longest messages.
pub const MAX_WAITING_NOTIFICATION_BYTES: usize = 32 * 1024 * 1024;

/// A listener that is slower than its server loses what arrives while the backlog is full, and nothing else. Not
/// reading instead would deadlock a listener that waits for a response of the same server.
const LISTENER_LIMITS: BacklogLimits = BacklogLimits {
    messages: MAX_WAITING_NOTIFICATIONS,
    bytes: MAX_WAITING_NOTIFICATION_BYTES,
    overflow: "a listener is slower than its server: notifications are dropped until it has caught up",
};

/// Maximum number of input requests of one server, including cancelled ones, that wait until the client's host takes
/// them: as many as a client answers at once.
pub const MAX_WAITING_INPUT_REQUESTS: usize = 256;

/// Maximum number of bytes of their parameters: two of the longest messages.
pub const MAX_WAITING_INPUT_REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Cancelling a request frees its place in the session, but not in a queue of foreign code.
pub(super) const INPUT_REQUEST_LIMITS: BacklogLimits = BacklogLimits {
    messages: MAX_WAITING_INPUT_REQUESTS,
    bytes: MAX_WAITING_INPUT_REQUEST_BYTES,
    overflow: "the client's handlers are slower than the server: input requests are refused until they have caught up",
};

/// Creates the backlog of a client's listeners.
pub fn listener_backlog() -> Backlog {
    Backlog::new(LISTENER_LIMITS)
}

/// Passes the events of one client to foreign code. Implemented by bindings.
///
/// Called on an I/O thread, in the order in which the server sent them. No function may block or run foreign code: each
/// queues its event for the thread of the language.
pub trait ClientEvents: Send + Sync + 'static {
    /// Passes an input request of the server, or of the library (`auth/…`, `host/…`), to the host. Answer with
    /// [`InputRequests::answer`] from any thread, now or later. Drop its slot when the host has taken it.
    fn input_request(&self, requests: &Arc<InputRequests>, request: HostInputRequest);

    /// The answer to this input request is no longer needed.
    fn withdrawn(&self, number: u64);

    /// Passes a notification that the host listens for. Drop `slot` when the listener has taken it.
    fn notification(&self, _method: &str, _params: Option<Raw>, _slot: BacklogSlot) {}

    /// Passes a change of the connection, if the host listens for them. Drop `slot` when the listener has taken it.
    fn connection(&self, _event: &ConnectionEvent, _slot: Option<BacklogSlot>) {}

    /// Passes a line that the server's process wrote to stderr, if the host listens for them. Drop `slot` when the
    /// listener has taken it.
    fn stderr(&self, _line: &str, _slot: BacklogSlot) {}
}

/// Returns a listener that passes log messages on, and all other notifications while `all` is set.
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

/// Returns a listener that passes on the changes of the connection. Like notifications, they are dropped while a listener
/// is far behind, except the last one.
pub fn connection_listener(
    events: Arc<dyn ClientEvents>,
    backlog: Backlog,
) -> impl Fn(&ConnectionEvent) + Send + Sync + 'static {
    move |event| {
        let slot = backlog.admit(event.name().len());
        if slot.is_some() || matches!(event, ConnectionEvent::Closed) {
            events.connection(event, slot);
        }
    }
}

/// Returns a listener that passes on the lines of a process's stderr.
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

/// Returns a listener that passes the progress of one request to `report`.
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
