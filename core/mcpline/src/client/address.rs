//! Addresses of servers.

use std::future::Future;
use std::io;
use std::path::Path;
#[cfg(feature = "stdio")]
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::client_error::ClientError;
use crate::error::Error;
#[cfg(feature = "http")]
use crate::http_client::HttpSettings;
#[cfg(feature = "server")]
use crate::server::{Caller, Server};
#[cfg(feature = "server")]
use crate::transport::MemoryTransportOptions;

use super::config_file::ConfiguredServer;
use super::connect::{DialFuture, Dialler};
#[cfg(feature = "http")]
use super::http::HttpDialler;
use super::link::{Link, SharedEventSink};
#[cfg(feature = "server")]
use super::memory::MemoryDialler;
#[cfg(feature = "stdio")]
use super::socket::LocalSocketDialler;

/// Where a server is and how to reach it.
#[non_exhaustive]
pub enum Address {
    /// A program to start; messages are exchanged over its standard input and output.
    #[cfg(feature = "stdio")]
    #[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
    Command(super::Command),
    /// A URL: Streamable HTTP, or HTTP+SSE if the server has nothing else.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    Url(String, HttpSettings),
    /// A server in this process.
    #[cfg(feature = "server")]
    #[cfg_attr(docsrs, doc(cfg(feature = "server")))]
    Server(Server),
    /// A server in this process whose handlers see the client as the options describe it, as with
    /// [`Server::connect_with`].
    #[cfg(feature = "server")]
    #[cfg_attr(docsrs, doc(cfg(feature = "server")))]
    ServerWith(Server, MemoryTransportOptions),
    /// A Unix socket with newline-delimited messages; on Windows a named pipe, whose name begins with `\\.\pipe\`.
    #[cfg(feature = "stdio")]
    #[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
    Socket(PathBuf),
    /// A custom channel.
    Custom(Arc<dyn ClientTransport>),
}

/// A custom channel to a server. Opened for each connection, and again after a loss.
pub trait ClientTransport: Send + Sync {
    /// Opens the channel.
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Channel>> + Send + '_>>;
}

/// The two directions of a channel that carries one message or batch at a time.
#[derive(Debug)]
pub struct Channel {
    /// Messages to the server. The client closes it at the end.
    pub to_server: mpsc::UnboundedSender<Bytes>,
    /// Messages from the server. Close it when the channel closes. An error ends the channel; open requests fail with
    /// its message.
    pub from_server: mpsc::Receiver<io::Result<Bytes>>,
}

#[cfg(feature = "stdio")]
impl From<super::Command> for Address {
    fn from(command: super::Command) -> Self {
        Self::Command(command)
    }
}

#[cfg(feature = "http")]
impl From<&str> for Address {
    /// A URL, with default settings.
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned(), HttpSettings::default())
    }
}

#[cfg(feature = "http")]
impl From<String> for Address {
    /// A URL, with default settings.
    fn from(url: String) -> Self {
        Self::Url(url, HttpSettings::default())
    }
}

#[cfg(feature = "server")]
impl From<Server> for Address {
    fn from(server: Server) -> Self {
        Self::Server(server)
    }
}

#[cfg(feature = "server")]
impl From<&Server> for Address {
    fn from(server: &Server) -> Self {
        Self::Server(server.clone())
    }
}

#[cfg(feature = "server")]
impl From<(&Server, Caller)> for Address {
    /// A server in this process, in the name of a principal.
    fn from((server, caller): (&Server, Caller)) -> Self {
        Self::ServerWith(server.clone(), caller.into())
    }
}

#[cfg(feature = "server")]
impl From<(&Server, MemoryTransportOptions)> for Address {
    /// A server in this process, whose handlers see the client as the options describe it.
    fn from((server, options): (&Server, MemoryTransportOptions)) -> Self {
        Self::ServerWith(server.clone(), options)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            #[cfg(feature = "stdio")]
            Self::Command(command) => command.fmt(f),
            // Without the settings: they may hold credentials.
            #[cfg(feature = "http")]
            Self::Url(url, _) => f.debug_tuple("Url").field(url).finish_non_exhaustive(),
            #[cfg(feature = "server")]
            Self::Server(_) => f.write_str("Server"),
            #[cfg(feature = "server")]
            Self::ServerWith(_, options) => f
                .debug_tuple("ServerWith")
                .field(options)
                .finish_non_exhaustive(),
            #[cfg(feature = "stdio")]
            Self::Socket(path) => f.debug_tuple("Socket").field(path).finish(),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

impl Address {
    /// Returns the address of a server in a configuration file of a host, such as `mcp.json`; see
    /// [`ConfiguredServer::read`], which is for programs that change it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage)
    pub fn from_config(path: impl AsRef<Path>, name: Option<&str>) -> Result<Self, Error> {
        ConfiguredServer::read(path, name)?.address()
    }

    /// Returns the name of the transport in records of messages.
    pub(super) fn transport(&self) -> &'static str {
        match self {
            #[cfg(feature = "stdio")]
            Self::Command(_) => "stdio",
            #[cfg(feature = "http")]
            Self::Url(..) => "http",
            #[cfg(feature = "server")]
            Self::Server(_) | Self::ServerWith(..) => "memory",
            #[cfg(feature = "stdio")]
            Self::Socket(_) => "unix",
            Self::Custom(_) => "memory",
        }
    }

    /// Returns what opens connections. `max_line_bytes` is for transports with lines.
    #[cfg_attr(
        not(feature = "stdio"),
        expect(unused_variables, reason = "no transport has lines")
    )]
    pub(super) fn into_dialler(
        self,
        max_line_bytes: usize,
    ) -> Result<Box<dyn Dialler>, ClientError> {
        Ok(match self {
            #[cfg(feature = "stdio")]
            Self::Command(mut command) => {
                command.max_line_bytes = max_line_bytes;
                Box::new(command)
            }
            #[cfg(feature = "http")]
            Self::Url(url, settings) => Box::new(HttpDialler::new(url, settings)?),
            #[cfg(feature = "server")]
            Self::Server(server) => Box::new(MemoryDialler(server, MemoryTransportOptions::new())),
            #[cfg(feature = "server")]
            Self::ServerWith(server, options) => Box::new(MemoryDialler(server, options)),
            #[cfg(feature = "stdio")]
            Self::Socket(path) => {
                #[cfg(windows)]
                super::socket::check_name(&path)?;
                Box::new(LocalSocketDialler::new(path, max_line_bytes))
            }
            Self::Custom(dial) => Box::new(CustomDialler(dial)),
        })
    }
}

struct CustomDialler(Arc<dyn ClientTransport>);

impl Dialler for CustomDialler {
    fn dial(&self, sink: SharedEventSink, _: bool) -> DialFuture<'_> {
        Box::pin(async move {
            let channel = self.0.dial().await;
            let channel = channel.map_err(|error| ClientError::ServerUnreachable {
                reason: String::new(),
                source: Some(error.into()),
            })?;
            let link: Arc<dyn Link> = super::channel::ChannelLink::open(channel, sink);
            Ok(link)
        })
    }
}
