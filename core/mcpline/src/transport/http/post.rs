//! POST to the MCP endpoint: detects the era and produces the response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mcpline_protocol::session::RequestMeta;
use mcpline_protocol::wire::{Incoming, Message, Method, ReadError, Request, encode, header};
use mcpline_protocol::{Revision, RpcError};

use crate::header_names::{PROTOCOL_VERSION, value_of};
use crate::message_sink::ResponseStatus;
use crate::quota::ClientQuota;
use crate::server::TransportKind;
use crate::server::traffic;

use super::post_response::{Outcome, PostResponse};
use super::response_body::Body;
use super::service::{Refusal, Shared, empty, json, refusal};
use super::sessionless::{self, SessionlessRequest};
use super::stream::Stream;
use super::{authorization, legacy, modern, recorded};

/// A POST whose message was passed on, and whose response is pending.
///
/// A request's future is moved as a whole, so everything it keeps while it waits costs every request. Therefore all
/// code up to here is synchronous, and rare cases wait in a box.
pub(super) enum PendingResponse<'a> {
    Ready(Response<Body>),
    /// A message of a handshake revision that has a response.
    Legacy(Arc<PostResponse>),
    /// A request that no session tracks.
    Sessionless(SessionlessRequest),
    Later(Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>),
}

impl From<Response<Body>> for PendingResponse<'_> {
    fn from(response: Response<Body>) -> Self {
        Self::Ready(response)
    }
}

impl<'a> PendingResponse<'a> {
    pub(super) fn later(response: impl Future<Output = Response<Body>> + Send + 'a) -> Self {
        Self::Later(Box::pin(response))
    }

    pub(super) async fn response(self, shared: &Shared) -> Response<Body> {
        let (exchange, serving, status): (_, _, fn(ResponseStatus) -> StatusCode) = match self {
            Self::Ready(response) => return response,
            Self::Later(response) => return response.await,
            Self::Legacy(exchange) => (exchange, None, legacy::status),
            Self::Sessionless(serving) => {
                let status = serving.status;
                (serving.exchange.clone(), Some(serving), status)
            }
        };
        let response = outcome(shared, &exchange, status).await;
        if let Some(serving) = serving {
            serving.follow();
        }
        response
    }
}

/// Passes the message of one POST on.
pub(super) fn begin<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a mut Parts,
    body: Bytes,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    if let Err(refusal) = check_accept(&parts.headers) {
        return refusal.response().into();
    }
    let inner = shared.server.inner();
    let origin = recorded::origin(shared, &parts.headers);
    let incoming = traffic::read(inner, TransportKind::Http, origin.as_deref(), body);
    if let Some(origin) = &origin {
        recorded::keep_origin(origin, parts, &incoming);
    }
    let response = pass_on(shared, parts, incoming, client);
    if let (Some(origin), PendingResponse::Ready(response)) = (&origin, &response) {
        recorded::record_refusal(inner, origin, response);
    }
    response
}

fn pass_on<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a mut Parts,
    incoming: Result<Incoming, ReadError>,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    match era(&parts.headers, &incoming) {
        RequestEra::Legacy(_) if !shared.has_handshake() => match incoming {
            Ok(Incoming::Single(Message::Request(request)))
                if request.method == Method::Initialize =>
            {
                no_handshake(&shared.server.inner().settings.revisions, &request).into()
            }
            incoming => modern::begin(shared, parts, incoming, client),
        },
        RequestEra::Modern => modern::begin(shared, parts, incoming, client),
        RequestEra::Legacy(_) if shared.options.stateless => {
            sessionless::begin(shared, parts, incoming, client)
        }
        RequestEra::Legacy(revision) => legacy::begin(shared, parts, revision, incoming, client),
        RequestEra::Unsupported(version) => {
            let reason = format!("{} {version} is not supported", header::PROTOCOL_VERSION);
            refusal(StatusCode::BAD_REQUEST, &reason).into()
        }
    }
}

enum RequestEra {
    Modern,
    /// With the revision that the header names.
    Legacy(Option<Revision>),
    Unsupported(String),
}

