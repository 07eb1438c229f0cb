//! Serves over a Unix socket: each connection is a client that sends and receives newline-delimited messages.

mod socket_file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::background;
use crate::error::Error;
use crate::quota::{Limit, LimitOwner, OpenConnection};
use crate::server::Server;
use crate::server::traffic::TransportKind;
use crate::warning_limit::warn_limited;

use super::single_connection::ConnectionIdentity;
use super::{Stop, Transport, pipe};

use socket_file::SocketFile;

/// Delay after `accept` failed for lack of file descriptors: an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Options of a server on a Unix socket. All defaults are safe for production.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnixOptions {
    /// Permissions of the socket file, which say who may connect. Default: `0o600`, the user of the server.
    ///
    /// `0o660` admits the group of the file too. The user of the server can always connect. The process's umask does not change them. Programs that can write the
    /// directory of the socket can replace it, whatever its permissions are.
    pub mode: u32,
    /// Maximum number of open connections; further ones are closed at once. Default: 256.
    ///
    /// A connection stays open as long as its client runs, so another one could wait without end. Each uses a file
    /// descriptor, of which many systems give a process 1,024.
    pub max_connections: usize,
}

impl Default for UnixOptions {
    fn default() -> Self {
        Self {
            mode: 0o600,
            max_connections: 256,
        }
    }
}

/// A Unix socket that is listening but not served yet. See [`unix()`].
#[derive(Debug)]
pub struct Unix {
    // Dropped before the listener: as long as the file exists, the socket listens, so that no other server takes it for a
    // stale one and replaces it.
    _file: Option<SocketFile>,
    listener: UnixListener,
    path: PathBuf,
    connections: usize,
}

/// Creates a Unix socket and listens on it.
///
/// Each connection is a client of its own, as over [`stdio`](super::stdio). Its messages are lines
/// (2026-07-28, `basic/transports/stdio`), so a [`Client`](crate::client::Client) connects by
/// [`Address::Socket`](crate::client::Address::Socket).
///
/// The socket has the permissions of `options` before it can be connected to. A socket that an ended server has left at
/// the path is replaced; one that another server uses is not, and neither is a file of another kind. The socket is
/// removed when serving ends.
///
/// Clients may use everything. The mode of the socket decides who may connect; to tell users apart, accept connections
/// yourself, and serve each of them with [`Lines::with_principal`](super::Lines::with_principal). Limits count the
/// connections of another user than the server's as one client ([`Settings::client_share`]), and those of the server's own
/// user, who could also end the server, as a client each.
///
/// [`Settings::client_share`]: crate::server::Settings::client_share
///
/// # Errors
///
/// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the socket cannot be created, or another server uses it.
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the path is too long for a socket, or an option is invalid. Abstract
/// sockets of Linux are refused, because they have no permissions: every user of the machine could connect.
pub async fn unix(path: impl AsRef<Path>, options: UnixOptions) -> Result<Unix, Error> {
    Unix::bind(path.as_ref(), options).await
}

impl Unix {
    async fn bind(path: &Path, options: UnixOptions) -> Result<Self, Error> {
        check_connections(&options)?;
        let (file, listener) = socket_file::listen(path, options.mode).await?;
        Ok(Self {
            _file: Some(file),
            listener,
            path: path.to_owned(),
            connections: options.max_connections,
        })
    }

    /// Uses a socket that is already listening. Its file stays when serving ends, and keeps its permissions.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): its address is unknown.
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): an option is invalid.
    pub fn from_listener(listener: UnixListener, options: UnixOptions) -> Result<Self, Error> {
        check_connections(&options)?;
        let address = listener.local_addr().map_err(|error| {
            Error::transport("listen", "cannot read the address of the listener", error)
        })?;
        Ok(Self {
            _file: None,
            listener,
            path: address
                .as_pathname()
                .map(Path::to_owned)
                .unwrap_or_default(),
            connections: options.max_connections,
        })
    }

    /// Returns the path of the socket; empty if the listener has none.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the address as messages show it, such as `unix:/run/weather.sock`.
    pub fn url(&self) -> String {
        format!("unix:{}", self.path.display())
    }
}

