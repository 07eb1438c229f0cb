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

/// The client of a connection.
#[derive(Debug)]
pub(super) enum ConnectionIdentity {
    /// A client that may use everything, and is a client of its own for all limits.
    Anonymous,
    /// A client that its transport has authenticated: its scopes apply, and limits count it together with the other
    /// connections of the principal.
    Principal(Caller),
    /// A process of a user of this machine. It may use everything; limits count it together with the other connections of
    /// the user.
    #[cfg(all(unix, feature = "stdio"))]
    User(u32),
}

impl From<Option<Caller>> for ConnectionIdentity {
    fn from(principal: Option<Caller>) -> Self {
        principal.map_or(Self::Anonymous, Self::Principal)
    }
}

/// Opens a connection whose messages go to `sink`.
///
/// # Panics
///
/// Outside a tokio runtime.
pub(super) fn open(
    server: &Server,
    peer: ConnectionIdentity,
    kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> Arc<Connection> {
    let options = options(server, peer, kind, sink);
    Connection::open(server.inner(), options)
}

/// Opens a connection as [`open`] does. Handlers see `headers` as those of an HTTP request.
#[cfg(feature = "http")]
pub(super) fn open_with_headers(
    server: &Server,
    peer: ConnectionIdentity,
    headers: http::HeaderMap,
    kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> Arc<Connection> {
    let options = options(server, peer, kind, sink);
    Connection::open_with_headers(server.inner(), options, headers)
}

fn options(
    server: &Server,
    peer: ConnectionIdentity,
    transport_kind: TransportKind,
    sink: &Arc<dyn MessageSink>,
) -> ConnectionOptions {
    let server = server.inner();
    server.start(&tokio::runtime::Handle::current());
    let (auth, principal, client) = match peer {
        ConnectionIdentity::Anonymous => (None, String::new(), server.clients().sole_client()),
        ConnectionIdentity::Principal(caller) => {
            let name = caller.principal();
            let key = ClientKey::Principal(name.clone());
            (Some(caller), name, server.clients().client(key))
        }
        #[cfg(all(unix, feature = "stdio"))]
        ConnectionIdentity::User(user) => {
            let client = server.clients().client(ClientKey::User(user));
            (None, client.name().to_owned(), client)
        }
    };
    ConnectionOptions {
        scope: SessionScope::Connection,
        limits: server.settings.session,
        general: sink.clone(),
        session_id: None,
        auth,
        principal,
        transport: server.next_transport(),
        transport_kind,
        traffic: None,
        client,
    }
}

/// Processes one message or batch of the client, charged to it.
pub(super) fn receive(connection: &Arc<Connection>, sink: &Arc<dyn MessageSink>, message: Bytes) {
    let read = |message| {
        let (server, kind) = (connection.server(), connection.transport_kind());
        traffic::read(server, kind, connection.traffic(), message)
    };
    if message.len() < UNCHARGED_BYTES {
        connection.receive(read(message), sink, None);
        return;
    }
    match connection.client().hold_bytes(message.len()) {
        Ok(charge) => {
            let message = quota::attach_charge(message, charge);
            connection.receive(read(message), sink, None);
        }
        Err(exceeded) => {
            connection.receive_without_room(read(message), sink, exceeded);
        }
    }
}
