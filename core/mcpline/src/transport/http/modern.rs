//! 2026-07-28 over HTTP: each POST is an exchange of its own.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use mcpline_protocol::session::SessionScope;
use mcpline_protocol::wire::header::{self, HeaderOccurrence};
use mcpline_protocol::wire::{Incoming, Message, Method, Notification, ReadError, Request, encode};
use mcpline_protocol::{ErrorCode, Revision, RpcError};

use crate::header_names::{METHOD, NAME, PROTOCOL_VERSION, value_of, values_of};
use crate::message_sink::{Encode, MessageKind, MessageSink, ResponseStatus};
use crate::quota::ClientQuota;
use crate::server::HttpInfo;
use crate::server::connection::{Connection, ConnectionOptions};
use crate::server::traffic::TransportKind;

use super::caller;
use super::post::{PendingResponse, accepted, unreadable};
use super::post_response::PostResponse;
use super::recorded;
use super::service::{Shared, json, principal, refusal};
use super::sessionless::SessionlessRequest;
use super::stream::Stream;

/// Whether the headers contain a modern revision.
pub(super) fn names_modern_revision(headers: &HeaderMap) -> bool {
    revision(headers).is_some_and(Revision::is_modern)
}

/// Returns the revision in the headers.
fn revision(headers: &HeaderMap) -> Option<Revision> {
    let named = value_of(headers, &PROTOCOL_VERSION)?.to_str().ok()?;
    Revision::parse(named)
}

/// Passes the message of one POST on.
pub(super) fn begin<'a>(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    incoming: Result<Incoming, ReadError>,
    client: &Arc<ClientQuota>,
) -> PendingResponse<'a> {
    let request = match incoming {
        Ok(Incoming::Single(Message::Request(request))) => request,
        Ok(Incoming::Single(Message::Notification(notification))) => {
            let checked = header::check_notification(field_of(&parts.headers), &notification);
            if let Err(error) = checked {
                let mut body = Vec::new();
                encode::error_without_id(&mut body, &error);
                return json(StatusCode::BAD_REQUEST, body).into();
            }
            notify(shared, parts, notification, client);
            return accepted().into();
        }
        Ok(Incoming::Single(Message::Response(_))) => {
            let reason = "this revision's clients send no responses";
            return refusal(StatusCode::BAD_REQUEST, reason).into();
        }
        Ok(Incoming::Batch(_)) => {
            let reason = "this revision has no JSON-RPC batches: send each message by itself";
            return refusal(StatusCode::BAD_REQUEST, reason).into();
        }
        Err(error) => return unreadable(&error).into(),
    };
    if let Err(error) = check_headers(&parts.headers, &request) {
        let mut body = Vec::new();
        encode::error(&mut body, Some(&request.id), &error);
        return json(StatusCode::BAD_REQUEST, body).into();
    }
    PendingResponse::Sessionless(serve(shared, parts, request, client))
}

fn check_headers(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    header::check_standard(field_of(headers), request)
}

fn field_of<'h>(headers: &'h HeaderMap) -> impl Fn(&str) -> HeaderOccurrence<'h> {
    |name| {
        let known = match name {
            header::PROTOCOL_VERSION => &PROTOCOL_VERSION,
            header::METHOD => &METHOD,
            header::NAME => &NAME,
            name => return occurrence(headers.get_all(name).iter()),
        };
        occurrence(values_of(headers, known))
    }
}

fn occurrence<'h>(values: impl Iterator<Item = &'h HeaderValue>) -> HeaderOccurrence<'h> {
    HeaderOccurrence::from_values(values.map(|value| value.as_bytes().trim_ascii()))
}

