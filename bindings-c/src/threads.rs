//! Starts the threads of the library: with signals blocked, so that the program's own threads get them, and workers with the
//! stack that the program sets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use crate::status::{Fault, FaultResult};

/// Smallest stack of a worker: enough for the functions of this library.
const MIN_STACK: usize = 256 * 1024;

/// The size set by `mcpl_set_worker_stack_size`; 0 for the default.
static WORKER_STACK: AtomicUsize = AtomicUsize::new(0);

/// Signals that say what a thread has done itself, or that measure it. They stay unblocked.
#[cfg(unix)]
const OF_THREAD: [libc::c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGPROF,
];

/// # Errors
///
/// The size is too small.
pub(crate) fn set_worker_stack(bytes: usize) -> FaultResult {
    if bytes != 0 && bytes < MIN_STACK {
        let text = format!("the stack of a worker must have at least {MIN_STACK} bytes");
        return Err(Fault::invalid(text));
    }
    WORKER_STACK.store(bytes, Ordering::Relaxed);
    Ok(())
}

/// Starts a thread that runs functions of the library only.
///
/// # Errors
///
/// The system is out of threads.
pub(crate) fn start(name: &str, run: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle<()>> {
    spawn_with_blocked_signals(Builder::new().name(name.to_owned()), run)
}

/// Starts a worker, which runs callbacks.
///
/// # Errors
///
/// The system is out of threads.
pub(crate) fn start_worker(run: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle<()>> {
    let worker = Builder::new().name("mcpline-worker".to_owned());
    match WORKER_STACK.load(Ordering::Relaxed) {
        0 => spawn_with_blocked_signals(worker, run),
        bytes => spawn_with_blocked_signals(worker.stack_size(bytes), run),
    }
}

fn spawn_with_blocked_signals(
    thread: Builder,
    run: Box<dyn FnOnce() + Send>,
) -> std::io::Result<JoinHandle<()>> {
    let _blocked = block_signals();
    thread.spawn(run)
}

/// Blocks signals on this thread until the guard is dropped. Threads that are started meanwhile inherit that.
#[cfg(unix)]
pub(crate) fn block_signals() -> impl Drop {
    struct SignalMaskGuard(libc::sigset_t);
    impl Drop for SignalMaskGuard {
        fn drop(&mut self) {
            // SAFETY: the set is initialized.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
            };
        }
    }
    // SAFETY: sets of signals are plain numbers, and the functions initialize them.
    unsafe {
        let mut blocked = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut blocked);
        for signal in OF_THREAD {
            libc::sigdelset(&raw mut blocked, signal);
        }
        // Elsewhere the end of a child process is reported by this signal.
        if !cfg!(target_os = "linux") {
            libc::sigdelset(&raw mut blocked, libc::SIGCHLD);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before);
        SignalMaskGuard(before)
    }
}

/// Nothing: signals of Windows have a thread of their own.
#[cfg(windows)]
pub(crate) fn block_signals() -> impl Drop {
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {}
    }
    Nothing
}
