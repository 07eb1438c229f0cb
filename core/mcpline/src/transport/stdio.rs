//! Serves over stdin and stdout.
//!
//! The real descriptors are moved to private close-on-exec ones first: until serving ends, descriptor 0 is the null
//! device and descriptor 1 is stderr. A stray `print` then goes to stderr instead of breaking the protocol, and a child
//! process cannot read the input.
//!
//! Reads and writes never block. A pipe is reopened where the system allows it, so that the mode of its description,
//! which other processes may share, does not change. Regular files and terminals are read on the runtime's blocking
//! pool.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::error::Error;
use crate::server::Server;
use crate::server::traffic::TransportKind;

use super::pipe as lines;
use super::single::Peer;
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
        let taken = Taken::take()?;
        let broke = |error| Error::transport("serve", "stdio failed", error);
        let reader = Stream::new(taken.input.as_fd(), OFlags::RDONLY).map_err(broke)?;
        let writer = Stream::new(taken.output.as_fd(), OFlags::WRONLY).map_err(broke)?;
        if let Some(ready) = ready {
            tracing::info!("{ready}");
        }
        let kind = TransportKind::Stdio;
        let peer = Peer::Anonymous;
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
struct Taken {
    input: OwnedFd,
    output: OwnedFd,
}

impl Taken {
    fn take() -> Result<Self, Error> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(Error::usage(
                "another server of this process serves stdio already",
            ));
        }
        Self::move_away().map_err(|error| {
            TAKEN.store(false, Ordering::Release);
            Error::transport("serve", "cannot take over stdin and stdout", error)
        })
    }

    fn move_away() -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { input, output })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Both are open descriptors, so this only fails if the process has none left.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
        TAKEN.store(false, Ordering::Release);
    }
}

/// One direction of stdio.
enum Stream {
    Receiver(pipe::Receiver),
    Sender(pipe::Sender),
    Socket(UnixStream),
    /// A file without readiness: a regular file, a terminal.
    File(tokio::fs::File),
}

impl Stream {
    /// Reopens a pipe, so that its mode is private. Uses anything else as it is.
    fn new(fd: BorrowedFd<'_>, access: OFlags) -> io::Result<Self> {
        match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
            FileType::Fifo => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let own = match rustix::fs::open(path, flags, Mode::empty()) {
                    Ok(own) => own,
                    // This system has no such path: use the pipe's own mode.
                    Err(_) => fd.try_clone_to_owned()?,
                };
                if access == OFlags::RDONLY {
                    Ok(Self::Receiver(pipe::Receiver::from_owned_fd(own)?))
                } else {
                    Ok(Self::Sender(pipe::Sender::from_owned_fd(own)?))
                }
            }
            FileType::Socket => {
                let socket = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
                socket.set_nonblocking(true)?;
                Ok(Self::Socket(UnixStream::from_std(socket)?))
            }
            _ => {
                let file = std::fs::File::from(fd.try_clone_to_owned()?);
                Ok(Self::File(tokio::fs::File::from_std(file)))
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Receiver(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::File(file) => Pin::new(file).poll_read(cx, buffer),
            Self::Sender(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Sender(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::File(file) => Pin::new(file).poll_write(cx, bytes),
            Self::Receiver(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::File(file) => Pin::new(file).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
