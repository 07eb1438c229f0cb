//! The thread that writes to a log file.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::LogFile;

/// Number of bytes that may wait for the disk: some thousand records, so that a pause of the disk of a fraction of a second
/// delays nothing, and little enough for a server with several logs.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

thread_local! {
    /// The queue that this thread writes. `std::thread::current` would allocate something for the threads of a C program, which
    /// memory checkers take for lost.
    static WRITTEN_HERE: Cell<*const Queue> = const { Cell::new(ptr::null()) };
}

/// Why a record was not written.
pub(crate) type WriteError = Arc<io::Error>;

type Outcome = Result<(), WriteError>;

/// Writes records on a thread of its own, several at once if they wait. Dropping it waits until all are written, for a limited time.
#[derive(Debug)]
pub(crate) struct LogWriter {
    queue: Arc<Queue>,
    /// Started with the first record, so that a program may fork before.
    thread: Mutex<Option<Thread>>,
}

#[derive(Debug)]
struct Thread {
    /// The process that it runs in: a forked child has none of its parent's threads.
    process: u32,
    /// `None` once it is joined.
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Waits until it is gone, so that a library that is unloaded next has no code that runs.
    fn join(mut self) {
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // There is no such thread that could be detached.
            std::mem::forget(self.handle.take());
        }
    }
}

#[derive(Debug)]
struct Queue {
    /// What the file is, for warnings.
    name: &'static str,
    /// How long a log that is freed waits until all records are written. A disk that does not answer must not keep a program from
    /// ending.
    closing_time: Duration,
    path: Arc<Path>,
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Notified when there is room again.
    room: Notify,
    file: Mutex<LogFile>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Waiting,
    /// Bytes that wait or are being written.
    bytes: usize,
    /// Whether no further records follow.
    is_closed: bool,
    /// Whether the thread has written all records and ends.
    has_ended: bool,
    /// Whether waiting for it was in vain.
    is_stuck: bool,
    /// Number of lines that nothing waited for and that could not be written.
    lost: u64,
}

/// Lines, and what waits for each to be written.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<Vec<u8>>,
    outcomes: Vec<Option<oneshot::Sender<Outcome>>>,
}

impl LogWriter {
    /// Returns a writer to a file. `name` says in warnings what it is: "the audit log". Dropping it waits for `closing_time` at
    /// most.
    pub(crate) fn new(name: &'static str, closing_time: Duration, file: LogFile) -> Self {
        let path: Arc<Path> = file.path().into();
        Self {
            queue: Arc::new(Queue {
                name,
                closing_time,
                path,
                state: Mutex::default(),
                changed: Condvar::new(),
                room: Notify::new(),
                file: Mutex::new(file),
            }),
            thread: Mutex::new(None),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.queue.path
    }

    /// Changes the settings of the file.
    pub(crate) fn with_file(&self, change: impl FnOnce(&mut LogFile)) {
        change(&mut lock(&self.queue.file));
    }

    /// Waits until fewer bytes wait than may. Further records are taken without a limit: so there are at most those of the
    /// requests that have got here.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let mut room = std::pin::pin!(self.queue.room.notified());
            room.as_mut().enable();
            if lock(&self.queue.state).bytes < MAX_WAITING_BYTES {
                return;
            }
            room.await;
        }
    }

    /// Writes a line. The future may be dropped: the line is written nevertheless.
    pub(crate) fn write(&self, line: Vec<u8>) -> impl Future<Output = Outcome> + use<> {
        let (sender, outcome) = oneshot::channel();
        let queued = self.push(line, Some(sender));
        async move {
            queued?;
            let ended = || Arc::new(io::Error::other("the thread of the log has ended"));
            outcome.await.unwrap_or_else(|_| Err(ended()))
        }
    }

    /// Writes a line later.
    pub(crate) fn write_later(&self, line: Vec<u8>) -> Outcome {
        self.push(line, None)
    }

    /// Whether fewer bytes wait than may.
    pub(crate) fn has_room(&self) -> bool {
        lock(&self.queue.state).bytes < MAX_WAITING_BYTES
    }

    /// Waits until the lines that wait are written, at most for `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) {
        let thread = lock(&self.thread);
        let is_running = thread.as_ref().is_some_and(Thread::is_of_this_process);
        drop(thread);
        if is_running {
            let state = lock(&self.queue.state);
            let waited = self
                .queue
                .changed
                .wait_timeout_while(state, timeout, |state| state.bytes > 0);
            let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            // So that freeing it does not wait again.
            state.is_stuck |= timeout.timed_out();
        }
    }

    /// Returns how many lines that nothing waited for could not be written since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        std::mem::take(&mut lock(&self.queue.state).lost)
    }

    /// Logs that a record was not written.
    pub(crate) fn warn(&self, error: &io::Error) {
        self.queue.warn(error);
    }

    fn push(&self, line: Vec<u8>, outcome: Option<oneshot::Sender<Outcome>>) -> Outcome {
        let process = std::process::id();
        let mut thread = lock(&self.thread);
        let is_running = thread.as_ref().is_some_and(Thread::is_of_this_process);
        if !is_running {
            if thread.is_some() {
                // The parent writes its own.
                *lock(&self.queue.state) = QueueState::default();
            }
            *thread = Some(start(&self.queue, process)?);
        }
        let mut state = lock(&self.queue.state);
        state.bytes += line.len();
        state.waiting.lines.push(line);
        state.waiting.outcomes.push(outcome);
        self.queue.changed.notify_all();
        Ok(())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        lock(&self.queue.state).is_closed = true;
        self.queue.changed.notify_all();
        if let Some(thread) = lock(&self.thread).take()
            && thread.is_of_this_process()
            && !ptr::eq(WRITTEN_HERE.get(), Arc::as_ptr(&self.queue))
            && self.queue.wait_for_end()
        {
            thread.join();
        }
    }
}

