//! How messages reach a server: stdio, Streamable HTTP, HTTP+SSE, in memory, or a channel of your own.

#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub mod http;
mod memory;
#[cfg(all(test, mcpline_models))]
mod models;
mod pipe;
mod single;
#[cfg(all(unix, feature = "stdio"))]
mod stdio;

use std::future::Future;
use std::time::Duration;

use crate::error::Error;
use crate::server::Server;

/// How long a transport that ends waits for its last answers to be written: a client that reads takes milliseconds, and
/// the process is to end within a second of the grace period.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_millis(750);

/// After a client has closed its direction in good order, how long calls in flight may still take: few clients wait for
/// long then, but `echo … | server` wants its answer.
pub(crate) const EOF_GRACE: Duration = Duration::from_secs(1);

pub use crate::stop::Stop;
pub use memory::Memory;
pub use pipe::{Lines, lines};
#[cfg(all(unix, feature = "stdio"))]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use stdio::{Stdio, stdio};

/// A way to serve.
///
/// Implement it for a channel of your own: take messages off it, hand each to [`Memory::send`] of a
/// [`Server::connect_as`] connection, or [`Server::connect`] where the client may do everything, and put what
/// [`Memory::receive`] yields back on it. [`Memory::ready`] says when to take the next message off the channel. Where the
/// channel is a byte stream, [`lines`] already does all that.
pub trait Transport: Send {
    /// Serves until the other end is gone or `stop` says so, then ends within the server's grace period.
    ///
    /// # Errors
    ///
    /// If the channel can't be opened or breaks.
    fn serve(self, server: Server, stop: Stop) -> impl Future<Output = Result<(), Error>> + Send;
}

impl Server {
    /// Serves over a transport until its other end is gone.
    ///
    /// # Errors
    ///
    /// If the channel can't be opened or breaks.
    pub async fn serve(&self, transport: impl Transport) -> Result<(), Error> {
        transport.serve(self.clone(), Stop::never()).await
    }

    /// Serves over a transport until its other end is gone or `stop` says so.
    ///
    /// # Errors
    ///
    /// If the channel can't be opened or breaks.
    pub async fn serve_until(&self, transport: impl Transport, stop: Stop) -> Result<(), Error> {
        transport.serve(self.clone(), stop).await
    }
}
