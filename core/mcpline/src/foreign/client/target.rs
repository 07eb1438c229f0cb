//! Where a client's server is, as foreign code gives it.

use std::ffi::OsString;

use crate::client::Address;
use crate::error::Error;
#[cfg(feature = "http")]
use crate::foreign::options::HttpClientOptions;
#[cfg(all(unix, feature = "stdio"))]
use crate::foreign::options::ProgramOptions;
use crate::foreign::options::read;

use super::handle::Host;

/// Where a server is: options for an address, or the address itself.
#[derive(Debug)]
pub enum Target {
    /// Behind a URL.
    #[cfg(feature = "http")]
    Url(String, HttpClientOptions),
    /// A program to be started.
    #[cfg(all(unix, feature = "stdio"))]
    Program(ProgramOptions),
    /// Known without options: a socket, a server in this process, a channel.
    Address(Address),
}

impl Target {
    /// Reads a target by its kind.
    ///
    /// - `kind`: `"url"`, `"program"` or `"socket"`.
    /// - `at`: the URL, or the path of the socket; not used for a program.
    /// - `options`: as JSON, `HttpClientOptions` for a URL and `ProgramOptions` for a program; not used for a socket.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options are not these, the URL is not Unicode, or there is no such
    /// kind in this build or on this system.
    pub fn read(kind: &str, at: OsString, options: &[u8]) -> Result<Self, Error> {
        // Not every build uses them.
        let _ = (&at, options, read::<serde_json::Value>);
        match kind {
            #[cfg(feature = "http")]
            "url" => {
                let url = at.into_string();
                let url = url.map_err(|_| Error::usage("the URL is not Unicode"))?;
                Ok(Self::Url(url, read("the settings of HTTP", options)?))
            }
            #[cfg(all(unix, feature = "stdio"))]
            "program" => Ok(Self::Program(read("the program", options)?)),
            #[cfg(feature = "stdio")]
            "socket" => Ok(Self::Address(Address::Socket(at.into()))),
            other => Err(Error::usage(format!(
                "servers at a {other} can't be reached by this build, or on this system"
            ))),
        }
    }

    /// The address. The host answers what authorization asks, and hears the lines of a process's stderr if it wants to.
    pub(super) fn address(self, host: &Host, wants_stderr: bool) -> Result<Address, Error> {
        let _ = (host, wants_stderr);
        match self {
            #[cfg(feature = "http")]
            Self::Url(url, options) => {
                let answerers = |method: &'static str| host.input_requests().answerer(method);
                options.address(url, Some(&answerers))
            }
            #[cfg(all(unix, feature = "stdio"))]
            Self::Program(options) => {
                let command = options.command()?;
                Ok(Address::Command(match wants_stderr {
                    true => command.on_stderr(host.stderr_listener()),
                    false => command,
                }))
            }
            Self::Address(address) => Ok(address),
        }
    }
}
