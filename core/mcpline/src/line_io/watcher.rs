//! A thread that looks for handlers that keep a thread of their runtime, while there are calls.
//!
//! It is none of the runtime's: a task that a blocked thread has woken may wait for this very thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pipe_handoff::PipeHandoff;

/// How long a handler may keep its thread, at least; at most twice as long. Shorter than what users notice, and longer than a
/// busy machine interrupts most handlers.
const MAX_LOAN: Duration = Duration::from_millis(10);

/// How long the thread waits for further calls before it ends: starting it costs as much as many calls.
const LINGERING: Duration = Duration::from_secs(1);

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    handoffs: Vec::new(),
    is_running: false,
});

/// Notified of pipes to watch.
static ADDED: Condvar = Condvar::new();

struct Watched {
    handoffs: Vec<Arc<PipeHandoff>>,
    is_running: bool,
}

fn lock() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the pipe from time to time, until nothing happens there.
pub(super) fn watch(handoff: Arc<PipeHandoff>) {
    // A model has a thread of its own that looks.
    if cfg!(all(test, mcpline_models)) {
        return;
    }
    let mut watched = lock();
    watched.handoffs.push(handoff);
    if watched.is_running {
        if watched.handoffs.len() == 1 {
            ADDED.notify_one();
        }
        return;
    }
    let thread = std::thread::Builder::new()
        .name("mcpline-watcher".to_owned())
        .spawn(run);
    match thread {
        Ok(_) => watched.is_running = true,
        Err(error) => {
            tracing::debug!(%error, "cannot start the thread that notices blocking handlers");
            // A later call tries again.
            for handoff in std::mem::take(&mut watched.handoffs) {
                handoff.set_unwatched();
            }
        }
    }
}

fn run() {
    loop {
        std::thread::sleep(MAX_LOAN);
        let mut looking = std::mem::take(&mut lock().handoffs);
        looking.retain(|handoff| handoff.let_other_task_read());
        let mut watched = lock();
        watched.handoffs.append(&mut looking);
        if !watched.handoffs.is_empty() {
            continue;
        }
        let waited =
            ADDED.wait_timeout_while(watched, LINGERING, |watched| watched.handoffs.is_empty());
        let (mut watched, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            watched.is_running = false;
            return;
        }
    }
}
