//! What a supervisor of worker processes and its workers need of the system.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

/// Returns a duplicate of a descriptor that every child process inherits.
///
/// # Errors
///
/// The process has too many open descriptors.
pub fn inheritable(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::dup(descriptor)?)
}

/// Waits until the process has ended. It can still be signalled then without reaching another process, until
/// [`Child::wait`] is called.
///
/// # Errors
///
/// The process is not a child of this one any more: the program ignores SIGCHLD, or something else has waited for it.
pub fn wait_for_end(pid: u32) -> io::Result<()> {
    let pid = pid_of(pid)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends SIGTERM to a child that was not waited for.
///
/// # Errors
///
/// This process may not send it signals any more.
pub fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(pid_of(child.id())?, Signal::TERM)?)
}

fn pid_of(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Tells the supervisor that this process serves, and sends this process SIGTERM when the supervisor has ended. Stdin is the
/// socket to the supervisor; a thread of its own reads from it.
///
/// # Errors
///
/// Stdin is no such socket, or the thread cannot be started.
pub fn follow_supervisor() -> io::Result<()> {
    rustix::io::write(rustix::stdio::stdin(), &[READY])?;
    let thread = std::thread::Builder::new().name("mcpline-supervisor".to_owned());
    thread.spawn(|| {
        // Nothing is ever written to it.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = kill_process(getpid(), Signal::TERM);
    })?;
    Ok(())
}

/// What a worker writes when it serves.
const READY: u8 = b'1';

/// Whether the worker at the other end of a socket has called [`follow_supervisor`].
pub fn has_served(mut worker: &UnixStream) -> bool {
    let mut byte = [0];
    worker.set_nonblocking(true).is_ok() && matches!(worker.read(&mut byte), Ok(1))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::{terminate, wait_for_end};

    #[test]
    fn an_ended_child_can_still_be_signalled_and_waited_for() {
        let mut child = Command::new("true").spawn().expect("starts");
        wait_for_end(child.id()).expect("ends");
        terminate(&child).expect("reaches it");
        assert!(child.wait().expect("ends").success());
    }

    #[test]
    fn a_running_child_is_terminated() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("starts");
        terminate(&child).expect("signals");
        wait_for_end(child.id()).expect("ends");
        assert_eq!(child.wait().expect("ends").signal(), Some(15));
        wait_for_end(child.id()).expect_err("no child any more");
    }
}
