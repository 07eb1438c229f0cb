//! The HTTP server at the redirect URI.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use mcpline_runtime::background;

use super::super::{OutcomeReporter, query};
use super::loopback_uri::Bound;
use super::page::{Message, page, plain};

/// The largest number of connections at a time. A browser opens a few in advance; more are not from a browser.
const CONNECTIONS: usize = 32;

/// How long a connected browser may take to send a request.
const READING: Duration = Duration::from_secs(10);

/// The largest request head. Codes and states are sometimes tokens of several thousand bytes.
const HEAD: usize = 64 * 1024;

/// How long a page waits for the outcome of the sign-in: the client needs a few requests to find it out.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(120);

/// How long pages may take to be sent once the outcome is known.
const LEAVING: Duration = Duration::from_secs(5);

/// The pause after `accept` failed for lack of descriptors: retrying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Outcome = Option<Result<(), String>>;

/// Serves requests only while it is polled; dropping it closes the port.
pub(super) struct CallbackServer {
    listeners: Vec<TcpListener>,
    connections: JoinSet<()>,
    handler: Arc<CallbackHandler>,
    arrivals: mpsc::Receiver<String>,
}

impl CallbackServer {
    /// A server that waits for the response to the authorization request `url`.
    pub(super) fn new(
        redirect_uri: String,
        bound: Bound,
        url: &str,
        client_name: Option<Arc<str>>,
    ) -> Self {
        let (arrived, arrivals) = mpsc::channel(1);
        let (outcome, _) = watch::channel(None);
        let path = redirect_uri
            .strip_prefix(&format!("http://{}", bound.authority))
            .and_then(|rest| rest.split('?').next())
            .unwrap_or("/")
            .to_owned();
        Self {
            listeners: bound.listeners,
            connections: JoinSet::new(),
            handler: Arc::new(CallbackHandler {
                authority: bound.authority,
                path,
                state: query::value(url, "state"),
                client_name,
                taken: Mutex::new(None),
                arrived,
                outcome,
            }),
            arrivals,
        }
    }

    /// Waits for the redirect and returns its URL.
    pub(super) async fn wait(&mut self) -> String {
        loop {
            tokio::select! {
                // The channel stays open: the handler holds its sender.
                Some(url) = self.arrivals.recv() => return url,
                () = accept_connection(&self.listeners, &mut self.connections, &self.handler) => {}
            }
        }
    }

    /// Stops waiting for redirects. Serves the pages until the outcome of the sign-in is known, then closes the port
    /// and aborts `beside`.
    pub(super) fn close(mut self, beside: JoinSet<()>) -> OutcomeReporter {
        let outcome = self.handler.outcome.clone();
        background::spawn_here(async move {
            let mut known = self.handler.outcome.subscribe();
            let wait = async {
                let _ = known.wait_for(Option::is_some).await;
            };
            let mut wait = std::pin::pin!(tokio::time::timeout(OUTCOME_TIMEOUT, wait));
            loop {
                tokio::select! {
                    _ = wait.as_mut() => break,
                    () = accept_connection(&self.listeners, &mut self.connections, &self.handler) => {}
                }
            }
            drop(self.listeners);
            drop(beside);
            let read = async { while self.connections.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LEAVING, read).await;
        });
        OutcomeReporter::new(move |result| {
            outcome.send_replace(Some(result.map_err(str::to_owned)));
        })
    }
}

/// Accepts and serves a connection, or waits for one to end if there are too many.
async fn accept_connection(
    listeners: &[TcpListener],
    connections: &mut JoinSet<()>,
    handler: &Arc<CallbackHandler>,
) {
    while connections.try_join_next().is_some() {}
    if connections.len() >= CONNECTIONS {
        connections.join_next().await;
        return;
    }
    let accepted = std::future::poll_fn(|cx| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    });
    match accepted.await {
        Ok((stream, _)) => {
            connections.spawn(background::task(serve_connection(stream, handler.clone())));
        }
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection of the browser; trying again");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Serves one request. Keep-alive is off, so that no connection lingers.
async fn serve_connection(stream: TcpStream, handler: Arc<CallbackHandler>) {
    let service = hyper::service::service_fn(move |request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.answer(&request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READING)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a browser's connection ended");
    }
}

/// Answers requests.
struct CallbackHandler {
    authority: String,
    path: String,
    /// The `state` of the opened URL. Any web page can send a browser here; only the authorization server knows the
    /// state.
    state: Option<String>,
    client_name: Option<Arc<str>>,
    /// The accepted authorization response: path and query.
    taken: Mutex<Option<String>>,
    arrived: mpsc::Sender<String>,
    outcome: watch::Sender<Outcome>,
}

impl CallbackHandler {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_addressed_by(request) {
            return plain(StatusCode::MISDIRECTED_REQUEST);
        }
        if request.uri().path() != self.path {
            return plain(StatusCode::NOT_FOUND);
        }
        if request.method() != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED);
        }
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let is_answer =
            query::value(target, "code").is_some() || query::value(target, "error").is_some();
        if !is_answer || query::value(target, "state") != self.state {
            tracing::debug!(
                "ignored a request to the redirect URI: no `code` or `error`, or another `state`"
            );
            return self.page(Message::NotTheAnswer);
        }
        if !self.take(target) {
            return self.page(Message::Answered);
        }
        self.outcome_page().await
    }

    /// Checks the `Host` header, against names that an attacker has pointed at this machine.
    fn is_addressed_by(&self, request: &Request<Incoming>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        host.as_bytes()
            .eq_ignore_ascii_case(self.authority.as_bytes())
    }

    /// Whether `target` is the accepted response, now or before: browsers prefetch, and users reload.
    fn take(&self, target: &str) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = &*taken {
            return taken == target;
        }
        *taken = Some(target.to_owned());
        // The channel has room for the only message that is ever sent.
        let _ = self
            .arrived
            .try_send(format!("http://{}{target}", self.authority));
        true
    }

    /// The page for the accepted response, once the outcome of the sign-in is known.
    async fn outcome_page(&self) -> Response<Full<Bytes>> {
        let mut outcome = self.outcome.subscribe();
        let known = tokio::time::timeout(OUTCOME_TIMEOUT, outcome.wait_for(Option::is_some)).await;
        let outcome = match known {
            Ok(Ok(outcome)) => outcome.clone(),
            _ => None,
        };
        self.page(match &outcome {
            Some(Ok(())) => Message::Accepted,
            Some(Err(reason)) => Message::Refused(reason),
            None => Message::Unknown,
        })
    }

    fn page(&self, message: Message<'_>) -> Response<Full<Bytes>> {
        page(message, self.client_name.as_deref())
    }
}
