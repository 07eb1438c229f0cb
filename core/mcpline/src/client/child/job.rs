//! A child's job: the child and everything that it starts (Windows).

use std::io;
use std::os::windows::process::CommandExt;

use mcpline_windows::{JOB_CREATION_FLAGS, Job};
use tokio::process::Child as Process;

use super::command::Command;

/// Starts a child with pipes for stdin and stdout, without a console window. It ends with this process, with everything that it starts,
/// because the system closes the job then.
pub(super) async fn spawn(command: Command) -> io::Result<(Process, Descendants)> {
    // Looks for the program in folders, which may be those of a network.
    let started = tokio::task::spawn_blocking(move || start(&command)).await;
    started.unwrap_or_else(|_| {
        Err(io::Error::other(
            "the start of the child process was aborted",
        ))
    })
}

fn start(command: &Command) -> io::Result<(Process, Descendants)> {
    let mut std = command.to_std()?;
    std.creation_flags(JOB_CREATION_FLAGS);
    let job = Job::new()?;
    let process = tokio::process::Command::from(std)
        .kill_on_drop(true)
        .spawn()?;
    if let (Some(handle), Some(id)) = (process.raw_handle(), process.id()) {
        // On an error the process is dropped, which ends it before it has run.
        job.admit(handle, id)?;
    }
    Ok((process, Descendants(job)))
}

/// The job. Its processes end on drop, with all that the child left behind.
pub(super) struct Descendants(Job);

impl Descendants {
    /// Returns that the system cannot ask: a signal of a console reaches only processes that share the console, and the child has one of its
    /// own. A server over stdio ends when its stdin does.
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(super) fn ask_to_terminate(&self) -> bool {
        false
    }

    pub(super) fn kill(&self) {
        self.0.terminate();
    }
}
