//! Child processes that end with their parent and get only the descriptors that are meant for them; and the sockets that a
//! process itself has inherited.

#[cfg(unix)]
mod inherited_socket;
#[cfg(unix)]
mod supervision;

#[cfg(unix)]
use std::process::Command;

#[cfg(unix)]
pub use inherited_socket::inherited_listener;
#[cfg(unix)]
pub use supervision::{adopt, pass_descriptors, terminate, wait_for_end};

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

/// Closes all descriptors of the child but stdin, stdout and stderr when its program starts, also those that the
/// parent has opened without `FD_CLOEXEC` (Linux).
///
/// On other systems this does nothing: the child gets what was opened without the flag.
#[cfg(unix)]
#[allow(unsafe_code)]
pub fn close_other_descriptors(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;

        // The flag is set instead of closing: the standard library reports a failed exec through a pipe of its own.
        let set_flags = || {
            if !descriptors::set_flags_of_range() {
                descriptors::set_flags_one_by_one();
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only, allocates nothing and takes no lock.
        unsafe { command.pre_exec(set_flags) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Sets `FD_CLOEXEC` for all descriptors but the standard ones. Runs between fork and exec, where only system calls are
/// allowed.
#[cfg(target_os = "linux")]
mod descriptors {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};

    use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};

    /// The first descriptor that is not a standard one.
    const FIRST: RawFd = 3;

    /// The end of the descriptors that are tried without `/proc`. The system's default limit of open files is far below, and a
    /// higher one would make the start of each child slow.
    const MAX_TRIED: RawFd = 65_536;

    /// Bytes for entries of `/proc/self/fd` that are read at once. The buffer is on the stack.
    const ENTRIES_BYTES: usize = 2_048;

    /// Sets the flag with one system call. Returns whether this worked: Linux has it since 5.11, and filters of system
    /// calls in containers refuse it.
    #[allow(unsafe_code)]
    pub(super) fn set_flags_of_range() -> bool {
        // Not in the headers of every C library.
        const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
        let first = FIRST.unsigned_abs();
        // SAFETY: the call has no pointers, and changes flags only.
        let done = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                libc::c_uint::MAX,
                CLOSE_RANGE_CLOEXEC,
            )
        };
        done == 0
    }

    /// Sets the flag of each descriptor.
    pub(super) fn set_flags_one_by_one() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A buffer on the stack and a name with its zero byte: nothing is allocated.
        match openat(CWD, c"/proc/self/fd", flags, Mode::empty()) {
            Ok(folder) if set_flags_in(&folder).is_ok() => {}
            _ => (FIRST..MAX_TRIED).for_each(set_flag),
        }
    }

    fn set_flags_in(folder: &OwnedFd) -> rustix::io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let digits = entry.file_name().to_bytes();
            // `.` and `..` have no digits.
            let number = digits.iter().try_fold(0 as RawFd, |number, digit| {
                let digit = digit.is_ascii_digit().then(|| RawFd::from(digit - b'0'))?;
                number.checked_mul(10)?.checked_add(digit)
            });
            if let Some(number) = number
                && number >= FIRST
                && number != folder.as_raw_fd()
            {
                set_flag(number);
            }
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    fn set_flag(descriptor: RawFd) {
        // SAFETY: the call has no pointers. On a descriptor that is not open it fails and changes nothing.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::{close_other_descriptors, descriptors};

    /// Starts a child with what `prepare` sets; returns whether it has inherited a file of this process.
    fn inherits(prepare: impl FnOnce(&mut Command)) -> bool {
        let file = File::open(std::env::current_exe().expect("a path")).expect("opens");
        // Without the flag that the standard library sets.
        let file = rustix::io::dup(&file).expect("duplicates");
        let mut command = Command::new("readlink");
        command.arg(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&file)
        ));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command);
        let output = command.output().expect("runs");
        !output.stdout.is_empty()
    }

    #[test]
    fn a_child_inherits_descriptors_without_the_flag() {
        assert!(inherits(|_| {}));
    }

    #[test]
    fn a_child_does_not_inherit_other_descriptors() {
        assert!(!inherits(close_other_descriptors));
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_child_does_not_inherit_them_without_close_range_either() {
        assert!(!inherits(|command| {
            let set_flags = || {
                descriptors::set_flags_one_by_one();
                Ok(())
            };
            // SAFETY: as in `close_other_descriptors`.
            unsafe { command.pre_exec(set_flags) };
        }));
    }

    #[test]
    fn reports_a_program_that_does_not_exist() {
        let mut command = Command::new("/no/such/program");
        close_other_descriptors(&mut command);
        let error = command.spawn().expect_err("does not exist");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
