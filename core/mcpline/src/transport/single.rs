//! Connections that are the only one of their transport: a pipe, a message channel.

use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::session::SessionScope;

use crate::caller::Caller;
use crate::message_sink::MessageSink;
use crate::quota::{self, ClientKey, UNCHARGED_BYTES};
use crate::server::Server;
use crate::server::connection::{Connection, ConnectionOptions};
use crate::server::traffic::{self, TransportKind};

/// Opens a connection whose messages go to `sink`. It acts for `principal`: its scopes apply, and memory is charged to
/// it together with its other connections. Without a principal the client may use everything.
///
/// # Panics
///
/// Outside a tokio runtime.
pub(super) fn open(
    server: &Server,
    principal: Option<Caller>,
    kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> Arc<Connection> {
    let options = options(server, principal, kind, sink);
    Connection::open(server.inner(), options)
}

/// Opens a connection as [`open`] does. Handlers see `headers` as those of an HTTP request.
#[cfg(feature = "http")]
pub(super) fn open_with_headers(
    server: &Server,
    principal: Option<Caller>,
    headers: http::HeaderMap,
    kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> Arc<Connection> {
    let options = options(server, principal, kind, sink);
    Connection::open_with_headers(server.inner(), options, headers)
}

fn options(
    server: &Server,
    principal: Option<Caller>,
    transport_kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> ConnectionOptions {
    let server = server.inner();
    server.start(&tokio::runtime::Handle::current());
    let (name, client) = match &principal {
        Some(principal) => {
            let name = principal.principal();
            let key = ClientKey::Principal(name.clone());
            (name, server.clients().client(key))
        }
        None => (String::new(), server.clients().sole_client()),
    };
    ConnectionOptions {
        scope: SessionScope::Connection,
        limits: server.settings.session,
        general: sink.clone(),
        session_id: None,
        auth: principal,
        principal: name,
        transport: server.next_transport(),
        transport_kind,
        traffic: None,
        client,
    }
}

/// Processes one message or batch of the client, charged to it.
pub(super) fn receive(connection: &Arc<Connection>, sink: &Arc<dyn MessageSink>, message: Bytes) {
    let read = |message| traffic::read(connection.server(), connection.traffic(), message);
    if message.len() < UNCHARGED_BYTES {
        connection.receive(read(message), sink, None);
        return;
    }
    match connection.client().hold_bytes(message.len()) {
        Ok(charge) => {
            let message = quota::charged(message, charge);
            connection.receive(read(message), sink, None);
        }
        Err(exceeded) => {
            connection.receive_without_room(read(message), sink, exceeded);
        }
    }
}
