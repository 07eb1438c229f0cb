//! Prints the traffic of servers in debug mode to stderr, where it does not go to the log of a language.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::server::Server;

/// Maximum number of waiting lines, each of some kilobytes. Further ones are dropped and counted: a host that does not read
/// stderr must not hold up the server's clients, or use up its memory.
const CAPACITY: usize = 1024;

/// How long to wait before writing again to a stderr that does not block.
const RETRY: Duration = Duration::from_millis(10);

/// The thread that prints.
struct Printer {
    /// The process that it runs in: a forked child has none of its parent's threads.
    process: u32,
    sender: SyncSender<String>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

static PRINTER: Mutex<Option<Printer>> = Mutex::new(None);

/// Number of lines that were dropped since the last printed one.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Prints each message of this server to stderr from now on, while the server is in debug mode. A thread of its own does so,
/// because stderr may block.
pub fn print_traffic(server: &Server) {
    server.on_traffic(|record| print_line(record.to_string()));
}

/// Prints what is waiting, which takes at most `patience`. Call it before the process ends.
pub fn flush_traffic(patience: Duration) {
    let process = std::process::id();
    let printer = lock().take_if(|printer| printer.process == process);
    if let Some(Printer { sender, ended, .. }) = printer {
        drop(sender);
        // An error either way: the thread has ended, or it takes too long.
        let _ = ended.recv_timeout(patience);
    }
}

fn lock() -> MutexGuard<'static, Option<Printer>> {
    PRINTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line to stderr like a message, for what must not wait for stderr either.
pub fn print_line(line: String) {
    let process = std::process::id();
    let mut printer = lock();
    if printer
        .as_ref()
        .is_none_or(|printer| printer.process != process)
    {
        *printer = start(process);
    }
    let sent = match &*printer {
        Some(printer) => printer.sender.try_send(line),
        // No thread can be started.
        None => Err(TrySendError::Disconnected(line)),
    };
    if sent.is_err() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn start(process: u32) -> Option<Printer> {
    let (sender, receiver) = sync_channel::<String>(CAPACITY);
    let (running, ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("mcpline-traffic".into());
    let started = thread.spawn(move || {
        for line in receiver {
            write(&mut io::stderr(), line);
            // Lines are dropped only while others wait, so this is reached after the last of them.
            let dropped = DROPPED.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let text = format!("stderr is too slow: {dropped} messages were not printed");
                write(&mut io::stderr(), text);
            }
        }
        drop(running);
    });
    started.ok().map(|_| Printer {
        process,
        sender,
        ended,
    })
}

/// Writes a line, in one piece if the system allows it. A closed stderr ends nothing.
fn write(stderr: &mut impl io::Write, mut line: String) {
    line.push('\n');
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        match stderr.write(rest) {
            Ok(0) => return,
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another program has made it non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(RETRY),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stderr that takes three bytes at a time, and blocks before each.
    #[derive(Default)]
    struct Slow {
        taken: Vec<u8>,
        is_ready: bool,
    }

    impl io::Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if self.is_ready {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(3);
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stderr_that_does_not_block_gets_whole_lines() {
        let mut slow = Slow::default();
        write(&mut slow, "one line".into());
        assert_eq!(slow.taken, b"one line\n");
    }
}
