//! Connects to a server and negotiates a session, whatever revision and transport it supports.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpline_protocol::client::{
    HandshakeError, NegotiatedSession, Negotiation, NegotiationOptions, NegotiationStep,
};
use mcpline_protocol::methods::RetrySafety;
use mcpline_protocol::wire::{Incoming, Message, Method, RequestId, encode};
use mcpline_protocol::{Era, ErrorCode, Printable, RpcError};
use mcpline_runtime::clock;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::background;
use crate::client_error::{ClientError, ConnectAttempt};
use crate::error_kind::ErrorKind;
use crate::span::NetworkAddress;

use super::handshake_servers::ServerKey;
use super::inner::Inner;
use super::link::{
    Link, LinkFuture, NO_EVENT_STREAM, Outgoing, OutgoingKind, RequestHead, SharedEventSink,
};
use super::session::{LinkEvent, LinkEventReceiver, MAX_EARLY_MESSAGES, Session};

/// The link of a negotiation. However that ends, the client keeps track of the link until a session takes it over or it
/// has ended.
struct OpeningLink {
    client: Weak<Inner>,
    link: Arc<dyn Link>,
}

impl OpeningLink {
    async fn close(&self) {
        self.link.close().await;
        if let Some(client) = self.client.upgrade() {
            client.forget_link(&self.link);
        }
    }

    /// Leaves the link to a session.
    fn hand_over(mut self) -> Arc<dyn Link> {
        self.client = Weak::new();
        self.link.clone()
    }
}

impl Drop for OpeningLink {
    fn drop(&mut self) {
        if let Some(client) = self.client.upgrade() {
            client.abandon_link(&self.link);
        }
    }
}

/// A link in use by a negotiation, with its reports.
struct DialledLink {
    opening: OpeningLink,
    reception: Arc<LinkEventReceiver>,
    reports: mpsc::UnboundedReceiver<LinkEvent>,
}

/// Opens a session. Also returns whether the era found is certain to be the server's latest. `era` is the era of
/// the last time.
pub(super) async fn open(
    client: &Arc<Inner>,
    era: Option<Era>,
) -> Result<(Arc<Session>, bool), ClientError> {
    let plan = NegotiationOptions {
        revisions: client.settings.revisions.clone(),
        era,
        timeouts: client.settings.open_timeouts,
        ..NegotiationOptions::new(client.info.clone(), client.handlers.capabilities.clone())
    };
    let mut driver = NegotiationDriver {
        opening: Negotiation::new(plan),
        dialled: dial(client, false).await?,
        why: None,
        endpoint: None,
        request_number: None,
        overdue: 0,
        backlog: VecDeque::new(),
        attempts: Vec::new(),
    };
    let mut step = driver.opening.start(clock::now());
    loop {
        driver.note_failures();
        step = match step {
            NegotiationStep::Send {
                id,
                message,
                revision,
            } => {
                let number = number_of(&id);
                driver.request_number = Some(number);
                // Keep only errors of this request, not of an earlier one.
                driver.why = None;
                let opens = !revision.is_modern();
                let method = match opens {
                    true => Method::Initialize,
                    false => Method::ServerDiscover,
                };
                let headers =
                    match driver.dialled.opening.link.mirrors_params_as_headers() && !opens {
                        true => vec![("Mcp-Method".to_owned(), method.as_str().to_owned())],
                        false => Vec::new(),
                    };
                driver.dialled.opening.link.send(Outgoing {
                    message: message.into(),
                    purpose: OutgoingKind::Request(RequestHead {
                        number,
                        revision,
                        opens,
                        is_repeatable: method.is(|spec| spec.repeat == RetrySafety::Safe),
                        headers,
                    }),
                });
                driver.wait().await
            }
            NegotiationStep::Wait => driver.wait().await,
            NegotiationStep::Reconnect => driver.redial(client, false).await?,
            NegotiationStep::UseHttpSse => {
                driver.endpoint = driver.why.take();
                driver.redial(client, true).await?
            }
            NegotiationStep::Complete(opened) => {
                let is_certain = !driver.opening.is_era_uncertain();
                return Ok((driver.into_session(*opened, client), is_certain));
            }
            NegotiationStep::Failed(error) => {
                driver.dialled.opening.close().await;
                return Err(driver.explain(error));
            }
        };
    }
}

async fn opening_link(
    client: &Arc<Inner>,
    sink: SharedEventSink,
    http_sse: bool,
) -> Result<OpeningLink, ClientError> {
    let (dialling, alive) = (client.clone(), client.handlers.tasks.begin());
    let dialling = async move {
        let link = dialling.dialler.dial(sink, http_sse).await?;
        dialling.keep_link(&link);
        let client = Arc::downgrade(&dialling);
        Ok(OpeningLink { client, link })
    };
    if !client.dialler.starts_process() {
        return dialling.await;
    }
    // A task of its own, which `close` waits for: even if the caller gives up early, a started process gets time to
    // exit.
    let task = background::spawn(&client.runtime, async move { (dialling.await, alive) });
    match task.await {
        Ok((opening, _alive)) => opening,
        Err(_) => Err(ClientError::Closed),
    }
}

