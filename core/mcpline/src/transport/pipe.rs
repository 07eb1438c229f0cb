//! Newline-delimited messages over a pair of byte streams: the loop of stdio and of anything like it.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use mcpline_protocol::session::Scope;
use mcpline_protocol::wire::{self, LineDecoder, ReadError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::Error;
use crate::lane::Lane;
use crate::server::Server;
use crate::server::connection::{Connection, Opening};

use super::outbox::{OUTBOX_LIMIT, Outbox};
use super::{Stop, Transport};

/// How much is read at once: a pipe's buffer on Linux.
const READ_SIZE: usize = 64 * 1024;

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
    let served = pump(reader, writer, &connection, &outbox, &lane, stop).await;
    if served.is_ok() {
        drain(writer, &connection, &outbox).await?;
    }
    connection.close();
    server.inner().cancel_suspended_of(&connection);
    served.map(|_| ())
}

/// Reads and writes until the input ends or the signal is given.
async fn pump<R, W>(
    reader: &mut R,
    writer: &mut W,
    connection: &Arc<Connection>,
    outbox: &Outbox,
    lane: &Arc<dyn Lane>,
    stop: &Stop,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut decoder = LineDecoder::new(connection.server().settings.wire.line);
    let mut writing = Writing::default();
    let mut stopped = pin!(stop.stopped());
    loop {
        if writing.is_done() {
            writing.refill(outbox);
        }
        let room = writing.left() + outbox.len() < OUTBOX_LIMIT;
        tokio::select! {
            biased;
            written = writer.write(writing.rest()), if !writing.is_done() => {
                writing.advance(written?)?;
            }
            read = read(reader, decoder.buffer()), if room => {
                if read? == 0 {
                    if let Some(line) = decoder.finish() {
                        receive(connection, lane, line);
                    }
                    return Ok(());
                }
                while let Some(line) = decoder.next_line() {
                    receive(connection, lane, line);
                }
            }
            () = outbox.filled(), if writing.is_done() => {}
            () = &mut stopped => return Ok(()),
        }
    }
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

async fn read(reader: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<usize> {
    buffer.reserve(READ_SIZE);
    reader.read_buf(buffer).await
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

/// A buffer on its way out.
#[derive(Default)]
struct Writing {
    buffer: Vec<u8>,
    written: usize,
}

impl Writing {
    fn is_done(&self) -> bool {
        self.written == self.buffer.len()
    }

    fn left(&self) -> usize {
        self.buffer.len() - self.written
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    fn refill(&mut self, outbox: &Outbox) {
        outbox.take(&mut self.buffer);
        self.written = 0;
    }

    fn advance(&mut self, written: usize) -> io::Result<()> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written;
        Ok(())
    }
}
