//! One conversation with a server: its link, what is in flight, and who waits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::client::{
    Ask, CallKey, Conversation, Heard, Opened, PingTimes, undeclared_capability,
};
use mcpline_protocol::vocabulary::Progress;
use mcpline_protocol::wire::{
    self, Incoming, Message, Method, Notification, ReadError, Request, RequestId,
};
use mcpline_protocol::{ErrorCode, Printable, Raw, Revision, RpcError};
use tokio::sync::{mpsc, oneshot};

use crate::background;
use crate::clock;
use crate::sync::{self, Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use crate::timers::{Alarm, Timed, Timers};

use super::error::{ClientError, ClientErrorKind};
use super::handlers::adapted;
use super::inner::Inner;
use super::link::{Link, Outgoing, Purpose, Reports, RequestHead};
use super::settings::{ClientSettings, ProgressListener};

type Outcome = Result<Raw, ClientError>;

/// How many questions of one server are answered at once: each is a handler of the host's that runs.
const MAX_OPEN_QUESTIONS: usize = 256;

/// Whoever waits for an answer.
pub(super) struct Waiter {
    answer: oneshot::Sender<Outcome>,
    progress: Option<ProgressListener>,
    /// Takes the first acknowledgement, if this is a subscription.
    acknowledged: Option<mpsc::Sender<Notification>>,
}

impl Waiter {
    /// Of a request that nobody waits for: a periodic ping.
    fn none() -> Self {
        Self {
            answer: oneshot::channel().0,
            progress: None,
            acknowledged: None,
        }
    }
}

/// One conversation, from its opening to its end.
pub(super) struct Session {
    /// Which of its client's conversations it is.
    pub(super) number: u64,
    pub(super) opened: Opened,
    pub(super) link: Arc<dyn Link>,
    state: Mutex<State>,
    /// Whether the server was pinged in the beginning.
    pings: bool,
    client: Weak<Inner>,
    timers: Arc<Timers>,
    alarm: Alarm,
    this: Weak<Session>,
}

struct State {
    conversation: Conversation<Waiter>,
    /// Why it is over.
    ended: Option<ClientError>,
    /// Whether a request was answered, which tells a server that works from one that ends again and again.
    answered: bool,
    /// What answers the server's questions.
    answering: Vec<(RequestId, background::AbortHandle)>,
}

impl Session {
    /// The conversation that was opened over `link`. What has arrived since goes to it through `reception`.
    pub(super) fn start(opened: Opened, link: Arc<dyn Link>, client: &Arc<Inner>) -> Arc<Self> {
        let mut conversation = Conversation::new(
            &opened,
            &client.info,
            &client.handlers.capabilities,
            client.url_elicitations.clone(),
        );
        if let Some(interval) = client.settings.ping_interval {
            let timeout = client.settings.ping_timeout;
            conversation.start_pings(PingTimes { interval, timeout }, clock::now());
        }
        let first_ping = conversation.poll_deadline();
        let session = Arc::new_cyclic(|this| Self {
            number: client.next_conversation(),
            opened,
            link,
            state: Mutex::new(State {
                conversation,
                ended: None,
                answered: false,
                answering: Vec::new(),
            }),
            pings: first_ping.is_some(),
            client: Arc::downgrade(client),
            timers: client.timers.clone(),
            alarm: Alarm::default(),
            this: this.clone(),
        });
        session.schedule(first_ping);
        session
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn revision(&self) -> Revision {
        self.opened.revision
    }

    /// Refuses a request that needs a capability which the server has not declared.
    pub(super) fn check_capability(
        &self,
        method: &Method,
        settings: &ClientSettings,
    ) -> Result<(), ClientError> {
        if settings.allow_undeclared_capabilities {
            return Ok(());
        }
        let server = &self.opened.capabilities;
        match undeclared_capability(method, self.revision(), server) {
            None => Ok(()),
            Some(capability) => Err(ClientError::Unsupported(format!(
                "{method} was not sent: the server does not declare the capability `{capability}` (see \
                 `allow_undeclared_capabilities`)"
            ))),
        }
    }

    /// Whether tools may be called as tasks: only then does a tool's `execution.taskSupport` count (2025-11-25,
    /// `basic/utilities/tasks`, tool-level negotiation).
    pub(super) fn has_task_calls(&self) -> bool {
        let tasks = self.opened.capabilities.tasks.as_ref();
        self.revision().features().tasks
            && tasks.is_some_and(|tasks| {
                let requests = tasks.get("requests").and_then(|all| all.get("tools"));
                requests.is_some_and(|tools| tools.get("call").is_some_and(|call| !call.is_null()))
            })
    }

    /// Why the conversation is over, if it is.
    pub(super) fn ended_with(&self) -> Option<ClientError> {
        self.lock().ended.clone()
    }

    /// Whether the server has answered anything since the conversation was opened.
    pub(super) fn has_answered(&self) -> bool {
        self.lock().answered
    }

    /// Sends a request and awaits its end. Dropping the future cancels the request.
    pub(super) fn ask(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        progress: Option<ProgressListener>,
        headers: Vec<(String, String)>,
    ) -> Pending {
        self.begin(ask, progress, None, headers)
    }

    /// Sends `subscriptions/listen`: the request, and its acknowledgement.
    pub(super) fn listen(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        headers: Vec<(String, String)>,
    ) -> (Pending, mpsc::Receiver<Notification>) {
        let (acknowledged, acknowledgement) = mpsc::channel(1);
        let pending = self.begin(ask, None, Some(acknowledged), headers);
        (pending, acknowledgement)
    }

    fn begin(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        progress: Option<ProgressListener>,
        acknowledged: Option<mpsc::Sender<Notification>>,
        headers: Vec<(String, String)>,
    ) -> Pending {
        let now = clock::now();
        let (answer, receiver) = oneshot::channel();
        let waiter = Waiter {
            answer,
            progress,
            acknowledged,
        };
        let (key, message, timer) = {
            let mut state = self.lock();
            if let Some(error) = &state.ended {
                return Pending::failed(unsent(error));
            }
            let (key, message) = state.conversation.ask(ask, waiter, now);
            (key, message, state.conversation.poll_deadline())
        };
        self.schedule(timer);
        self.send_request(key, message, headers);
        Pending {
            waiting: Waiting::For(receiver),
            request: Some((self.clone(), key)),
        }
    }

    fn send_request(&self, key: CallKey, message: Vec<u8>, headers: Vec<(String, String)>) {
        let head = RequestHead {
            number: key.number(),
            revision: self.revision(),
            opens: false,
            headers,
        };
        self.send(message, Purpose::Request(head));
    }

    /// Sends a notification.
    pub(super) fn tell(&self, method: &str, params: Option<&Raw>) -> Result<(), ClientError> {
        let message = {
            let state = self.lock();
            if let Some(error) = &state.ended {
                return Err(unsent(error));
            }
            state.conversation.tell(method, params)
        };
        self.send(message, Purpose::Notification { about: None });
        Ok(())
    }

    fn send(&self, message: Vec<u8>, purpose: Purpose) {
        self.link.send(Outgoing {
            message: message.into(),
            purpose,
        });
    }

    fn schedule(&self, at: Option<Duration>) {
        if let Some(at) = at
            && let Some(this) = self.this.upgrade()
        {
            self.timers.schedule(at, &this);
        }
    }

    /// Gives a request up.
    fn cancel(&self, key: CallKey) {
        let cancelled = self
            .lock()
            .conversation
            .cancel(key, "the caller gave it up");
        if let Some((_, message)) = cancelled {
            self.tell_cancelled(key, message);
        }
    }

    /// On 2026-07-28 a stream that is closed says the same over HTTP (`basic/patterns/cancellation`); elsewhere it is
    /// a message.
    fn tell_cancelled(&self, key: CallKey, message: Vec<u8>) {
        let about = Some(key.number());
        if !(self.revision().is_modern() && self.link.has_headers()) {
            self.send(message, Purpose::Notification { about });
        }
        self.link.abandon(key.number());
    }

    /// Takes in what was reported before the conversation was open.
    pub(super) fn take(&self, report: Report) {
        match report {
            Report::Message(message) => {
                self.hear(Ok(message), None);
            }
            Report::Unreadable(error, course) => {
                self.hear(Err(error), course.map(CallKey::from_number));
            }
            Report::Failed(number, error) => self.fail(CallKey::from_number(number), error),
            Report::Held(number, held) => self.hold(number, held),
            Report::Ended(error) => self.end(&error),
        }
    }

    /// Takes in one message or batch; says whether `course` has its answer now.
    fn hear(&self, read: Result<Incoming, ReadError>, course: Option<CallKey>) -> bool {
        match read {
            Ok(Incoming::Single(message)) => self.hear_message(message, course),
            // Batches are read whatever the revision says: to drop the answers in them would help nobody.
            Ok(Incoming::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.hear_message(message, course),
                        Err(error) => self.hear_unreadable(error, None),
                    }
                }
            }
            Err(error) => self.hear_unreadable(error, course),
        }
        course.is_none_or(|key| self.lock().conversation.waiter(key).is_none())
    }

    fn hear_message(&self, message: Message, course: Option<CallKey>) {
        let elsewhere = match &message {
            Message::Response(response) => response.id.as_ref().and_then(RequestId::as_integer),
            _ => None,
        };
        let elsewhere = elsewhere.filter(|id| course.is_none_or(|key| *id != key.number().into()));
        let heard = {
            let mut state = self.lock();
            let heard = state.conversation.hear(message, clock::now());
            // The end of a subscription shows no server that works: it may be all that one does before it leaves again.
            state.answered |=
                matches!(&heard, Heard::Ended(waiter, _) if waiter.acknowledged.is_none());
            self.sign_of_life(state, course);
            heard
        };
        if let Some(number) = elsewhere.and_then(|id| u64::try_from(id).ok())
            && matches!(heard, Heard::Ended(..))
        {
            // The answer came by another stream than the request's own, which has nothing to wait for any more.
            self.link.abandon(number);
        }
        self.follow(heard);
    }

    fn hear_unreadable(&self, mut error: ReadError, course: Option<CallKey>) {
        // Each message of a batch that has too many is one that can't be read: whoever waits for it is told.
        for (shape, id) in error.batch.take().iter().flat_map(|batch| batch.messages()) {
            let one = ReadError {
                id: Some(id),
                shape,
                ..ReadError::unreadable(error.error.clone())
            };
            let heard = self.lock().conversation.hear_unreadable(one, None);
            self.follow(heard);
        }
        let heard = {
            let mut state = self.lock();
            let heard = state.conversation.hear_unreadable(error, course);
            self.sign_of_life(state, course);
            heard
        };
        self.follow(heard);
    }

    /// The server said something, on the stream of `course` if on one: nothing more shows that it is there.
    fn sign_of_life(&self, mut state: MutexGuard<'_, State>, course: Option<CallKey>) {
        if !self.pings {
            return;
        }
        let needless = state.conversation.sign_of_life(clock::now());
        let next = state.conversation.next_ping();
        drop(state);
        self.schedule(next);
        if let Some(key) = needless.filter(|key| course != Some(*key)) {
            self.link.abandon(key.number());
        }
    }

    /// The server is pinged no more: another conversation takes the place of this one, which may yet hear the answers that
    /// are due.
    pub(super) fn stop_pings(&self) {
        if !self.pings {
            return;
        }
        let needless = self.lock().conversation.stop_pings();
        if let Some(key) = needless {
            self.link.abandon(key.number());
        }
    }

    fn follow(&self, heard: Heard<Waiter>) {
        match heard {
            // Whoever waited may be gone.
            Heard::Ended(waiter, outcome) => {
                let _ = waiter.answer.send(outcome.map_err(ClientError::from));
            }
            Heard::Progress(key, progress) => self.report(key, progress),
            Heard::Question(request) => self.question(request),
            Heard::Withdrawn(id, reason) => {
                tracing::debug!(
                    "the server withdrew a request: {}",
                    Printable(reason.as_deref().unwrap_or("no reason given"))
                );
                self.withdraw(&id);
            }
            Heard::SubscriptionEnded(key, waiter, reason) => {
                // Over HTTP its stream may still be open.
                self.link.abandon(key.number());
                let why = match reason {
                    Some(reason) => format!("the server ended the subscription: {reason}"),
                    None => "the server ended the subscription".to_owned(),
                };
                tracing::debug!("{}", Printable(&why));
                // Whoever waited may be gone.
                let _ = waiter.answer.send(Err(ClientError::lost(why)));
            }
            Heard::Acknowledged(key, notification) => {
                let state = self.lock();
                let waiter = state.conversation.waiter(key);
                if let Some(acknowledged) = waiter.and_then(|waiter| waiter.acknowledged.as_ref()) {
                    // It has one already, or waits no more.
                    let _ = acknowledged.try_send(notification.clone());
                }
                drop(state);
                if let Some(client) = self.client.upgrade() {
                    client.told(&notification);
                }
            }
            Heard::Notification(notification) => {
                if let Some(client) = self.client.upgrade() {
                    client.told(&notification);
                }
            }
            Heard::Unsubscribed(notification) => {
                let method = Printable(notification.method.as_str());
                tracing::debug!("dropped {method} of a subscription that is not open");
                if let Some(client) = self.client.upgrade() {
                    client.cache().heard(&notification);
                }
            }
            Heard::Reply(message) => self.send(message, Purpose::Answer),
            Heard::Violation(why) => tracing::warn!("{}", Printable(why)),
            Heard::Nothing(why) => tracing::debug!("{}", Printable(why)),
        }
    }

    fn report(&self, key: CallKey, progress: Progress) {
        let listener = {
            let state = self.lock();
            state
                .conversation
                .waiter(key)
                .and_then(|waiter| waiter.progress.clone())
        };
        if let Some(listener) = listener {
            listener(progress);
        }
    }

    fn question(&self, request: Request) {
        let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade()) else {
            return;
        };
        if self.lock().answering.len() >= MAX_OPEN_QUESTIONS {
            let busy = RpcError::new(
                ErrorCode::BUSY,
                format!("more than {MAX_OPEN_QUESTIONS} requests wait for an answer of the client"),
            );
            self.answered(&request.id, &Err(busy));
            return;
        }
        let params = request.params.as_ref().map(|params| params.raw().clone());
        let answer = client.handlers.answer(request.method.as_str(), params);
        let peer = client.handlers.peer;
        let answer = adapted(peer, request.method.as_str(), answer, self.revision());
        let id = request.id.clone();
        // The task can't end before it is entered: it waits for the lock.
        let mut state = self.lock();
        // It may have been withdrawn by another stream since it was heard, or the conversation may be over: whoever ends its
        // handler has come and gone.
        if state.ended.is_some() || !state.conversation.is_asked(&request.id) {
            return;
        }
        let task = background::spawn(
            &client.runtime,
            client.handlers.tasks.until_closed(async move {
                let outcome = answer.await;
                session.answered(&id, &outcome);
            }),
        );
        state.answering.push((request.id, task.abort_handle()));
    }

    fn answered(&self, id: &RequestId, outcome: &Result<Raw, RpcError>) {
        let reply = {
            let mut state = self.lock();
            state.answering.retain(|(other, _)| other != id);
            state.conversation.answer(id, outcome.as_ref())
        };
        if let Some(reply) = reply {
            self.send(reply, Purpose::Answer);
        }
    }

    fn withdraw(&self, id: &RequestId) {
        let mut state = self.lock();
        let position = state.answering.iter().position(|(other, _)| other == id);
        if let Some(position) = position {
            state.answering.swap_remove(position).1.abort();
        }
    }

    /// The request can have no answer.
    fn fail(&self, key: CallKey, mut error: ClientError) {
        let (waiter, is_ping, next_ping) = {
            let mut state = self.lock();
            // Over HTTP each message takes a way of its own: that one is lost says nothing yet.
            if error.kind() == ClientErrorKind::Connection
                && error != ClientError::SessionLost
                && state.conversation.ping_missed(key, clock::now())
            {
                let next = state.conversation.next_ping();
                drop(state);
                tracing::debug!("a ping failed, and is sent again: {error}");
                return self.schedule(next);
            }
            // It may have come with an HTTP status.
            if let Some(rpc) = error.rpc()
                && let Err(reason) = state.conversation.url_elicitation_required(rpc)
            {
                error = ClientError::Invalid { reason };
            }
            let waiter = state.conversation.drop_call(key);
            let is_ping = state.conversation.is_ping(key);
            (waiter, is_ping, state.conversation.next_ping())
        };
        let Some(waiter) = waiter else {
            return;
        };
        if is_ping {
            self.schedule(next_ping);
            self.fail_ping(&error);
        }
        // Whoever waited may be gone.
        let _ = waiter.answer.send(Err(error));
    }

    /// A periodic ping has no answer (`basic/utilities/ping`): the connection has failed, unless it was answered in a way
    /// that only a server which is there can answer. What became of other requests is not known then, whatever became of the
    /// ping.
    fn fail_ping(&self, error: &ClientError) {
        tracing::warn!("a ping failed: {error}");
        match error {
            ClientError::TimedOut { .. } => {
                let lost = format!("a ping failed: {error}");
                self.end_connection(&ClientError::lost(lost));
            }
            ClientError::SessionLost => {
                if let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade())
                {
                    // Only new requests move: what is still running there may yet be answered.
                    client.lost(&session, error);
                }
            }
            _ => {}
        }
    }

    /// The conversation is over, and its link is closed.
    fn end_connection(&self, error: &ClientError) {
        self.end(error);
        if let Some(client) = self.client.upgrade() {
            client.close_link(self.link.clone());
        }
    }

    /// The request's time stands still, or goes on.
    fn hold(&self, request: Option<u64>, held: bool) {
        // What is held without a name is an opening's.
        let Some(key) = request.map(CallKey::from_number) else {
            return;
        };
        let timer = {
            let mut state = self.lock();
            match held {
                true => state.conversation.hold(key),
                false => state.conversation.release(key, clock::now()),
            }
            state.conversation.poll_deadline()
        };
        self.schedule(timer);
    }

    /// The conversation is over, and every request with it.
    pub(super) fn end(&self, error: &ClientError) {
        let (waiters, answering) = {
            let mut state = self.lock();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(error.clone());
            (
                state.conversation.close(),
                std::mem::take(&mut state.answering),
            )
        };
        for (_, task) in answering {
            task.abort();
        }
        // First, so that whoever hears of it and asks again gets a new conversation.
        if let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade()) {
            client.lost(&session, error);
        }
        for waiter in waiters {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }
}