async fn dial(client: &Arc<Inner>, http_sse: bool) -> Result<DialledLink, ClientError> {
    let (reception, reports) = LinkEventReceiver::new();
    let sink: SharedEventSink = reception.clone();
    let limit = client.settings.open_timeouts.answer;
    let dialled = tokio::time::timeout(limit, opening_link(client, sink, http_sse)).await;
    let opening = dialled.unwrap_or_else(|_| {
        Err(ClientError::unreachable(format!(
            "no connection within {} s (`open_timeout`)",
            limit.as_secs_f64()
        )))
    })?;
    Ok(DialledLink {
        opening,
        reception,
        reports,
    })
}

/// The server did not answer in time.
struct TimedOut;

struct NegotiationDriver {
    opening: Negotiation,
    dialled: DialledLink,
    /// The transport's error for the latest request, in more detail than the negotiation needs.
    why: Option<ClientError>,
    /// The error of the endpoint before HTTP+SSE was tried.
    endpoint: Option<ClientError>,
    /// The request whose response is awaited.
    request_number: Option<u64>,
    /// Number of reports taken since the deadline passed.
    overdue: usize,
    /// Other messages of the server, for the session. Bounded by the slots that messages need.
    backlog: VecDeque<LinkEvent>,
    /// The attempts that failed.
    attempts: Vec<ConnectAttempt>,
}

impl NegotiationDriver {
    /// Records new failed attempts with the transport's errors.
    fn note_failures(&mut self) {
        for failed in &self.opening.attempts()[self.attempts.len()..] {
            let error = match (&failed.error, &self.why) {
                (HandshakeError::TimedOut { .. }, _) | (_, None) => {
                    ClientError::HandshakeFailed(failed.error.clone())
                }
                (_, Some(why)) => why.clone(),
            };
            self.attempts.push(ConnectAttempt {
                method: failed.method,
                over_http_sse: failed.over_http_sse,
                error,
            });
        }
    }

    /// Waits for the result of the latest request.
    async fn wait(&mut self) -> NegotiationStep {
        let deadline = self.opening.poll_deadline();
        let left = deadline.map(|at| at.saturating_sub(clock::now()));
        let report = match left {
            Some(Duration::ZERO) => self.overdue_report(),
            Some(left) => {
                self.overdue = 0;
                let report = tokio::time::timeout(left, self.dialled.reports.recv()).await;
                report.map_err(|_| TimedOut)
            }
            None => Ok(self.dialled.reports.recv().await),
        };
        let now = clock::now();
        match report {
            Ok(Some(report)) => self.handle_event(report),
            Ok(None) => self.opening.receive_disconnect(),
            Err(TimedOut) => {
                let late = self.request_number;
                let step = self.opening.handle_timeout(now);
                if let Some(number) = late.filter(|_| !matches!(step, NegotiationStep::Wait)) {
                    self.dialled.opening.link.abandon(number);
                }
                step
            }
        }
    }

    /// Takes a report that arrived before the deadline but is read late. The number of these is bounded: a server that
    /// keeps sending cannot extend the deadline.
    fn overdue_report(&mut self) -> Result<Option<LinkEvent>, TimedOut> {
        if self.overdue >= MAX_EARLY_MESSAGES {
            return Err(TimedOut);
        }
        self.overdue += 1;
        match self.dialled.reports.try_recv() {
            Ok(report) => Ok(Some(report)),
            Err(TryRecvError::Disconnected) => Ok(None),
            Err(TryRecvError::Empty) => Err(TimedOut),
        }
    }

