//! Models of a pipe's outbox. Threads add messages while the pipe's task drains it with a writer that accepts little at
//! once. Each message is written once, in one piece and in the order of its thread; a waiting task is woken.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use shuttle::future::block_on;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::message_sink::{self, MessageKind};
use crate::race_models::{Record, check, spawn};
use crate::server::race_models::Threads;
use crate::sync::Arc;

use crate::line_io::outbox::Outbox;
use crate::line_io::pump::{PumpOutcome, ReadBuffer, WriteBuffer, pump};

/// Number of bytes that the writer accepts at once.
const WRITTEN_AT_ONCE: usize = 5;

/// The other end of a pipe: it sends nothing, and records the lines that it receives.
#[derive(Default)]
struct OtherEnd {
    lines: Arc<Record<String>>,
    begun: Vec<u8>,
}

impl AsyncRead for OtherEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for OtherEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = bytes.len().min(WRITTEN_AT_ONCE);
        for byte in &bytes[..taken] {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.begun);
                self.lines.add(String::from_utf8(line).expect("text"));
            } else {
                self.begun.push(*byte);
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Two threads write to a pipe whose task waits, writes, or is about to wait.
#[test]
fn messages_race_the_writing_task() {
    const EACH: usize = 2;
    check(|| {
        let outbox: Arc<Outbox> = Arc::default();
        let written = OtherEnd::default();
        let lines = written.lines.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let draining = outbox.clone();
        let task = spawn(async move {
            let (mut silent, mut written) = (OtherEnd::default(), written);
            let stopped = pin!(async { drop(stopped.await) });
            let mut reading = ReadBuffer::new(1_000);
            let mut writing = WriteBuffer::default();
            let pumped = pump(
                &mut silent,
                &mut written,
                &draining,
                &mut reading,
                &mut writing,
                stopped,
            );
            let pumped = pumped.await.expect("it can be written");
            assert!(matches!(pumped, PumpOutcome::Stopped(())), "{pumped:?}");
            assert!(writing.is_done() && written.begun.is_empty());
        });
        let threads = Threads::default();
        for thread in 0..2 {
            let outbox = outbox.clone();
            threads.start(move || {
                for number in 0..EACH {
                    let message = format!("message {number} of {thread}");
                    message_sink::send(&*outbox, MessageKind::Request, message.as_bytes());
                }
            });
        }
        // Each must be written even if no other message follows.
        lines.wait_for(2 * EACH - 1);
        drop(stop);
        block_on(task).expect("it ends");
        threads.join();
        for thread in 0..2 {
            let of = format!(" of {thread}");
            let all = lines.all();
            let own: Vec<&String> = all.iter().filter(|line| line.ends_with(&of)).collect();
            let sent: Vec<String> = (0..EACH)
                .map(|number| format!("message {number}{of}"))
                .collect();
            assert!(own.iter().copied().eq(&sent), "{own:?}");
        }
        assert_eq!(lines.all().len(), 2 * EACH);
    });
}
