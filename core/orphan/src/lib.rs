//! Child processes that end with their parent.

#[cfg(unix)]
use std::process::Command;

/// Makes the child receive SIGKILL when the *thread* that starts it ends, and therefore also when the process ends
/// (Linux, `PR_SET_PDEATHSIG`). Start children from a long-lived thread.
///
/// The signal only reaches the child, not its own children. On other systems this does nothing.
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
            // The parent may have ended before the request took effect.
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