fn check_connections(options: &UnixOptions) -> Result<(), Error> {
    match options.max_connections {
        0 => Err(Error::usage(
            "`max_connections`: 0 would close every connection; at least 1 is needed",
        )),
        _ => Ok(()),
    }
}

impl Transport for Unix {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        if let Some(ready) = server.startup_message(Some(&self.url())) {
            tracing::info!("{ready}");
        }
        server.inner().start(&tokio::runtime::Handle::current());
        let own_user = rustix::process::geteuid().as_raw();
        // Cancelled when this set is dropped.
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.stopped() => break,
                Some(_) = open.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connections = (open.len(), self.connections);
                    let admitted = admit(&server, &stream, own_user, connections);
                    if let Some((peer, counted)) = admitted {
                        let (server, stop) = (server.clone(), stop.clone());
                        open.spawn(background::task(async move {
                            serve_client(stream, peer, &server, &stop).await;
                            drop(counted);
                        }));
                    }
                }
                Err(error) => {
                    warn_limited!(%error, "cannot accept a connection to the Unix socket; trying again (raise the limit of open files if it is reached, or lower `max_connections`)");
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

/// Returns the client of a connection; `None` if it is to be closed. `max_connections` are how many are open, and may be.
fn admit(
    server: &Server,
    stream: &UnixStream,
    own_user: u32,
    (open, most): (usize, usize),
) -> Option<(ConnectionIdentity, Option<OpenConnection>)> {
    let clients = server.inner().clients();
    if open >= most {
        clients
            .counts()
            .add_reached(Limit::Connections, LimitOwner::Server);
        warn_limited!(
            most,
            "closed a connection to the Unix socket: too many are open (`max_connections`)"
        );
        return None;
    }
    let user = match stream.peer_cred() {
        Ok(credentials) => credentials.uid(),
        Err(error) => {
            tracing::debug!(%error, "closed a connection: its user is unknown");
            return None;
        }
    };
    tracing::debug!(user, "a client has connected to the Unix socket");
    if user == own_user {
        return Some((ConnectionIdentity::Anonymous, None));
    }
    let client = clients.client(crate::quota::ClientKey::User(user));
    let counted = client.open_pipe(client.share_of(most));
    if counted.is_none() {
        warn_limited!(
            user,
            "closed a connection to the Unix socket: this user has too many (`max_connections`, `client_share`)"
        );
        return None;
    }
    Some((ConnectionIdentity::User(user), counted))
}

async fn serve_client(stream: UnixStream, peer: ConnectionIdentity, server: &Server, stop: &Stop) {
    let (reader, writer) = stream.into_split();
    let (reader, writer) = (Box::new(reader), Box::new(writer));
    let kind = TransportKind::Unix;
    if let Err(error) = pipe::serve(reader, writer, server, peer, kind, stop).await {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;

    /// Returns a server of which one client may use a quarter.
    fn server() -> Server {
        let settings = Settings {
            client_share: 0.25,
            ..Settings::default()
        };
        let server = Server::builder("test", "1").settings(settings);
        server.build().expect("valid")
    }

    #[tokio::test]
    async fn connections_of_another_user_are_one_client_with_its_share() {
        let (server, (stream, _client)) = (server(), UnixStream::pair().expect("a pair"));
        let user = stream.peer_cred().expect("credentials").uid();
        let another = user.wrapping_add(1);
        let admitted: Vec<_> = (0..3)
            .filter_map(|open| admit(&server, &stream, another, (open, 8)))
            .collect();
        assert_eq!(admitted.len(), 2);
        for (peer, _) in &admitted {
            assert!(matches!(peer, ConnectionIdentity::User(number) if *number == user));
        }
        drop(admitted);
        assert!(admit(&server, &stream, another, (0, 8)).is_some());
    }

    #[tokio::test]
    async fn connections_of_the_own_user_are_limited_together_only() {
        let (server, (stream, _client)) = (server(), UnixStream::pair().expect("a pair"));
        let user = stream.peer_cred().expect("credentials").uid();
        for open in 0..8 {
            let admitted = admit(&server, &stream, user, (open, 8));
            assert!(matches!(
                admitted,
                Some((ConnectionIdentity::Anonymous, None))
            ));
        }
        assert!(admit(&server, &stream, user, (8, 8)).is_none());
    }
}