/// Passes a notification on. The revision defines none over HTTP (clients cancel by closing the connection), so only
/// custom ones have an effect.
fn notify(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    notification: Notification,
    client: &Arc<ClientQuota>,
) {
    let inner = shared.server.inner();
    if !inner
        .profile()
        .notifications
        .contains(notification.method.as_str())
    {
        return;
    }
    inner.start(&tokio::runtime::Handle::current());
    let sink: Arc<dyn MessageSink> = Arc::new(NullSink);
    let connection = exchange_connection(shared, parts, &sink, client);
    if let Some(revision) = revision(&parts.headers) {
        connection.lock_session().declare_revision(revision);
    }
    let http = Arc::new(HttpInfo::of(parts));
    let _starting = shared.in_flight.start();
    connection.receive(
        Ok(Incoming::Single(Message::Notification(notification))),
        &sink,
        Some(&http),
    );
    if !connection.has_handled_notifications() {
        connection.hold_until_handled(shared.in_flight.add(&connection));
    }
}

/// Creates the connection of one exchange.
fn exchange_connection(
    shared: &Shared,
    parts: &Parts,
    sink: &Arc<dyn MessageSink>,
    client: &Arc<ClientQuota>,
) -> Arc<Connection> {
    let inner = shared.server.inner();
    Connection::for_one_exchange(
        inner,
        ConnectionOptions {
            scope: SessionScope::Exchange,
            limits: inner.settings.session,
            general: sink.clone(),
            session_id: None,
            auth: None,
            principal: principal(parts).to_owned(),
            transport: shared.transport,
            transport_kind: TransportKind::Http,
            traffic: recorded::origin_of(parts),
            client: client.clone(),
        },
    )
}

/// Sink for messages of a notification's handler, which are dropped: the response has no body.
struct NullSink;

impl MessageSink for NullSink {
    fn write(&self, _: MessageKind, _: usize, _: Encode<'_>) {}
}

fn serve(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    request: Request,
    client: &Arc<ClientQuota>,
) -> SessionlessRequest {
    let inner = shared.server.inner();
    inner.start(&tokio::runtime::Handle::current());
    let options = shared.options.clone();
    // A stream of changes lasts as long as its token is valid; a call is authorized only when it begins.
    let until = match request.method {
        Method::SubscriptionsListen => caller::stream_deadline(parts),
        _ => None,
    };
    let reader = client.clone();
    let exchange = PostResponse::new(client.clone(), Some(request.id.clone()), move || {
        let stream = Stream::transient(&options, &reader);
        stream.extend_deadline(until);
        stream
    });
    let sink: Arc<dyn MessageSink> = exchange.clone();
    let connection = exchange_connection(shared, parts, &sink, client);
    let http = Arc::new(HttpInfo::of(parts));
    let _starting = shared.in_flight.start();
    connection.receive(
        Ok(Incoming::Single(Message::Request(request))),
        &sink,
        Some(&http),
    );
    SessionlessRequest::new(shared, exchange, connection, status)
}

/// Returns the status of a response without a stream (2026-07-28, `basic/transports/streamable-http`).
pub(super) fn status(ended: ResponseStatus) -> StatusCode {
    match ended {
        ResponseStatus::Result => StatusCode::OK,
        ResponseStatus::Forbidden(_) => StatusCode::FORBIDDEN,
        ResponseStatus::Error(code)
        | ResponseStatus::Refused(code)
        | ResponseStatus::Unreadable(code) => match (ErrorCode(code), ended) {
            (ErrorCode::METHOD_NOT_FOUND, _) => StatusCode::NOT_FOUND,
            (ErrorCode::BUSY | ErrorCode::SHUTTING_DOWN, _) => StatusCode::SERVICE_UNAVAILABLE,
            (
                ErrorCode::HEADER_MISMATCH
                | ErrorCode::MISSING_CLIENT_CAPABILITY
                | ErrorCode::UNSUPPORTED_VERSION,
                _,
            ) => StatusCode::BAD_REQUEST,
            (_, ResponseStatus::Error(_)) => StatusCode::OK,
            _ => StatusCode::BAD_REQUEST,
        },
    }
}
