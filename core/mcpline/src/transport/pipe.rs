//! Newline-delimited messages over a pair of byte streams: the loop of stdio and similar transports.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::wire::{LineDecoder, LineTooLong, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::error::Error;
use crate::line_io::outbox::Outbox;
use crate::line_io::pump::{Pumped, Writing, pump, write_out};
use crate::message_sink::MessageSink;
use crate::server::Server;
use crate::server::connection::Connection;
use crate::server::traffic::TransportKind;

use super::single::{self, Peer};
use super::{EOF_GRACE, LAST_ANSWERS, Stop, Transport};

/// What a client writes.
type Reader<'a> = dyn AsyncRead + Send + Unpin + 'a;

/// What a client reads.
type Writer<'a> = dyn AsyncWrite + Send + Unpin + 'a;

/// How often a shutdown checks whether calls have ended.
const SETTLING: Duration = Duration::from_millis(10);

/// Serves newline-delimited messages over two byte streams, such as a Unix socket, a TCP connection or a
/// pseudo-terminal (2026-07-28, `basic/transports/stdio`).
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: R,
    writer: W,
    principal: Option<Caller>,
}

impl<R, W> Lines<R, W> {
    /// Names the authenticated client, like [`Server::connect_as`].
    #[must_use]
    pub fn with_principal(mut self, principal: Caller) -> Self {
        self.principal = Some(principal);
        self
    }
}

/// Creates a transport of newline-delimited messages over these byte streams.
///
/// The client is anonymous and may use everything, unless [`Lines::with_principal`] names it.
pub fn lines<R, W>(reader: R, writer: W) -> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    Lines {
        reader,
        writer,
        principal: None,
    }
}

impl<R, W> Transport for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    async fn serve(mut self, server: Server, stop: Stop) -> Result<(), Error> {
        serve(
            &mut self.reader,
            &mut self.writer,
            &server,
            self.principal.into(),
            TransportKind::Lines,
            &stop,
        )
        .await
        .map_err(|error| Error::transport("serve", "pipe failed", error))
    }
}

/// Serves one client until it closes its end, no longer answers pings, or `stop` is signalled.
///
/// Takes trait objects, because the code for one type of stream is large.
pub(super) async fn serve(
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
    server: &Server,
    peer: Peer,
    kind: TransportKind,
    stop: &Stop,
) -> io::Result<()> {
    let outbox = Arc::new(Outbox::default());
    let sink: Arc<dyn MessageSink> = outbox.clone();
    let connection = single::open(server, peer, kind, &sink);
    let (died, dead) = oneshot::channel();
    connection.on_dead(move || {
        // Serving may have ended.
        let _ = died.send(());
    });
    let stopped = pin!(async {
        tokio::select! {
            biased;
            Ok(()) = dead => StopReason::ClientDead,
            () = stop.stopped() => StopReason::Requested,
        }
    });
    let settings = &server.inner().settings;
    let mut pipe = Pipe {
        reader,
        writer,
        outbox: &outbox,
        decoder: LineDecoder::new(settings.wire.line),
        writing: Writing::default(),
    };
    let served = match pipe.pump(stopped, &connection, &sink).await {
        // A client that no longer answers pings gets no further messages.
        Ok(Pumped::Stopped(StopReason::ClientDead)) => Ok(()),
        Ok(Pumped::Stopped(StopReason::Requested)) => {
            let end = Instant::now() + settings.shutdown_grace;
            pipe.wind_down(&connection, &sink, end).await
        }
        Ok(Pumped::InputEnded) => pipe.drain(&connection, Instant::now() + EOF_GRACE).await,
        Err(error) => Err(error),
    };
    connection.close();
    server.inner().cancel_suspended_of(&connection);
    served
}

/// Why serving stops before the client closes its end.
enum StopReason {
    /// The transport's [`Stop`] signal was given.
    Requested,
    /// The client no longer answers pings.
    ClientDead,
}

/// Two byte streams with their buffers.
struct Pipe<'a> {
    reader: &'a mut Reader<'a>,
    writer: &'a mut Writer<'a>,
    outbox: &'a Outbox,
    decoder: LineDecoder,
    writing: Writing,
}

impl Pipe<'_> {
    async fn pump<S>(
        &mut self,
        stopped: Pin<&mut impl Future<Output = S>>,
        connection: &Arc<Connection>,
        sink: &Arc<dyn MessageSink>,
    ) -> io::Result<Pumped<S>> {
        pump(
            self.reader,
            self.writer,
            self.outbox,
            &mut self.decoder,
            &mut self.writing,
            stopped,
            |line| receive(connection, sink, line),
        )
        .await
    }

    /// Shuts down: waits for calls in flight until `end`, refuses new ones, and cancels those that are left. The client
    /// may still cancel calls.
    async fn wind_down(
        &mut self,
        connection: &Arc<Connection>,
        sink: &Arc<dyn MessageSink>,
        end: Instant,
    ) -> io::Result<()> {
        connection.wind_down();
        let outbox = self.outbox;
        let settled = pin!(async {
            while !connection.is_idle() || outbox.len() > 0 {
                tokio::time::sleep(SETTLING).await;
            }
        });
        match tokio::time::timeout_at(end, self.pump(settled, connection, sink)).await {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(Ok(Pumped::InputEnded)) => {
                self.drain(connection, end.min(Instant::now() + EOF_GRACE))
                    .await
            }
            // The message that is being written has until `end` as well.
            _ => self.drain(connection, end).await,
        }
    }

    /// Waits for calls in flight until `end`, cancels those that are left, and writes all responses. Reads nothing
    /// more.
    async fn drain(&mut self, connection: &Connection, end: Instant) -> io::Result<()> {
        connection.wind_down();
        let answered = async {
            loop {
                self.write_out().await?;
                if connection.is_idle() && self.outbox.len() == 0 {
                    return self.writer.flush().await;
                }
                // A call that ends without a response does not notify.
                let _ = tokio::time::timeout(SETTLING, self.outbox.filled()).await;
            }
        };
        let drained = match tokio::time::timeout_at(end, answered).await {
            Ok(drained) => drained,
            Err(_) => {
                connection.end_with_shutdown_error();
                let written = async {
                    self.write_out().await?;
                    self.writer.flush().await
                };
                // Out of time: the client no longer reads.
                let written = tokio::time::timeout(LAST_ANSWERS, written).await;
                written.unwrap_or(Ok(()))
            }
        };
        match drained {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    async fn write_out(&mut self) -> io::Result<()> {
        write_out(self.writer, self.outbox, &mut self.writing).await
    }
}

fn receive(
    connection: &Arc<Connection>,
    sink: &Arc<dyn MessageSink>,
    line: Result<bytes::Bytes, LineTooLong>,
) {
    match line {
        Ok(line) => single::receive(connection, sink, line),
        Err(error) => {
            if let (Some(log), Some(origin)) = (&connection.server().traffic, connection.traffic())
            {
                log.record_too_long(origin, error.limit);
            }
            connection.receive(Err(ReadError::from(error)), sink, None);
        }
    }
}
