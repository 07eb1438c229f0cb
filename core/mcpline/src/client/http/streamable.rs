//! Streamable HTTP, for both eras (`basic/transports` of 2025-03-26 to 2025-11-25, `basic/transports/streamable-http`
//! of 2026-07-28).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method};
use mcpline_protocol::Revision;

use crate::client::link::{Link, LinkFuture, Outgoing, OutgoingKind, SharedEventSink};
use crate::client_error::ClientError;
use crate::http_client::ConnectionReuse;
use crate::http_client::client::HttpClient;
use crate::http_client::target::Target;

use super::exchange::{exchange, send_one_way};
use super::headers::PreparedHeaders;
use super::latch::Latch;
use super::link_tasks::LinkTasks;
use super::one_way::{OneWay, OneWayMessage, PostAdmission};
use super::one_way_retries::RetryCondition;

/// How long the DELETE of a session may take. Its response is ignored.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long requests wait for the session's own stream to open, so that no message of the server gets lost. Bounded,
/// because some servers send the response headers only with the first event.
const GREETING: Duration = Duration::from_millis(250);

/// One link over Streamable HTTP. Dropping it ends its tasks.
pub(crate) struct HttpLink {
    talk: Arc<HttpLinkShared>,
    tasks: Arc<LinkTasks>,
    one_way: Arc<OneWay>,
}

/// State shared by the tasks of a link.
pub(super) struct HttpLinkShared {
    pub(super) client: Arc<HttpClient>,
    pub(super) target: Target,
    pub(super) sink: SharedEventSink,
    state: Mutex<State>,
}

struct State {
    revision: Option<Revision>,
    session: Option<HeaderValue>,
    heads: PreparedHeaders,
    /// Requests wait for it.
    gate: Option<Latch>,
    /// `notifications/initialized`, the first notification, has been sent.
    initialized: bool,
    /// The session's own stream has to be opened once `initialized` is set.
    listens: bool,
}

/// What a request needs of the state.
pub(super) struct LinkStateSnapshot {
    pub(super) heads: PreparedHeaders,
    pub(super) in_session: bool,
    pub(super) gate: Option<Latch>,
}

impl HttpLink {
    /// Opens a link to the server at `url`. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if the URL is invalid.
    pub(crate) fn open(
        url: &str,
        client: &Arc<HttpClient>,
        sink: SharedEventSink,
    ) -> Result<Arc<Self>, ClientError> {
        let target = Target::parse(url)?;
        let talk = HttpLinkShared {
            sink,
            state: Mutex::new(State {
                revision: None,
                session: None,
                heads: PreparedHeaders::new(&client.headers, &target, None, None),
                gate: None,
                initialized: false,
                listens: false,
            }),
            client: client.clone(),
            target,
        };
        Ok(Arc::new(Self {
            talk: Arc::new(talk),
            tasks: LinkTasks::new(client.handle.clone()),
            one_way: Arc::default(),
        }))
    }

    /// Sends a notification or a response.
    fn send_one_way(&self, bytes: Bytes, repeat: RetryCondition) {
        match self.one_way.admit(OneWayMessage { bytes, repeat }) {
            PostAdmission::Post(message) => {
                let (talk, one_way) = (self.talk.clone(), self.one_way.clone());
                self.tasks.spawn(async move {
                    let mut next = Some(message);
                    while let Some(message) = next {
                        send_one_way(&talk, message).await;
                        next = one_way.next();
                    }
                });
            }
            PostAdmission::Waits => {}
            PostAdmission::Full => {
                self.tasks.close();
                let sink = self.talk.sink.clone();
                self.tasks
                    .spawn_detached(async move { sink.ended(OneWay::overflow_error()) });
            }
        }
    }

    /// Sends `notifications/initialized` if it is given, then opens the session's own stream if needed. Requests wait
    /// for this: a server may refuse requests that overtake the end of the handshake.
    fn send_initialized(&self, initialized: Option<Bytes>) {
        let (gate, opener) = Latch::new_closed();
        let (before, listens) = {
            let mut state = self.talk.lock();
            (state.gate.replace(gate), std::mem::take(&mut state.listens))
        };
        let (talk, tasks) = (self.talk.clone(), self.tasks.clone());
        self.tasks.spawn(async move {
            if let Some(gate) = before {
                gate.wait_until_open().await;
            }
            if let Some(bytes) = initialized {
                let repeat = RetryCondition::IfLost;
                send_one_way(&talk, OneWayMessage { bytes, repeat }).await;
            }
            if listens {
                let (answered, opener) = Latch::new_closed();
                tasks.spawn(async move { talk.listen(opener).await });
                let _ = tokio::time::timeout(GREETING, answered.wait_until_open()).await;
            }
            drop(opener);
        });
    }
}

