//! Write timeout: drops connections whose client reads nothing for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::quota::ClientQuota;

use super::hyper_buffers::{Buffers, INITIAL_BYTES};
use super::write_backpressure::WriteBackpressure;

/// A stream that can be reset.
pub(super) trait Reset {
    /// Discards unread data on close, which the system would otherwise keep for minutes.
    fn reset_on_close(&self);
}

impl Reset for TcpStream {
    fn reset_on_close(&self) {
        // Fails only if the connection is gone.
        let _ = self.set_zero_linger();
    }
}

#[cfg(test)]
impl Reset for tokio::io::DuplexStream {
    fn reset_on_close(&self) {}
}

/// A stream that fails when the other end reads nothing for `timeout`. A timer is only created once a write has to
/// wait.
pub(super) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// A write is waiting; the timer has its deadline.
    waiting: bool,
    /// Notified when a write is blocked and when it continues.
    outgoing: Arc<WriteBackpressure>,
    buffers: Buffers,
    /// Bytes that were read before and have to be read again.
    unread: Bytes,
}

impl<S: Reset> WriteTimeout<S> {
    pub(super) fn new(
        stream: S,
        timeout: Duration,
        outgoing: Arc<WriteBackpressure>,
        client: Arc<ClientQuota>,
    ) -> Self {
        Self {
            stream,
            timeout,
            timer: None,
            waiting: false,
            buffers: Buffers::new(client, outgoing.clone()),
            outgoing,
            unread: Bytes::new(),
        }
    }

    /// Prepares the stream for a new hyper connection with new buffers. `unread` are the bytes that the previous one
    /// has read but not used.
    pub(super) fn renew(&mut self, unread: &[u8]) {
        self.buffers.renew();
        // Copied, because even an empty slice would keep all of the old buffer.
        self.unread = Bytes::copy_from_slice(unread);
    }

    /// Returns the outcome of a write, or an error if it has waited too long.
    fn check_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            if std::mem::take(&mut self.waiting) {
                self.outgoing.set_blocked(false);
            }
            return poll;
        }
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.timeout)));
        if !self.waiting {
            self.waiting = true;
            self.outgoing.set_blocked(true);
            timer.as_mut().reset(Instant::now() + self.timeout);
        }
        ready!(timer.as_mut().poll(cx));
        self.stream.reset_on_close();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its responses",
        )))
    }
}

impl<S: AsyncRead + Reset + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let bytes = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread.split_to(bytes));
            self.outgoing.set_reading(false);
            self.outgoing.note_read();
            return Poll::Ready(Ok(()));
        }
        let room = buffer.remaining();
        let poll = if self.buffers.may_read(room) < room {
            self.poll_read_little(cx, buffer)
        } else {
            Pin::new(&mut self.stream).poll_read(cx, buffer)
        };
        let read = room - buffer.remaining();
        if read > 0 {
            self.buffers.note_read(read);
            self.outgoing.note_read();
        }
        self.outgoing.set_reading(poll.is_pending());
        poll
    }
}

impl<S: AsyncRead + Unpin> WriteTimeout<S> {
    /// Reads less than there is room for.
    #[cold]
    fn poll_read_little(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut little = [0; INITIAL_BYTES];
        let mut little = ReadBuf::new(&mut little);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut little))?;
        buffer.put_slice(little.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Reset + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // All that hyper has buffered.
        self.buffers.note_unwritten(bytes.len());
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_write_timeout(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_write_timeout(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    use crate::quota::ClientTable;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn with_timeout(stream: tokio::io::DuplexStream) -> WriteTimeout<tokio::io::DuplexStream> {
        let client = ClientTable::new(1.0, 1_000, 8).unknown_clients();
        WriteTimeout::new(stream, TIMEOUT, Arc::default(), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut ours = with_timeout(ours);
        let begun = Instant::now();
        let failed = ours.write_all(&[0; 100]).await.expect_err("nobody reads");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= TIMEOUT);
    }

    #[runtimes::test]
    async fn charges_unwritten_bytes_however_small_their_pieces() {
        let (ours, theirs) = tokio::io::duplex(8);
        let client = ClientTable::new(1.0, 1_000_000, 8).sole_client();
        let mut ours = WriteTimeout::new(ours, TIMEOUT, Arc::default(), client.clone());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // As hyper does: new data is written together with the waiting data.
        let mut waiting = Vec::new();
        let mut written = 0;
        for _ in 0..1_000 {
            waiting.extend_from_slice(&[0; 100]);
            if let Poll::Ready(count) = Pin::new(&mut ours).poll_write(&mut cx, &waiting[written..])
            {
                written += count.expect("open");
            }
        }
        assert_eq!(written, 8);
        assert_eq!(client.held_bytes(), 2 * (100_000 - 8));
        drop((ours, theirs));
        assert_eq!(client.held_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = with_timeout(ours);
        let reader = async {
            let mut read = 0;
            let mut buffer = [0; 8];
            while read < 100 {
                tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
                read += theirs.read(&mut buffer).await.expect("open");
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(&[0; 100]), reader);
        written.expect("the client reads");
    }
}
