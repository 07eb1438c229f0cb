//! Records of messages over HTTP in debug mode that reach no connection, or have none yet.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, Response};
use mcpline_protocol::Revision;
use mcpline_protocol::session::RequestMeta;
use mcpline_protocol::wire::{Incoming, Message, ReadError};

use crate::header_names::{PROTOCOL_VERSION, SESSION_ID};
use crate::server::Inner;
use crate::server::traffic::{Direction, TrafficOrigin, TransportKind};

use super::response_body::Body;
use super::service::Shared;

/// Returns the client of a request as its headers name it; `None` if messages are not recorded.
#[inline]
pub(super) fn origin(shared: &Shared, headers: &HeaderMap) -> Option<Arc<TrafficOrigin>> {
    let server = shared.server.inner();
    server
        .traffic
        .as_ref()
        .map(|_| origin_of_headers(shared, headers))
}

#[cold]
fn origin_of_headers(shared: &Shared, headers: &HeaderMap) -> Arc<TrafficOrigin> {
    let header = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let session = header(&SESSION_ID);
    // Only requests without a session have a number, which their connections take over.
    let number = match session {
        Some(_) => 0,
        None => shared.server.inner().next_connection(),
    };
    let origin = TrafficOrigin::new(TransportKind::Http, number, session);
    let named = header(&PROTOCOL_VERSION).and_then(|name| Revision::parse(name.trim()));
    let of_session = || {
        shared
            .sessions
            .get(session?)?
            .connection
            .traffic()?
            .revision()
    };
    if let Some(revision) = named.or_else(of_session) {
        origin.set_revision(revision);
    }
    Arc::new(origin)
}

/// Keeps the client of a request for the connection that the request gets, with the revision that its message names.
#[cold]
pub(super) fn keep_origin(
    origin: &Arc<TrafficOrigin>,
    parts: &mut Parts,
    incoming: &Result<Incoming, ReadError>,
) {
    if let Ok(Incoming::Single(Message::Request(request))) = incoming
        && let Some(version) = RequestMeta::of(request.params.as_ref()).version()
        && let Some(revision) = Revision::parse(&version)
    {
        origin.set_revision(revision);
    }
    parts.extensions.insert(origin.clone());
}

/// Returns the client of a request, which was recorded.
pub(super) fn origin_of(parts: &Parts) -> Option<Arc<TrafficOrigin>> {
    parts.extensions.get().cloned()
}

/// Records the JSON-RPC error with which the transport itself refuses a message.
pub(super) fn record_refusal(server: &Inner, origin: &TrafficOrigin, response: &Response<Body>) {
    if let (Some(log), Some(message)) = (&server.traffic, response.body().as_bytes()) {
        log.record(Direction::Sent, origin, message);
    }
}
