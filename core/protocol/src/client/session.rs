//! A client's session with a server: writes complete requests, and classifies incoming messages.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use crate::adapt;
use crate::error::{ErrorCode, RpcError};
use crate::input_method::InputMethod;
use crate::revision::Revision;
use crate::vocabulary::{ClientCapabilities, Implementation, LoggingLevel, meta};
use crate::wire::{
    ApparentMessageKind, Message, Method, Notification, Params, Raw, ReadError, Request, RequestId,
    encode,
};

use super::input_requests::url_elicitation_id;
use super::negotiation::NegotiatedSession;
use super::open_input_requests::{OpenInputRequest, OpenInputRequests};
use super::outgoing_requests::{
    OutgoingRequestError, OutgoingRequestEvent, OutgoingRequestId, OutgoingRequests,
    RequestTimeouts, TimedOutRequest,
};
use super::pings::{PingTimes, Pings};
use super::url_elicitations::UrlElicitations;

/// A request to send.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingClientRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// Its parameters, without `_meta`.
    pub params: Option<&'a Raw>,
    /// The caller's members of `_meta`: an object. Members that the protocol sets itself take precedence.
    pub meta: Option<&'a Raw>,
    /// Since 2026-07-28: the minimum level of log messages during this request.
    pub log_level: Option<LoggingLevel>,
    /// Whether the caller wants progress. Only then does the request carry a token.
    pub wants_progress: bool,
    /// The request's timeouts.
    pub timeouts: RequestTimeouts,
}

impl<'a> OutgoingClientRequest<'a> {
    /// A request with default timeouts, without progress.
    pub fn new(method: &'a str, params: Option<&'a Raw>) -> Self {
        Self {
            method,
            params,
            meta: None,
            log_level: None,
            wants_progress: false,
            timeouts: RequestTimeouts::default(),
        }
    }
}

/// The meaning of a message from the server.
#[derive(Debug)]
pub enum ClientEvent<H> {
    /// A request of this client has ended.
    RequestEnded(H, Result<Raw, OutgoingRequestError>),
    /// A request of this client reported its progress.
    Progress(OutgoingRequestId, crate::vocabulary::Progress),
    /// The server sent an input request or a ping. Answer it with [`ClientSession::write_input_response`].
    InputRequest(Request),
    /// The server cancelled its request, with a reason.
    InputRequestCancelled(RequestId, Option<String>),
    /// The server ended a subscription, with a reason.
    SubscriptionEnded(OutgoingRequestId, H, Option<String>),
    /// The server acknowledged a subscription that is in flight; the notification says to what extent.
    SubscriptionAcknowledged(OutgoingRequestId, Notification),
    /// A notification.
    Notification(Notification),
    /// A notification of a subscription that is not in flight. It has no listener, but cached results may be stale.
    UnknownSubscription(Notification),
    /// The response of the protocol itself, ready to send.
    Reply(Vec<u8>),
    /// The server broke a rule, without further effect; the text says which, for a warning in a log.
    Violation(String),
    /// Nothing to do; the text says why, for a log.
    Ignored(String),
}

/// A session, from its negotiation to its end. `H` is the driver's handle for the caller that waits for a response.
#[derive(Debug)]
pub struct ClientSession<H> {
    revision: Revision,
    /// Members of `_meta` that every request carries on 2026-07-28, without braces.
    common_meta: String,
    /// Methods of requests that the server may send: their capability was declared, or the host handles them.
    allowed_methods: BTreeSet<Box<str>>,
    requests: OutgoingRequests<H>,
    /// The calls that are subscriptions: a server can cancel nothing else (2026-07-28, `basic/patterns/cancellation`).
    subscriptions: BTreeSet<OutgoingRequestId>,
    /// The open requests of the server, each with the URL elicitation that it starts, if any.
    input_requests: OpenInputRequests,
    /// URL elicitations whose completion the server may announce, including those of earlier sessions.
    url_elicitations: UrlElicitations,
    pings: Option<Pings>,
}

