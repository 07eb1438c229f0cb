//! The last lines of a child's stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::Printable;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::oneshot;

use crate::background;

use super::command::StderrListener;

/// Maximum number of lines in an error: the end of a traceback.
const KEPT_LINES: usize = 20;

/// Maximum length of a kept line in bytes; the rest is dropped.
const KEPT_LINE: usize = 2 * 1024;

/// The last lines of a child's stderr.
pub(super) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    reading: Option<StderrReader>,
}

/// The reading task.
struct StderrReader {
    task: background::JoinHandle<()>,
    /// Makes the task read everything that is in the pipe now and reply when done.
    drain: Option<oneshot::Sender<oneshot::Sender<()>>>,
}

impl LastLines {
    /// Captures nothing.
    pub(super) fn disabled() -> Self {
        Self {
            lines: Arc::default(),
            reading: None,
        }
    }

    /// Reads until the end, so that the child never blocks on a full pipe.
    pub(super) fn capture(stderr: ChildStderr, listener: Option<StderrListener>) -> Self {
        let lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let splitter = LineSplitter {
            listener,
            kept: lines.clone(),
            line: Vec::new(),
        };
        let (drain, draining) = oneshot::channel();
        let task = background::spawn_here(read(stderr, splitter, draining));
        Self {
            lines,
            reading: Some(StderrReader {
                task,
                drain: Some(drain),
            }),
        }
    }

    /// Returns the last lines of a child that has exited: everything it wrote, and what follows until stderr closes or
    /// `grace` has passed.
    pub(super) async fn last(mut self, grace: Duration) -> Vec<String> {
        if let Some(StderrReader { task, drain }) = &mut self.reading {
            // On a busy machine the task may not have run for longer than the grace period.
            let (drained, is_drained) = oneshot::channel();
            if drain
                .take()
                .is_some_and(|drain| drain.send(drained).is_ok())
            {
                let _ = is_drained.await;
            }
            // Descendants of the child may hold stderr open for too long.
            let _ = tokio::time::timeout(grace, task).await;
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// Reads to the end. On a `drain` request it reads what is in the pipe first, then replies.
async fn read(
    mut stderr: ChildStderr,
    mut splitter: LineSplitter,
    mut drain: oneshot::Receiver<oneshot::Sender<()>>,
) {
    let mut chunk = [0; 4096];
    let mut may_be_drained = true;
    loop {
        tokio::select! {
            biased;
            drain_request = &mut drain, if may_be_drained => {
                may_be_drained = false;
                if let Ok(drained) = drain_request {
                    splitter.drain(&stderr, &mut chunk);
                    // The requester may be gone.
                    let _ = drained.send(());
                }
            }
            read = stderr.read(&mut chunk) => match read {
                Ok(read @ 1..) => splitter.split(&chunk[..read]),
                _ => break,
            },
        }
    }
    splitter.finish_last();
}

/// Splits stderr into lines.
struct LineSplitter {
    listener: Option<StderrListener>,
    kept: Arc<Mutex<VecDeque<String>>>,
    /// The beginning of the next line.
    line: Vec<u8>,
}

impl LineSplitter {
    /// Reads what is in the pipe now and nothing that arrives later, because another process may keep writing. Bypasses
    /// the runtime, which may not have noticed the data yet.
    #[cfg(unix)]
    fn drain(&mut self, stderr: &ChildStderr, chunk: &mut [u8]) {
        let held = rustix::io::ioctl_fionread(stderr).unwrap_or(0);
        let mut held = usize::try_from(held).unwrap_or(usize::MAX);
        while held > 0 {
            let most = held.min(chunk.len());
            // Does not block: pipes of the runtime are nonblocking.
            let Ok(read @ 1..) = rustix::io::read(stderr, &mut chunk[..most]) else {
                return;
            };
            self.split(&chunk[..read]);
            held -= read;
        }
    }

    /// Reads nothing: the runtime reads this pipe in a thread of its pool, which takes what is there.
    #[cfg(windows)]
    #[expect(clippy::unused_self, reason = "as on Unix")]
    fn drain(&mut self, _: &ChildStderr, _: &mut [u8]) {}

    fn split(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.finish(),
                _ if self.line.len() < KEPT_LINE => self.line.push(byte),
                _ => {}
            }
        }
    }

    fn finish(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end_matches('\r');
        tracing::info!(target: "mcpline::server_stderr", "{}", Printable(text));
        if let Some(listener) = &self.listener {
            listener(text);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(text.to_owned());
        drop(kept);
        self.line.clear();
    }

    /// Finishes a last line without a line break.
    fn finish_last(&mut self) {
        if !self.line.is_empty() {
            self.finish();
        }
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.task.abort();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn keeps_last_lines_that_are_unread_when_the_grace_period_ends() {
        // `cat` holds stderr open until its own input ends.
        let script = "{ cat <&3 & } 3<&0; echo first >&2; echo last words >&2";
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = child.stdin.take();
        let stderr = child.stderr.take().expect("a pipe");
        let stderr = ChildStderr::from_std(stderr).expect("a runtime");
        let lines = LastLines::capture(stderr, None);
        child.wait().expect("its end");
        // Blocks the thread beyond the grace period, so that the reading task and the end of the grace period become
        // ready together.
        let grace = Duration::from_millis(1);
        tokio::spawn(async move { std::thread::sleep(grace * 50) });
        assert_eq!(lines.last(grace).await, ["first", "last words"]);
        drop(input);
    }
}
