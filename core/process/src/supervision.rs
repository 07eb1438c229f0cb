//! What a supervisor of worker processes and its workers need of the system. A worker inherits two descriptors: the listening
//! socket, and one end of a socket pair, the line to its supervisor.

use std::io;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Makes the child inherit these descriptors, with the same numbers. No other child does.
#[allow(unsafe_code)]
pub fn pass_descriptors(command: &mut Command, descriptors: Vec<Arc<OwnedFd>>) {
    let pass = move || {
        for descriptor in &descriptors {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only, allocates nothing and takes no lock.
    unsafe { command.pre_exec(pass) };
}

/// Takes over what the supervisor with this process id passes to its worker: the listening socket and the line. Programs
/// that the worker starts do not inherit them.
///
/// Returns `None` if `line` is not a socket that this supervisor has made: the process is not its worker then.
#[allow(unsafe_code)]
pub fn adopt(socket: RawFd, line: RawFd, supervisor: u32) -> Option<(TcpListener, UnixStream)> {
    if socket == line || !is_open(socket) || !is_open(line) {
        return None;
    }
    // SAFETY: it is open, and nothing closes it meanwhile: a supervisor passes it to be adopted here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(line) };
    if !is_made_by(borrowed, supervisor) {
        return None;
    }
    // SAFETY: they are open, and the supervisor passes them to this function.
    let (socket, line) = unsafe { (OwnedFd::from_raw_fd(socket), OwnedFd::from_raw_fd(line)) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    fcntl_setfd(&line, FdFlags::CLOEXEC).ok()?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).ok()?;
    Some((listener, UnixStream::from(line)))
}

#[allow(unsafe_code)]
fn is_open(descriptor: RawFd) -> bool {
    // SAFETY: the call has no pointers. On a descriptor that is not open it fails.
    descriptor > 2 && unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0
}

/// Whether a descriptor is a socket of a pair that this process has made. Only Linux says by whom.
fn is_made_by(descriptor: BorrowedFd<'_>, process: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt::socket_peercred;

        let maker = socket_peercred(descriptor).ok();
        maker.is_some_and(|maker| pid_of(process).is_ok_and(|process| maker.pid == process))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = process;
        rustix::net::getpeername(descriptor).is_ok()
    }
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

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

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

    #[test]
    fn one_child_inherits_what_is_passed_to_it() {
        let (line, _supervisor) = UnixStream::pair().expect("a pair");
        let line = Arc::new(OwnedFd::from(line));
        let has_it = |passed: bool| {
            let mut command = Command::new("test");
            command.args(["-e", &format!("/dev/fd/{}", line.as_raw_fd())]);
            if passed {
                pass_descriptors(&mut command, vec![line.clone()]);
            }
            command.status().expect("runs").success()
        };
        assert_eq!(
            [has_it(false), has_it(true), has_it(false)],
            [false, true, false]
        );
    }

    #[test]
    fn a_worker_adopts_only_what_its_supervisor_has_made() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = socket.local_addr().expect("an address");
        let (line, _supervisor) = UnixStream::pair().expect("a pair");
        let own = std::process::id();
        let descriptors = (socket.as_raw_fd(), line.as_raw_fd());
        assert!(adopt(descriptors.0, descriptors.0, own).is_none());
        assert!(adopt(descriptors.0, 1 << 20, own).is_none());
        assert!(adopt(-1, descriptors.1, own).is_none());
        #[cfg(target_os = "linux")]
        assert!(adopt(descriptors.0, descriptors.1, own + 1).is_none());
        let (socket, line) = (socket.into_raw_fd(), line.into_raw_fd());
        let (listener, _line) = adopt(socket, line, own).expect("what this process has made");
        let _client = TcpStream::connect(address).expect("connects");
        listener.set_nonblocking(false).expect("blocks");
        listener.accept().expect("accepts");
    }
}
