//! Children that end with their parent.

#[cfg(unix)]
use std::process::Command;

/// Has the child get a SIGKILL when the *thread* that starts it ends, and with it the process (Linux,
/// `PR_SET_PDEATHSIG`). Start children from a thread that lasts.
///
/// The signal stops at the child; what the child starts is not reached. On other systems this does nothing.
#[cfg(unix)]
#[allow(unsafe_code)]
pub fn die_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
        use std::os::unix::process::CommandExt;

        let parent = getpid();
        let ask = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before it was asked for.
            if getppid() == Some(parent) {
                Ok(())
            } else {
                Err(rustix::io::Errno::SRCH.into())
            }
        };
        // SAFETY: between fork and exec the closure makes two system calls, allocates nothing and takes no lock.
        unsafe { command.pre_exec(ask) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
