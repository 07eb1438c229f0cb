//! Links over a pair of byte streams with newline-delimited messages: a child's pipes, a socket.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::Revision;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::background;
use crate::client_error::ClientError;
use crate::line_io::outbox::Outbox;
use crate::line_io::pump::{PumpOutcome, ReadBuffer, WriteBuffer, pump, write_out};
use crate::message_sink;
use crate::stop::Stop;

use super::link::{Link, LinkFuture, Outgoing, SharedEventSink};
use super::link_shutdown::{LinkShutdown, link_shutdown};

/// How long writing the remaining messages may take when the client closes: enough for a last cancellation, not for a
/// backlog that the server does not read.
const FLUSH: Duration = Duration::from_millis(500);

/// A link over byte streams. Its task reads and writes until the other side is gone or the link is closed.
pub(super) struct PipeLink {
    outbox: Arc<Outbox>,
    closing: LinkShutdown,
    /// The server's process, if the client has started it.
    pid: Option<u32>,
}

impl PipeLink {
    /// Starts the task. The messages of the server may have `max_line_bytes` bytes. `pid` is the server's process, if the client
    /// has started it. After reading and writing, `end` gets the reader, with the writer closed, and returns the error to report.
    /// Its second argument is `true` if the client closed the link.
    pub(super) fn open<R, W, F, Fut>(
        reader: R,
        writer: W,
        max_line_bytes: usize,
        sink: SharedEventSink,
        pid: Option<u32>,
        end: F,
    ) -> Arc<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
        F: FnOnce(R, bool, io::Result<()>) -> Fut + Send + 'static,
        Fut: Future<Output = ClientError> + Send,
    {
        let outbox = Arc::new(Outbox::default());
        let (closing, running) = link_shutdown();
        let link = Arc::new(Self {
            outbox: outbox.clone(),
            closing,
            pid,
        });
        background::spawn_here(async move {
            let reading = ReadBuffer::new(max_line_bytes);
            let error = serve(reader, writer, reading, &outbox, &running.stop, &sink, end).await;
            sink.ended(error);
        });
        link
    }
}

async fn serve<R, W, F, Fut>(
    mut reader: R,
    mut writer: W,
    mut reading: ReadBuffer,
    outbox: &Outbox,
    stop: &Stop,
    sink: &SharedEventSink,
    end: F,
) -> ClientError
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    F: FnOnce(R, bool, io::Result<()>) -> Fut,
    Fut: Future<Output = ClientError>,
{
    let mut stopped = pin!(stop.stopped());
    let mut writing = WriteBuffer::default();
    let pumped = loop {
        let (reading, writing) = (&mut reading, &mut writing);
        let stopped = stopped.as_mut();
        match pump(&mut reader, &mut writer, outbox, reading, writing, stopped).await {
            Ok(PumpOutcome::Line(Ok(line))) => drop(sink.message(line, None)),
            Ok(PumpOutcome::Line(Err(error))) => {
                sink.warning(format!("invalid JSON-RPC message from server: {error}"));
            }
            Ok(PumpOutcome::InputEnded | PumpOutcome::Stopped(())) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let closed = stop.is_stopped();
    if closed && pumped.is_ok() {
        // Not worth waiting longer for what cannot be written by now.
        let _ = tokio::time::timeout(FLUSH, flush(&mut writer, outbox, writing)).await;
    }
    drop(writer);
    end(reader, closed, pumped).await
}

async fn flush<W: AsyncWrite + Unpin>(
    writer: &mut W,
    outbox: &Outbox,
    writing: WriteBuffer,
) -> io::Result<()> {
    write_out(writer, outbox, &mut { writing }).await?;
    writer.flush().await
}

impl Link for PipeLink {
    fn send(&self, outgoing: Outgoing) {
        message_sink::send(
            &*self.outbox,
            message_sink::MessageKind::Request,
            &outgoing.message,
        );
    }

    fn network_transport(&self) -> Option<&'static str> {
        // A socket has no process.
        Some(self.pid.map_or("unix", |_| "pipe"))
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn abandon(&self, _: u64) {}

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        self.closing.close()
    }
}

/// Returns the error for the end of a stream of which nothing else is known.
pub(super) fn stream_ended(closed: bool, pumped: io::Result<()>) -> ClientError {
    match (closed, pumped) {
        (true, _) => ClientError::Closed,
        (_, Ok(())) => ClientError::lost("the server closed its end"),
        (_, Err(error)) => ClientError::broken(error),
    }
}