/// Determines the era of a request. It is modern if its header or `_meta` contains a modern version, or `_meta` an
/// unknown one, because only modern clients put it there.
fn era(headers: &HeaderMap, incoming: &Result<Incoming, ReadError>) -> RequestEra {
    let named = value_of(headers, &PROTOCOL_VERSION);
    let revision = named.map(|version| {
        let version = std::str::from_utf8(version.as_bytes()).ok()?;
        Revision::parse(version.trim())
    });
    if matches!(revision, Some(Some(revision)) if revision.is_modern()) {
        return RequestEra::Modern;
    }
    if let Ok(Incoming::Single(Message::Request(request))) = incoming
        && (request.method == Method::ServerDiscover
            || RequestMeta::names_version(request.params.as_ref()))
    {
        return RequestEra::Modern;
    }
    match (named, revision) {
        (Some(version), Some(None)) => {
            RequestEra::Unsupported(String::from_utf8_lossy(version.as_bytes()).into_owned())
        }
        _ => RequestEra::Legacy(revision.flatten()),
    }
}

/// Refuses the handshake if no served revision has it, and lists the served ones (2026-07-28, `basic/versioning`,
/// compatibility matrix).
fn no_handshake(revisions: &[Revision], request: &Request) -> Response<Body> {
    let requested = request
        .params
        .as_ref()
        .and_then(|params| params.get_str("protocolVersion"));
    let error = RpcError::unsupported_version(&requested.unwrap_or_default(), revisions);
    let mut body = Vec::new();
    encode::error(&mut body, Some(&request.id), &error);
    json(StatusCode::BAD_REQUEST, body)
}

/// The `Accept` header of most clients.
const USUAL: &str = "application/json, text/event-stream";

/// Checks that the client accepts both content types (every revision, `basic/transports`, sending messages).
fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    if value_of(headers, &ACCEPT).is_some_and(|value| value == USUAL) {
        return Ok(());
    }
    let takes = |kind: &str, family: &str| {
        headers.get_all(ACCEPT).iter().any(|value| {
            value.to_str().is_ok_and(|value| {
                value.split(',').any(|entry| {
                    let entry = entry.split(';').next().unwrap_or_default().trim();
                    entry.eq_ignore_ascii_case(kind)
                        || entry.eq_ignore_ascii_case(family)
                        || entry == "*/*"
                })
            })
        })
    };
    if takes("application/json", "application/*") && takes("text/event-stream", "text/*") {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::NOT_ACCEPTABLE,
        "Accept must list application/json and text/event-stream",
    ))
}

/// Waits for the exchange's outcome and builds the response. A call that sends nothing for too long becomes an event
/// stream.
pub(super) async fn outcome(
    shared: &Shared,
    exchange: &Arc<PostResponse>,
    status: fn(ResponseStatus) -> StatusCode,
) -> Response<Body> {
    let outcome = match ready_outcome(exchange) {
        Some(outcome) => outcome,
        None => {
            let _place = shared.upgrade_timers.watch(exchange);
            poll_fn(|cx| exchange.poll(cx)).await
        }
    };
    match outcome {
        Outcome::Json(body, ended) => {
            let mut response = json(status(ended), body);
            if let Some(needed) = exchange.demanded() {
                authorization::add_scope_challenge(&mut response, &shared.options, needed);
            }
            response
        }
        Outcome::Stream(stream) => events(shared, &stream, None),
        // A stream without events: the request was cancelled and has no response.
        Outcome::Nothing => {
            let stream = Stream::transient(&shared.options, exchange.client());
            stream.end();
            events(shared, &stream, None)
        }
    }
}

fn ready_outcome(exchange: &PostResponse) -> Option<Outcome> {
    let cx = std::task::Context::from_waker(std::task::Waker::noop());
    match exchange.poll(&cx) {
        std::task::Poll::Ready(outcome) => Some(outcome),
        std::task::Poll::Pending => None,
    }
}

/// Returns a response that reads a stream, from the event after `after` if the client reconnects.
pub(super) fn events(shared: &Shared, stream: &Arc<Stream>, after: Option<u64>) -> Response<Body> {
    let Some(reader) = stream.read(after) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            "the events after this Last-Event-ID are no longer kept",
        );
    };
    let mut response = Response::new(Body::events(reader, shared.options.keep_alive_interval));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    // Keeps reverse proxies from buffering (2026-07-28, `basic/transports/streamable-http`).
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns the response to a notification or a response.
pub(super) fn accepted() -> Response<Body> {
    empty(StatusCode::ACCEPTED)
}

/// Returns the response to an invalid message.
pub(super) fn unreadable(error: &ReadError) -> Response<Body> {
    let mut body = Vec::new();
    match &error.id {
        Some(id) => encode::error(&mut body, Some(id), &error.error),
        None => encode::error_without_id(&mut body, &error.error),
    }
    json(StatusCode::BAD_REQUEST, body)
}
