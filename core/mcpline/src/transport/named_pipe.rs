//! Serves over a named pipe of Windows: each connection is a client that sends and receives newline-delimited messages.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;

use mcpline_windows::{PIPE_PREFIX, create_pipe};
use tokio::net::windows::named_pipe::NamedPipeServer;
use tokio::task::JoinSet;

use crate::background;
use crate::error::Error;
use crate::quota::{Limit, LimitOwner};
use crate::server::Server;
use crate::server::traffic::TransportKind;
use crate::warning_limit::warn_limited;

use super::single_connection::ConnectionIdentity;
use super::{Stop, Transport, pipe};

/// Delay after a connection could not be accepted: an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Options of a server on a named pipe. All defaults are safe for production.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPipeOptions {
    /// Maximum number of open connections; further ones are closed at once. Default: 256.
    pub max_connections: usize,
}

impl Default for NamedPipeOptions {
    fn default() -> Self {
        Self {
            max_connections: 256,
        }
    }
}

/// A named pipe that is listening but not served yet. See [`named_pipe()`].
#[derive(Debug)]
pub struct NamedPipe {
    name: OsString,
    /// Accepts the next connection.
    next: NamedPipeServer,
    connections: usize,
}

/// Creates a named pipe and listens on it. Its name begins with `\\.\pipe\`.
///
/// Each connection is a client of its own, as over [`stdio`](super::stdio). Its messages are lines
/// (2026-07-28, `basic/transports/stdio`), so a [`Client`](crate::client::Client) connects by
/// [`Address::Socket`](crate::client::Address::Socket).
///
/// Only the user of the server and the system may connect, and only from this machine. Connected clients may use every feature. Fails
/// if another process listens on the name.
///
/// # Errors
///
/// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the pipe cannot be created, or another server uses it.
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the name or an option is invalid.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn named_pipe(name: impl AsRef<OsStr>, options: NamedPipeOptions) -> Result<NamedPipe, Error> {
    let name = name.as_ref();
    let shown = name.to_string_lossy();
    if !shown.starts_with(PIPE_PREFIX) || shown.len() == PIPE_PREFIX.len() {
        return Err(Error::usage(format!(
            r"`{shown}` is not the name of a pipe: it must begin with `\\.\pipe\` and have a name after that"
        )));
    }
    if options.max_connections == 0 {
        return Err(Error::usage(
            "`max_connections`: 0 would close every connection; at least 1 is needed",
        ));
    }
    let next = create_pipe(name, true)
        .map_err(|error| Error::transport("listen", format!("cannot listen on {shown}"), error))?;
    Ok(NamedPipe {
        name: name.to_owned(),
        next,
        connections: options.max_connections,
    })
}

impl NamedPipe {
    /// Returns the name of the pipe.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the address as messages show it, such as `pipe:\\.\pipe\weather`.
    pub fn url(&self) -> String {
        format!("pipe:{}", self.name.to_string_lossy())
    }

    /// Accepts a connection, and creates what accepts the next one.
    async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        let connected = self.next.connect().await;
        // Also in place of one that failed.
        let next = create_pipe(&self.name, false)?;
        let accepted = std::mem::replace(&mut self.next, next);
        connected.map(|()| accepted)
    }
}

impl Transport for NamedPipe {
    async fn serve(mut self, server: Server, stop: Stop) -> Result<(), Error> {
        if let Some(ready) = server.startup_message(Some(&self.url())) {
            tracing::info!("{ready}");
        }
        server.inner().start(&tokio::runtime::Handle::current());
        // Cancelled when this set is dropped.
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.stopped() => break,
                Some(_) = open.join_next() => continue,
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok(_) if open.len() >= self.connections => {
                    let counts = server.inner().clients().counts();
                    counts.add_reached(Limit::Connections, LimitOwner::Server);
                    warn_limited!(
                        most = self.connections,
                        "closed a connection to the named pipe: too many are open (`max_connections`)"
                    );
                }
                Ok(connection) => {
                    let (server, stop) = (server.clone(), stop.clone());
                    open.spawn(background::task(async move {
                        serve_client(connection, &server, &stop).await;
                    }));
                }
                Err(error) => {
                    warn_limited!(%error, "cannot accept a connection to the named pipe; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self);
        // Each ends within the grace period.
        while open.join_next().await.is_some() {}
        Ok(())
    }
}

async fn serve_client(connection: NamedPipeServer, server: &Server, stop: &Stop) {
    let (reader, writer) = tokio::io::split(connection);
    let (reader, writer) = (Box::new(reader), Box::new(writer));
    let kind = TransportKind::Unix;
    if let Err(error) = pipe::serve(
        reader,
        writer,
        server,
        ConnectionIdentity::Anonymous,
        kind,
        stop,
    )
    .await
    {
        tracing::debug!(%error, "a connection ended");
    }
}
