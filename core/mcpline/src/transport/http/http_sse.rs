//! HTTP+SSE of 2024-11-05: one endpoint for the stream with all messages of the server, and one for POST.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use mcpline_protocol::wire::{Incoming, Message};

use crate::message_sink::MessageSink;
use crate::quota::ClientQuota;
use crate::server::HttpInfo;
use crate::server::TransportKind;
use crate::server::traffic;

use super::caller;
use super::post::{accepted, events};
use super::recorded::record_refusal;
use super::response_body::Body;
use super::service::{Refusal, Shared, principal, refusal};
use super::stream::Stream;

/// GET of the stream: starts a session that lives as long as the stream.
pub(super) fn open(
    shared: &Arc<Shared>,
    parts: &Parts,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    let room = match shared.sessions.make_room(client) {
        Ok(room) => room,
        Err(refusal) => return refusal.response(),
    };
    let Some((own, messages)) = &shared.options.sse_paths else {
        return refusal(StatusCode::NOT_FOUND, "HTTP+SSE is not served");
    };
    let stream = Stream::transient(&shared.options, client);
    stream.extend_deadline(caller::stream_deadline(parts));
    let session = shared.sessions.begin_http_sse(
        &shared.server,
        &shared.options,
        principal(parts),
        client,
        stream.clone(),
    );
    let path = parts.uri.path();
    let mount = path.strip_suffix(own.as_str()).unwrap_or_default();
    stream.endpoint(format!(
        "{}{mount}{messages}?sessionId={}",
        shared.options.proxy_prefix,
        session.id()
    ));
    session.publish(room);
    let lost = Arc::downgrade(&session);
    stream.on_lost(move || {
        if let Some(session) = lost.upgrade() {
            // First, because its calls cannot be answered.
            session.connection.close();
            session.end_locally();
        }
    });
    events(shared, &stream, None)
}

/// POST of a message. Its response is sent on the stream.
pub(super) fn post(shared: &Arc<Shared>, parts: &mut Parts, body: Bytes) -> Response<Body> {
    let id = parts.uri.query().and_then(|query| {
        query.split('&').find_map(|pair| {
            pair.strip_prefix("sessionId=")
                .or(pair.strip_prefix("session_id="))
        })
    });
    let Some(id) = id else {
        return refusal(
            StatusCode::BAD_REQUEST,
            "the query parameter sessionId is missing",
        );
    };
    let Ok(session) = shared.sessions.find(id, principal(parts)) else {
        return refusal(StatusCode::NOT_FOUND, "unknown session");
    };
    if session.general.is_ended() {
        // Its client read too slowly.
        session.end_locally();
        return refusal(
            StatusCode::NOT_FOUND,
            "the stream of this session has ended",
        );
    }
    let inner = shared.server.inner();
    let incoming = match traffic::read(
        inner,
        TransportKind::HttpSse,
        session.connection.traffic(),
        body,
    ) {
        Err(error) if error.batch.is_none() => {
            let response = super::post::unreadable(&error);
            if let Some(origin) = session.connection.traffic() {
                record_refusal(inner, origin, &response);
            }
            return response;
        }
        // The requests of an oversized batch are answered on the stream, where the client expects their responses.
        incoming => incoming,
    };
    // Short responses are added to the stream however much the client holds, so it must not send further requests. Its
    // responses and cancellations free memory. Bodies as short as these are not charged.
    let is_answered =
        |entry: &Result<Message, _>| matches!(entry, Err(_) | Ok(Message::Request(_)));
    let awaits_answers = match &incoming {
        Ok(Incoming::Single(message)) => matches!(message, Message::Request(_)),
        Ok(Incoming::Batch(entries)) => entries.iter().any(is_answered),
        Err(_) => true,
    };
    if awaits_answers && let Err(exceeded) = session.connection.client().hold_bytes(0) {
        return Refusal::from(exceeded).response();
    }
    let sink: Arc<dyn MessageSink> = Arc::new(session.general.clone());
    session
        .general
        .extend_deadline(caller::stream_deadline(parts));
    let http = Arc::new(HttpInfo::of(parts));
    session.note_use();
    session.connection.receive(incoming, &sink, Some(&http));
    accepted()
}
