//! An open conversation as its client sees it: requests go out complete, whatever arrives is told apart.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use crate::adapt;
use crate::error::{ErrorCode, RpcError};
use crate::limits::MAX_QUESTIONS;
use crate::revision::Revision;
use crate::vocabulary::{ClientCapabilities, Implementation, LoggingLevel, meta};
use crate::wire::{
    Message, Method, Notification, Params, Raw, ReadError, Request, RequestId, Shape, encode,
};

use super::calls::{CallError, CallKey, CallTimeouts, Calls, Outcome, Overdue};
use super::opening::Opened;
use super::pings::{PingTimes, Pings};
use super::questions::url_elicitation_id;
use super::url_elicitations::UrlElicitations;

/// What a client wants of a server.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a str,
    /// Its parameters, without `_meta`.
    pub params: Option<&'a Raw>,
    /// What the caller wants in `_meta`: an object. Members that the protocol itself sets there lose to ours.
    pub meta: Option<&'a Raw>,
    /// Since 2026-07-28: the least severe level of log messages wanted in the course of this request.
    pub log_level: Option<LoggingLevel>,
    /// Whether somebody listens to progress. Only then does the request carry a token.
    pub listens: bool,
    /// How long to wait.
    pub timeouts: CallTimeouts,
}

impl<'a> Ask<'a> {
    /// A request with default timeouts, without progress.
    pub fn new(method: &'a str, params: Option<&'a Raw>) -> Self {
        Self {
            method,
            params,
            meta: None,
            log_level: None,
            listens: false,
            timeouts: CallTimeouts::default(),
        }
    }
}

/// What a message from the server is.
#[derive(Debug)]
pub enum Heard<H> {
    /// A request of ours has ended.
    Ended(H, Result<Raw, CallError>),
    /// A request of ours reported how far it is.
    Progress(CallKey, crate::vocabulary::Progress),
    /// The server asks. Answer it with [`Conversation::answer`].
    Question(Request),
    /// The server needs the answer to this question no longer, for the reason that it gives.
    Withdrawn(RequestId, Option<String>),
    /// The server has ended a subscription, a request of ours, for the reason that it gives.
    SubscriptionEnded(CallKey, H, Option<String>),
    /// The server has taken up a subscription, a request of ours in flight, as far as this notification says.
    Acknowledged(CallKey, Notification),
    /// The server tells something.
    Notification(Notification),
    /// The server tells something of a subscription that is not in flight: nobody is to hear of it, though what was kept may
    /// be stale.
    Unsubscribed(Notification),
    /// Answered by the protocol itself: send this.
    Reply(Vec<u8>),
    /// The server broke a rule, and nothing follows; the text says which, for a warning in a log.
    Violation(String),
    /// Nothing follows; the text says why, for a log.
    Nothing(String),
}

/// One conversation, from its opening to its end. `H` is the driver's handle to whoever waits for an answer.
#[derive(Debug)]
pub struct Conversation<H> {
    revision: Revision,
    /// Members of `_meta` that every request carries on 2026-07-28, without braces.
    standing: String,
    /// Methods that the server may ask with: their capability was declared, or the host serves them.
    answerable: BTreeSet<Box<str>>,
    calls: Calls<H>,
    /// Those of the calls that are subscriptions: a server can cancel nothing else (2026-07-28,
    /// `basic/patterns/cancellation`).
    subscriptions: BTreeSet<CallKey>,
    /// Those that wait for an answer, with the URL elicitation that one asks for.
    questions: HashMap<RequestId, Option<u64>>,
    /// Those whose end the server may tell, of earlier conversations too.
    url_elicitations: UrlElicitations,
    pings: Option<Pings>,
}