impl Timed for Session {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Gives up what is overdue.
    fn fire(self: Arc<Self>) {
        let now = clock::now();
        let (overdue, ping, timer) = {
            let mut state = self.lock();
            let overdue = state.conversation.handle_timeout(now);
            // After those that are late: of these one may be a ping.
            let ping = match state.ended {
                None if overdue.is_empty() => state.conversation.ping_if_due(Waiter::none, now),
                _ => None,
            };
            (overdue, ping, state.conversation.poll_deadline())
        };
        self.schedule(timer);
        for (key, overdue) in overdue {
            let is_ping = self.lock().conversation.is_ping(key);
            let error = ClientError::from(overdue.error);
            self.tell_cancelled(key, overdue.cancellation);
            if is_ping {
                self.fail_ping(&error);
            }
            // Whoever waited may be gone.
            let _ = overdue.handle.answer.send(Err(error));
        }
        if let Some((key, message)) = ping {
            self.send_request(key, message, Vec::new());
        }
    }
}

/// A request that was never sent, because the conversation was over already.
fn unsent(error: &ClientError) -> ClientError {
    match error.clone() {
        ClientError::Exited { exit, stderr, .. } => ClientError::Exited {
            exit,
            stderr,
            unsent: true,
        },
        ClientError::ConnectionLost { reason } => ClientError::Unreachable { reason },
        ClientError::Closed => ClientError::Closed,
        ended => ClientError::Unreachable {
            reason: ended.to_string(),
        },
    }
}

