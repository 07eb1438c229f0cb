//! Handlers of client notifications and session events. Each runs as a call without a request, whose context reaches
//! the session.
//!
//! One handler runs at a time for each event of a session; if the event occurs again meanwhile, however often, the
//! handler runs once more afterwards. Each custom notification has a call of its own, counted among the client's calls
//! in flight. This bounds the calls that a client can cause by notifications.

use std::any::Any;
use std::collections::HashMap;

use foldhash::quality::RandomState;
use mcpline_protocol::session::{ClientProfile, RequiredCapability};
use mcpline_protocol::vocabulary::meta::CLIENT_CAPABILITIES;
use mcpline_protocol::wire::{Method, Notification, Params, Raw};
use mcpline_protocol::{ErrorCode, RequestId, RpcError};
use tokio::sync::watch;

use crate::middleware::{MessageKind, MiddlewareFuture, MiddlewareRequest};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::call::{CallState, CurrentRequest, Target};
use super::connection::Connection;
use super::custom_methods;
use super::input_requests::InputRecord;
use super::middleware::{self, Message, MessageMiddlewares};
use super::offloaded_validation;
use super::permission;
use super::registry::MethodItem;
use super::reply::{HandlerError, Reply};
use super::request_info::HttpInfo;

/// An event that a client reports about its session, on handshake revisions. 2026-07-28 has no sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientNotification {
    /// `notifications/initialized`: the handshake is complete (`basic/lifecycle`).
    Initialized,
    /// `notifications/roots/list_changed`: the root directories have changed (`client/roots`).
    RootsListChanged,
}

impl ClientNotification {
    /// All events.
    pub const ALL: &'static [Self] = &[Self::Initialized, Self::RootsListChanged];

    pub(super) const COUNT: usize = Self::ALL.len();

    /// Returns the notification that reports the event.
    pub fn method(self) -> Method {
        match self {
            Self::Initialized => Method::NotificationsInitialized,
            Self::RootsListChanged => Method::NotificationsRootsListChanged,
        }
    }
}

/// Why a notification is not handled.
const TOO_MANY: &str = "the session has ended, or too many calls and notifications are in flight (`max_requests_in_flight`)";

/// The running handlers of a session's events and custom notifications.
#[derive(Default)]
pub(super) struct RunningNotificationHandlers {
    slots: Mutex<RunningHandlers>,
}

#[derive(Default)]
struct RunningHandlers {
    running: [Option<Arc<CallState>>; ClientNotification::COUNT],
    again: [bool; ClientNotification::COUNT],
    /// The calls of custom notifications, by address.
    notified: HashMap<usize, Arc<CallState>, RandomState>,
    /// Notifications that middleware delays, by number. Dropping a value ends its chain.
    delayed: HashMap<u64, watch::Sender<()>, RandomState>,
    next_delayed: u64,
    /// Dropped when the last of these calls has ended.
    until_handled: Option<Box<dyn Any + Send>>,
    is_closed: bool,
}

impl RunningNotificationHandlers {
    fn lock(&self) -> MutexGuard<'_, RunningHandlers> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a handler's call. Returns `false` if the session is over, or if a handler is already running; it then
    /// runs again.
    fn begin(&self, event: ClientNotification, call: &Arc<CallState>) -> bool {
        let mut slots = self.lock();
        let at = event as usize;
        if slots.is_closed {
            return false;
        }
        if slots.running[at].is_some() {
            slots.again[at] = true;
            return false;
        }
        slots.running[at] = Some(call.clone());
        true
    }

    /// Records the end of a handler. Returns whether its event occurred again meanwhile.
    fn end(&self, event: ClientNotification) -> bool {
        let mut slots = self.lock();
        let ended = slots.running[event as usize].take();
        let again = std::mem::take(&mut slots.again[event as usize]);
        drop(slots);
        drop(ended);
        again
    }

    /// Records the call of a custom notification. Returns `false` if the session is over or `most` such calls are
    /// running.
    pub(super) fn begin_notified(&self, call: &Arc<CallState>, most: usize) -> bool {
        let mut slots = self.lock();
        if slots.is_closed || slots.notified.len() >= most {
            return false;
        }
        slots
            .notified
            .insert(Arc::as_ptr(call).addr(), call.clone());
        true
    }

    /// Records the end of a custom notification's call.
    pub(super) fn end_notified(&self, call: &CallState) {
        let mut slots = self.lock();
        let ended = slots.notified.remove(&std::ptr::from_ref(call).addr());
        let held = slots.take_held();
        drop(slots);
        drop((ended, held));
    }

    /// Records a notification that middleware may delay. Returns its number, and a receiver that is closed at the end of the
    /// session; `None` if the session is over, or `most` notifications are being handled.
    fn begin_delayed(&self, most: usize) -> Option<(u64, watch::Receiver<()>)> {
        let mut slots = self.lock();
        if slots.is_closed || slots.delayed.len() + slots.notified.len() >= most {
            return None;
        }
        let number = slots.next_delayed;
        slots.next_delayed += 1;
        let (sender, end) = watch::channel(());
        slots.delayed.insert(number, sender);
        Some((number, end))
    }

