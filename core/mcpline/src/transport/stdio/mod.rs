//! Serves over stdin and stdout.
//!
//! The real stdin and stdout are moved to private ones first, which child processes do not inherit. Until serving ends,
//! standard input is the null device and standard output is standard error. A stray `print` then goes to stderr instead
//! of breaking the protocol, and a child process cannot read the input. What systems need for this is in [`system`].

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::server::Server;
use crate::server::traffic::TransportKind;

use super::pipe as lines;
use super::single_connection::ConnectionIdentity;
use super::{Stop, Transport};

/// Only one server can own a process's stdin and stdout.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Serves over the standard input and output of this process. See [`stdio`].
#[derive(Default)]
pub struct Stdio {
    flush: Option<Flush>,
}

type Flush = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Creates the stdio transport. Its client is the parent process, which may use everything.
///
/// Serving ends when standard input ends. Until then, this process and its child processes read the null device as
/// standard input, and everything that they write to standard output, as with `print!`, goes to standard error.
pub fn stdio() -> Stdio {
    Stdio::default()
}

impl Stdio {
    /// Sets a function that is awaited when the client is gone, before standard output is restored. It should flush what
    /// this process has buffered for standard output, which would reach the client otherwise, and limit the time for that.
    #[must_use]
    pub fn flush_before_end<F>(mut self, flush: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.flush = Some(Box::new(move || Box::pin(flush())));
        self
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").finish_non_exhaustive()
    }
}

impl Transport for Stdio {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        // First, because standard input is another one afterwards.
        let ready = server.startup_message(None);
        let mut taken = StdioGuard::take()?;
        let broke = |error| Error::transport("serve", "stdio failed", error);
        let reader = taken.0.reader().map_err(broke)?;
        let writer = taken.0.writer().map_err(broke)?;
        if let Some(ready) = ready {
            tracing::info!("{ready}");
        }
        let kind = TransportKind::Stdio;
        let peer = ConnectionIdentity::Anonymous;
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        let served = lines::serve(reader, writer, &server, peer, kind, &stop).await;
        if let Some(flush) = self.flush {
            flush().await;
        }
        match served {
            // The client is gone, which is a normal end of a pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            served => served.map_err(broke),
        }
    }
}

/// The real stdin and stdout, moved away and restored on drop.
struct StdioGuard(system::OriginalStdio);

impl StdioGuard {
    fn take() -> Result<Self, Error> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(Error::usage(
                "another server of this process serves stdio already",
            ));
        }
        system::OriginalStdio::redirect_stdio()
            .map(Self)
            .map_err(|error| {
                TAKEN.store(false, Ordering::Release);
                Error::transport("serve", "cannot take over stdin and stdout", error)
            })
    }
}

impl Drop for StdioGuard {
    fn drop(&mut self) {
        self.0.restore();
        TAKEN.store(false, Ordering::Release);
    }
}