impl<H> Conversation<H> {
    /// The conversation that an [opening](super::Opening) led to. `info` and `capabilities` are the plan's;
    /// `url_elicitations` are those of all conversations with this server.
    pub fn new(
        opened: &Opened,
        info: &Implementation,
        capabilities: &ClientCapabilities,
        url_elicitations: UrlElicitations,
    ) -> Self {
        let features = opened.revision.features();
        let mut standing = String::new();
        if features.request_meta {
            let info = Raw::from_serialize(&adapt::implementation(info, opened.revision))
                .map_or_else(|_| "{}".into(), |raw| raw.as_str().to_owned());
            let declared = adapt::client_capabilities(capabilities, opened.revision);
            let capabilities = Raw::from_serialize(&declared)
                .map_or_else(|_| "{}".into(), |raw| raw.as_str().to_owned());
            // Writing to a String does not fail.
            let _ = write!(
                standing,
                r#""{}":"{}","{}":{info},"{}":{capabilities}"#,
                meta::PROTOCOL_VERSION,
                opened.revision,
                meta::CLIENT_INFO,
                meta::CLIENT_CAPABILITIES,
            );
        }
        let declared = [
            ("sampling/createMessage", capabilities.sampling.is_some()),
            ("elicitation/create", capabilities.elicitation.is_some()),
            ("roots/list", capabilities.roots.is_some()),
        ];
        let declared = declared.into_iter().filter(|(_, is)| *is);
        let answerable = declared.map(|(method, _)| method.into()).collect();
        Self {
            revision: opened.revision,
            standing,
            answerable,
            calls: Calls::new(opened.next_id),
            subscriptions: BTreeSet::new(),
            questions: HashMap::new(),
            url_elicitations,
            pings: None,
        }
    }

