//! Newline-delimited messages over a pair of byte streams: the loop of stdio and similar transports.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpline_protocol::wire::{LineTooLong, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::background;
use crate::caller::Caller;
use crate::error::Error;
use crate::line_io::outbox::Outbox;
use crate::line_io::pipe_handoff::{AnyPipe, PipeHandoff};
use crate::line_io::pump::{PumpOutcome, ReadBuffer, WriteBuffer, pump, write_out};
use crate::message_sink::MessageSink;
use crate::server::Server;
use crate::server::connection::Connection;
use crate::server::traffic::TransportKind;

use super::single_connection::{self, ConnectionIdentity};
use super::{EOF_GRACE, LAST_ANSWERS, Stop, Transport};

/// What a client writes.
type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What a client reads.
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How often a shutdown checks whether calls have ended.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

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
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    Lines {
        reader,
        writer,
        principal: None,
    }
}

impl<R, W> Transport for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        serve(
            Box::new(self.reader),
            Box::new(self.writer),
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
    reader: Reader,
    writer: Writer,
    server: &Server,
    peer: ConnectionIdentity,
    kind: TransportKind,
    stop: &Stop,
) -> io::Result<()> {
    let outbox = Arc::new(Outbox::default());
    let sink: Arc<dyn MessageSink> = outbox.clone();
    let connection = single_connection::open(server, peer, kind, &sink);
    let (died, dead) = oneshot::channel();
    connection.on_ping_timeout(move || {
        // Serving may have ended.
        let _ = died.send(());
    });
    let stop = stop.clone();
    let settings = &server.inner().settings;
    let pipe = Box::new(Pipe {
        reader,
        writer,
        outbox,
        reading: ReadBuffer::new(settings.wire.max_line_bytes),
        writing: WriteBuffer::default(),
        connection: connection.clone(),
        sink,
        stopped: Box::pin(async move {
            tokio::select! {
                biased;
                Ok(()) = dead => StopReason::ClientDead,
                () = stop.stopped() => StopReason::Requested,
            }
        }),
    });
    // A runtime with one thread has none that could read on.
    let ended = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Ok(serve_calls(pipe).await),
        _ => serve_calls_in_tasks(pipe).await,
    };
    let served = match ended {
        // A client that no longer answers pings gets no further messages.
        Ok((_, Ok(End::Stopped(StopReason::ClientDead)))) => Ok(()),
        Ok((mut pipe, Ok(End::Stopped(StopReason::Requested)))) => {
            pipe.wind_down(Instant::now() + settings.shutdown_timeout)
                .await
        }
        Ok((mut pipe, Ok(End::InputEnded))) => pipe.drain(Instant::now() + EOF_GRACE).await,
        Ok((_, Err(error))) | Err(error) => Err(error),
    };
    connection.close();
    server.inner().cancel_suspended_of(&connection);
    served
}

/// A pipe that is no longer served, and why.
type ServeOutcome = (Box<Pipe>, io::Result<End<StopReason>>);

/// Serves on this task until the client closes its end, or serving shall stop.
async fn serve_calls(mut pipe: Box<Pipe>) -> ServeOutcome {
    let end = loop {
        match pipe.next_line().await {
            Ok(Ok(line)) => pipe.receive(line),
            Ok(Err(end)) => break Ok(end),
            Err(error) => break Err(error),
        }
    };
    (pipe, end)
}

/// Serves like [`serve_calls`], on another task. While a handler keeps its thread, a further task reads on.
async fn serve_calls_in_tasks(pipe: Box<Pipe>) -> io::Result<ServeOutcome> {
    let (ended, end) = oneshot::channel();
    let tasks = ReaderTasks::default();
    let (running, runtime, span) = (tasks.0.clone(), Handle::current(), Span::current());
    let handoff = PipeHandoff::new(move |handoff, pipe: AnyPipe| {
        let Ok(pipe) = pipe.downcast() else { return };
        let task = serve_calls_with_handoff(pipe, handoff).instrument(span.clone());
        if let Some(running) = &mut *lock(&running) {
            // Those that have ended.
            while running.try_join_next().is_some() {}
            running.spawn_on(background::task(task), &runtime);
        }
    });
    handoff.spawn_reader(Box::new(ReaderTaskState { pipe, ended }));
    drop(handoff);
    end.await
        .map_err(|_| io::Error::other("the task that reads the pipe panicked"))
}

/// The tasks that read one pipe, of which all but one only run a handler. They end when this is dropped.
struct ReaderTasks(Arc<Mutex<Option<JoinSet<()>>>>);

impl Default for ReaderTasks {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(JoinSet::new()))))
    }
}

