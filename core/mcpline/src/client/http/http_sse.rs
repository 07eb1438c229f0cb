//! HTTP+SSE of 2024-11-05: all messages of the server come by one stream, which names the endpoint for messages of the
//! client (2024-11-05, `basic/transports`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Method;
use mcpline_protocol::Revision;

use crate::background;
use crate::client::link::{
    Link, LinkFuture, NO_EVENT_STREAM, Outgoing, OutgoingKind, SharedEventSink,
};
use crate::client_error::ClientError;
use crate::http_client::client::HttpClient;
use crate::http_client::refusal::refusal;
use crate::http_client::response::Media;
use crate::http_client::target::Target;
use crate::http_client::{ConnectionReuse, RequestTimer};

use super::events::{Events, StreamItem, message};
use super::exchange::{LinkRequestTimer, too_large};
use super::headers::PreparedHeaders;
use super::latch::Latch;
use super::link_tasks::LinkTasks;
use super::one_way::{OneWay, OneWayMessage, PostAdmission};
use super::one_way_retries::{OneWayRetries, RetryCondition};

/// One link over HTTP+SSE. Dropping it ends its tasks.
pub(crate) struct HttpSseLink {
    shared: Arc<HttpSseShared>,
    tasks: Arc<LinkTasks>,
    one_way: Arc<OneWay>,
}

struct HttpSseShared {
    client: Arc<HttpClient>,
    stream: Target,
    sink: SharedEventSink,
    state: Mutex<State>,
}

struct State {
    heads: PreparedHeaders,
    way: EndpointState,
    /// Requests wait for it until the handshake is complete.
    gate: Option<Latch>,
    initialized: bool,
}

/// The endpoint for messages.
enum EndpointState {
    /// Not known yet; the gate opens when that changes.
    Unknown(Latch),
    Known(Target),
    /// The stream has ended.
    Ended(ClientError),
}

impl HttpSseLink {
    /// Opens a link to the server whose stream is at `url`.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if the URL is invalid.
    pub(crate) fn open(
        url: &str,
        client: &Arc<HttpClient>,
        sink: SharedEventSink,
    ) -> Result<Arc<Self>, ClientError> {
        let (gate, opener) = Latch::new_closed();
        let stream = Target::parse(url)?;
        let shared = Arc::new(HttpSseShared {
            sink,
            state: Mutex::new(State {
                heads: PreparedHeaders::new(&client.headers, &stream, None, None),
                way: EndpointState::Unknown(gate),
                gate: None,
                initialized: false,
            }),
            client: client.clone(),
            stream,
        });
        let tasks = LinkTasks::new(client.handle.clone());
        let reader = shared.clone();
        tasks.spawn(async move {
            let mut opener = Some(opener);
            let error = reader.read(|| drop(opener.take())).await;
            reader.lock().way = EndpointState::Ended(error.clone());
            // Before the requests that wait for the endpoint fail one by one: the cause is the end of the stream.
            reader.sink.ended(error);
            drop(opener);
        });
        Ok(Arc::new(Self {
            shared,
            tasks,
            one_way: Arc::default(),
        }))
    }
}

impl Link for HttpSseLink {
    fn network_transport(&self) -> Option<&'static str> {
        Some("tcp")
    }

    fn send(&self, outgoing: Outgoing) {
        let shared = self.shared.clone();
        let message = outgoing.message;
        match outgoing.purpose {
            OutgoingKind::Request(head) => {
                let number = head.number;
                let before = self.shared.lock().gate.clone().filter(|_| !head.opens);
                let task = async move {
                    if let Some(gate) = before {
                        gate.wait_until_open().await;
                    }
                    if let Err(error) = shared.post(&message, Some(number)).await {
                        shared.sink.failed(number, error);
                    }
                };
                if !self.tasks.exchange(number, background::task(task)) {
                    let sink = self.shared.sink.clone();
                    self.tasks
                        .spawn_detached(async move { sink.failed(number, ClientError::Closed) });
                }
            }
            OutgoingKind::Notification { about } => {
                let mut state = self.shared.lock();
                let first = about.is_none() && !std::mem::replace(&mut state.initialized, true);
                let opener = first.then(|| {
                    let (gate, opener) = Latch::new_closed();
                    state.gate = Some(gate);
                    opener
                });
                drop(state);
                let repeat = match first || about.is_some() {
                    true => RetryCondition::IfLost,
                    false => RetryCondition::IfUnsent,
                };
                let bytes = message;
                self.tasks.spawn(async move {
                    shared.send_one_way(OneWayMessage { bytes, repeat }).await;
                    drop(opener);
                });
            }
            OutgoingKind::Answer => match self.one_way.admit(OneWayMessage {
                bytes: message,
                repeat: RetryCondition::IfLost,
            }) {
                PostAdmission::Post(message) => {
                    let one_way = self.one_way.clone();
                    self.tasks.spawn(async move {
                        let mut next = Some(message);
                        while let Some(message) = next {
                            shared.send_one_way(message).await;
                            next = one_way.next();
                        }
                    });
                }
                PostAdmission::Waits => {}
                PostAdmission::Full => {
                    self.tasks.close();
                    self.tasks
                        .spawn_detached(async move { shared.sink.ended(OneWay::overflow_error()) });
                }
            },
        }
    }

    fn abandon(&self, request: u64) {
        self.tasks.abandon(request);
    }

    fn set_session_open(&self, revision: Revision) {
        let shared = &self.shared;
        let heads =
            PreparedHeaders::new(&shared.client.headers, &shared.stream, None, Some(revision));
        shared.lock().heads = heads;
    }

    fn close(&self) -> LinkFuture {
        // Closing the stream notifies the server.
        let tasks = self.tasks.close();
        Box::pin(async move {
            for task in tasks {
                let _ = task.await;
            }
        })
    }
}

