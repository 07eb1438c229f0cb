//! One session with a server: its link, the requests in flight and their callers.

mod link_event_receiver;
mod receiving;
mod response_future;
mod server_requests;

use std::time::Duration;

use mcpline_protocol::client::{
    ClientSession, NegotiatedSession, OutgoingClientRequest, OutgoingRequestId, PingTimes,
    undeclared_capability,
};
use mcpline_protocol::wire::{Method, Notification, RequestId};
use mcpline_protocol::{Raw, Revision};
use mcpline_runtime::clock;
use tokio::sync::{mpsc, oneshot};

use crate::background;
use crate::client_error::ClientError;
use crate::span;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::timers::{Alarm, Timed, Timers};

use super::inner::Inner;
use super::link::{Link, Outgoing, OutgoingKind, RequestHead};
use super::settings::{ClientSettings, ProgressListener};

pub(super) use link_event_receiver::{LinkEvent, LinkEventReceiver, MAX_EARLY_MESSAGES};
pub(super) use response_future::ResponseFuture;

type Outcome = Result<Raw, ClientError>;

/// Minimum length of a session id whose beginning is shown, in bytes.
const MIN_SHORTENED_ID: usize = 16;

/// The caller that waits for a response.
pub(super) struct Waiter {
    answer: oneshot::Sender<Outcome>,
    progress: Option<ProgressListener>,
    /// Receives the first acknowledgment of a subscription.
    acknowledged: Option<mpsc::Sender<Notification>>,
}

impl Waiter {
    /// For a request without a caller: a periodic ping.
    fn none() -> Self {
        Self {
            answer: oneshot::channel().0,
            progress: None,
            acknowledged: None,
        }
    }
}

/// One session, from the end of the negotiation on.
pub(super) struct Session {
    /// The number of this connection of the client.
    pub(super) number: u64,
    pub(super) opened: NegotiatedSession,
    pub(super) link: Arc<dyn Link>,
    state: Mutex<State>,
    /// When it was opened, on the monotonic clock.
    pub(super) started: Duration,
    /// Whether periodic pings were enabled at the start.
    pings: bool,
    client: Weak<Inner>,
    timers: Arc<Timers>,
    alarm: Alarm,
    this: Weak<Session>,
}

struct State {
    conversation: ClientSession<Waiter>,
    /// Why the session is over, if it is.
    ended: Option<ClientError>,
    /// Whether a request was answered, which distinguishes a working server from one that ends again and again.
    answered: bool,
    /// The tasks that answer requests of the server.
    answering: Vec<(RequestId, background::AbortHandle)>,
}

