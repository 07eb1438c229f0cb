//! Servers as child processes: started in a process group of their own, connected over stdin and stdout, and terminated
//! together with their descendants (2026-07-28, `basic/transports/stdio`).
//!
//! - [`Command`] describes what to start and how.
//! - [`spawner`] is the thread that starts children, with the watchdog that kills them if this process is killed.
//! - [`stderr`] keeps the last lines of a child's stderr.

mod command;
mod spawner;
mod stderr;

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child as Process, ChildStdout};

use crate::background;
use crate::client_error::ClientError;

use super::connect::{Dialler, Dialling};
use super::link::{Link, Sink};
use super::pipe::PipeLink;

pub use command::{Command, Stderr};
use stderr::LastLines;

/// How long the stderr of a child may stay open after the child has exited and its output was read: its descendants may
/// hold it open and keep writing.
const STDERR_GRACE: Duration = Duration::from_millis(100);

impl Dialler for Command {
    fn dial(&self, sink: Sink, _: bool) -> Dialling<'_> {
        Box::pin(async move {
            let mut process = spawner::spawn(self.clone()).await.map_err(|error| {
                ClientError::ServerUnreachable {
                    reason: self.unusable_part(),
                    source: Some(error.into()),
                }
            })?;
            let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
                return Err(ClientError::unreachable("the process has no pipes"));
            };
            let lines = match process.stderr.take() {
                Some(stderr) => LastLines::keep(stderr, self.stderr_listener()),
                None => LastLines::none(),
            };
            let pid = process.id();
            let group = Group(pid.and_then(|id| Pid::from_raw(id.cast_signed())));
            let patience = self.grace;
            let end = move |stdout: ChildStdout, closed, _: io::Result<()>| {
                end(process, group, stdout, lines, patience, closed)
            };
            let link: Arc<dyn Link> =
                PipeLink::open(stdout, stdin, self.line_limit, sink, pid, end);
            Ok(link)
        })
    }

    fn starts_process(&self) -> bool {
        true
    }
}

/// A child's process group. Killed on drop, with all that the child left behind.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // The group may be gone already.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(pid) = self.0 {
            spawner::forget(pid);
        }
    }
}

/// Terminates a child: closes its stdin, waits for the grace period, then sends SIGTERM and at last SIGKILL.
async fn end(
    mut process: Process,
    group: Group,
    mut stdout: ChildStdout,
    lines: LastLines,
    grace: Duration,
    closed: bool,
) -> ClientError {
    // A child that blocks on a full pipe would not notice that its stdin is closed.
    let draining = background::spawn_here(async move {
        let mut sink = [0; 4096];
        while matches!(stdout.read(&mut sink).await, Ok(read) if read > 0) {}
    });
    let status = leave(&mut process, &group, grace).await;
    draining.abort();
    let stderr = lines.last(STDERR_GRACE).await;
    drop(group);
    if closed {
        return ClientError::Closed;
    }
    ClientError::ServerExited {
        exit: status.map(|status| status.to_string()),
        stderr,
        unsent: false,
    }
}

async fn leave(process: &mut Process, group: &Group, grace: Duration) -> Option<ExitStatus> {
    for signal in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = tokio::time::timeout(grace, process.wait()).await {
            return status.ok();
        }
        group.signal(signal);
    }
    process.wait().await.ok()
}