    fn handle_event(&mut self, report: LinkEvent) -> NegotiationStep {
        let now = clock::now();
        match report {
            LinkEvent::Message(Incoming::Single(Message::Response(response)), _) => {
                match response.id {
                    Some(id) => self.opening.receive_response(&id, response.outcome, now),
                    // An error without an id answers the only request in flight.
                    None => match (response.outcome, self.request_number) {
                        (Err(error), Some(number)) => {
                            self.opening
                                .receive_response(&id_of(number), Err(error), now)
                        }
                        _ => NegotiationStep::Wait,
                    },
                }
            }
            LinkEvent::Message(Incoming::Single(Message::Request(request)), _)
                if request.method == Method::Ping =>
            {
                let mut pong = Vec::new();
                encode::response(&mut pong, &request.id, b"{}");
                self.dialled.opening.link.send(Outgoing {
                    message: pong.into(),
                    purpose: OutgoingKind::Answer,
                });
                NegotiationStep::Wait
            }
            LinkEvent::Message(Incoming::Batch(messages), _) => {
                let responses =
                    messages
                        .into_iter()
                        .flatten()
                        .filter_map(|message| match message {
                            Message::Response(response) => Some(response),
                            _ => None,
                        });
                for response in responses {
                    let Some(id) = response.id else { continue };
                    match self.opening.receive_response(&id, response.outcome, now) {
                        NegotiationStep::Wait => {}
                        step => return step,
                    }
                }
                NegotiationStep::Wait
            }
            // Notifications such as log messages may precede the response.
            message @ LinkEvent::Message(..) => {
                self.backlog.push_back(message);
                NegotiationStep::Wait
            }
            LinkEvent::Unreadable(error, course, _) => {
                self.why = Some(ClientError::InvalidResponse {
                    reason: error.error.message.to_string(),
                });
                let id = error.id.or_else(|| course.map(id_of));
                match id {
                    Some(id) => self.opening.receive_response(&id, Err(error.error), now),
                    None => {
                        tracing::debug!(
                            "invalid JSON-RPC message from server: {}",
                            Printable(&error.error.message)
                        );
                        NegotiationStep::Wait
                    }
                }
            }
            LinkEvent::Failed(number, error) => self.handle_failed_request(number, error),
            LinkEvent::Held(number, held) => {
                match held {
                    _ if number.is_some() && self.request_number != number => {}
                    true => self.opening.pause_timeout(),
                    false => self.opening.resume_timeout(now),
                }
                NegotiationStep::Wait
            }
            LinkEvent::Ended(error) => {
                self.why = Some(error);
                self.opening.receive_disconnect()
            }
        }
    }

    fn handle_failed_request(&mut self, number: u64, error: ClientError) -> NegotiationStep {
        if self.request_number != Some(number) {
            return NegotiationStep::Wait;
        }
        let now = clock::now();
        let step = match &error {
            ClientError::Http { status, error, .. } => {
                self.opening
                    .receive_http_refusal(*status, error.as_deref().cloned(), now)
            }
            ClientError::SessionExpired => self.opening.receive_http_refusal(404, None, now),
            _ if failed_before_sending(&error) => {
                self.why = Some(error);
                return NegotiationStep::Failed(HandshakeError::Gone {
                    method: "the connection",
                });
            }
            ClientError::InvalidResponse { reason } => {
                let error = RpcError::new(ErrorCode::PARSE_ERROR, reason.clone());
                self.opening
                    .receive_response(&id_of(number), Err(error), now)
            }
            _ => self.opening.receive_disconnect(),
        };
        self.why = Some(error);
        step
    }

    async fn redial(
        &mut self,
        client: &Arc<Inner>,
        http_sse: bool,
    ) -> Result<NegotiationStep, ClientError> {
        self.dialled.opening.close().await;
        self.backlog.clear();
        self.dialled = dial(client, http_sse).await?;
        Ok(self.opening.start(clock::now()))
    }

    fn into_session(mut self, mut opened: NegotiatedSession, client: &Arc<Inner>) -> Arc<Session> {
        let link = self.dialled.opening.hand_over();
        // First, so that all following messages are sent in this revision.
        link.set_session_open(opened.revision);
        if let Some(initialized) = opened.initialized.take() {
            link.send(Outgoing {
                message: initialized.into(),
                purpose: OutgoingKind::Notification { about: None },
            });
        }
        let session = Session::start(opened, link, client);
        for report in self.backlog {
            session.handle_early_event(report);
        }
        self.dialled
            .reception
            .hand_over(&session, &mut self.dialled.reports);
        session
    }

    /// Returns the most detailed error for a failure.
    fn explain(self, error: HandshakeError) -> ClientError {
        let attempts = self.attempts;
        // A missing HTTP+SSE transport is less informative than the error of the endpoint itself.
        let why = match (&error, self.why) {
            (HandshakeError::Gone { .. }, Some(why)) if lacks_event_stream(&why) => {
                self.endpoint.or(Some(why))
            }
            (_, why) => why,
        };
        // A mismatch of revisions needs no other cause.
        let explains_itself = matches!(error, HandshakeError::NoCommonRevision { .. });
        let cause = match (&error, why) {
            (HandshakeError::Http { .. }, Some(why @ ClientError::Http { .. }))
            | (
                HandshakeError::Refused(_),
                Some(why @ (ClientError::Http { .. } | ClientError::InvalidResponse { .. })),
            )
            | (HandshakeError::Gone { .. }, Some(why)) => why,
            _ => ClientError::HandshakeFailed(error),
        };
        let is_of_connection =
            |attempt: &ConnectAttempt| attempt.error.kind().is_connection_failure();
        if attempts.len() < 2 || explains_itself || attempts.iter().all(is_of_connection) {
            return cause;
        }
        ClientError::AllAttemptsFailed {
            cause: Box::new(cause),
            attempts,
        }
    }
}

