//! The server of a client, as given by foreign code.

use std::ffi::OsString;
#[cfg(feature = "stdio")]
use std::path::PathBuf;
use std::sync::Arc;

use mcpline_protocol::wire::Raw;

use crate::client::Address;
use crate::error::Error;
use crate::foreign::HostRequestHandlers;
use crate::foreign::channel::{ChannelAddress, OpenChannel};
#[cfg(feature = "http")]
use crate::foreign::options::HttpClientOptions;
#[cfg(feature = "server")]
use crate::foreign::options::MemoryClientOptions;
#[cfg(feature = "stdio")]
use crate::foreign::options::ProgramOptions;
use crate::foreign::options::read;
#[cfg(feature = "server")]
use crate::transport::MemoryTransportOptions;

use super::config_file::configured_server;
use super::input_requests::host_gone_error;

/// The server of a client. Creates an address for each attempt to open a connection.
pub struct Target(ServerAddress);

enum ServerAddress {
    /// Options of HTTP, as JSON.
    #[cfg(feature = "http")]
    Url(String, Vec<u8>),
    /// A program with its options, as JSON.
    #[cfg(feature = "stdio")]
    Program(Vec<u8>),
    #[cfg(feature = "stdio")]
    Socket(PathBuf),
    #[cfg(feature = "server")]
    Server(crate::Server, MemoryTransportOptions),
    Channel(Arc<dyn OpenChannel>),
}

/// Omits the options, which may hold credentials.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(feature = "server")]
impl From<crate::Server> for Target {
    /// A server in this process.
    fn from(server: crate::Server) -> Self {
        Self(ServerAddress::Server(server, MemoryTransportOptions::new()))
    }
}

impl From<Arc<dyn OpenChannel>> for Target {
    /// A transport in foreign code.
    fn from(channels: Arc<dyn OpenChannel>) -> Self {
        Self(ServerAddress::Channel(channels))
    }
}

impl ServerAddress {
    /// Reads a location by its kind. Its options are checked when an address is created from it.
    fn read(kind: &str, at: OsString, options: &[u8]) -> Result<Self, Error> {
        // Not used in every build.
        let _ = (&at, options);
        match kind {
            #[cfg(feature = "http")]
            "url" => {
                let url = at.into_string();
                let url = url.map_err(|_| Error::usage("the URL is not Unicode"))?;
                Ok(Self::Url(url, options.to_owned()))
            }
            #[cfg(feature = "stdio")]
            "program" => Ok(Self::Program(options.to_owned())),
            #[cfg(feature = "stdio")]
            "socket" => Ok(Self::Socket(at.into())),
            other => Err(Error::usage(format!(
                "transport {other:?} is not available in this build or on this system"
            ))),
        }
    }
}

impl Target {
    /// Returns the target for a server in this process. `options`: `MemoryClientOptions` as JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options have another form, or a header is invalid.
    #[cfg(feature = "server")]
    pub fn server(server: crate::Server, options: &[u8]) -> Result<Self, Error> {
        let options: MemoryClientOptions = read("the options of the client", options)?;
        Ok(Self(ServerAddress::Server(server, options.memory()?)))
    }

    /// Returns the target for a server in a configuration file: see [`ConfiguredServer`](crate::client::ConfiguredServer).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage)
    pub fn of_configured_server(path: &str, name: Option<&str>) -> Result<Self, Error> {
        let server = configured_server(path, name)?;
        let url = server.member("url");
        match url.as_ref().and_then(Raw::string_value) {
            Some(url) => {
                let headers = server.member("headers").unwrap_or(Raw::EMPTY_ARRAY);
                let options = format!(r#"{{"headers":{headers}}}"#);
                Self::read("url", OsString::from(&*url), options.as_bytes())
            }
            None => Self::read("program", OsString::new(), server.as_bytes()),
        }
    }

    /// Reads a target by its kind.
    ///
    /// - `kind`: `"url"`, `"program"` or `"socket"`.
    /// - `at`: the URL, or the path of the socket; not used for a program.
    /// - `options`: as JSON, `HttpClientOptions` for a URL and `ProgramOptions` for a program; not used for a socket.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options have another form, the URL is not Unicode, or this
    /// build or system does not have the kind.
    pub fn read(kind: &str, at: OsString, options: &[u8]) -> Result<Self, Error> {
        let target = Self(ServerAddress::read(kind, at, options)?);
        target.address(
            Some(&|_| Arc::new(|_| Box::pin(async { Err(host_gone_error()) }))),
            None::<fn(&str)>,
        )?;
        Ok(target)
    }

    /// Creates the address. `request_handlers` answer requests of authorization, and `stderr` receives the lines of a
    /// process's stderr.
    pub(super) fn address(
        &self,
        request_handlers: HostRequestHandlers<'_>,
        stderr: Option<impl Fn(&str) + Send + Sync + 'static>,
    ) -> Result<Address, Error> {
        // Not used in every build.
        let _ = (request_handlers, &stderr, read::<serde_json::Value>);
        Ok(match &self.0 {
            #[cfg(feature = "http")]
            ServerAddress::Url(url, options) => {
                let options: HttpClientOptions = read("the settings of HTTP", options)?;
                options.address(url.clone(), request_handlers)?
            }
            #[cfg(feature = "stdio")]
            ServerAddress::Program(options) => {
                let options: ProgramOptions = read("the program", options)?;
                let command = options.command()?;
                Address::Command(match stderr {
                    Some(stderr) => command.on_stderr(stderr),
                    None => command,
                })
            }
            #[cfg(feature = "stdio")]
            ServerAddress::Socket(path) => Address::Socket(path.clone()),
            #[cfg(feature = "server")]
            ServerAddress::Server(server, options) => {
                Address::ServerWith(server.clone(), options.clone())
            }
            ServerAddress::Channel(channels) => ChannelAddress::new(channels.clone()).into(),
        })
    }
}
