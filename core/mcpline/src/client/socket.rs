//! Links over a Unix socket or a named pipe of Windows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(windows)]
use std::time::Duration;

#[cfg(windows)]
use mcpline_windows::PIPE_PREFIX;
#[cfg(windows)]
use tokio::io::{ReadHalf, WriteHalf};
#[cfg(unix)]
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
#[cfg(windows)]
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

use crate::client_error::ClientError;
use crate::span::NetworkAddress;

use super::connect::{DialFuture, Dialler};
use super::link::{Link, SharedEventSink};
use super::pipe::{self, PipeLink};

/// Dials a Unix socket or a named pipe.
pub(super) struct LocalSocketDialler {
    path: PathBuf,
    /// The path, or the name of the pipe.
    address: NetworkAddress,
    max_line_bytes: usize,
}

impl LocalSocketDialler {
    pub(super) fn new(path: PathBuf, max_line_bytes: usize) -> Self {
        let address = NetworkAddress {
            address: path.display().to_string(),
            port: None,
        };
        Self {
            path,
            address,
            max_line_bytes,
        }
    }
}

impl Dialler for LocalSocketDialler {
    fn dial(&self, sink: SharedEventSink, _: bool) -> DialFuture<'_> {
        Box::pin(async move {
            let connected = connect(&self.path).await;
            let (reader, writer) = connected.map_err(|error| ClientError::ServerUnreachable {
                reason: self.path.display().to_string(),
                source: Some(error.into()),
            })?;
            let end = |_, closed, pumped| async move { pipe::stream_ended(closed, pumped) };
            let link: Arc<dyn Link> =
                PipeLink::open(reader, writer, self.max_line_bytes, sink, None, end);
            Ok(link)
        })
    }

    fn server_address(&self) -> Option<&NetworkAddress> {
        Some(&self.address)
    }
}

#[cfg(unix)]
async fn connect(path: &Path) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    Ok(tokio::net::UnixStream::connect(path).await?.into_split())
}

/// Refuses what is not the name of a pipe of this machine. Otherwise the system would open a file, or ask another machine.
///
/// # Errors
///
/// [`ClientError::Usage`]
#[cfg(windows)]
pub(super) fn check_name(path: &Path) -> Result<(), ClientError> {
    let name = path.to_string_lossy();
    match name.strip_prefix(PIPE_PREFIX) {
        Some(rest) if !rest.is_empty() => Ok(()),
        _ => Err(ClientError::Usage(format!(
            r"{name} is not the name of a pipe: write \\.\pipe\NAME"
        ))),
    }
}

/// The error while all instances of a pipe are connected, and the server has not created the next one yet.
#[cfg(windows)]
const ERROR_PIPE_BUSY: i32 = 231;

#[cfg(windows)]
async fn connect(
    path: &Path,
) -> io::Result<(ReadHalf<NamedPipeClient>, WriteHalf<NamedPipeClient>)> {
    loop {
        match ClientOptions::new().open(path) {
            Ok(pipe) => return Ok(tokio::io::split(pipe)),
            // The client limits the time for this.
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error),
        }
    }
}
