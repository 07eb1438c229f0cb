//! Transports of servers: stdio, Unix sockets (on Windows named pipes), Streamable HTTP, HTTP+SSE, in memory, or custom.

#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub mod http;
mod memory;
#[cfg(all(windows, feature = "stdio"))]
mod named_pipe;
mod pipe;
#[cfg(all(test, mcpline_models))]
mod race_models;
mod single_connection;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(all(unix, feature = "stdio"))]
mod unix;

use std::future::Future;
use std::time::Duration;

use crate::error::Error;
use crate::server::Server;

/// How long a closing transport waits for its last responses to be written. A client that reads takes milliseconds, and
/// the process should end within a second after the grace period.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_millis(750);

/// How long calls in flight may continue after a client has closed its direction properly. Few clients wait long then,
/// but
/// `echo … | server` expects its response.
pub(crate) const EOF_GRACE: Duration = Duration::from_secs(1);

pub use crate::stop::Stop;
pub use memory::{MemoryTransport, MemoryTransportOptions};
#[cfg(all(windows, feature = "stdio"))]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use named_pipe::{NamedPipe, NamedPipeOptions, named_pipe};
pub use pipe::{Lines, lines};
#[cfg(feature = "stdio")]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use stdio::{Stdio, stdio};
#[cfg(all(unix, feature = "stdio"))]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use unix::{Unix, UnixOptions, unix};

/// A transport of a server.
///
/// To implement a custom one, create a connection with [`Server::connect_as`], or with [`Server::connect`] where the
/// client may use everything. Pass each message of the client to [`MemoryTransport::send`], and send the client what
/// [`MemoryTransport::receive`] returns. [`MemoryTransport::ready`] says when to read the next message. For byte streams use [`lines`]
/// instead.
pub trait Transport: Send {
    /// Serves until the client disconnects or `stop` is signalled, then ends within the server's grace period.
    ///
    /// # Errors
    ///
    /// [`Error`]: the transport cannot be opened or fails.
    fn serve(self, server: Server, stop: Stop) -> impl Future<Output = Result<(), Error>> + Send;
}

impl Server {
    /// Serves over a transport until it ends.
    ///
    /// # Errors
    ///
    /// [`Error`]: the transport cannot be opened or fails.
    pub async fn serve(&self, transport: impl Transport) -> Result<(), Error> {
        self.serve_until(transport, Stop::never()).await
    }

    /// Serves over a transport until it ends or `stop` is signalled.
    ///
    /// # Errors
    ///
    /// [`Error`]: the transport cannot be opened or fails.
    pub async fn serve_until(&self, transport: impl Transport, stop: Stop) -> Result<(), Error> {
        let served = transport.serve(self.clone(), stop).await;
        self.inner().wait_for_records().await;
        served
    }
}
