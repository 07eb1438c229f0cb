//! A child's process group: the child and what it starts, as long as that does not leave the group (Unix).

use std::io;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child as Process;

use super::command::Command;
use super::spawner;

/// Starts a child with pipes for stdin and stdout.
pub(super) async fn spawn(command: Command) -> io::Result<(Process, Descendants)> {
    let process = spawner::spawn(command).await?;
    let group = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok((process, Descendants(group)))
}

/// The process group. Killed on drop, with all that the child left behind.
pub(super) struct Descendants(Option<Pid>);

impl Descendants {
    /// Asks all processes to terminate. Returns whether the system can ask.
    pub(super) fn ask_to_terminate(&self) -> bool {
        self.signal(Signal::TERM);
        true
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // The group may be gone already.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        self.kill();
        if let Some(pid) = self.0 {
            spawner::forget(pid);
        }
    }
}
