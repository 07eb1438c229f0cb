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
use crate::server::Server;
use crate::server::connection::{Connection, Opening};

use super::outbox::Outbox;
use super::pump::{Writing, pump};
use super::{Stop, Transport};

/// After the input ended, how long calls in flight may still take: nobody waits for long behind a closed
/// pipe, but `echo … | server` wants its answer.
const EOF_GRACE: Duration = Duration::from_secs(1);

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

/// Serves one client until it closes its end, or `stop`.
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
        },
    );
    let stopped = pin!(stop.stopped());
    let limit = server.inner().settings.wire.line;
    let served = pump(reader, writer, &outbox, limit, stopped, |line| {
        receive(&connection, &lane, line);
    })
    .await;
    if served.is_ok() {
        drain(writer, &connection, &outbox).await?;
    }
    connection.close();
    server.inner().cancel_suspended_of(&connection);
    served.map(|_| ())
}

fn receive(
    connection: &Arc<Connection>,
    lane: &Arc<dyn Lane>,
    line: Result<bytes::Bytes, wire::LineTooLong>,
) {
    match line {
        Ok(line) => {
            let limits = connection.server().settings.wire;
            connection.receive(wire::read_within(line, limits), lane, None);
        }
        Err(error) => connection.receive(Err(ReadError::from(error)), lane, None),
    }
}

/// Lets calls in flight end and writes out what they answered.
async fn drain<W: AsyncWrite + Unpin>(
    writer: &mut W,
    connection: &Connection,
    outbox: &Outbox,
) -> io::Result<()> {
    connection.end_listening();
    connection.fail_asks();
    let answered = async {
        let mut writing = Writing::default();
        loop {
            if writing.is_done() {
                writing.refill(outbox);
            }
            if !writing.is_done() {
                let written = writer.write(writing.rest()).await?;
                writing.advance(written)?;
            } else if connection.is_idle() {
                return writer.flush().await;
            } else {
                outbox.filled().await;
            }
        }
    };
    match tokio::time::timeout(EOF_GRACE, answered).await {
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        // Out of time, or nobody reads any more.
        _ => Ok(()),
    }
}
