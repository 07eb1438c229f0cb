//! What a server tells its client, and what a server's process writes to its stderr: in order, one at a time.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::client::Backlog;
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::wire::{Method, Notification, Raw};

use crate::diagnostics::mcpl_log_level;
use crate::owner::Owner;
use crate::text::{Text, terminated};
use crate::user::UserData;

use super::handle::mcpl_client;
use super::lane::Lane;

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

pub(super) type HearNotification =
    unsafe extern "C" fn(*mut mcpl_client, *const c_char, *const c_char, usize, *mut c_void);
pub(super) type HearLog = unsafe extern "C" fn(
    *mut mcpl_client,
    mcpl_log_level,
    *const c_char,
    *const c_char,
    usize,
    *mut c_void,
);
pub(super) type HearLine =
    unsafe extern "C" fn(*mut mcpl_client, *const c_char, usize, *mut c_void);

/// A client, on its way to its callbacks.
#[derive(Clone, Copy)]
struct Handle(*mut mcpl_client);

// SAFETY: it is never followed.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn pointer(self) -> *mut mcpl_client {
        self.0
    }
}

/// Who hears of what a server tells.
#[derive(Default, Clone)]
pub(super) struct Ears {
    pub(super) notification: Option<(HearNotification, Arc<UserData>)>,
    pub(super) log: Option<(HearLog, Arc<UserData>)>,
}

impl Ears {
    /// Who hears on the core's side, if anybody does.
    pub(super) fn listener(
        &self,
        client: *mut mcpl_client,
        owner: &Arc<Owner>,
        backlog: Backlog,
    ) -> Option<impl Fn(&Notification) + Send + Sync + 'static> {
        if self.notification.is_none() && self.log.is_none() {
            return None;
        }
        let (ears, client, lane) = (self.clone(), Handle(client), Lane::new(owner));
        Some(move |notification: &Notification| {
            let params = notification
                .params
                .as_ref()
                .map(|params| params.raw().clone());
            let params = params.unwrap_or(Raw::EMPTY_OBJECT);
            if let Some((hear, data)) = ears.log.clone()
                && notification.method == Method::NotificationsMessage
                && let Some(message) = LogMessage::of(&params)
                && let Some(place) = backlog.admit(params.as_bytes().len())
            {
                lane.call_back(move || {
                    message.tell(hear, client, &data);
                    drop(place);
                });
            }
            if let Some((hear, data)) = ears.notification.clone()
                && let Some(place) = backlog.admit(params.as_bytes().len())
            {
                let method = terminated(notification.method.as_str());
                lane.call_back(move || {
                    let _place = place;
                    let (method, params) = (method.as_ptr(), Text::new(params.as_bytes()));
                    // SAFETY: the texts outlive the call, and the data is released after the last callback.
                    unsafe {
                        let (text, length) = (params.as_ptr(), params.len());
                        hear(client.pointer(), method, text, length, data.pointer());
                    }
                });
            }
        })
    }
}

/// What is in `notifications/message`.
struct LogMessage {
    level: LoggingLevel,
    logger: Option<String>,
    data: Raw,
}

impl LogMessage {
    /// `None` if it is not what the protocol says.
    fn of(params: &Raw) -> Option<Self> {
        let text = |name| Some(params.member(name)?.string_value()?.into_owned());
        Some(Self {
            level: LoggingLevel::parse(&text("level")?)?,
            logger: text("logger"),
            data: params.member("data")?,
        })
    }

    fn tell(&self, hear: HearLog, client: Handle, data: &UserData) {
        let logger = self.logger.as_deref().map(terminated);
        let logger = logger
            .as_ref()
            .map_or(std::ptr::null(), |text| text.as_ptr());
        let text = Text::new(self.data.as_bytes());
        // SAFETY: the texts outlive the call, and the data is released after the last callback.
        unsafe {
            let (level, (text, length)) = (self.level.into(), (text.as_ptr(), text.len()));
            hear(
                client.pointer(),
                level,
                logger,
                text,
                length,
                data.pointer(),
            );
        }
    }
}

/// Who hears of the lines of a process.
pub(super) struct Lines {
    client: Handle,
    hear: HearLine,
    data: Arc<UserData>,
    lane: Lane,
    backlog: Backlog,
}

impl Lines {
    pub(super) fn new(
        client: *mut mcpl_client,
        owner: &Arc<Owner>,
        backlog: Backlog,
        hear: HearLine,
        data: Arc<UserData>,
    ) -> Self {
        Self {
            client: Handle(client),
            hear,
            data,
            lane: Lane::new(owner),
            backlog,
        }
    }

    /// Who hears on the core's side.
    pub(super) fn listener(self: &Arc<Self>) -> impl Fn(&str) + Send + Sync + 'static {
        let lines = self.clone();
        move |line| {
            let Some(place) = lines.backlog.admit(line.len()) else {
                return;
            };
            let (line, lines) = (Text::new(line.as_bytes()), lines.clone());
            lines.lane.clone().call_back(move || {
                let _place = place;
                // SAFETY: the line outlives the call, and the data is released after the last callback.
                unsafe {
                    let (text, length) = (line.as_ptr(), line.len());
                    (lines.hear)(lines.client.pointer(), text, length, lines.data.pointer());
                }
            });
        }
    }
}
