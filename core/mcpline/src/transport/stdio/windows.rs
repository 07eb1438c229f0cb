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

/// The real stdin and stdout, and the threads that use them.
pub(super) struct OriginalStdio {
    handles: StandardHandles,
    threads: Vec<IoThread>,
}

impl OriginalStdio {
    /// Puts the null device in the place of stdin, and stderr in that of stdout.
    pub(super) fn redirect_stdio() -> io::Result<Self> {
        let handles = StandardHandles::move_away()?;
        Ok(Self {
            handles,
            threads: Vec::new(),
        })
    }

    pub(super) fn restore(&mut self) {
        // First, because restoring asks for the type of stdin, and that would wait for a read that is in progress. The reader may
        // exist still, in a task that is to be aborted.
        self.threads.clear();
        self.handles.restore();
    }

    pub(super) fn reader(&mut self) -> io::Result<Reader> {
        let (reader, thread) = Reader::start(self.handles.input())?;
        self.threads.push(thread);
        Ok(reader)
    }

    pub(super) fn writer(&mut self) -> io::Result<Writer> {
        let (writer, thread) = Writer::start(self.handles.output())?;
        self.threads.push(thread);
        Ok(writer)
    }
}

/// A thread that reads or writes. It ends when its channel is closed, unless it waits for input or output: dropping this cancels that.
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
}

impl Reader {
    fn start(input: BorrowedHandle<'_>) -> io::Result<(Self, IoThread)> {
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
        let thread = IoThread::start("mcpline-stdin", read_all)?;
        let rest = Bytes::new();
        Ok((Self { chunks, rest }, thread))
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
}

impl Writer {
    fn start(output: BorrowedHandle<'_>) -> io::Result<(Self, IoThread)> {
        let mut output = File::from(output.try_clone_to_owned()?);
        let (orders, mut received) = mpsc::unbounded_channel::<Order>();
        let write_all = move || {
            while let Some((chunk, result)) = received.blocking_recv() {
                // Fails if the writer is gone.
                let _ = result.send(output.write_all(&chunk));
            }
        };
        let thread = IoThread::start("mcpline-stdout", write_all)?;
        let written = None;
        Ok((Self { orders, written }, thread))
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