/// Whether the request never reached the server: it is unreachable, or there is no token for it.
fn failed_before_sending(error: &ClientError) -> bool {
    let is_unreachable = matches!(error, ClientError::ServerUnreachable { .. });
    is_unreachable || error.kind() == ErrorKind::AuthorizationFailed
}

/// Whether a server without an event stream would answer the GET of HTTP+SSE like this: with a status that does not
/// demand credentials, or with something other than a stream.
fn lacks_event_stream(error: &ClientError) -> bool {
    match error {
        ClientError::Http { status, .. } => {
            matches!(status, 400..=499 | 501) && !matches!(status, 401 | 407)
        }
        ClientError::InvalidResponse { reason } => reason == NO_EVENT_STREAM,
        _ => false,
    }
}

fn number_of(id: &RequestId) -> u64 {
    let number = id
        .as_integer()
        .and_then(|number| u64::try_from(number).ok());
    number.unwrap_or_default()
}

fn id_of(number: u64) -> RequestId {
    RequestId::number(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Opens links to a server.
pub(super) trait Dialler: Send + Sync {
    /// Opens a new link; `http_sse` selects HTTP+SSE.
    fn dial(&self, sink: SharedEventSink, http_sse: bool) -> DialFuture<'_>;

    /// Returns the address of the server, if there is one.
    fn server_address(&self) -> Option<&NetworkAddress> {
        None
    }

    /// Returns the key under which other clients of this process may remember the server's era, if they may.
    fn known_server(&self) -> Option<ServerKey> {
        None
    }

    /// Whether dialling starts a process. This is quick, and must not be dropped before the link exists.
    fn starts_process(&self) -> bool {
        false
    }

    /// Returns a number that changes with the credentials that authorize requests.
    fn authorization(&self) -> u64 {
        0
    }

    /// Stops dialling and releases what is kept for the next link. Resolves when nothing is left.
    fn close(&self) -> LinkFuture {
        Box::pin(std::future::ready(()))
    }
}

/// A link that is being opened.
pub(super) type DialFuture<'d> =
    std::pin::Pin<Box<dyn Future<Output = Result<Arc<dyn Link>, ClientError>> + Send + 'd>>;

#[cfg(all(test, not(mcpline_models)))]
mod tests {
    use mcpline_protocol::Revision;
    use mcpline_protocol::vocabulary::{ClientCapabilities, Implementation};

    use super::super::link::LinkEventSink;
    use super::*;

    /// A link that drops all messages.
    struct TestLink;

    impl Link for TestLink {
        fn send(&self, _: Outgoing) {}

        fn abandon(&self, _: u64) {}

        fn set_session_open(&self, _: Revision) {}

        fn close(&self) -> LinkFuture {
            Box::pin(std::future::ready(()))
        }
    }

    /// A negotiation that has sent its request.
    fn waiting() -> NegotiationDriver {
        let info = Implementation::new("test", "1");
        let mut opening =
            Negotiation::new(NegotiationOptions::new(info, ClientCapabilities::default()));
        assert!(matches!(
            opening.start(clock::now()),
            NegotiationStep::Send { .. }
        ));
        let (reception, reports) = LinkEventReceiver::new();
        NegotiationDriver {
            opening,
            dialled: DialledLink {
                opening: OpeningLink {
                    client: Weak::new(),
                    link: Arc::new(TestLink),
                },
                reception,
                reports,
            },
            why: None,
            endpoint: None,
            request_number: None,
            overdue: 0,
            backlog: VecDeque::new(),
            attempts: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_notifications_does_not_put_off_the_deadline() {
        let mut driver = waiting();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        tokio::time::advance(Duration::from_secs(3_600)).await;
        for taken in 0.. {
            // Ensures that a report is waiting whenever the driver looks.
            driver.backlog.clear();
            driver.dialled.reception.message(note.into(), None);
            if !matches!(driver.wait().await, NegotiationStep::Wait) {
                break;
            }
            assert!(taken <= MAX_EARLY_MESSAGES, "{taken} were taken");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn accepts_reports_that_arrived_in_time_but_are_read_late() {
        let mut driver = waiting();
        driver
            .dialled
            .reception
            .message(r#"{"jsonrpc":"2.0","id":1,"result":5}"#.into(), None);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let report = driver.overdue_report().unwrap_or_default();
        assert!(matches!(report, Some(LinkEvent::Message(..))), "{report:?}");
    }
}
