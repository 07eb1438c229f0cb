//! Newline-delimited messages over a pair of byte streams: the loop of stdio and of anything like it.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::wire::{LineTooLong, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::authorized::Authorized;
use crate::error::Error;
use crate::line_io::outbox::Outbox;
use crate::line_io::pump::{Writing, pump, write_out};
use crate::message_sink::MessageSink;
use crate::server::Server;
use crate::server::connection::Connection;

use super::{EOF_GRACE, LAST_ANSWERS, Stop, Transport, single};

/// How often an end looks whether calls have ended.
const SETTLING: Duration = Duration::from_millis(10);

/// Serves newline-delimited messages over two byte streams, such as a Unix socket, a TCP connection or a
/// pseudo-terminal (2026-07-28, `basic/transports/stdio`).
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: R,
    writer: W,
    principal: Option<Authorized>,
}

impl<R, W> Lines<R, W> {
    /// Names the authenticated client, like [`Server::connect_as`].
    #[must_use]
    pub fn with_principal(mut self, principal: Authorized) -> Self {
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
            self.principal,
            &stop,
        )
        .await
        .map_err(|error| Error::transport("serve", "pipe failed", error))
    }
}

/// Serves one client until it closes its end or no longer answers pings, or `stop`.
pub(super) async fn serve<R, W>(
    reader: &mut R,
    writer: &mut W,
    server: &Server,
    principal: Option<Authorized>,
    stop: &Stop,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outbox = Arc::new(Outbox::default());
    let sink: Arc<dyn MessageSink> = outbox.clone();
    let connection = single::open(server, principal, &sink);
    let dead = Stop::new();
    connection.on_dead({
        let dead = dead.clone();
        move || dead.stop()
    });
    let stopped = pin!(async {
        tokio::select! {
            () = stop.stopped() => {}
            () = dead.stopped() => {}
        }
    });
    let limit = server.inner().settings.wire.line;
    let mut writing = Writing::default();
    let mut served = pump(
        reader,
        writer,
        &outbox,
        &mut writing,
        limit,
        stopped,
        |line| receive(&connection, &sink, line),
    )
    .await;
    // To a client that no longer answers pings there is nothing more to say.
    if served.is_ok() && !dead.is_stopped() {
        let grace = match stop.is_stopped() {
            true => server.inner().settings.shutdown_grace,
            false => EOF_GRACE,
        };
        served = drain(writer, &connection, &outbox, writing, grace).await;
    }
    connection.close();
    server.inner().cancel_suspended_of(&connection);
    served
}

fn receive(
    connection: &Arc<Connection>,
    sink: &Arc<dyn MessageSink>,
    line: Result<bytes::Bytes, LineTooLong>,
) {
    match line {
        Ok(line) => single::receive(connection, sink, line),
        Err(error) => connection.receive(Err(ReadError::from(error)), sink, None),
    }
}

/// Lets calls in flight end within `grace`, ends those that are left, and writes out all answers.
async fn drain<W: AsyncWrite + Unpin>(
    writer: &mut W,
    connection: &Connection,
    outbox: &Outbox,
    mut writing: Writing,
    grace: Duration,
) -> io::Result<()> {
    connection.end_listening();
    connection.fail_asks();
    let answered = async {
        loop {
            write_out(writer, outbox, &mut writing).await?;
            if connection.is_idle() && outbox.len() == 0 {
                return writer.flush().await;
            }
            // What ends without an answer fills nothing.
            let _ = tokio::time::timeout(SETTLING, outbox.filled()).await;
        }
    };
    let drained = match tokio::time::timeout(grace, answered).await {
        Ok(drained) => drained,
        Err(_) => {
            connection.shut_down();
            let written = async {
                write_out(writer, outbox, &mut writing).await?;
                writer.flush().await
            };
            // Out of time: nobody reads any more.
            let written = tokio::time::timeout(LAST_ANSWERS, written).await;
            written.unwrap_or(Ok(()))
        }
    };
    match drained {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