    /// Records that middleware is done with a notification.
    fn end_delayed(&self, number: u64) {
        let mut slots = self.lock();
        let ended = slots.delayed.remove(&number);
        let held = slots.take_held();
        drop(slots);
        drop((ended, held));
    }

    /// Whether no custom notification is being handled.
    pub(super) fn has_none_running(&self) -> bool {
        self.lock().has_none_running()
    }

    /// Holds `held` until no custom notification is being handled.
    pub(super) fn hold_until_handled(&self, held: impl Any + Send) {
        let mut slots = self.lock();
        if !slots.has_none_running() {
            slots.until_handled = Some(Box::new(held));
        }
    }

    /// Cancels all running calls and starts no more: the session is over.
    pub(super) fn close(&self) {
        let (running, notified, held) = {
            let mut slots = self.lock();
            slots.is_closed = true;
            // Released here, because a handler may ignore its cancellation.
            let notified = std::mem::take(&mut slots.notified);
            slots.delayed.clear();
            let running = std::mem::take(&mut slots.running);
            (running, notified, slots.until_handled.take())
        };
        for call in running.into_iter().flatten().chain(notified.into_values()) {
            call.cancel();
        }
        drop(held);
    }
}

impl RunningHandlers {
    fn has_none_running(&self) -> bool {
        self.notified.is_empty() && self.delayed.is_empty()
    }

    /// Takes what is held until all notifications are handled, if they are.
    fn take_held(&mut self) -> Option<Box<dyn Any + Send>> {
        match self.has_none_running() {
            true => self.until_handled.take(),
            false => None,
        }
    }
}

/// Lets middleware see a notification that the server has a handler for, and passes its parameters on to `handle`.
fn through_middleware(
    middlewares: MessageMiddlewares,
    connection: &Arc<Connection>,
    method: Method,
    params: Option<Params>,
    peer: Arc<ClientProfile>,
    http: Option<&Arc<HttpInfo>>,
    handle: impl Fn(Option<Params>) + Send + Sync + 'static,
) {
    let name = method.as_str().to_owned();
    let in_flight = match connection.client().begin_call() {
        Ok(in_flight) => in_flight,
        Err(exceeded) => {
            return connection
                .server()
                .warn_of_drop(&name, &RpcError::from(exceeded));
        }
    };
    let most = connection.server().settings.session.max_requests_in_flight;
    let Some((number, end)) = connection.events().begin_delayed(most) else {
        return connection.server().warn_of_drop(&name, &TOO_MANY);
    };
    let meta = params.as_ref().and_then(Params::meta);
    let mut request = outside_request(connection, peer, http, meta);
    request.in_flight = Some(in_flight);
    let message = Message {
        kind: MessageKind::ReceivedNotification,
        method,
        params,
        request: Arc::new(request),
    };
    let pass_on = Box::new(move |request: MiddlewareRequest| -> MiddlewareFuture {
        handle(request.into_parts().1);
        Box::pin(std::future::ready(Ok(Raw::EMPTY_OBJECT)))
    });
    let running = end.clone();
    let chain = move || middlewares.run(message, running, pass_on);
    let ended = connection.clone();
    middleware::drive(
        connection.runtime(),
        || Some(end),
        chain,
        move |outcome| {
            if let Some(Err(error)) = outcome {
                ended.server().warn_of_drop(&name, &error);
            }
            ended.events().end_delayed(number);
        },
    );
}

/// Returns the request of a call that serves none.
fn outside_request(
    connection: &Arc<Connection>,
    peer: Arc<ClientProfile>,
    http: Option<&Arc<HttpInfo>>,
    meta: Option<Raw>,
) -> CurrentRequest {
    CurrentRequest {
        connection: connection.clone(),
        sink: connection.general().clone(),
        key: None,
        id: RequestId::string(""),
        peer,
        http: http.cloned(),
        meta,
        in_flight: None,
        span: None,
        middleware: None,
        was_approved: Default::default(),
    }
}

/// Calls the handler of a custom notification, through middleware that sees it.
pub(super) fn handle_custom_notification(
    connection: &Arc<Connection>,
    notification: Notification,
    peer: Arc<ClientProfile>,
    http: Option<&Arc<HttpInfo>>,
) {
    let server = connection.server();
    let name = notification.method.as_str();
    let middlewares = MessageMiddlewares::of_server(server, name);
    let Some(middlewares) = middlewares else {
        return handle_notification(connection, notification, peer, http);
    };
    let Notification { method, params, .. } = notification;
    let (handling, handled_peer, handled_http) = (connection.clone(), peer.clone(), http.cloned());
    let handled = method.clone();
    let handle = move |params| {
        let notification = Notification {
            method: handled.clone(),
            params,
            extra: Vec::new(),
        };
        let http = handled_http.as_ref();
        handle_notification(&handling, notification, handled_peer.clone(), http);
    };
    through_middleware(middlewares, connection, method, params, peer, http, handle);
}