fn start(queue: &Arc<Queue>, process: u32) -> Result<Thread, WriteError> {
    let queue = queue.clone();
    let thread = std::thread::Builder::new().name("mcpline-log".into());
    let handle = thread.spawn(move || {
        WRITTEN_HERE.set(Arc::as_ptr(&queue));
        while let Some(waiting) = queue.take() {
            queue.write(waiting);
        }
        lock(&queue.state).has_ended = true;
        queue.changed.notify_all();
    })?;
    Ok(Thread {
        process,
        handle: Some(handle),
    })
}

impl Queue {
    /// Waits until the thread has written all records. Returns whether it has.
    fn wait_for_end(&self) -> bool {
        let state = lock(&self.state);
        let waited = self
            .changed
            .wait_timeout_while(state, self.closing_time, |state| {
                !state.has_ended && !state.is_stuck
            });
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() || state.is_stuck {
            tracing::warn!(
                path = %self.path.display(),
                bytes = state.bytes,
                "{} was closed before all of its records were written",
                self.name
            );
        }
        state.has_ended
    }

    /// Waits for lines and takes all of them. `None` after the last one.
    fn take(&self) -> Option<Waiting> {
        let mut state = lock(&self.state);
        loop {
            if !state.waiting.lines.is_empty() {
                return Some(std::mem::take(&mut state.waiting));
            }
            if state.is_closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write(&self, waiting: Waiting) {
        let Waiting { lines, outcomes } = waiting;
        let (written, outcome) = lock(&self.file).append(&lines);
        let error = outcome.err().map(Arc::new);
        lock(&self.state).bytes -= lines.iter().map(Vec::len).sum::<usize>();
        self.changed.notify_all();
        self.room.notify_waiters();
        for (index, sender) in outcomes.into_iter().enumerate() {
            let outcome = match &error {
                Some(error) if index >= written => Err(error.clone()),
                _ => Ok(()),
            };
            match sender {
                Some(sender) => {
                    // The request may have ended.
                    let _ = sender.send(outcome);
                }
                None => {
                    if let Err(error) = outcome {
                        lock(&self.state).lost += 1;
                        self.warn(&error);
                    }
                }
            }
        }
    }

    fn warn(&self, error: &io::Error) {
        crate::warning_limit::warn_limited!(
            path = %self.path.display(),
            %error,
            "a record of {} could not be written",
            self.name
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A writer to a file that is deleted when the test has read it.
    fn writer(name: &str) -> (LogWriter, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("mcpline-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let file = LogFile::open(&path).expect("opens");
        (
            LogWriter::new("the test", Duration::from_secs(60), file),
            path,
        )
    }

    fn taken(path: &Path) -> Vec<u8> {
        let bytes = std::fs::read(path).expect("a file");
        let _ = std::fs::remove_file(path);
        bytes
    }

    #[test]
    fn dropping_a_writer_waits_until_its_thread_is_gone() {
        for _ in 0..200 {
            let (writer, path) = writer("gone");
            writer.write_later(b"line\n".to_vec()).expect("queued");
            let queue = writer.queue.clone();
            drop(writer);
            assert_eq!(Arc::strong_count(&queue), 1, "the thread has another");
            assert_eq!(taken(&path), b"line\n");
        }
    }

    #[test]
    fn dropping_a_writer_waits_for_all_lines() {
        let (writer, path) = writer("dropped");
        let mut expected = Vec::new();
        for number in 0..1_000 {
            let line = format!("{number}\n").into_bytes();
            expected.extend_from_slice(&line);
            writer.write_later(line).expect("queued");
        }
        drop(writer);
        assert_eq!(taken(&path), expected);
    }

    #[test]
    fn requests_wait_while_the_disk_is_too_slow_and_lose_nothing() {
        let (writer, path) = writer("slow");
        let queue = writer.queue.clone();
        let busy = lock(&queue.file);
        let mut line = vec![b'x'; MAX_WAITING_BYTES / 4];
        line.push(b'\n');
        for _ in 0..4 {
            writer.write_later(line.clone()).expect("queued");
        }
        let mut waiting = Box::pin(writer.wait_for_room());
        let mut now = Context::from_waker(Waker::noop());
        assert_eq!(waiting.as_mut().poll(&mut now), Poll::Pending);
        drop(busy);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(waiting);
        drop(writer);
        assert_eq!(taken(&path), line.repeat(4));
    }
}