impl Session {
    /// Starts a session over `link`. Reports that have arrived meanwhile reach it through the `LinkEventReceiver`.
    pub(super) fn start(
        opened: NegotiatedSession,
        link: Arc<dyn Link>,
        client: &Arc<Inner>,
    ) -> Arc<Self> {
        let mut conversation = ClientSession::new(
            &opened,
            &client.info,
            &client.handlers.capabilities,
            client.url_elicitations.clone(),
        );
        conversation.serve_requests(client.handlers.requests.keys().map(|method| &**method));
        if let Some(interval) = client.settings.ping_interval {
            let timeout = client.settings.ping_timeout;
            conversation.start_pings(PingTimes { interval, timeout }, clock::now());
        }
        let first_ping = conversation.poll_deadline();
        let session = Arc::new_cyclic(|this| Self {
            number: client.next_connection_number(),
            opened,
            link,
            state: Mutex::new(State {
                conversation,
                ended: None,
                answered: false,
                answering: Vec::new(),
            }),
            started: clock::now(),
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

    /// Returns the first eight characters of the session's id, if it has one.
    pub(super) fn shown_id(&self) -> Option<String> {
        let id = self.link.session_id()?;
        // Of a short id, eight characters would be too much.
        (id.len() >= MIN_SHORTENED_ID).then(|| span::shortened(&id).to_owned())
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
            Some(capability) => Err(ClientError::NotSupported(format!(
                "{method} was not sent: the server does not declare the capability `{capability}` (see \
                 `allow_undeclared_capabilities`)"
            ))),
        }
    }

    /// Whether tools may be called as tasks. Only then does a tool's `execution.taskSupport` apply (2025-11-25,
    /// `basic/utilities/tasks`, tool-level negotiation).
    pub(super) fn has_task_calls(&self) -> bool {
        let tasks = self.opened.capabilities.tasks.as_ref();
        self.revision().features().tasks
            && tasks.is_some_and(|tasks| {
                let requests = tasks.get("requests").and_then(|all| all.get("tools"));
                requests.is_some_and(|tools| tools.get("call").is_some_and(|call| !call.is_null()))
            })
    }

    /// Returns the number of requests that wait for a response.
    pub(super) fn in_flight(&self) -> usize {
        self.lock().conversation.in_flight()
    }

    /// Returns why the session is over, if it is.
    pub(super) fn ended_with(&self) -> Option<ClientError> {
        self.lock().ended.clone()
    }

    /// Whether the server has answered a request since the session was opened.
    pub(super) fn has_answered(&self) -> bool {
        self.lock().answered
    }

    /// Sends a request and returns its response. Dropping the future cancels the request.
    pub(super) fn send_request(
        self: &Arc<Self>,
        outgoing: &OutgoingClientRequest<'_>,
        progress: Option<ProgressListener>,
        headers: Vec<(String, String)>,
    ) -> ResponseFuture {
        self.begin_request(outgoing, progress, None, headers)
    }

    /// Sends `subscriptions/listen`. Returns its response and its acknowledgment.
    pub(super) fn listen(
        self: &Arc<Self>,
        outgoing: &OutgoingClientRequest<'_>,
        headers: Vec<(String, String)>,
    ) -> (ResponseFuture, mpsc::Receiver<Notification>) {
        let (acknowledged, acknowledgement) = mpsc::channel(1);
        let pending = self.begin_request(outgoing, None, Some(acknowledged), headers);
        (pending, acknowledgement)
    }

    fn begin_request(
        self: &Arc<Self>,
        outgoing: &OutgoingClientRequest<'_>,
        progress: Option<ProgressListener>,
        acknowledged: Option<mpsc::Sender<Notification>>,
        headers: Vec<(String, String)>,
    ) -> ResponseFuture {
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
                return ResponseFuture::failed(unsent(error));
            }
            let (key, message) = state.conversation.begin_request(outgoing, waiter, now);
            (key, message, state.conversation.poll_deadline())
        };
        self.schedule(timer);
        self.transmit_request(key, message, headers);
        ResponseFuture::new(self.clone(), key, receiver)
    }

    fn transmit_request(
        &self,
        key: OutgoingRequestId,
        message: Vec<u8>,
        headers: Vec<(String, String)>,
    ) {
        let head = RequestHead {
            number: key.number(),
            revision: self.revision(),
            opens: false,
            is_repeatable: false,
            headers,
        };
        self.send(message, OutgoingKind::Request(head));
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), ClientError> {
        let message = {
            let state = self.lock();
            if let Some(error) = &state.ended {
                return Err(unsent(error));
            }
            state.conversation.write_notification(method, params)
        };
        self.send(message, OutgoingKind::Notification { about: None });
        Ok(())
    }