/// Calls the handler of a custom notification.
fn handle_notification(
    connection: &Arc<Connection>,
    notification: Notification,
    peer: Arc<ClientProfile>,
    http: Option<&Arc<HttpInfo>>,
) {
    let Notification { method, params, .. } = notification;
    let name = method.as_str();
    let server = connection.server();
    let registry = server.registry();
    let Some(MethodItem { entry, .. }) = registry.notifications.get(name) else {
        // Removed since the session admitted it.
        return;
    };
    let meta = params.as_ref().and_then(Params::meta);
    // A notification of 2026-07-28 need not contain the client's capabilities.
    let is_known = !peer.revision.is_modern()
        || meta
            .as_ref()
            .is_some_and(|meta| meta.member(CLIENT_CAPABILITIES).is_some());
    if is_known && let Err(error) = entry.check_extension(&peer) {
        return server.warn_of_drop(name, &error.message);
    }
    if !permission::has_scopes(connection, http.map(|http| &**http), &entry.scopes) {
        return server.warn_of_drop(name, &"its client lacks a scope");
    }
    let client = connection.client();
    let own = client.begin_call().and_then(|in_flight| {
        let own = custom_methods::own_params(params.as_ref(), false, client)?;
        Ok((in_flight, own))
    });
    let (in_flight, own) = match own {
        Ok(own) => own,
        Err(exceeded) => return server.warn_of_drop(name, &RpcError::from(exceeded)),
    };
    let unchecked = match entry
        .params
        .as_ref()
        .map(|schema| schema.validate_inline(&own))
    {
        None | Some(Some(Ok(()))) => None,
        Some(Some(Err(violation))) => return server.warn_of_drop(name, &violation),
        Some(None) => entry.params.clone(),
    };
    let mut current_request = outside_request(connection, peer, http, meta);
    current_request.in_flight = Some(in_flight);
    let call = CallState::new(
        Target::Notification(entry.clone()),
        method,
        params,
        own,
        None,
        InputRecord::default(),
        Arc::new(current_request),
    );
    let most = connection.server().settings.session.max_requests_in_flight;
    if !connection.events().begin_notified(&call, most) {
        return server.warn_of_drop(call.method.as_str(), &TOO_MANY);
    }
    match unchecked {
        None => call.start(),
        Some(schema) => offloaded_validation::validate_then_start(call, schema),
    }
}

/// Ends the call of a custom notification. The handler's result is ignored.
pub(super) fn handled(call: &CallState, outcome: &Result<Reply, HandlerError>) {
    let method = call.method.as_str();
    match outcome {
        // The parameters did not match the handler's type.
        Err(HandlerError::Rpc(error)) if error.code == ErrorCode::INVALID_PARAMS => {
            call.server.warn_of_drop(method, error);
        }
        Err(error) if !call.is_cancelled() => {
            tracing::error!(method, ?error, "the handler of a notification failed");
        }
        _ => {}
    }
    call.current_request()
        .connection
        .events()
        .end_notified(call);
}

/// Calls the handler of an event, if there is one, through middleware that sees its notification.
pub(super) fn handle_client_event(
    connection: &Arc<Connection>,
    event: ClientNotification,
    http: Option<&Arc<HttpInfo>>,
) {
    let server = connection.server();
    let method = event.method();
    let middlewares = MessageMiddlewares::of_server(server, method.as_str());
    let Some((middlewares, peer)) = middlewares.zip(connection.ready_peer()) else {
        return handle_event(connection, event, http);
    };
    let (handling, handled_http) = (connection.clone(), http.cloned());
    let handle = move |_| handle_event(&handling, event, handled_http.as_ref());
    through_middleware(middlewares, connection, method, None, peer, http, handle);
}

/// Calls the handler of an event, if there is one.
fn handle_event(
    connection: &Arc<Connection>,
    event: ClientNotification,
    http: Option<&Arc<HttpInfo>>,
) {
    if connection
        .server()
        .registry()
        .event_handler(event)
        .is_none()
    {
        return;
    }
    let Some(peer) = connection.ready_peer() else {
        return;
    };
    if event == ClientNotification::RootsListChanged && !peer.accepts(RequiredCapability::Roots) {
        tracing::debug!(
            "a client without the capability `roots` sent notifications/roots/list_changed"
        );
        return;
    }
    let current_request = outside_request(connection, peer, http, None);
    let call = CallState::new(
        Target::Event(event),
        event.method(),
        None,
        Raw::EMPTY_OBJECT,
        None,
        InputRecord::default(),
        Arc::new(current_request),
    );
    if connection.events().begin(event, &call) {
        call.start();
    }
}

/// Ends the call of an event. The handler's result is ignored.
pub(super) fn ended(
    call: &CallState,
    event: ClientNotification,
    outcome: &Result<Reply, HandlerError>,
) {
    if let Err(error) = outcome
        && !call.is_cancelled()
    {
        let method = call.method.as_str();
        tracing::error!(method, ?error, "the handler of a session's event failed");
    }
    let current_request = call.current_request();
    if current_request.connection.events().end(event) && !call.is_cancelled() {
        handle_event(
            &current_request.connection,
            event,
            current_request.http.as_ref(),
        );
    }
}
