//! Where a server is.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::client_error::ClientError;
use crate::http_client::{HttpClient, HttpSettings, is_loopback, without_credentials};
use crate::server::Server;

use super::connect::{Dialler, Dialling};
use super::eras::KnownServer;
use super::http::{HttpLink, PairLink};
use super::link::{Ending, Link, Sink};
use super::memory::MemoryLink;
use super::pipe::{self, PipeLink};

/// Where a server is, and how it is reached.
#[non_exhaustive]
pub enum Address {
    /// A program to start and to speak to over its stdin and stdout.
    #[cfg(unix)]
    Command(super::Command),
    /// A URL that is spoken to over HTTP: Streamable HTTP of both eras, or HTTP+SSE where nothing else is served.
    Url(String, HttpSettings),
    /// A server in this process.
    Server(Server),
    /// A Unix socket with newline-delimited messages.
    Socket(PathBuf),
    /// A channel of your own.
    Custom(Arc<dyn Dial>),
}

/// A channel of your own: dialled once for each conversation, anew when the connection was lost.
pub trait Dial: Send + Sync {
    /// Opens the channel.
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Channel>> + Send + '_>>;
}

/// The two directions of a channel that carries one message, or batch, at a time.
#[derive(Debug)]
pub struct Channel {
    /// Messages to the server. Closed by the client when it has no more.
    pub to_server: mpsc::UnboundedSender<Bytes>,
    /// Messages from the server. Closed when the channel is.
    pub from_server: mpsc::Receiver<Bytes>,
}

#[cfg(unix)]
impl From<super::Command> for Address {
    fn from(command: super::Command) -> Self {
        Self::Command(command)
    }
}

impl From<&str> for Address {
    /// A URL, with default settings.
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned(), HttpSettings::default())
    }
}

impl From<String> for Address {
    /// A URL, with default settings.
    fn from(url: String) -> Self {
        Self::Url(url, HttpSettings::default())
    }
}

impl From<Server> for Address {
    fn from(server: Server) -> Self {
        Self::Server(server)
    }
}

impl From<&Server> for Address {
    fn from(server: &Server) -> Self {
        Self::Server(server.clone())
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            #[cfg(unix)]
            Self::Command(command) => command.fmt(f),
            // Without the settings: they may hold credentials.
            Self::Url(url, _) => f.debug_tuple("Url").field(url).finish_non_exhaustive(),
            Self::Server(_) => f.write_str("Server"),
            Self::Socket(path) => f.debug_tuple("Socket").field(path).finish(),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

impl Address {
    pub(super) fn into_dialler(self) -> Result<Box<dyn Dialler>, ClientError> {
        Ok(match self {
            #[cfg(unix)]
            Self::Command(command) => Box::new(command),
            Self::Url(url, settings) => {
                let client = HttpClient::of(&url, settings, tokio::runtime::Handle::current())?;
                let server = KnownServer::at(&without_credentials(&url));
                let server = (!is_loopback(&url)).then_some(server);
                Box::new(Http {
                    url,
                    client,
                    server,
                })
            }
            Self::Server(server) => Box::new(InMemory(server)),
            #[cfg(unix)]
            Self::Socket(path) => Box::new(UnixSocket(path)),
            #[cfg(not(unix))]
            Self::Socket(_) => {
                return Err(ClientError::Misuse(
                    "this system has no Unix sockets".to_owned(),
                ));
            }
            Self::Custom(dial) => Box::new(Custom(dial)),
        })
    }
}

struct Http {
    url: String,
    client: Arc<HttpClient>,
    /// `None` on this machine, where a port may soon be another program's: what one client finds there is no other's.
    server: Option<KnownServer>,
}

impl Dialler for Http {
    fn dial(&self, sink: Sink, pair: bool) -> Dialling<'_> {
        let link = if pair {
            PairLink::open(&self.url, &self.client, sink).map(|link| link as Arc<dyn Link>)
        } else {
            HttpLink::open(&self.url, &self.client, sink).map(|link| link as Arc<dyn Link>)
        };
        Box::pin(async { link })
    }

    fn known_server(&self) -> Option<KnownServer> {
        self.server
    }

    fn authorization(&self) -> u64 {
        self.client.authorization()
    }

    fn close(&self) -> Ending {
        self.client.close();
        let tasks = self.client.tasks.clone();
        Box::pin(async move { tasks.close().await })
    }
}

struct InMemory(Server);

impl Dialler for InMemory {
    fn dial(&self, sink: Sink, _: bool) -> Dialling<'_> {
        let link: Arc<dyn Link> = MemoryLink::open(&self.0, sink);
        Box::pin(async { Ok(link) })
    }
}

#[cfg(unix)]
struct UnixSocket(PathBuf);

#[cfg(unix)]
impl Dialler for UnixSocket {
    fn dial(&self, sink: Sink, _: bool) -> Dialling<'_> {
        Box::pin(async move {
            let socket = tokio::net::UnixStream::connect(&self.0).await;
            let socket = socket.map_err(|error| ClientError::Unreachable {
                reason: format!("{}: {error}", self.0.display()),
            })?;
            let (reader, writer) = socket.into_split();
            let end = |_, closed, pumped| async move { pipe::stream_ended(closed, pumped) };
            let link: Arc<dyn Link> = PipeLink::open(reader, writer, sink, end);
            Ok(link)
        })
    }
}

struct Custom(Arc<dyn Dial>);

impl Dialler for Custom {
    fn dial(&self, sink: Sink, _: bool) -> Dialling<'_> {
        Box::pin(async move {
            let channel = self.0.dial().await;
            let channel = channel.map_err(|error| ClientError::Unreachable {
                reason: error.to_string(),
            })?;
            let link: Arc<dyn Link> = super::channel::ChannelLink::open(channel, sink);
            Ok(link)
        })
    }
}
