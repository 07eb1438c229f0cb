//! Sockets that only programs of the machine reach: Unix sockets, and on Windows named pipes.

use std::path::Path;

use crate::error::Error;

#[cfg(windows)]
pub use crate::transport::{NamedPipe as LocalSocket, NamedPipeOptions as LocalSocketOptions};
#[cfg(unix)]
pub use crate::transport::{Unix as LocalSocket, UnixOptions as LocalSocketOptions};

/// Listens on a Unix socket at this path, or on the named pipe with this name.
///
/// # Errors
///
/// Those of `transport::unix` and `transport::named_pipe`.
#[cfg(unix)]
pub async fn local_socket(
    path: impl AsRef<Path>,
    options: LocalSocketOptions,
) -> Result<LocalSocket, Error> {
    crate::transport::unix(path, options).await
}

/// Listens on a Unix socket at this path, or on the named pipe with this name.
///
/// # Errors
///
/// Those of `transport::unix` and `transport::named_pipe`.
#[cfg(windows)]
#[expect(clippy::unused_async, reason = "as on Unix")]
pub async fn local_socket(
    path: impl AsRef<Path>,
    options: LocalSocketOptions,
) -> Result<LocalSocket, Error> {
    crate::transport::named_pipe(path.as_ref(), options)
}