    /// Lets the server send requests of these methods, which no revision defines.
    pub fn serve_requests<'a>(&mut self, methods: impl IntoIterator<Item = &'a str>) {
        self.answerable.extend(methods.into_iter().map(Box::from));
    }

    /// What both sides speak.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How many requests wait for their answer.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Begins a request: its key, and the message to send.
    pub fn ask(&mut self, ask: &Ask<'_>, handle: H, now: Duration) -> (CallKey, Vec<u8>) {
        let key = self.calls.begin(handle, ask.timeouts, ask.listens, now);
        if ask.method == "subscriptions/listen" {
            let calls = &self.calls;
            self.subscriptions.retain(|key| calls.get(*key).is_some());
            self.subscriptions.insert(key);
        }
        let params = self.params_of(ask, key);
        let mut message = Vec::with_capacity(params.len() + ask.method.len() + 64);
        let params = (!params.is_empty()).then_some(params.as_bytes());
        encode::request(&mut message, &key.id(), ask.method, params);
        (key, message)
    }

    /// The parameters with everything that belongs into `_meta`; empty if there are none.
    fn params_of(&self, ask: &Ask<'_>, key: CallKey) -> String {
        let mut meta = String::new();
        let mut member = |text: &str| {
            if !meta.is_empty() {
                meta.push(',');
            }
            meta.push_str(text);
        };
        if !self.standing.is_empty() {
            member(&self.standing);
        }
        if ask.listens {
            member(&format!(r#""{}":{}"#, meta::PROGRESS_TOKEN, key.number()));
        }
        let features = self.revision.features();
        if let Some(level) = ask.log_level.filter(|_| features.request_log_level) {
            member(&format!(r#""{}":"{}""#, meta::LOG_LEVEL, level.as_str()));
        }
        if let Some(given) = ask.meta {
            let ours = |name: &str| {
                name == meta::PROGRESS_TOKEN
                    || (features.request_meta
                        && matches!(
                            name,
                            meta::PROTOCOL_VERSION | meta::CLIENT_INFO | meta::CLIENT_CAPABILITIES
                        ))
                    || (name == meta::LOG_LEVEL && ask.log_level.is_some())
            };
            for (name, value) in given.members().into_iter().flatten() {
                if !ours(&name) {
                    let name = Raw::string(&name);
                    member(&format!("{}:{}", name.as_str(), value.as_str()));
                }
            }
        }
        let own = ask.params.map_or("", |params| params.as_str().trim());
        if meta.is_empty() {
            return own.to_owned();
        }
        // An object begins with a brace; what follows it is the rest of its members, or its end.
        let rest = own.strip_prefix('{').unwrap_or("}").trim_start();
        let separator = if rest == "}" { "" } else { "," };
        format!(r#"{{"_meta":{{{meta}}}{separator}{rest}"#)
    }

    /// A notification to send. `params` must be an object.
    pub fn tell(&self, method: &str, params: Option<&Raw>) -> Vec<u8> {
        let mut message = Vec::new();
        encode::notification(&mut message, method, params.map(Raw::as_bytes));
        message
    }

    /// Has the server pinged when it is silent, from now on; the driver says when it is not
    /// ([`Conversation::sign_of_life`]). Revisions without `ping` have none.
    pub fn start_pings(&mut self, times: PingTimes, now: Duration) {
        if self.revision.features().ping {
            self.pings = Some(Pings::new(times, now));
        }
    }

    /// Begins a ping if one is due: its key, and the message to send. No ping is due while another one is in flight.
    /// One that has no answer in time is among what [`Conversation::handle_timeout`] gives up.
    pub fn ping_if_due(
        &mut self,
        handle: impl FnOnce() -> H,
        now: Duration,
    ) -> Option<(CallKey, Vec<u8>)> {
        if self.next_ping()? > now {
            return None;
        }
        let pings = self.pings.as_mut()?;
        let renewed = pings.latest.and_then(|key| self.calls.renew(key));
        let key =
            renewed.unwrap_or_else(|| self.calls.begin(handle(), pings.times.call(), false, now));
        pings.sent(key, now);
        let mut message = Vec::new();
        encode::request(&mut message, &key.id(), "ping", None);
        Some((key, message))
    }

    /// The server has said something, whatever it is: the next ping is put off, and one in flight needs no answer any more.
    /// Returns the key of that one, which is none of the requests in flight from now on.
    pub fn sign_of_life(&mut self, now: Duration) -> Option<CallKey> {
        let pings = self.pings.as_mut()?;
        pings.heard(now);
        let key = pings.latest?;
        self.calls.remove(key).map(|_| key)
    }

    /// This ping did not reach the server, or its answer was lost on the way: another one is due in what is left of its time.
    /// Says whether this is a ping in flight.
    pub fn ping_missed(&mut self, key: CallKey, now: Duration) -> bool {
        let Some(pings) = self
            .pings
            .as_mut()
            .filter(|pings| pings.latest == Some(key) && self.calls.get(key).is_some())
        else {
            return false;
        };
        self.calls.release(key, now);
        pings.missed(now);
        true
    }

    /// Ends the pinging; returns the key of the ping in flight, which is none of the requests in flight from now on.
    pub fn stop_pings(&mut self) -> Option<CallKey> {
        let key = self.pings.take()?.latest?;
        self.calls.remove(key).map(|_| key)
    }

    /// Whether this is the latest periodic ping.
    pub fn is_ping(&self, key: CallKey) -> bool {
        let pings = self.pings.as_ref();
        pings.is_some_and(|pings| pings.latest == Some(key))
    }

    /// When [`Conversation::ping_if_due`] has something to do.
    pub fn next_ping(&self) -> Option<Duration> {
        let pings = self.pings.as_ref()?;
        let in_flight = pings
            .latest
            .is_some_and(|key| self.calls.get(key).is_some());
        let due = match in_flight {
            true => pings.again,
            false => Some(pings.due()),
        };
        due.filter(|due| *due != Duration::MAX)
    }

    /// Takes in a message.
    pub fn hear(&mut self, message: Message, now: Duration) -> Heard<H> {
        match message {
            Message::Response(response) => {
                let outcome = self.calls.answered(response.id.as_ref(), response.outcome);
                match told(outcome) {
                    Heard::Ended(handle, Err(CallError::Rpc(error))) => {
                        let error = match self.url_elicitation_required(&error) {
                            Ok(()) => CallError::Rpc(error),
                            Err(reason) => CallError::Unreadable(reason),
                        };
                        Heard::Ended(handle, Err(error))
                    }
                    heard => heard,
                }
            }
            Message::Request(request) => self.asked(request),
            Message::Notification(notification) => self.told(notification, now),
        }
    }

    /// Takes in what could not be read. `course` is the request on whose stream it came: that one has its answer
    /// then, if an unreadable one. A request of the server's that has a readable id is refused under it, because the server
    /// waits, where the revision lets servers send requests.
    pub fn hear_unreadable(&mut self, error: ReadError, course: Option<CallKey>) -> Heard<H> {
        if let (Some(id), Shape::Request) = (&error.id, error.shape) {
            if !self.revision.features().server_requests {
                return Heard::Violation(self.unasked("that cannot be read"));
            }
            return Heard::Reply(refusal(id, &error.error));
        }
        let id = match (&error.id, course) {
            (Some(id), _) if matches!(error.shape, Shape::Response | Shape::Bare) => {
                Some(id.clone())
            }
            (_, Some(key)) => Some(key.id()),
            _ => None,
        };
        match id.map(|id| self.calls.spoilt(&id, &error.error.message)) {
            Some(Outcome::Ended(handle, outcome)) => Heard::Ended(handle, outcome),
            _ => Heard::Nothing(format!(
                "invalid JSON-RPC message from server: {}",
                error.error.message
            )),
        }
    }

    /// What to log of a request that the revision lets no server send. Clients send no responses there, not even errors
    /// (2026-07-28, `basic/patterns`).
    fn unasked(&self, request: &str) -> String {
        format!(
            "the server sent a request {request}, which is dropped: servers send none in revision {}",
            self.revision
        )
    }

    fn asked(&mut self, request: Request) -> Heard<H> {
        if !self.revision.features().server_requests {
            return Heard::Violation(self.unasked(request.method.as_str()));
        }
        if request.method == Method::Ping && self.revision.features().ping {
            let mut reply = Vec::new();
            encode::response(&mut reply, &request.id, b"{}");
            return Heard::Reply(reply);
        }
        if !self.answerable.contains(request.method.as_str()) {
            let error = RpcError::method_not_found(request.method.as_str());
            return Heard::Reply(refusal(&request.id, &error));
        }
        if self.questions.contains_key(&request.id) {
            let error = RpcError::invalid_request("this id is in flight already");
            return Heard::Reply(refusal(&request.id, &error));
        }
        if self.questions.len() >= MAX_QUESTIONS {
            let error = RpcError::busy("too many input requests are waiting for a response");
            return Heard::Reply(refusal(&request.id, &error));
        }
        let params = request.params.as_ref().map(Params::raw);
        let id = params
            .filter(|_| self.revision.features().elicitation_complete)
            .and_then(|params| url_elicitation_id(request.method.as_str(), params));
        let elicitation = id.map(|id| self.url_elicitations.begin(&id));
        self.questions.insert(request.id.clone(), elicitation);
        Heard::Question(request)
    }

    fn told(&mut self, notification: Notification, now: Duration) -> Heard<H> {
        let subscription = self.subscription_of(&notification);
        if subscription == Some(None) {
            return Heard::Unsubscribed(notification);
        }
        match notification.method {
            Method::NotificationsProgress => {
                told(self.calls.progressed(notification.params.as_ref(), now))
            }
            Method::NotificationsSubscriptionsAcknowledged => match subscription.flatten() {
                Some(key) => Heard::Acknowledged(key, notification),
                None => Heard::Notification(notification),
            },
            Method::NotificationsMessage if !is_log_message(notification.params.as_ref()) => {
                Heard::Violation(
                    "the server sent a log message without data, or with a level that no revision has; \
                     it is dropped"
                        .to_owned(),
                )
            }
            Method::NotificationsCancelled => self.cancelled(notification.params.as_ref()),
            Method::NotificationsElicitationComplete
                if self.revision.features().elicitation_complete =>
            {
                let id = notification.params.as_ref();
                let id = id.and_then(|params| params.get_str("elicitationId"));
                match id.is_some_and(|id| self.url_elicitations.end(&id)) {
                    true => Heard::Notification(notification),
                    false => Heard::Nothing(
                        "dropped the end of a URL elicitation that is unknown or already over"
                            .to_owned(),
                    ),
                }
            }
            _ => Heard::Notification(notification),
        }
    }

    /// The subscription in flight that a notification names; `Some(None)` if it names another one. On a pipe all
    /// subscriptions share one channel (2026-07-28, `basic/patterns/subscriptions`, receiving notifications).
    fn subscription_of(&self, notification: &Notification) -> Option<Option<CallKey>> {
        if !self.revision.features().listen {
            return None;
        }
        let meta = notification.params.as_ref().and_then(Params::meta)?;
        let named = meta.member(meta::SUBSCRIPTION_ID)?;
        let id = RequestId::from_raw(&named).ok();
        let key = id.and_then(|id| self.calls.key_of(&id));
        Some(key.filter(|key| self.subscriptions.contains(key)))
    }

    fn cancelled(&mut self, params: Option<&Params>) -> Heard<H> {
        let id = params.and_then(withdrawn_id);
        if let Some(id) = id
            .as_ref()
            .filter(|id| self.questions.remove(*id).is_some())
        {
            return Heard::Withdrawn(id.clone(), params.and_then(reason));
        }
        let key = id.and_then(|id| self.calls.key_of(&id));
        let key = key.filter(|key| self.subscriptions.remove(key));
        let subscription = key.and_then(|key| Some((key, self.calls.remove(key)?)));
        match subscription {
            Some((key, handle)) => Heard::SubscriptionEnded(key, handle, params.and_then(reason)),
            None => Heard::Nothing(
                "a cancellation of no question and no subscription in flight".to_owned(),
            ),
        }
    }

    /// Whether the server still waits for the answer to this question.
    pub fn is_asked(&self, id: &RequestId) -> bool {
        self.questions.contains_key(id)
    }

    /// The answer to a question, to be sent; `None` if the server has withdrawn it.
    pub fn answer(&mut self, id: &RequestId, answer: Result<&Raw, &RpcError>) -> Option<Vec<u8>> {
        let elicitation = self.questions.remove(id)?;
        if let (Some(elicitation), Err(_)) = (elicitation, answer) {
            // The host was not asked, or could not: the end would be one of what it doesn't know.
            self.url_elicitations.forget(elicitation);
        }
        match answer {
            Ok(result) => {
                let mut reply = Vec::new();
                encode::response(&mut reply, id, result.as_bytes());
                Some(reply)
            }
            Err(error) => Some(refusal(id, error)),
        }
    }

    /// Takes note of what an error demands that sends the user to URLs first, so that the host is told when that is over
    /// (2025-11-25, `client/elicitation`, URL elicitation required error). Nothing follows from other errors.
    ///
    /// [`hear`](Self::hear) does so by itself; this is for errors that came in another way, such as with an HTTP status.
    ///
    /// # Errors
    /// If a URL in it is none of the web: the host must not be given the error then.
    pub fn url_elicitation_required(&mut self, error: &RpcError) -> Result<(), String> {
        match self.revision.features().url_elicitation_required_code {
            Some(code) if code == error.code => self.url_elicitations.begin_required(error),
            _ => Ok(()),
        }
    }

    /// Whoever waits for this request.
    pub fn waiter(&self, key: CallKey) -> Option<&H> {
        self.calls.get(key)
    }

    /// Ends a request that can have no answer any more.
    pub fn drop_call(&mut self, key: CallKey) -> Option<H> {
        self.calls.remove(key)
    }

    /// A request waits for something that isn't the server's doing ([`Calls::hold`]).
    pub fn hold(&mut self, key: CallKey) {
        self.calls.hold(key);
    }

    /// A request that was held waits for the server again ([`Calls::release`]).
    pub fn release(&mut self, key: CallKey, now: Duration) {
        self.calls.release(key, now);
    }

    /// Gives a request up: whoever waited, and `notifications/cancelled`.
    pub fn cancel(&mut self, key: CallKey, reason: &str) -> Option<(H, Vec<u8>)> {
        self.calls.cancel(key, reason)
    }

    /// The conversation is over: whoever still waits.
    pub fn close(&mut self) -> Vec<H> {
        self.questions.clear();
        self.pings = None;
        self.calls.close().map(|(handle, _)| handle).collect()
    }

    /// When [`Conversation::handle_timeout`] or [`Conversation::ping_if_due`] has something to do.
    pub fn poll_deadline(&self) -> Option<Duration> {
        let calls = self.calls.poll_deadline();
        calls.into_iter().chain(self.next_ping()).min()
    }

    /// Gives up what is overdue.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(CallKey, Overdue<H>)> {
        self.calls.handle_timeout(now)
    }
}

fn told<H>(outcome: Outcome<H>) -> Heard<H> {
    match outcome {
        Outcome::Ended(handle, outcome) => Heard::Ended(handle, outcome),
        Outcome::Progress(key, progress) => Heard::Progress(key, progress),
        Outcome::Nothing(why) => Heard::Nothing(why.to_owned()),
    }
}

fn refusal(id: &RequestId, error: &RpcError) -> Vec<u8> {
    let mut reply = Vec::new();
    encode::error(&mut reply, Some(id), error);
    reply
}

fn withdrawn_id(params: &Params) -> Option<RequestId> {
    RequestId::from_raw(&params.get("requestId")?).ok()
}

/// Whether these are parameters of a log message (`server/utilities/logging`, security: data is validated).
fn is_log_message(params: Option<&Params>) -> bool {
    params.is_some_and(|params| {
        let level = params.get_str("level");
        level.is_some_and(|level| LoggingLevel::parse(&level).is_some())
            // Null is data, too.
            && params.raw().member("data").is_some()
    })
}

fn reason(params: &Params) -> Option<String> {
    params.get_str("reason").map(Cow::into_owned)
}

/// Whether an error says that a header did not match its request, so that the tools should be listed anew and the
/// request repeated once (2026-07-28, `basic/transports/streamable-http`, "Server Validation").
pub fn is_header_mismatch(error: &RpcError) -> bool {
    error.code == ErrorCode::HEADER_MISMATCH
}
