//! Prints the traffic of servers in debug mode to stderr, or passes it to another log, for languages without a log of their
//! own.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::Level;

use crate::server::{Server, debug_mode};
use crate::traffic::flush_files;

/// Maximum number of waiting lines, each of some kilobytes. Further ones are dropped and counted: a log that is too slow, or a
/// host that does not read stderr, must not hold up the server's clients, or use up its memory.
const CAPACITY: usize = 1024;

/// How long to wait before writing again to a stderr that does not block.
const RETRY: Duration = Duration::from_millis(10);

/// Takes a line for another log than stderr, on the thread of the printer. Returns `false` if no such log wants it: then it
/// goes to stderr.
pub type TrafficLogger = fn(Level, &str) -> bool;

struct TrafficLine {
    level: Level,
    text: String,
    logger: TrafficLogger,
}

/// The thread that prints.
struct Printer {
    /// The process that it runs in: a forked child has none of its parent's threads.
    process: u32,
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

static PRINTER: Mutex<Option<Printer>> = Mutex::new(None);

/// Number of lines that were dropped since the last printed one.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines for the thread. Not a channel of the standard library, whose code is several times as large: the C library has a
/// limit.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<TrafficLine>,
    /// Whether no further lines follow.
    is_closed: bool,
    /// Whether the thread has printed everything.
    has_ended: bool,
}

impl Queue {
    /// Adds a line. Returns `false` if too many wait.
    fn push(&self, line: TrafficLine) -> bool {
        let mut state = self.lock();
        let has_room = state.waiting.len() < CAPACITY;
        if has_room {
            state.waiting.push_back(line);
            self.changed.notify_all();
        }
        has_room
    }

    /// Waits for a line and takes it. `None` after the last one.
    fn take(&self) -> Option<TrafficLine> {
        let mut state = self.lock();
        loop {
            let line = state.waiting.pop_front();
            if line.is_some() || state.is_closed {
                return line;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that the thread has printed everything.
    fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Closes the queue, and waits until the thread has printed everything. Returns `false` if that takes longer than
    /// `timeout`.
    fn close(&self, timeout: Duration) -> bool {
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| !state.has_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints each message of this server to stderr from now on, while the server is in debug mode. A thread of its own does so,
/// because stderr may block.
pub fn print_traffic(server: &Server) {
    log_traffic(server, |_, _| false);
}

/// Like [`print_traffic`], for what `logger` does not take. The number of dropped messages is a line as well.
pub fn log_traffic(server: &Server, logger: TrafficLogger) {
    server.on_traffic(move |record| {
        print(TrafficLine {
            level: Level::INFO,
            text: record.to_string(),
            logger,
        });
    });
}

/// Prints a line to stderr like a message, for what must not wait for stderr either.
pub fn print_line(text: String) {
    print(TrafficLine {
        level: Level::INFO,
        text,
        logger: |_, _| false,
    });
}

/// Prints the warning that this server is in debug mode, in the order of its messages, for a process in which nothing listens
/// to warnings of the core.
pub fn print_debug_warning(server: &Server) {
    print(TrafficLine {
        level: Level::WARN,
        text: debug_mode::warning(server.name()),
        logger: |_, _| false,
    });
}

/// Prints what is waiting, which takes at most `timeout`, and ends the thread. If the log is slower, the thread continues in
/// the background. Then writes what is waiting for traffic files, with the same limit. Call it before the process ends.
pub fn flush_traffic(timeout: Duration) {
    flush_printer(timeout);
    flush_files(timeout);
}

/// Whether messages of this server are recorded: in debug mode, or for a traffic file.
pub fn records_traffic(server: &Server) -> bool {
    server.inner().traffic.is_some()
}

fn flush_printer(timeout: Duration) {
    let process = std::process::id();
    let printer = lock().take_if(|printer| printer.process == process);
    if let Some(Printer { queue, thread, .. }) = printer
        && queue.close(timeout)
    {
        // It only returns now. After that the library may be unloaded.
        let _ = thread.join();
    }
}

fn lock() -> MutexGuard<'static, Option<Printer>> {
    PRINTER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print(line: TrafficLine) {
    let process = std::process::id();
    let mut printer = lock();
    if printer
        .as_ref()
        .is_none_or(|printer| printer.process != process)
    {
        *printer = start(process);
    }
    // Without a printer no thread can be started.
    let is_queued = printer
        .as_ref()
        .is_some_and(|printer| printer.queue.push(line));
    if !is_queued {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn start(process: u32) -> Option<Printer> {
    let queue = Arc::new(Queue::default());
    let shared = queue.clone();
    let thread = std::thread::Builder::new().name("mcpline-traffic".into());
    let started = thread.spawn(move || {
        while let Some(line) = shared.take() {
            let (level, logger) = (line.level, line.logger);
            log(line);
            // Lines are dropped only while others wait, so this is reached after the last of them.
            let dropped = DROPPED.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let text = format!("the log is too slow: {dropped} messages were left out of it");
                log(TrafficLine {
                    level,
                    text,
                    logger,
                });
            }
        }
        shared.end();
    });
    started.ok().map(|thread| Printer {
        process,
        queue,
        thread,
    })
}

fn log(line: TrafficLine) {
    if !(line.logger)(line.level, &line.text) {
        write(&mut io::stderr(), line.text);
    }
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
