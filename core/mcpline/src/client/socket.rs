//! Links over a Unix socket.

use std::path::PathBuf;
use std::sync::Arc;

use crate::client_error::ClientError;
use crate::span::NetworkAddress;

use super::connect::{Dialler, Dialling};
use super::link::{Link, Sink};
use super::pipe::{self, PipeLink};

/// Dials a Unix socket.
pub(super) struct UnixSocket {
    path: PathBuf,
    /// The path.
    address: NetworkAddress,
    line_limit: usize,
}

impl UnixSocket {
    pub(super) fn new(path: PathBuf, line_limit: usize) -> Self {
        let address = NetworkAddress {
            address: path.display().to_string(),
            port: None,
        };
        Self {
            path,
            address,
            line_limit,
        }
    }
}

impl Dialler for UnixSocket {
    fn dial(&self, sink: Sink, _: bool) -> Dialling<'_> {
        Box::pin(async move {
            let socket = tokio::net::UnixStream::connect(&self.path).await;
            let socket = socket.map_err(|error| ClientError::ServerUnreachable {
                reason: self.path.display().to_string(),
                source: Some(error.into()),
            })?;
            let (reader, writer) = socket.into_split();
            let end = |_, closed, pumped| async move { pipe::stream_ended(closed, pumped) };
            let link: Arc<dyn Link> =
                PipeLink::open(reader, writer, self.line_limit, sink, None, end);
            Ok(link)
        })
    }

    fn server_address(&self) -> Option<&NetworkAddress> {
        Some(&self.address)
    }
}
