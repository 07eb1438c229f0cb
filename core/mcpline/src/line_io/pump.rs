//! Moves both directions of a pipe in one task: lines in, the outbox out.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use mcpline_protocol::wire::{LineDecoder, LineTooLong};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::outbox::{OUTBOX_LIMIT, Outbox};

/// Number of bytes per read: a pipe's buffer on Linux.
const READ_SIZE: usize = 64 * 1024;

/// What [`pump`] returns for.
#[derive(Debug)]
pub(crate) enum PumpOutcome<S> {
    /// The other end has sent this line.
    Line(Result<Bytes, LineTooLong>),
    /// The other end has closed its direction.
    InputEnded,
    /// `stopped` resolved to this reason.
    Stopped(S),
}

/// Writes the outbox until a line has arrived, the input ends or `stopped` resolves. Lines that have arrived are returned
/// first.
pub(crate) async fn pump<R, W, S>(
    reader: &mut R,
    writer: &mut W,
    outbox: &Outbox,
    reading: &mut ReadBuffer,
    writing: &mut WriteBuffer,
    mut stopped: Pin<&mut (impl Future<Output = S> + ?Sized)>,
) -> io::Result<PumpOutcome<S>>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    loop {
        if let Some(line) = reading.decoder.next_line() {
            return Ok(PumpOutcome::Line(line));
        }
        if reading.has_ended {
            return Ok(PumpOutcome::InputEnded);
        }
        if writing.is_done() {
            writing.refill(outbox);
        }
        let room = writing.unwritten_bytes() + outbox.len() < OUTBOX_LIMIT;
        tokio::select! {
            biased;
            written = writer.write(writing.rest()), if !writing.is_done() => {
                writing.advance(written?)?;
            }
            read = read(reader, reading.decoder.buffer()), if room => {
                if read? == 0 {
                    reading.has_ended = true;
                    if let Some(line) = reading.decoder.finish() {
                        return Ok(PumpOutcome::Line(line));
                    }
                }
            }
            () = outbox.wait_until_filled(), if writing.is_done() => {}
            reason = &mut stopped => return Ok(PumpOutcome::Stopped(reason)),
        }
    }
}

/// Writes the rest of `writing` and everything in the outbox.
pub(crate) async fn write_out<W: AsyncWrite + Unpin + ?Sized>(
    writer: &mut W,
    outbox: &Outbox,
    writing: &mut WriteBuffer,
) -> io::Result<()> {
    loop {
        if writing.is_done() {
            writing.refill(outbox);
        }
        if writing.is_done() {
            return Ok(());
        }
        let written = writer.write(writing.rest()).await?;
        writing.advance(written)?;
    }
}

async fn read(
    reader: &mut (impl AsyncRead + Unpin + ?Sized),
    buffer: &mut BytesMut,
) -> io::Result<usize> {
    buffer.reserve(READ_SIZE);
    reader.read_buf(buffer).await
}

/// What was read and is not yet a whole line.
pub(crate) struct ReadBuffer {
    decoder: LineDecoder,
    has_ended: bool,
}

impl ReadBuffer {
    /// Lines may have `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            decoder: LineDecoder::new(limit),
            has_ended: false,
        }
    }
}

/// A partially written buffer.
#[derive(Default)]
pub(crate) struct WriteBuffer {
    buffer: Vec<u8>,
    written: usize,
}

impl WriteBuffer {
    pub(crate) fn is_done(&self) -> bool {
        self.written == self.buffer.len()
    }

    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.buffer.len() - self.written
    }

    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    pub(crate) fn refill(&mut self, outbox: &Outbox) {
        outbox.take(&mut self.buffer);
        self.written = 0;
    }

    pub(crate) fn advance(&mut self, written: usize) -> io::Result<()> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written;
        Ok(())
    }
}