impl<H> ClientSession<H> {
    /// Creates the session from the result of a [negotiation](super::Negotiation). `info` and `capabilities` are those
    /// of its options; `url_elicitations` are shared by all sessions with this server.
    pub fn new(
        negotiated: &NegotiatedSession,
        info: &Implementation,
        capabilities: &ClientCapabilities,
        url_elicitations: UrlElicitations,
    ) -> Self {
        let features = negotiated.revision.features();
        let mut common_meta = String::new();
        if features.request_meta {
            let info = Raw::from_serialize(&adapt::implementation(info, negotiated.revision))
                .map_or_else(|_| "{}".into(), |raw| raw.as_str().to_owned());
            let declared = adapt::client_capabilities(capabilities, negotiated.revision);
            let capabilities = Raw::from_serialize(&declared)
                .map_or_else(|_| "{}".into(), |raw| raw.as_str().to_owned());
            // Writing to a `String` can't fail.
            let _ = write!(
                common_meta,
                r#""{}":"{}","{}":{info},"{}":{capabilities}"#,
                meta::PROTOCOL_VERSION,
                negotiated.revision,
                meta::CLIENT_INFO,
                meta::CLIENT_CAPABILITIES,
            );
        }
        let declared = InputMethod::ALL.iter();
        let declared = declared.filter(|input| input.is_declared(capabilities));
        let allowed_methods = declared.map(|input| input.as_str().into()).collect();
        Self {
            revision: negotiated.revision,
            common_meta,
            allowed_methods,
            requests: OutgoingRequests::new(negotiated.next_id),
            subscriptions: BTreeSet::new(),
            input_requests: OpenInputRequests::default(),
            url_elicitations,
            pings: None,
        }
    }

