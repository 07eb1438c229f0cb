//! Stdin and stdout on Unix.
//!
//! Reads and writes never block. A pipe is reopened where the system allows it, so that the mode of its description,
//! which other processes may share, does not change. Regular files and terminals are read on the runtime's blocking
//! pool.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The real stdin and stdout, as close-on-exec descriptors.
pub(super) struct OriginalStdio {
    input: OwnedFd,
    output: OwnedFd,
}

impl OriginalStdio {
    /// Puts the null device in the place of stdin, and stderr in that of stdout.
    pub(super) fn redirect_stdio() -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { input, output })
    }

    pub(super) fn restore(&mut self) {
        // Both are open descriptors, so this only fails if the process has none left.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }

    pub(super) fn reader(&mut self) -> io::Result<Stream> {
        Stream::new(self.input.as_fd(), OFlags::RDONLY)
    }

    pub(super) fn writer(&mut self) -> io::Result<Stream> {
        Stream::new(self.output.as_fd(), OFlags::WRONLY)
    }
}

/// One direction of stdio.
pub(super) enum Stream {
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