/// A request in flight. Resolves when it has ended; dropped before, it is cancelled.
pub(super) struct Pending {
    waiting: Waiting,
    request: Option<(Arc<Session>, CallKey)>,
}

enum Waiting {
    For(oneshot::Receiver<Outcome>),
    Failed(Option<ClientError>),
}

impl Pending {
    fn failed(error: ClientError) -> Self {
        Self {
            waiting: Waiting::Failed(Some(error)),
            request: None,
        }
    }
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.waiting {
            Waiting::Failed(error) => Err(error.take().unwrap_or(ClientError::Closed)),
            Waiting::For(receiver) => match Pin::new(receiver).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(outcome)) => outcome,
                Poll::Ready(Err(_)) => Err(ClientError::Closed),
            },
        };
        self.request = None;
        Poll::Ready(outcome)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((session, key)) = self.request.take() {
            session.cancel(key);
        }
    }
}

/// What a link reports while the conversation is being opened.
#[derive(Debug)]
pub(super) enum Report {
    Message(Incoming),
    Unreadable(ReadError, Option<u64>),
    Failed(u64, ClientError),
    Held(Option<u64>, bool),
    Ended(ClientError),
}

/// Takes what a link reports: to whoever opens the conversation, then to the conversation.
pub(super) struct Reception {
    opening: mpsc::UnboundedSender<Report>,
    session: OnceLock<Weak<Session>>,
    /// Held while reports are handed over, so that none overtakes another.
    order: Mutex<()>,
}

