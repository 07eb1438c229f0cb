//! Requests that no session tracks: all of 2026-07-28, and those of handshake revisions with the option `stateless`.
//!
//! Without sessions, each POST of a client of a handshake revision has a connection of its own, which assumes that the
//! handshake took place: with whichever process, in the revision that the header names.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use mcpline_protocol::Revision;
use mcpline_protocol::session::SessionScope;
use mcpline_protocol::wire::{Incoming, Message, Method, ReadError};

use crate::header_names::{PROTOCOL_VERSION, value_of};
use crate::message_sink::{MessageSink, ResponseStatus};
use crate::quota::ClientQuota;
use crate::server::HttpInfo;
use crate::server::connection::{Connection, ConnectionOptions};
use crate::server::traffic::TransportKind;

use super::in_flight::InFlight;
use super::legacy;
use super::post::{PendingResponse, accepted, unreadable};
use super::post_response::PostResponse;
use super::recorded;
use super::service::{Shared, principal, refusal};
use super::stream::Stream;

/// A request that is being served. If its client disconnects it is cancelled: while the outcome is awaited this is
/// dropped, and later the stream reports it.
pub(super) struct SessionlessRequest {
    pub(super) exchange: Arc<PostResponse>,
    /// `None` once there is an outcome.
    connection: Option<Arc<Connection>>,
    in_flight: Option<InFlight>,
    pub(super) status: fn(ResponseStatus) -> StatusCode,
}

impl SessionlessRequest {
    pub(super) fn new(
        shared: &Shared,
        exchange: Arc<PostResponse>,
        connection: Arc<Connection>,
        status: fn(ResponseStatus) -> StatusCode,
    ) -> Self {
        let in_flight = (!exchange.is_answered()).then(|| shared.in_flight.add(&connection));
        Self {
            exchange,
            connection: Some(connection),
            in_flight,
            status,
        }
    }

    /// Watches the stream for its end from now on, if the outcome is a stream.
    pub(super) fn follow(mut self) {
        if let Some(connection) = self.connection.take() {
            let in_flight = self.in_flight.take();
            self.exchange.on_lost(move || {
                connection.close();
                drop(in_flight);
            });
        }
    }
}

impl Drop for SessionlessRequest {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.cancel_all();
        }
    }
}

/// Passes the message of one POST of a handshake revision on, without a session.
pub(super) fn begin<'a>(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    incoming: Result<Incoming, ReadError>,
    client: &Arc<ClientQuota>,
) -> PendingResponse<'a> {
    let inner = shared.server.inner();
    let served = &inner.settings.revisions;
    if let Err(refusal) = legacy::check_version(&parts.headers, served) {
        return refusal.response().into();
    }
    let incoming = match incoming {
        Ok(incoming) => incoming,
        Err(error) => return unreadable(&error).into(),
    };
    inner.start(&tokio::runtime::Handle::current());
    let options = shared.options.clone();
    let reader = client.clone();
    let request = match &incoming {
        Incoming::Single(Message::Request(request)) => Some(request),
        _ => None,
    };
    let id = request.map(|request| request.id.clone());
    let exchange = PostResponse::new(client.clone(), id, move || {
        Stream::transient(&options, &reader)
    });
    let sink: Arc<dyn MessageSink> = exchange.clone();
    let connection = Connection::for_one_exchange(
        inner,
        ConnectionOptions {
            scope: SessionScope::Sessionless,
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
    );
    if !request.is_some_and(|request| request.method == Method::Initialize) {
        let mut session = connection.lock_session();
        session.assume_client(assumed_revision(parts, served));
        if matches!(incoming, Incoming::Batch(_))
            && let Err(error) = session.admit_batch()
        {
            return refusal(StatusCode::BAD_REQUEST, &error.message).into();
        }
    }
    let awaits = legacy::awaits_response(&incoming);
    let http = Arc::new(HttpInfo::of(parts));
    let _starting = shared.in_flight.start();
    connection.receive(Ok(incoming), &sink, Some(&http));
    if awaits {
        let request = SessionlessRequest::new(shared, exchange, connection, legacy::status);
        return PendingResponse::Sessionless(request);
    }
    if !connection.has_handled_notifications() {
        connection.hold_until_handled(shared.in_flight.add(&connection));
    }
    accepted().into()
}

/// Returns the revision in the header. Clients that send none are those of 2025-03-26 (2025-06-18, `basic/transports`,
/// protocol version header); if it is not served, of the newest handshake revision that is.
fn assumed_revision(parts: &Parts, served: &[Revision]) -> Revision {
    let named = value_of(&parts.headers, &PROTOCOL_VERSION);
    let named = named.and_then(|version| Revision::parse(version.to_str().ok()?.trim()));
    named.unwrap_or_else(|| {
        let usual = Revision::V2025_03_26;
        let mut others = Revision::ALL.iter().rev();
        match others.find(|other| !other.is_modern() && served.contains(other)) {
            Some(other) if !served.contains(&usual) => *other,
            _ => usual,
        }
    })
}
