//! Detects that this process was forked from one in which the library was running: it has none of its threads, and other
//! threads may have held locks.

#[cfg(unix)]
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::mcpl_status::MCPL_FORKED;
use crate::status::{Fault, FaultResult};

/// The number of shared runtimes whose threads have not ended.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

#[cfg(unix)]
static WATCHED: Once = Once::new();

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The threads of a shared runtime. Keep it until they have ended.
pub(crate) struct RunningThreads(());

impl RunningThreads {
    pub(crate) fn new() -> Self {
        #[cfg(unix)]
        WATCHED.call_once(|| {
            // Fails without memory only; then a child is not distinguished from its parent.
            // SAFETY: the function stores a flag, which a forked child may do.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for RunningThreads {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(unix)]
unsafe extern "C" fn in_child() {
    if RUNNING.load(Ordering::Relaxed) > 0 {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}

/// Whether the library was running when this process was forked.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// # Errors
///
/// Forked: the library was running when this process was forked.
pub(crate) fn check() -> FaultResult {
    if is_child() {
        let text = "the library was running when this process was forked: use it in the parent, or after exec";
        return Err(Fault::new(MCPL_FORKED, text));
    }
    Ok(())
}
