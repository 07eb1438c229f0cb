//! Servers as child processes: started in a process group of their own (on Windows in a job), connected over stdin and
//! stdout, and terminated together with their descendants (2026-07-28, `basic/transports/stdio`).
//!
//! - [`Command`] describes what to start and how.
//! - `process_group` (Unix) or `job` (Windows) starts children and ends them together with their descendants.
//! - `spawner` (Unix) is the thread that starts children, with the watchdog that kills them if this process is killed.
//! - `program` (Windows) finds the file of a program.
//! - [`stderr`] keeps the last lines of a child's stderr.

mod command;
#[cfg(windows)]
mod job;
#[cfg(unix)]
mod process_group;
#[cfg(windows)]
mod program;
#[cfg(unix)]
mod spawner;
mod stderr;

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child as Process, ChildStdout};

use crate::background;
use crate::client_error::ClientError;

use super::connect::{DialFuture, Dialler};
use super::link::{Link, SharedEventSink};
use super::pipe::PipeLink;

pub use command::{Command, Stderr};
#[cfg(windows)]
use job::{Descendants, spawn};
#[cfg(unix)]
use process_group::{Descendants, spawn};
use stderr::LastLines;

/// How long the stderr of a child may stay open after the child has exited and its output was read: its descendants may
/// hold it open and keep writing.
const STDERR_GRACE: Duration = Duration::from_millis(100);

impl Dialler for Command {
    fn dial(&self, sink: SharedEventSink, _: bool) -> DialFuture<'_> {
        Box::pin(async move {
            let (mut process, descendants) =
                spawn(self.clone())
                    .await
                    .map_err(|error| ClientError::ServerUnreachable {
                        reason: self.unusable_part(),
                        source: Some(error.into()),
                    })?;
            let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
                return Err(ClientError::unreachable("the process has no pipes"));
            };
            let lines = match process.stderr.take() {
                Some(stderr) => LastLines::capture(stderr, self.stderr_listener()),
                None => LastLines::disabled(),
            };
            let pid = process.id();
            let exit_timeout = self.exit_timeout;
            let end = move |stdout: ChildStdout, closed, _: io::Result<()>| {
                shut_down_child(process, descendants, stdout, lines, exit_timeout, closed)
            };
            let link: Arc<dyn Link> =
                PipeLink::open(stdout, stdin, self.max_line_bytes, sink, pid, end);
            Ok(link)
        })
    }

    fn starts_process(&self) -> bool {
        true
    }
}

/// Terminates a child: waits for the grace period after its stdin was closed, then asks it to terminate where the system can (SIGTERM),
/// and at last kills it, with everything that it started.
async fn shut_down_child(
    mut process: Process,
    descendants: Descendants,
    mut stdout: ChildStdout,
    lines: LastLines,
    exit_timeout: Duration,
    closed: bool,
) -> ClientError {
    // A child that blocks on a full pipe would not notice that its stdin is closed.
    let draining = background::spawn_here(async move {
        let mut sink = [0; 4096];
        while matches!(stdout.read(&mut sink).await, Ok(read) if read > 0) {}
    });
    let status = wait_or_kill(&mut process, &descendants, exit_timeout).await;
    draining.abort();
    let stderr = lines.last(STDERR_GRACE).await;
    drop(descendants);
    if closed {
        return ClientError::Closed;
    }
    ClientError::ServerExited {
        exit: status.map(|status| status.to_string()),
        stderr,
        unsent: false,
    }
}

async fn wait_or_kill(
    process: &mut Process,
    descendants: &Descendants,
    exit_timeout: Duration,
) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(exit_timeout, process.wait()).await {
        return status.ok();
    }
    if descendants.ask_to_terminate()
        && let Ok(status) = tokio::time::timeout(exit_timeout, process.wait()).await
    {
        return status.ok();
    }
    descendants.kill();
    process.wait().await.ok()
}
