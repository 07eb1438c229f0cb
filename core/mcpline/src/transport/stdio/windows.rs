//! Stdin and stdout on Windows.
//!
//! Most parents give a process pipes that can only be read and written synchronously. A thread of its own reads stdin and another one
//! writes stdout, and the runtime never waits for them: a read that waits for a message of the client would keep a thread of the
//! blocking pool, and with it the runtime, from ending. When serving ends, what a thread waits for is cancelled.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::windows::io::BorrowedHandle;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use mcpline_windows::{StandardHandles, cancel_blocking_io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// Bytes that are read or written at once: as much as a pipe of the system usually holds.
const CHUNK: usize = 64 * 1024;

/// How often a thread is asked to end, a millisecond apart. It may be about to wait when it is asked, and then has to be asked again. A
/// thread that does not end by then waits for something that cannot be cancelled, and ends with the process.
const CANCEL_ATTEMPTS: usize = 100;

/// The real stdin and stdout.
pub(super) struct Moved(StandardHandles);

impl Moved {
    /// Puts the null device in the place of stdin, and stderr in that of stdout.
    pub(super) fn away() -> io::Result<Self> {
        StandardHandles::move_away().map(Self)
    }

    pub(super) fn restore(&mut self) {
        self.0.restore();
    }

    pub(super) fn reader(&self) -> io::Result<Reader> {
        Reader::start(self.0.input())
    }

    pub(super) fn writer(&self) -> io::Result<Writer> {
        Writer::start(self.0.output())
    }
}

/// A thread that reads or writes. Its channel has to be dropped before it.
struct IoThread(Option<JoinHandle<()>>);

impl IoThread {
    fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)?;
        Ok(Self(Some(thread)))
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let Some(thread) = self.0.take() else { return };
        for _ in 0..CANCEL_ATTEMPTS {
            if thread.is_finished() {
                // It has ended, so this does not wait.
                let _ = thread.join();
                return;
            }
            cancel_blocking_io(&thread);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(super) struct Reader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    /// What has been read and not been taken yet.
    rest: Bytes,
    // After `chunks`: a thread that waits for room in the channel ends when the receiver is gone.
    _thread: IoThread,
}

impl Reader {
    fn start(input: BorrowedHandle<'_>) -> io::Result<Self> {
        let mut input = File::from(input.try_clone_to_owned()?);
        // The next chunk is read while one is being processed.
        let (sender, chunks) = mpsc::channel(1);
        let read_all = move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                let chunk = match input.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(read) => Ok(Bytes::copy_from_slice(&buffer[..read])),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_last {
                    return;
                }
            }
        };
        Ok(Self {
            chunks,
            rest: Bytes::new(),
            _thread: IoThread::start("mcpline-stdin", read_all)?,
        })
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.rest = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

/// A chunk to write, and where the result goes.
type Order = (Vec<u8>, oneshot::Sender<io::Result<()>>);

pub(super) struct Writer {
    orders: mpsc::UnboundedSender<Order>,
    /// The result of the chunk that is being written. There is one at most, so that `orders` needs no limit.
    written: Option<oneshot::Receiver<io::Result<()>>>,
    // After `orders`: the thread ends when there is no sender.
    _thread: IoThread,
}

impl Writer {
    fn start(output: BorrowedHandle<'_>) -> io::Result<Self> {
        let mut output = File::from(output.try_clone_to_owned()?);
        let (orders, mut received) = mpsc::unbounded_channel::<Order>();
        let write_all = move || {
            while let Some((chunk, result)) = received.blocking_recv() {
                // Fails if the writer is gone.
                let _ = result.send(output.write_all(&chunk));
            }
        };
        Ok(Self {
            orders,
            written: None,
            _thread: IoThread::start("mcpline-stdout", write_all)?,
        })
    }
}

fn thread_ended() -> io::Error {
    io::Error::other("the thread that writes to stdout has ended")
}

impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let chunk = &bytes[..bytes.len().min(CHUNK)];
        let (result, written) = oneshot::channel();
        let order = (chunk.to_vec(), result);
        self.orders.send(order).map_err(|_| thread_ended())?;
        self.written = Some(written);
        Poll::Ready(Ok(chunk.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(written) = &mut self.written else {
            return Poll::Ready(Ok(()));
        };
        let result = ready!(Pin::new(written).poll(cx));
        self.written = None;
        Poll::Ready(result.unwrap_or_else(|_| Err(thread_ended())))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
