//! Newline-delimited messages over a pair of byte streams: the loop of stdio and of anything like it.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::session::Scope;
use mcpline_protocol::wire::{self, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::error::Error;
use crate::lane::Lane;
use crate::line_io::outbox::Outbox;
use crate::line_io::pump::{Writing, pump, write_out};
use crate::quota::{self, UNCHARGED_BYTES};
use crate::server::Server;
use crate::server::connection::{Connection, Opening};

use super::{LAST_ANSWERS, Stop, Transport};

/// After the input ended, how long calls in flight may still take: nobody waits for long behind a closed
/// pipe, but `echo … | server` wants its answer.
const EOF_GRACE: Duration = Duration::from_secs(1);

/// How often an end looks whether calls have ended.
const SETTLING: Duration = Duration::from_millis(10);

/// Serves over any pair of byte streams with newline-delimited messages: a Unix socket, a TCP connection,
/// a pseudo-terminal (2026-07-28, `basic/transports/stdio`).
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: R,
    writer: W,
}

/// A transport of newline-delimited messages over these byte streams.
pub fn lines<R, W>(reader: R, writer: W) -> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    Lines { reader, writer }
}

impl<R, W> Transport for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    async fn serve(mut self, server: Server, stop: Stop) -> Result<(), Error> {
        serve(&mut self.reader, &mut self.writer, &server, &stop)
            .await
            .map_err(|error| Error::transport("the pipe broke", error))
    }
}

/// Serves one client until it closes its end or no longer answers pings, or `stop`.
pub(super) async fn serve<R, W>(
    reader: &mut R,
    writer: &mut W,
    server: &Server,
    stop: &Stop,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outbox = Arc::new(Outbox::default());
    let lane: Arc<dyn Lane> = outbox.clone();
    server.inner().start(&tokio::runtime::Handle::current());
    let connection = Connection::open(
        server.inner(),
        Opening {
            scope: Scope::Connection,
            limits: server.inner().settings.session,
            general: lane.clone(),
            session_id: None,
            principal: String::new(),
            transport: server.inner().next_transport(),
            client: server.inner().clients().sole_client(),
        },
    );
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
        |line| receive(&connection, &lane, line),
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
    lane: &Arc<dyn Lane>,
    line: Result<bytes::Bytes, wire::LineTooLong>,
) {
    match line {
        Ok(line) => {
            let limits = connection.server().settings.wire;
            let client = connection.client();
            if line.len() < UNCHARGED_BYTES {
                connection.receive(wire::read_within(line, limits), lane, None);
                return;
            }
            match client.hold_bytes(line.len()) {
                Ok(charge) => {
                    let line = quota::charged(line, charge);
                    connection.receive(wire::read_within(line, limits), lane, None);
                }
                Err(exceeded) => {
                    connection.receive_without_room(
                        wire::read_within(line, limits),
                        lane,
                        exceeded,
                    );
                }
            }
        }
        Err(error) => connection.receive(Err(ReadError::from(error)), lane, None),
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
