//! Delivers notifications, log messages, changes of the connection and lines of stderr to a client's listeners: in order, one
//! at a time.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpline::client::ConnectionEvent;
use mcpline::foreign::Failure;
use mcpline::foreign::client::{BacklogSlot, ClientEvents, HostInputRequest, InputRequests};
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::wire::Raw;

use crate::callback_tracker::CallbackTracker;
use crate::diagnostics::mcpl_log_level;
use crate::handles::HandleToken;
use crate::status::{Fault, mcpl_error};
use crate::text::{NulTerminatedText, to_c_string};
use crate::user_data::UserData;

use super::handle::mcpl_client;
use super::input_request::InputRequestHandlers;
use super::serial_queue::SerialQueue;

/// Receives notifications. Runs where callbacks run, for one notification of a client at a time, in the order of arrival.
///
/// - `client`: the client that received it.
/// - `method`: such as `"notifications/tools/list_changed"`. Valid until the callback returns.
/// - `params`, `length`: the parameters as JSON and their length in bytes; a zero byte follows. `"{}"` if there are none.
///   Valid until the callback returns.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_notification_listener = Option<
    unsafe extern "C" fn(
        client: *mut mcpl_client,
        method: *const c_char,
        params: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// Receives log messages (`server/utilities/logging`). Runs where callbacks run, one at a time, in order with the other
/// notifications.
///
/// - `client`: the client that received it.
/// - `level`: the severity.
/// - `logger`: the name of the logger, or `NULL`. Valid until the callback returns.
/// - `data`, `length`: the logged JSON value and its length in bytes; a zero byte follows. Valid until the callback
///   returns.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_log_listener = Option<
    unsafe extern "C" fn(
        client: *mut mcpl_client,
        level: mcpl_log_level,
        logger: *const c_char,
        data: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// Receives lines that the server process writes to stderr. Runs where callbacks run, one at a time, in order.
///
/// - `client`: the client of the server process.
/// - `line`, `length`: the line as UTF-8 without its line break, and its length in bytes; a zero byte follows. Valid until
///   the callback returns.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_stderr_listener = Option<
    unsafe extern "C" fn(
        client: *mut mcpl_client,
        line: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// Change of a client's connection. There is none before the first connection: the function that connects returns its
/// error.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_connection_event {
    /// The client has connected for the first time.
    MCPL_CONNECTION_EVENT_CONNECTED = 0,
    /// The connection or its session was lost, or could not be opened again. The next request opens a new one; a client
    /// that listens for changes makes one attempt by itself.
    MCPL_CONNECTION_EVENT_LOST = 1,
    /// The client opens a new connection, possibly after a pause (`reconnect_delay`).
    MCPL_CONNECTION_EVENT_RETRYING = 2,
    /// A new connection has taken the place of the lost one.
    MCPL_CONNECTION_EVENT_RESTORED = 3,
    /// The client does not connect again for now: the last attempt that `reconnect_attempts` allows has failed. Requests
    /// fail with its error; after 30 seconds, a request makes another attempt, unless none are allowed.
    MCPL_CONNECTION_EVENT_GIVEN_UP = 4,
    /// The client was closed. No event follows.
    MCPL_CONNECTION_EVENT_CLOSED = 5,
}

/// Receives changes of the connection. Runs where callbacks run, one at a time, in order. The first is connected, the last
/// closed. After a loss, attempts to connect again follow until one succeeds or the client gives up.
///
/// Over HTTP a connection is the session of a handshake revision. 2026-07-28 has no sessions, so that a failed request does
/// not lose the connection.
///
/// - `client`: the client. `mcpl_client_close` within the callback returns `MCPL_WOULD_DEADLOCK`.
/// - `event`: the change.
/// - `error`: why there is no connection, for `MCPL_CONNECTION_EVENT_LOST` and `MCPL_CONNECTION_EVENT_GIVEN_UP`; `NULL` for
///   other changes. Valid until the callback returns.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_connection_listener = Option<
    unsafe extern "C" fn(
        client: *mut mcpl_client,
        event: mcpl_connection_event,
        error: *const mcpl_error,
        user: *mut c_void,
    ),
>;

type NotificationListener =
    unsafe extern "C" fn(*mut mcpl_client, *const c_char, *const c_char, usize, *mut c_void);
type LogListener = unsafe extern "C" fn(
    *mut mcpl_client,
    mcpl_log_level,
    *const c_char,
    *const c_char,
    usize,
    *mut c_void,
);
type ConnectionListener =
    unsafe extern "C" fn(*mut mcpl_client, mcpl_connection_event, *const mcpl_error, *mut c_void);
type StderrListener = unsafe extern "C" fn(*mut mcpl_client, *const c_char, usize, *mut c_void);

/// The callbacks of one client.
pub(super) struct ClientCallbacks {
    client: HandleToken,
    input_requests: Arc<InputRequestHandlers>,
    listeners: Mutex<Listeners>,
    notifications: SerialQueue,
    connection: SerialQueue,
    stderr: SerialQueue,
}

/// The callbacks for notifications, log messages, changes of the connection and lines of stderr.
#[derive(Default)]
pub(super) struct Listeners {
    pub(super) notification: Option<(NotificationListener, Arc<UserData>)>,
    pub(super) log: Option<(LogListener, Arc<UserData>)>,
    pub(super) connection: Option<(ConnectionListener, Arc<UserData>)>,
    pub(super) stderr: Option<(StderrListener, Arc<UserData>)>,
}

impl ClientCallbacks {
    pub(super) fn new(client: HandleToken, owner: &Arc<CallbackTracker>) -> Arc<Self> {
        Arc::new(Self {
            client,
            input_requests: InputRequestHandlers::new(owner),
            listeners: Mutex::default(),
            notifications: SerialQueue::new(owner),
            connection: SerialQueue::new(owner),
            stderr: SerialQueue::new(owner),
        })
    }

    pub(super) fn input_requests(&self) -> &Arc<InputRequestHandlers> {
        &self.input_requests
    }

    pub(super) fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientEvents for ClientCallbacks {
    fn input_request(&self, requests: &Arc<InputRequests>, request: HostInputRequest) {
        self.input_requests.input_request(requests, request);
    }

    fn withdrawn(&self, number: u64) {
        self.input_requests.withdrawn(number);
    }

    fn notification(&self, method: &str, params: Option<Raw>, slot: BacklogSlot) {
        let (log, notification) = {
            let listeners = self.listeners();
            (listeners.log.clone(), listeners.notification.clone())
        };
        let (client, slot) = (self.client, Arc::new(slot));
        let params = params.unwrap_or(Raw::EMPTY_OBJECT);
        if let Some((listener, data)) = log
            && method == "notifications/message"
            && let Some(message) = LogMessage::of(&params)
        {
            let slot = slot.clone();
            self.notifications.call_back(move || {
                message.pass(listener, client, &data);
                drop(slot);
            });
        }
        if let Some((listener, data)) = notification {
            let method = to_c_string(method);
            self.notifications.call_back(move || {
                let (method, params) = (method.as_ptr(), NulTerminatedText::new(params.as_bytes()));
                let (text, length) = (params.as_ptr(), params.len());
                // SAFETY: the texts outlive the call, and the data is released after the last callback.
                unsafe { listener(client.handle(), method, text, length, data.pointer()) }
                drop(slot);
            });
        }
    }

    fn connection(&self, event: &ConnectionEvent, slot: Option<BacklogSlot>) {
        let listener = self.listeners().connection.clone();
        let Some((listener, data)) = listener else {
            return;
        };
        let Some(change) = mcpl_connection_event::of(event) else {
            return;
        };
        let error = event.error();
        let error = error.map(|error| {
            mcpl_error::from(Fault::from(Failure::of_client(error).with_operation("")))
        });
        let client = self.client;
        self.connection.call_back(move || {
            let error = error.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: the error outlives the call, and the data is released after the last callback.
            unsafe { listener(client.handle(), change, error, data.pointer()) }
            drop(slot);
        });
    }

    fn stderr(&self, line: &str, slot: BacklogSlot) {
        let listener = self.listeners().stderr.clone();
        let Some((listener, data)) = listener else {
            return;
        };
        let (client, line) = (self.client, NulTerminatedText::new(line.as_bytes()));
        self.stderr.call_back(move || {
            let (text, length) = (line.as_ptr(), line.len());
            // SAFETY: the line outlives the call, and the data is released after the last callback.
            unsafe { listener(client.handle(), text, length, data.pointer()) }
            drop(slot);
        });
    }
}

impl mcpl_connection_event {
    /// Returns `None` for an event that the header does not have.
    fn of(event: &ConnectionEvent) -> Option<Self> {
        Some(match event {
            ConnectionEvent::Connected => Self::MCPL_CONNECTION_EVENT_CONNECTED,
            ConnectionEvent::Lost(_) => Self::MCPL_CONNECTION_EVENT_LOST,
            ConnectionEvent::Retrying => Self::MCPL_CONNECTION_EVENT_RETRYING,
            ConnectionEvent::GivenUp(_) => Self::MCPL_CONNECTION_EVENT_GIVEN_UP,
            ConnectionEvent::Restored => Self::MCPL_CONNECTION_EVENT_RESTORED,
            ConnectionEvent::Closed => Self::MCPL_CONNECTION_EVENT_CLOSED,
            _ => return None,
        })
    }
}

/// The parameters of `notifications/message`.
struct LogMessage {
    level: LoggingLevel,
    logger: Option<String>,
    data: Raw,
}

impl LogMessage {
    /// Returns `None` if the parameters violate the protocol.
    fn of(params: &Raw) -> Option<Self> {
        let text = |name| Some(params.member(name)?.string_value()?.into_owned());
        Some(Self {
            level: LoggingLevel::parse(&text("level")?)?,
            logger: text("logger"),
            data: params.member("data")?,
        })
    }

    fn pass(&self, listener: LogListener, client: HandleToken, data: &UserData) {
        let logger = self.logger.as_deref().map(to_c_string);
        let logger = logger
            .as_ref()
            .map_or(std::ptr::null(), |text| text.as_ptr());
        let logged = NulTerminatedText::new(self.data.as_bytes());
        let (level, text, length) = (self.level.into(), logged.as_ptr(), logged.len());
        // SAFETY: the texts outlive the call, and the data is released after the last callback.
        unsafe { listener(client.handle(), level, logger, text, length, data.pointer()) }
    }
}