    /// Allows the server to send requests of these methods, if the revision does not define them itself.
    pub fn serve_requests<'a>(&mut self, methods: impl IntoIterator<Item = &'a str>) {
        let revision = self.revision;
        let custom = methods.into_iter();
        let custom = custom.filter(|method| Method::parse(method).is_custom_in(revision));
        self.allowed_methods.extend(custom.map(Box::from));
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Begins a request. Returns its key and the message to send.
    pub fn begin_request(
        &mut self,
        request: &OutgoingClientRequest<'_>,
        handle: H,
        now: Duration,
    ) -> (OutgoingRequestId, Vec<u8>) {
        let key = self
            .requests
            .begin(handle, request.timeouts, request.wants_progress, now);
        if request.method == "subscriptions/listen" {
            let requests = &self.requests;
            self.subscriptions
                .retain(|key| requests.get(*key).is_some());
            self.subscriptions.insert(key);
        }
        let params = self.request_params(request, key);
        let mut message = Vec::with_capacity(params.len() + request.method.len() + 64);
        let params = (!params.is_empty()).then_some(params.as_bytes());
        encode::request(&mut message, &key.id(), request.method, params);
        (key, message)
    }

    /// The parameters with the complete `_meta`; empty if there are none.
    fn request_params(
        &self,
        request: &OutgoingClientRequest<'_>,
        key: OutgoingRequestId,
    ) -> String {
        let mut own_meta = Vec::new();
        if request.wants_progress {
            own_meta.push((meta::PROGRESS_TOKEN, key.number().to_string()));
        }
        let has_level = self.revision.features().request_log_level;
        if let Some(level) = request.log_level.filter(|_| has_level) {
            own_meta.push((meta::LOG_LEVEL, format!(r#""{}""#, level.as_str())));
        }
        let given = request.meta;
        let is_replaced = |name: &str| {
            name == meta::PROGRESS_TOKEN || (name == meta::LOG_LEVEL && request.log_level.is_some())
        };
        self.params_with_meta(request.params, &own_meta, given, is_replaced)
    }

    /// The parameters with a `_meta` of these members, those that every message of the revision has, and the given ones;
    /// empty if there are none.
    fn params_with_meta(
        &self,
        params: Option<&Raw>,
        own: &[(&str, String)],
        given: Option<&Raw>,
        is_replaced: impl Fn(&str) -> bool,
    ) -> String {
        let mut meta = self.common_meta.clone();
        let mut member = |name: &str, value: &str| {
            if !meta.is_empty() {
                meta.push(',');
            }
            meta.push_str(name);
            meta.push(':');
            meta.push_str(value);
        };
        for (name, value) in own {
            member(&format!(r#""{name}""#), value);
        }
        let is_common = |name: &str| {
            self.revision.features().request_meta
                && matches!(
                    name,
                    meta::PROTOCOL_VERSION | meta::CLIENT_INFO | meta::CLIENT_CAPABILITIES
                )
        };
        for (name, value) in given.iter().filter_map(|given| given.members()).flatten() {
            if !is_common(&name) && !is_replaced(&name) {
                member(Raw::string(&name).as_str(), value.as_str());
            }
        }
        let own = params.map_or("", |params| params.as_str().trim());
        if meta.is_empty() {
            return own.to_owned();
        }
        // The object begins with a brace; what follows is the rest of its members, or its end.
        let rest = own.strip_prefix('{').unwrap_or("}").trim_start();
        let separator = if rest == "}" { "" } else { "," };
        format!(r#"{{"_meta":{{{meta}}}{separator}{rest}"#)
    }

    /// Writes a notification. `params` must be an object. On revisions whose requests name the client, a custom
    /// notification does as well: the server decides by its capabilities whether the notification's extension is
    /// supported.
    pub fn write_notification(&self, method: &str, params: Option<&Raw>) -> Vec<u8> {
        let mut message = Vec::new();
        let is_custom = Method::parse(method).is_custom_in(self.revision);
        if !is_custom || self.common_meta.is_empty() {
            encode::notification(&mut message, method, params.map(Raw::as_bytes));
            return message;
        }
        let given = params.and_then(|params| params.member("_meta"));
        let own = params.map(|params| params.without("_meta"));
        let params = self.params_with_meta(own.as_ref(), &[], given.as_ref(), |_| false);
        encode::notification(&mut message, method, Some(params.as_bytes()));
        message
    }

    /// Starts pinging the server when it is silent; the driver reports when it is not
    /// ([`ClientSession::note_activity`]). Does nothing for revisions without `ping`.
    pub fn start_pings(&mut self, times: PingTimes, now: Duration) {
        if self.revision.features().ping {
            self.pings = Some(Pings::new(times, now));
        }
    }

    /// Begins a ping if one is due. Returns its key and the message to send. No ping is due while another one is in
    /// flight. A ping without a response in time is returned by [`ClientSession::handle_timeout`].
    pub fn ping_if_due(
        &mut self,
        handle: impl FnOnce() -> H,
        now: Duration,
    ) -> Option<(OutgoingRequestId, Vec<u8>)> {
        if self.next_ping()? > now {
            return None;
        }
        let pings = self.pings.as_mut()?;
        let renewed = pings.latest.and_then(|key| self.requests.requeue(key));
        let key = renewed.unwrap_or_else(|| {
            self.requests
                .begin(handle(), pings.times.call_timeouts(), false, now)
        });
        pings.note_sent(key, now);
        let mut message = Vec::new();
        encode::request(&mut message, &key.id(), "ping", None);
        Some((key, message))
    }

    /// Records that the server sent something: postpones the next ping, and ends one in flight. Returns the key of that
    /// ping, which is no longer in flight.
    pub fn note_activity(&mut self, now: Duration) -> Option<OutgoingRequestId> {
        let pings = self.pings.as_mut()?;
        pings.note_activity(now);
        let key = pings.latest?;
        self.requests.remove(key).map(|_| key)
    }

    /// Records that this ping did not reach the server, or that its response was lost: another one is due within its
    /// remaining time. Returns whether it is a ping in flight.
    pub fn note_lost_ping(&mut self, key: OutgoingRequestId, now: Duration) -> bool {
        let Some(pings) = self
            .pings
            .as_mut()
            .filter(|pings| pings.latest == Some(key) && self.requests.get(key).is_some())
        else {
            return false;
        };
        self.requests.resume_timeout(key, now);
        pings.note_lost(now);
        true
    }

    /// Stops pinging. Returns the key of the ping in flight, which is no longer in flight.
    pub fn stop_pings(&mut self) -> Option<OutgoingRequestId> {
        let key = self.pings.take()?.latest?;
        self.requests.remove(key).map(|_| key)
    }

    /// Whether this is the latest periodic ping.
    pub fn is_ping(&self, key: OutgoingRequestId) -> bool {
        let pings = self.pings.as_ref();
        pings.is_some_and(|pings| pings.latest == Some(key))
    }

    /// When to call [`ClientSession::ping_if_due`].
    pub fn next_ping(&self) -> Option<Duration> {
        let pings = self.pings.as_ref()?;
        let in_flight = pings
            .latest
            .is_some_and(|key| self.requests.get(key).is_some());
        let due = match in_flight {
            true => pings.resend_at,
            false => Some(pings.next_due()),
        };
        due.filter(|due| *due != Duration::MAX)
    }

    /// Processes a message.
    pub fn receive(&mut self, message: Message, now: Duration) -> ClientEvent<H> {
        match message {
            Message::Response(response) => {
                let outcome = self
                    .requests
                    .receive_response(response.id.as_ref(), response.outcome);
                match event_of_request(outcome) {
                    ClientEvent::RequestEnded(handle, Err(OutgoingRequestError::Rpc(error))) => {
                        let error = match self.begin_required_url_elicitations(&error) {
                            Ok(()) => OutgoingRequestError::Rpc(error),
                            Err(reason) => OutgoingRequestError::Unreadable(reason),
                        };
                        ClientEvent::RequestEnded(handle, Err(error))
                    }
                    event => event,
                }
            }
            Message::Request(request) => self.receive_request(request),
            Message::Notification(notification) => self.receive_notification(notification, now),
        }
    }

    /// Processes a message that could not be parsed. `course` is the request on whose stream it arrived: that request
    /// ends with an unreadable response. A request of the server with a readable id gets an error response, because the
    /// server waits, if the revision lets servers send requests.
    pub fn receive_unreadable(
        &mut self,
        error: ReadError,
        course: Option<OutgoingRequestId>,
    ) -> ClientEvent<H> {
        if let (Some(id), ApparentMessageKind::Request) = (&error.id, error.shape) {
            if !self.revision.features().server_requests {
                return ClientEvent::Violation(self.unexpected_request_text("that cannot be read"));
            }
            return ClientEvent::Reply(error_response(id, &error.error));
        }
        let id = match (&error.id, course) {
            (Some(id), _)
                if matches!(
                    error.shape,
                    ApparentMessageKind::Response | ApparentMessageKind::Bare
                ) =>
            {
                Some(id.clone())
            }
            (_, Some(key)) => Some(key.id()),
            _ => None,
        };
        match id.map(|id| {
            self.requests
                .receive_unreadable_response(&id, &error.error.message)
        }) {
            Some(OutgoingRequestEvent::Ended(handle, outcome)) => {
                ClientEvent::RequestEnded(handle, outcome)
            }
            _ => ClientEvent::Ignored(format!(
                "invalid JSON-RPC message from server: {}",
                error.error.message
            )),
        }
    }

    /// The log text for a request that servers can't send on this revision. Clients send no responses then, not even
    /// errors (2026-07-28, `basic/patterns`).
    fn unexpected_request_text(&self, request: &str) -> String {
        format!(
            "the server sent a request {request}, which is dropped: servers send none in revision {}",
            self.revision
        )
    }

    fn receive_request(&mut self, request: Request) -> ClientEvent<H> {
        if !self.revision.features().server_requests {
            return ClientEvent::Violation(self.unexpected_request_text(request.method.as_str()));
        }
        if request.method == Method::Ping && self.revision.features().ping {
            let mut reply = Vec::new();
            encode::response(&mut reply, &request.id, b"{}");
            return ClientEvent::Reply(reply);
        }
        if !self.allowed_methods.contains(request.method.as_str()) {
            let error = RpcError::method_not_found(request.method.as_str());
            return ClientEvent::Reply(error_response(&request.id, &error));
        }
        if self.input_requests.contains(&request.id) {
            let error = RpcError::invalid_request("this id is in flight already");
            return ClientEvent::Reply(error_response(&request.id, &error));
        }
        let params = request.params.as_ref().map(Params::raw);
        let bytes = params.map_or(0, |params| params.as_bytes().len());
        if !self.input_requests.has_room(bytes) {
            let error = RpcError::busy("too many input requests are waiting for a response");
            return ClientEvent::Reply(error_response(&request.id, &error));
        }
        let id = params
            .filter(|_| self.revision.features().elicitation_complete)
            .and_then(|params| url_elicitation_id(request.method.as_str(), params));
        let elicitation = id.map(|id| self.url_elicitations.begin(&id));
        let open = OpenInputRequest { elicitation, bytes };
        self.input_requests.insert(request.id.clone(), open);
        ClientEvent::InputRequest(request)
    }

    fn receive_notification(
        &mut self,
        notification: Notification,
        now: Duration,
    ) -> ClientEvent<H> {
        let subscription = self.subscription_of(&notification);
        if subscription == Some(None) {
            return ClientEvent::UnknownSubscription(notification);
        }
        match notification.method {
            Method::NotificationsProgress => {
                event_of_request(self.requests.receive_progress(notification.params.as_ref(), now))
            }
            Method::NotificationsSubscriptionsAcknowledged => match subscription.flatten() {
                Some(key) => ClientEvent::SubscriptionAcknowledged(key, notification),
                None => ClientEvent::Notification(notification),
            },
            Method::NotificationsMessage if !is_log_message(notification.params.as_ref()) => {
                ClientEvent::Violation(
                    "the server sent a log message without data, or with a level that no revision has; \
                     it is dropped"
                        .to_owned(),
                )
            }
            Method::NotificationsCancelled => self.receive_cancelled(notification.params.as_ref()),
            Method::NotificationsElicitationComplete
                if self.revision.features().elicitation_complete =>
            {
                let id = notification.params.as_ref();
                let id = id.and_then(|params| params.get_str("elicitationId"));
                match id.is_some_and(|id| self.url_elicitations.end(&id)) {
                    true => ClientEvent::Notification(notification),
                    false => ClientEvent::Ignored(
                        "dropped the end of a URL elicitation that is unknown or already over"
                            .to_owned(),
                    ),
                }
            }
            _ => ClientEvent::Notification(notification),
        }
    }

    /// The subscription in flight that a notification belongs to; `Some(None)` if it belongs to another one. On stdio
    /// all subscriptions share one channel (2026-07-28, `basic/patterns/subscriptions`, receiving notifications).
    fn subscription_of(&self, notification: &Notification) -> Option<Option<OutgoingRequestId>> {
        if !self.revision.features().listen {
            return None;
        }
        let meta = notification.params.as_ref().and_then(Params::meta)?;
        let named = meta.member(meta::SUBSCRIPTION_ID)?;
        let id = RequestId::from_raw(&named).ok();
        let key = id.and_then(|id| self.requests.key_of(&id));
        Some(key.filter(|key| self.subscriptions.contains(key)))
    }

    fn receive_cancelled(&mut self, params: Option<&Params>) -> ClientEvent<H> {
        let id = params.and_then(cancelled_id);
        if let Some(id) = id
            .as_ref()
            .filter(|id| self.input_requests.remove(id).is_some())
        {
            return ClientEvent::InputRequestCancelled(id.clone(), params.and_then(reason));
        }
        let key = id.and_then(|id| self.requests.key_of(&id));
        let key = key.filter(|key| self.subscriptions.remove(key));
        let subscription = key.and_then(|key| Some((key, self.requests.remove(key)?)));
        match subscription {
            Some((key, handle)) => {
                ClientEvent::SubscriptionEnded(key, handle, params.and_then(reason))
            }
            None => ClientEvent::Ignored(
                "a cancellation of an unknown input request or subscription".to_owned(),
            ),
        }
    }

    /// Whether the server still waits for the response to this request.
    pub fn has_input_request(&self, id: &RequestId) -> bool {
        self.input_requests.contains(id)
    }

    /// Writes the response to a request of the server; `None` if the server has cancelled it.
    pub fn write_input_response(
        &mut self,
        id: &RequestId,
        answer: Result<&Raw, &RpcError>,
    ) -> Option<Vec<u8>> {
        let elicitation = self.input_requests.remove(id)?.elicitation;
        if let (Some(elicitation), Err(_)) = (elicitation, answer) {
            // The host does not know this URL elicitation, so it must not learn of its completion.
            self.url_elicitations.forget(elicitation);
        }
        match answer {
            Ok(result) => {
                let mut reply = Vec::new();
                encode::response(&mut reply, id, result.as_bytes());
                Some(reply)
            }
            Err(error) => Some(error_response(id, error)),
        }
    }

    /// Records the URL elicitations that an error requires, so that their completion can be reported to the host
    /// (2025-11-25, `client/elicitation`, URL elicitation required error). Does nothing for other errors.
    ///
    /// [`receive`](Self::receive) does so by itself; this is for errors that arrive in another way, such as with an
    /// HTTP status.
    ///
    /// # Errors
    /// If a URL in it is not a web URL: the host must not be given the error then.
    pub fn begin_required_url_elicitations(&mut self, error: &RpcError) -> Result<(), String> {
        match self.revision.features().url_elicitation_required_code {
            Some(code) if code == error.code => self.url_elicitations.begin_required(error),
            _ => Ok(()),
        }
    }

    /// The driver's handle of this request.
    pub fn request_handle(&self, key: OutgoingRequestId) -> Option<&H> {
        self.requests.get(key)
    }

    /// Removes a request that can't get a response any more.
    pub fn remove_request(&mut self, key: OutgoingRequestId) -> Option<H> {
        self.requests.remove(key)
    }

    /// Pauses the timeouts of a request ([`OutgoingRequests::pause_timeout`]).
    pub fn pause_timeout(&mut self, key: OutgoingRequestId) {
        self.requests.pause_timeout(key);
    }

    /// Restarts the timeouts of a paused request ([`OutgoingRequests::resume_timeout`]).
    pub fn resume_timeout(&mut self, key: OutgoingRequestId, now: Duration) {
        self.requests.resume_timeout(key, now);
    }

    /// Cancels a request. Returns its handle and `notifications/cancelled`.
    pub fn cancel(&mut self, key: OutgoingRequestId, reason: &str) -> Option<(H, Vec<u8>)> {
        self.requests.cancel(key, reason)
    }

    /// Ends the session. Returns the handles of all requests in flight.
    pub fn close(&mut self) -> Vec<H> {
        self.input_requests.clear();
        self.pings = None;
        self.requests.close().map(|(handle, _)| handle).collect()
    }

    /// When to call [`ClientSession::handle_timeout`] or [`ClientSession::ping_if_due`].
    pub fn poll_deadline(&self) -> Option<Duration> {
        let requests = self.requests.poll_deadline();
        requests.into_iter().chain(self.next_ping()).min()
    }

    /// Ends the requests that timed out.
    pub fn handle_timeout(
        &mut self,
        now: Duration,
    ) -> Vec<(OutgoingRequestId, TimedOutRequest<H>)> {
        self.requests.handle_timeout(now)
    }
}

fn event_of_request<H>(outcome: OutgoingRequestEvent<H>) -> ClientEvent<H> {
    match outcome {
        OutgoingRequestEvent::Ended(handle, outcome) => ClientEvent::RequestEnded(handle, outcome),
        OutgoingRequestEvent::Progress(key, progress) => ClientEvent::Progress(key, progress),
        OutgoingRequestEvent::Ignored(why) => ClientEvent::Ignored(why.to_owned()),
    }
}

fn error_response(id: &RequestId, error: &RpcError) -> Vec<u8> {
    let mut reply = Vec::new();
    encode::error(&mut reply, Some(id), error);
    reply
}

fn cancelled_id(params: &Params) -> Option<RequestId> {
    RequestId::from_raw(&params.get("requestId")?).ok()
}

/// Whether these are valid parameters of a log message (`server/utilities/logging`, security: data is validated).
fn is_log_message(params: Option<&Params>) -> bool {
    params.is_some_and(|params| {
        let level = params.get_str("level");
        level.is_some_and(|level| LoggingLevel::parse(&level).is_some())
            // `null` is valid data, too.
            && params.raw().member("data").is_some()
    })
}

fn reason(params: &Params) -> Option<String> {
    params.get_str("reason").map(Cow::into_owned)
}

/// Whether an error says that a header did not match its request. The tools should then be listed again and the request
/// repeated once (2026-07-28, `basic/transports/streamable-http`, "Server Validation").
pub fn is_header_mismatch(error: &RpcError) -> bool {
    error.code == ErrorCode::HEADER_MISMATCH
}