    fn send(&self, message: Vec<u8>, purpose: OutgoingKind) {
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

    /// Cancels a request.
    fn cancel(&self, key: OutgoingRequestId) {
        let cancelled = self
            .lock()
            .conversation
            .cancel(key, "the caller gave it up");
        if let Some((_, message)) = cancelled {
            self.send_cancelled(key, message);
        }
    }

    /// Notifies the server of a cancellation. On 2026-07-28 over HTTP, closing the stream does
    /// (`basic/patterns/cancellation`); otherwise it is a message.
    fn send_cancelled(&self, key: OutgoingRequestId, message: Vec<u8>) {
        let about = Some(key.number());
        if !(self.revision().is_modern() && self.link.mirrors_params_as_headers()) {
            self.send(message, OutgoingKind::Notification { about });
        }
        self.link.abandon(key.number());
    }

    /// Stops the periodic pings: another session replaces this one, which may still receive pending responses.
    pub(super) fn stop_pings(&self) {
        if !self.pings {
            return;
        }
        let needless = self.lock().conversation.stop_pings();
        if let Some(key) = needless {
            self.link.abandon(key.number());
        }
    }

    /// Fails a request that cannot get a response.
    fn fail(&self, key: OutgoingRequestId, mut error: ClientError) {
        let (waiter, is_ping, next_ping) = {
            let mut state = self.lock();
            // Over HTTP each message takes its own way, so a single lost one proves nothing yet.
            if error.kind().is_connection_failure()
                && error != ClientError::SessionExpired
                && state.conversation.note_lost_ping(key, clock::now())
            {
                let next = state.conversation.next_ping();
                drop(state);
                tracing::debug!("a ping failed, and is sent again: {error:#}");
                return self.schedule(next);
            }
            // It may have come with an HTTP status.
            if let Some(rpc) = error.rpc()
                && let Err(reason) = state.conversation.begin_required_url_elicitations(rpc)
            {
                error = ClientError::InvalidResponse { reason };
            }
            let waiter = state.conversation.remove_request(key);
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
        // The caller may be gone.
        let _ = waiter.answer.send(Err(error));
    }

    /// Handles a periodic ping without a response (`basic/utilities/ping`): the connection has failed, unless the error
    /// proves that the server is there. The outcome of other requests is then unknown.
    fn fail_ping(&self, error: &ClientError) {
        tracing::warn!("a ping failed: {error:#}");
        match error {
            ClientError::RequestTimedOut { waited, .. } => {
                let waited = waited.as_secs_f64();
                let lost = format!("no response to `ping` within {waited} s (`ping_timeout`)");
                self.end_connection(&ClientError::lost(lost));
            }
            ClientError::SessionExpired => {
                if let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade())
                {
                    // Only new requests use a new session: requests in flight may still be answered in the old one.
                    client.handle_connection_loss(&session, error);
                }
            }
            _ => {}
        }
    }

    /// Ends the session and closes its link.
    fn end_connection(&self, error: &ClientError) {
        self.end(error);
        if let Some(client) = self.client.upgrade() {
            client.close_link(self.link.clone());
        }
    }

    /// Pauses or resumes the timeouts of a request.
    fn set_timeout_paused(&self, request: Option<u64>, held: bool) {
        // Without a number it belongs to the negotiation.
        let Some(key) = request.map(OutgoingRequestId::from_number) else {
            return;
        };
        let timer = {
            let mut state = self.lock();
            match held {
                true => state.conversation.pause_timeout(key),
                false => state.conversation.resume_timeout(key, clock::now()),
            }
            state.conversation.poll_deadline()
        };
        self.schedule(timer);
    }

    /// Ends the session and fails all of its requests.
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
        // First, so that a caller that gets the error and tries again gets a new session.
        if let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade()) {
            client.handle_connection_loss(&session, error);
            if let Some(metrics) = &client.metrics {
                metrics.record_session(&session);
            }
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

    /// Fails overdue requests and sends a ping if it is due.
    fn fire(self: Arc<Self>) {
        let now = clock::now();
        let (overdue, ping, timer) = {
            let mut state = self.lock();
            let overdue = state.conversation.handle_timeout(now);
            // Not while a request is overdue: it may be a ping itself.
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
            self.send_cancelled(key, overdue.cancellation);
            if is_ping {
                self.fail_ping(&error);
            }
            // The caller may be gone.
            let _ = overdue.handle.answer.send(Err(error));
        }
        if let Some((key, message)) = ping {
            self.transmit_request(key, message, Vec::new());
        }
    }
}

/// Returns the error for a request that was never sent, because the session was over already.
fn unsent(error: &ClientError) -> ClientError {
    match error.clone() {
        ClientError::ServerExited { exit, stderr, .. } => ClientError::ServerExited {
            exit,
            stderr,
            unsent: true,
        },
        ClientError::ConnectionLost { reason, source } => {
            ClientError::ServerUnreachable { reason, source }
        }
        ClientError::Closed => ClientError::Closed,
        ended => ClientError::unreachable(format!("{ended:#}")),
    }
}
