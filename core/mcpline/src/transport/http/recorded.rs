//! Records of messages over HTTP in debug mode that reach no connection, or have none yet.

use http::{HeaderMap, HeaderName, Response};
use mcpline_protocol::Revision;

use crate::header_names::{PROTOCOL_VERSION, SESSION_ID};
use crate::server::Inner;
use crate::server::traffic::{Direction, TrafficOrigin, TransportKind};

use super::response_body::Body;

/// Returns the client of a request as its headers name it; `None` if messages are not recorded.
#[inline]
pub(super) fn origin(server: &Inner, headers: &HeaderMap) -> Option<TrafficOrigin> {
    server.traffic.as_ref().map(|_| named(headers))
}

#[cold]
fn named(headers: &HeaderMap) -> TrafficOrigin {
    let header = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let origin = TrafficOrigin::new(TransportKind::Http, 0, header(&SESSION_ID));
    if let Some(revision) = header(&PROTOCOL_VERSION).and_then(|name| Revision::parse(name.trim()))
    {
        origin.set_revision(revision);
    }
    origin
}

/// Records the JSON-RPC error with which the transport itself refuses a message.
pub(super) fn record_refusal(server: &Inner, origin: &TrafficOrigin, response: &Response<Body>) {
    if let (Some(log), Some(message)) = (&server.traffic, response.body().as_bytes()) {
        log.record(Direction::Sent, origin, message);
    }
}