impl Drop for ReaderTasks {
    fn drop(&mut self) {
        let tasks = lock(&self.0).take();
        drop(tasks);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a task that reads a pipe leaves to the next one. The task that sees the end of the pipe returns it.
struct ReaderTaskState {
    pipe: Box<Pipe>,
    ended: oneshot::Sender<ServeOutcome>,
}

/// Serves until the end, or until another task has taken over the pipe.
async fn serve_calls_with_handoff(mut state: Box<ReaderTaskState>, handoff: Arc<PipeHandoff>) {
    loop {
        let end = match state.pipe.next_line().await {
            Ok(Ok(line)) => {
                let (connection, sink) = (state.pipe.connection.clone(), state.pipe.sink.clone());
                let pipe: AnyPipe = state;
                let pipe = handoff.process(pipe, || receive(&connection, &sink, line));
                match pipe.and_then(|pipe| pipe.downcast().ok()) {
                    Some(pipe) => state = pipe,
                    None => return,
                }
                continue;
            }
            Ok(Err(end)) => Ok(end),
            Err(error) => Err(error),
        };
        let ReaderTaskState { pipe, ended } = *state;
        // The future that serves may have been dropped.
        let _ = ended.send((pipe, end));
        return;
    }
}

/// Why serving stops before the client closes its end.
enum StopReason {
    /// The transport's [`Stop`] signal was given.
    Requested,
    /// The client no longer answers pings.
    ClientDead,
}

/// Why no further line is read.
enum End<S> {
    InputEnded,
    Stopped(S),
}

/// Two byte streams with their buffers.
struct Pipe {
    reader: Reader,
    writer: Writer,
    outbox: Arc<Outbox>,
    reading: ReadBuffer,
    writing: WriteBuffer,
    connection: Arc<Connection>,
    sink: Arc<dyn MessageSink>,
    stopped: Pin<Box<dyn Future<Output = StopReason> + Send>>,
}

type Line = Result<bytes::Bytes, LineTooLong>;

impl Pipe {
    /// Writes until the client has sent a line, or serving shall end.
    async fn next_line(&mut self) -> io::Result<Result<Line, End<StopReason>>> {
        let pumped = pump(
            &mut self.reader,
            &mut self.writer,
            &self.outbox,
            &mut self.reading,
            &mut self.writing,
            self.stopped.as_mut(),
        );
        Ok(line_or_end(pumped.await?))
    }

    fn receive(&self, line: Line) {
        receive(&self.connection, &self.sink, line);
    }

    /// Shuts down: waits for calls in flight until `end`, refuses new ones, and cancels those that are left. The client
    /// may still cancel calls.
    async fn wind_down(&mut self, end: Instant) -> io::Result<()> {
        self.connection.wind_down();
        match tokio::time::timeout_at(end, self.run_until_idle()).await {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(Ok(End::InputEnded)) => self.drain(end.min(Instant::now() + EOF_GRACE)).await,
            // The message that is being written has until `end` as well.
            _ => self.drain(end).await,
        }
    }

    /// Reads and writes until nothing is in flight.
    async fn run_until_idle(&mut self) -> io::Result<End<()>> {
        let (connection, outbox) = (self.connection.clone(), self.outbox.clone());
        let mut settled = pin!(async {
            while !connection.is_idle() || outbox.len() > 0 {
                tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
            }
        });
        loop {
            let pumped = pump(
                &mut self.reader,
                &mut self.writer,
                &outbox,
                &mut self.reading,
                &mut self.writing,
                settled.as_mut(),
            );
            match line_or_end(pumped.await?) {
                Ok(line) => self.receive(line),
                Err(end) => return Ok(end),
            }
        }
    }

    /// Waits for calls in flight until `end`, cancels those that are left, and writes all responses. Reads nothing
    /// more.
    async fn drain(&mut self, end: Instant) -> io::Result<()> {
        let connection = self.connection.clone();
        connection.wind_down();
        let answered = async {
            loop {
                self.write_out().await?;
                if connection.is_idle() && self.outbox.len() == 0 {
                    return self.writer.flush().await;
                }
                // A call that ends without a response does not notify.
                let _ = tokio::time::timeout(IDLE_CHECK_INTERVAL, self.outbox.wait_until_filled())
                    .await;
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
        write_out(&mut self.writer, &self.outbox, &mut self.writing).await
    }
}

fn line_or_end<S>(pumped: PumpOutcome<S>) -> Result<Line, End<S>> {
    match pumped {
        PumpOutcome::Line(line) => Ok(line),
        PumpOutcome::InputEnded => Err(End::InputEnded),
        PumpOutcome::Stopped(reason) => Err(End::Stopped(reason)),
    }
}

fn receive(connection: &Arc<Connection>, sink: &Arc<dyn MessageSink>, line: Line) {
    match line {
        Ok(line) => single_connection::receive(connection, sink, line),
        Err(error) => {
            if let (Some(log), Some(origin)) = (&connection.server().traffic, connection.traffic())
            {
                log.record_too_long(origin, error.limit);
            }
            connection.receive(Err(ReadError::from(error)), sink, None);
        }
    }
}