impl Link for HttpLink {
    fn network_transport(&self) -> Option<&'static str> {
        Some("tcp")
    }

    fn session_id(&self) -> Option<String> {
        let state = self.talk.lock();
        let id = state.session.as_ref()?.to_str().ok()?;
        Some(id.to_owned())
    }

    fn mirrors_params_as_headers(&self) -> bool {
        true
    }

    fn send(&self, outgoing: Outgoing) {
        let message = outgoing.message;
        match outgoing.purpose {
            OutgoingKind::Request(head) => {
                let number = head.number;
                let task = exchange(self.talk.clone(), message, head);
                if !self.tasks.exchange(number, task) {
                    let sink = self.talk.sink.clone();
                    self.tasks
                        .spawn_detached(async move { sink.failed(number, ClientError::Closed) });
                }
            }
            OutgoingKind::Notification { about } => {
                let mut state = self.talk.lock();
                let in_handshake_era = state.revision.is_some_and(|revision| !revision.is_modern());
                let first = about.is_none() && !std::mem::replace(&mut state.initialized, true);
                drop(state);
                match about {
                    // Closing the stream cancels the request (2026-07-28, `streamable-http`, cancellation), and a
                    // handshake is never cancelled.
                    Some(number) if !in_handshake_era => self.tasks.abandon(number),
                    _ if first => self.send_initialized(Some(message)),
                    Some(_) => self.send_one_way(message, RetryCondition::IfLost),
                    None => self.send_one_way(message, RetryCondition::IfUnsent),
                }
            }
            OutgoingKind::Answer => self.send_one_way(message, RetryCondition::IfLost),
        }
    }

    fn abandon(&self, request: u64) {
        self.tasks.abandon(request);
    }

    fn set_session_open(&self, revision: Revision) {
        let initialized = {
            let mut state = self.talk.lock();
            state.revision = Some(revision);
            self.talk.renew_heads(&mut state);
            // Many servers with Streamable HTTP still negotiate 2024-11-05, which has neither; those without such a
            // stream refuse the GET.
            state.listens = revision.features().handshake;
            state.initialized && state.listens
        };
        if initialized {
            self.send_initialized(None);
        }
    }

    fn close(&self) -> LinkFuture {
        let tasks = self.tasks.close();
        let session = self.talk.lock().session.take();
        let talk = self.talk.clone();
        let farewell = session.map(|_| {
            self.tasks.spawn_detached(async move {
                let heads = talk.snapshot().heads;
                let (headers, nothing) = (|| (*heads.get).clone(), Bytes::new());
                let delete = talk.client.send_authorized(
                    Method::DELETE,
                    &talk.target,
                    &headers,
                    &nothing,
                    &(),
                    ConnectionReuse::Yes,
                );
                if let Ok(Ok(answer)) = tokio::time::timeout(FAREWELL, delete).await {
                    answer.drain().await;
                }
            })
        });
        Box::pin(async move {
            for task in tasks {
                let _ = task.await;
            }
            if let Some(farewell) = farewell {
                let _ = farewell.await;
            }
        })
    }
}

#[cfg(test)]
impl HttpLink {
    /// Returns the prepared headers of its requests.
    pub(super) fn heads(&self) -> PreparedHeaders {
        self.talk.snapshot().heads
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

impl HttpLinkShared {
    pub(super) fn snapshot(&self) -> LinkStateSnapshot {
        let mut state = self.lock();
        if state.gate.as_ref().is_some_and(Latch::is_open) {
            state.gate = None;
        }
        LinkStateSnapshot {
            heads: state.heads.clone(),
            in_session: state.session.is_some(),
            gate: state.gate.clone(),
        }
    }

    /// Stores the session id from the response to `initialize`.
    pub(super) fn set_session_id(&self, mut session: HeaderValue) {
        // The id gives access to the session: it must not appear in logs.
        session.set_sensitive(true);
        let mut state = self.lock();
        state.session = Some(session);
        self.renew_heads(&mut state);
    }

    fn renew_heads(&self, state: &mut State) {
        let own = &self.client.headers;
        state.heads =
            PreparedHeaders::new(own, &self.target, state.session.as_ref(), state.revision);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