impl Drop for HttpSseLink {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

impl HttpSseShared {
    /// Reads the stream to its end, and returns why it ended.
    async fn read(&self, mut found: impl FnMut()) -> ClientError {
        let heads = self.lock().heads.clone();
        let headers = || (*heads.get).clone();
        let got = self
            .client
            .send_authorized(
                Method::GET,
                &self.stream,
                &headers,
                &Bytes::new(),
                &LinkRequestTimer(&self.sink, None),
                ConnectionReuse::Yes,
            )
            .await;
        let answer = match got {
            Ok(answer) if !answer.head.status.is_success() => return refusal(answer, false).await,
            Ok(answer) => answer,
            Err(error) => return error,
        };
        if answer.media() != Media::EventStream {
            return ClientError::InvalidResponse {
                reason: NO_EVENT_STREAM.to_owned(),
            };
        }
        let mut events = Events::new(answer, self.client.settings.max_body_bytes);
        loop {
            match events.next().await {
                StreamItem::Event(event) if event.event == "endpoint" => {
                    match self.endpoint(&String::from_utf8_lossy(&event.data)) {
                        Ok(endpoint) => self.lock().way = EndpointState::Known(endpoint),
                        Err(reason) => return ClientError::InvalidResponse { reason },
                    }
                    found();
                }
                StreamItem::Event(event) => {
                    if let Some(message) = message(event) {
                        self.sink.message(message, None);
                    }
                }
                StreamItem::TooLarge { limit } => return too_large(limit),
                StreamItem::End { reason, .. } => return ClientError::lost(reason),
            }
        }
    }

    /// Returns the endpoint that the stream names. It must have the origin of the stream: messages, and the user's
    /// headers in them, must not reach another one.
    fn endpoint(&self, given: &str) -> Result<Target, String> {
        let endpoint = self
            .stream
            .resolve(given)
            .map_err(|problem| format!("invalid endpoint URL {given:?}: {problem}"))?;
        if endpoint.origin != self.stream.origin {
            return Err(format!("the endpoint {given:?} has a different origin"));
        }
        Ok(endpoint)
    }

    /// Sends a message that has no response, and retries if the connection fails.
    async fn send_one_way(&self, message: OneWayMessage) {
        let mut retries = OneWayRetries::new(&self.client.settings, message.repeat);
        while let Err(error) = self.post(&message.bytes, None).await {
            let is_over = matches!(self.lock().way, EndpointState::Ended(_));
            if is_over || !retries.wait_for_retry(&error).await {
                self.sink.warning(format!(
                    "the server did not accept a notification or a response: {error}"
                ));
                return;
            }
        }
    }

    async fn post(&self, message: &Bytes, number: Option<u64>) -> Result<(), ClientError> {
        let endpoint = self.wait_for_endpoint().await?;
        let (heads, has_session) = {
            let state = self.lock();
            (state.heads.clone(), state.initialized)
        };
        let headers = || (*heads.post).clone();
        let waiting = number.map(|number| LinkRequestTimer(&self.sink, Some(number)));
        let timer: &dyn RequestTimer = match &waiting {
            Some(waiting) => waiting,
            None => &(),
        };
        let answer = self
            .client
            .send_authorized(
                Method::POST,
                &endpoint,
                &headers,
                message,
                timer,
                ConnectionReuse::Yes,
            )
            .await?;
        if answer.head.status.is_success() {
            answer.drain().await;
            return Ok(());
        }
        // After the handshake, 404 says that the session of the endpoint has ended, which its stream may not have shown yet.
        Err(refusal(answer, has_session).await)
    }

    /// Waits until the endpoint is known and returns it.
    async fn wait_for_endpoint(&self) -> Result<Target, ClientError> {
        loop {
            let gate = match &self.lock().way {
                EndpointState::Known(endpoint) => return Ok(endpoint.clone()),
                EndpointState::Ended(error) => return Err(error.clone()),
                EndpointState::Unknown(gate) => gate.clone(),
            };
            gate.wait_until_open().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