impl Reception {
    pub(super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Report>) {
        let (opening, reports) = mpsc::unbounded_channel();
        let reception = Self {
            opening,
            session: OnceLock::new(),
            order: Mutex::new(()),
        };
        (Arc::new(reception), reports)
    }

    /// From now on the conversation hears everything, first what `reports` still holds.
    pub(super) fn hand_over(
        &self,
        session: &Arc<Session>,
        reports: &mut mpsc::UnboundedReceiver<Report>,
    ) {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(report) = reports.try_recv() {
            session.take(report);
        }
        sync::switch();
        // Nobody else sets it.
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// The conversation; `None` if it is over. `Err` while it is being opened, with the report queued.
    fn session(&self, report: impl FnOnce() -> Report) -> Result<Option<Arc<Session>>, ()> {
        if let Some(session) = self.session.get() {
            return Ok(session.upgrade());
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match self.session.get() {
            Some(session) => Ok(session.upgrade()),
            None => {
                // The opening may have been given up.
                let _ = self.opening.send(report());
                Err(())
            }
        }
    }
}

impl Reports for Reception {
    fn message(&self, message: Bytes, request: Option<u64>) -> bool {
        let read = wire::read(message);
        if let Some(session) = self.session.get() {
            return session
                .upgrade()
                .is_none_or(|session| session.hear(read, request.map(CallKey::from_number)));
        }
        let answers = |message: &Message| match message {
            Message::Response(response) => match (&response.id, request) {
                (Some(id), Some(number)) => id.as_integer() == Some(i128::from(number)),
                _ => true,
            },
            _ => false,
        };
        let answered = match &read {
            Ok(Incoming::Single(message)) => answers(message),
            Ok(Incoming::Batch(messages)) => messages.iter().flatten().any(answers),
            Err(_) => true,
        };
        let course = request.map(CallKey::from_number);
        let kept = read.clone();
        match self.session(|| match kept {
            Ok(message) => Report::Message(message),
            Err(error) => Report::Unreadable(error, request),
        }) {
            Ok(Some(session)) => session.hear(read, course),
            _ => answered,
        }
    }

    fn failed(&self, request: u64, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Report::Failed(request, queued)) {
            session.fail(CallKey::from_number(request), error);
        }
    }

    fn held(&self, request: Option<u64>, held: bool) {
        if let Ok(Some(session)) = self.session(|| Report::Held(request, held)) {
            session.hold(request, held);
        }
    }

    fn ended(&self, error: ClientError) {
        let queued = error.clone();
        if let Ok(Some(session)) = self.session(|| Report::Ended(queued)) {
            session.end(&error);
        }
    }

    fn warning(&self, text: String) {
        tracing::warn!("{}", Printable(text));
    }
}
