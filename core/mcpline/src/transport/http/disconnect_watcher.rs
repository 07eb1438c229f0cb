//! Detects that a client has closed its connection, even behind unread bytes.
//!
//! hyper notices that a client has left by reading. It does not read while a request is served and the beginning of the
//! next one has arrived: a single byte after a request would keep its handler running.

#[cfg(target_os = "linux")]
pub(super) use linux::{DisconnectWatcher, watched};

#[cfg(not(target_os = "linux"))]
pub(super) use other::{DisconnectWatcher, watched};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::Shutdown;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, ready};

    use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
    use tokio::net::TcpStream;

    use super::super::write_timeout::Reset;

    /// Returns the stream, and a future that ends when the other end has closed its direction or is gone. The system
    /// reports this with other readiness, at no cost until it is awaited.
    pub(in super::super) fn watched(
        stream: TcpStream,
    ) -> (DisconnectWatcher, impl Future<Output = ()> + Send + 'static) {
        let stream = Arc::new(stream);
        let watching = stream.clone();
        let gone = async move {
            // `PRIORITY` stands for out-of-band data, which the stream is not registered for. But it includes the end
            // of reading and,
            // unlike `READABLE`, is not ready because of unread bytes.
            let _ = watching.ready(Interest::PRIORITY).await;
        };
        (DisconnectWatcher(stream), gone)
    }

    /// A stream with a second reference.
    pub(in super::super) struct DisconnectWatcher(Arc<TcpStream>);

    impl Reset for DisconnectWatcher {
        fn reset_on_close(&self) {
            self.0.reset_on_close();
        }
    }

    impl AsyncRead for DisconnectWatcher {
        fn poll_read(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                ready!(self.0.poll_read_ready(cx))?;
                let mut read = None;
                let _ = self.0.try_io(Interest::READABLE, || {
                    let room = buffer.remaining();
                    match self.0.try_read_buf(buffer) {
                        // There was no more: as with a `TcpStream`, the next read waits without a system call.
                        Ok(bytes @ 1..) if bytes < room => {
                            read = Some(Ok(()));
                            Err(io::ErrorKind::WouldBlock.into())
                        }
                        Ok(_) => {
                            read = Some(Ok(()));
                            Ok(())
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                        Err(error) => {
                            read = Some(Err(error));
                            Ok(())
                        }
                    }
                });
                if let Some(read) = read {
                    return Poll::Ready(read);
                }
            }
        }
    }

    impl AsyncWrite for DisconnectWatcher {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            loop {
                ready!(self.0.poll_write_ready(cx))?;
                match self.0.try_write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    written => return Poll::Ready(written),
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            match socket2::SockRef::from(&*self.0).shutdown(Shutdown::Write) {
                Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                    Poll::Ready(Err(error))
                }
                _ => Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use tokio::net::TcpStream;

    /// A stream that is not watched.
    pub(in super::super) type DisconnectWatcher = TcpStream;

    /// Returns the stream, and a future that never ends: this system does not report the end of reading behind unread
    /// bytes. A client that is gone is noticed by the next write.
    pub(in super::super) fn watched(
        stream: TcpStream,
    ) -> (TcpStream, impl Future<Output = ()> + Send + 'static) {
        (stream, std::future::pending())
    }
}
