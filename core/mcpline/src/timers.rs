//! One task that calls back when something falls due, for all connections of a server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::background;
use crate::clock;

/// Something with deadlines of its own.
pub(crate) trait Timed: Send + Sync {
    /// Its time has come. It schedules itself anew if there is more.
    fn fire(self: Arc<Self>);
}

/// Deadlines, soonest first, and the task that waits for them.
pub(crate) struct Timers {
    shared: Arc<Shared>,
    running: Mutex<bool>,
}

struct Shared {
    queue: Mutex<BinaryHeap<Entry>>,
    changed: Notify,
    /// Nobody schedules any more: the task ends at once, whatever it waits for.
    closed: AtomicBool,
}

struct Entry {
    at: Reverse<Duration>,
    timed: Weak<dyn Timed>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::new(BinaryHeap::new()),
                changed: Notify::new(),
                closed: AtomicBool::new(false),
            }),
            running: Mutex::new(false),
        }
    }

    /// Has `timed` called at `at`, on the driver's clock.
    pub(crate) fn schedule(&self, at: Duration, timed: Weak<dyn Timed>) {
        let first = {
            let mut queue = self.shared.lock();
            let first = queue.peek().is_none_or(|entry| at < entry.at.0);
            queue.push(Entry {
                at: Reverse(at),
                timed,
            });
            first
        };
        if first {
            self.shared.changed.notify_one();
        }
    }

    /// Starts the task on this runtime, unless it runs already. It ends with the server, or with the
    /// runtime; a server that serves again elsewhere starts it again.
    pub(crate) fn start(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *running, true) {
            return;
        }
        let stopped = Stopped(Arc::downgrade(self));
        let shared = Arc::downgrade(&self.shared);
        background::spawn(runtime, async move {
            let _stopped = stopped;
            while let Some(shared) = shared.upgrade() {
                if shared.closed.load(Ordering::Acquire) {
                    return;
                }
                let next = shared.fire_due();
                let changed = shared.changed.notified();
                match next {
                    Some(wait) => {
                        // An error is the time being over: nothing changed meanwhile.
                        let _ = tokio::time::timeout(wait, changed).await;
                    }
                    None => changed.await,
                }
            }
        });
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        // Another thread may see this before the last reference is gone.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.changed.notify_one();
    }
}

/// Notes that the task ended, however it did.
struct Stopped(Weak<Timers>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(timers) = self.0.upgrade() {
            *timers
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = false;
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, BinaryHeap<Entry>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls what is due; returns how long it is until the next.
    fn fire_due(&self) -> Option<Duration> {
        loop {
            let due = {
                let mut queue = self.lock();
                let at = queue.peek()?.at.0;
                let now = clock::now();
                if at > now {
                    return Some(at - now);
                }
                queue.pop()?
            };
            if let Some(timed) = due.timed.upgrade() {
                timed.fire();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Never;

    impl Timed for Never {
        fn fire(self: Arc<Self>) {}
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn timers_that_are_dropped_elsewhere_wait_for_no_deadline() {
        for _ in 0..200 {
            let timers = Arc::new(Timers::new());
            timers.start(&tokio::runtime::Handle::current());
            let timed: Arc<dyn Timed> = Arc::new(Never);
            timers.schedule(Duration::from_secs(3_600), Arc::downgrade(&timed));
            let shared = Arc::downgrade(&timers.shared);
            let dropped = tokio::task::spawn_blocking(move || drop(timers));
            dropped.await.expect("no panic");
            while shared.upgrade().is_some() {
                tokio::task::yield_now().await;
            }
        }
    }
}
