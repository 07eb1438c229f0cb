//! Timers: one task that handles the deadlines of all connections of a server.

#[cfg(all(test, mcpline_models))]
mod race_models;

use std::collections::BTreeMap;
use std::time::Duration;

use mcpline_runtime::clock;
use tokio::sync::Notify;

use crate::background;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A value with deadlines.
pub(crate) trait Timed: Send + Sync {
    /// Returns its entry among the timers.
    fn alarm(&self) -> &Alarm;

    /// Handles its deadline. Sets its alarm again if another one follows.
    fn fire(self: Arc<Self>);
}

/// The next deadline of one [`Timed`] value: at most one entry among the timers, removed when the alarm is dropped.
///
/// A peer can start and end sessions as fast as it likes, so an ended one must leave nothing behind that waits for a
/// deadline half an hour away.
#[derive(Default)]
pub(crate) struct Alarm {
    entry: Mutex<Option<(Weak<Shared>, Key)>>,
}

/// The deadline, and a number that distinguishes equal deadlines.
type Key = (Duration, u64);

/// Deadlines, soonest first, and the task that waits for them.
pub(crate) struct Timers {
    shared: Arc<Shared>,
    running: Mutex<bool>,
}

struct Shared {
    queue: Mutex<BTreeMap<Key, Weak<dyn Timed>>>,
    next_number: AtomicU64,
    changed: Notify,
    /// The timers were dropped: the task ends at once, whatever it waits for.
    closed: AtomicBool,
}

impl Alarm {
    fn lock(&self) -> MutexGuard<'_, Option<(Weak<Shared>, Key)>> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the entry with this key, whose deadline has been handled.
    fn went_off(&self, key: Key) {
        let mut entry = self.lock();
        if entry.as_ref().is_some_and(|(_, set)| *set == key) {
            *entry = None;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let entry = self
            .entry
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((shared, key)) = entry
            && let Some(shared) = shared.upgrade()
        {
            shared.lock().remove(&key);
        }
    }
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::new(BTreeMap::new()),
                next_number: AtomicU64::new(0),
                changed: Notify::new(),
                closed: AtomicBool::new(false),
            }),
            running: Mutex::new(false),
        }
    }

    /// Calls `timed` at `at`, on the driver's clock, or earlier if its alarm is already set to an earlier time.
    pub(crate) fn schedule<T: Timed + 'static>(&self, at: Duration, timed: &Arc<T>) {
        let alarm = timed.alarm();
        let mut entry = alarm.lock();
        let earlier = entry.take();
        if let Some((_, set)) = &earlier
            && set.0 <= at
        {
            *entry = earlier;
            return;
        }
        let key = (at, self.shared.next_number.fetch_add(1, Ordering::Relaxed));
        let timed: Weak<dyn Timed> = Arc::downgrade(&(timed.clone() as Arc<dyn Timed>));
        let is_first = {
            let mut queue = self.shared.lock();
            if let Some((_, set)) = earlier {
                queue.remove(&set);
            }
            let is_first = queue
                .first_key_value()
                .is_none_or(|(first, _)| key < *first);
            queue.insert(key, timed);
            is_first
        };
        *entry = Some((Arc::downgrade(&self.shared), key));
        drop(entry);
        if is_first {
            self.shared.changed.notify_one();
        }
    }

    /// Returns the number of pending deadlines.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Starts the task on this runtime, unless it is running. It ends with the server or the runtime; a server that is
    /// served again elsewhere starts it again.
    pub(crate) fn start(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        self.start_with_guard(runtime, ());
    }

    /// Like [`start`](Self::start); the task holds `held` until it ends.
    pub(crate) fn start_with_guard(
        self: &Arc<Self>,
        runtime: &tokio::runtime::Handle,
        held: impl Send + 'static,
    ) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *running, true) {
            return;
        }
        let stopped = (Stopped(Arc::downgrade(self)), held);
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
                        // An error means that the time is over without a change.
                        let _ = tokio::time::timeout(wait, changed).await;
                    }
                    None => changed.await,
                }
            }
        });
    }
}

impl Timers {
    /// Ends the task for good: no deadline is handled any more.
    pub(crate) fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.changed.notify_one();
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        // Another thread may see this before the last reference is gone.
        self.close();
    }
}

/// Records that the task has ended, in any way.
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
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<dyn Timed>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the deadlines that are due. Returns the time until the next one.
    fn fire_due(&self) -> Option<Duration> {
        loop {
            let (key, timed) = {
                let mut queue = self.lock();
                let (at, _) = *queue.first_key_value()?.0;
                let now = clock::now();
                if at > now {
                    return Some(at - now);
                }
                queue.pop_first()?
            };
            if let Some(timed) = timed.upgrade() {
                timed.alarm().went_off(key);
                timed.fire();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Never(Alarm);

    impl Timed for Never {
        fn alarm(&self) -> &Alarm {
            &self.0
        }

        fn fire(self: Arc<Self>) {}
    }

    #[test]
    fn keeps_one_entry_per_alarm_and_none_after_drop() {
        let timers = Timers::new();
        let timed = Arc::new(Never::default());
        for seconds in (1..100).rev() {
            timers.schedule(Duration::from_secs(seconds), &timed);
            timers.schedule(Duration::from_secs(1_000), &timed);
        }
        assert_eq!(timers.len(), 1);
        let weak = Arc::downgrade(&timed);
        drop(timed);
        assert_eq!(timers.len(), 0);
        assert_eq!(weak.weak_count(), 0, "nothing keeps the memory");
    }

    #[tokio::test(start_paused = true)]
    async fn goes_off_at_the_earliest_of_its_deadlines_and_can_be_set_again() {
        struct Counting {
            alarm: Alarm,
            fired: AtomicU64,
            timers: Arc<Timers>,
        }
        impl Timed for Counting {
            fn alarm(&self) -> &Alarm {
                &self.alarm
            }
            fn fire(self: Arc<Self>) {
                if self.fired.fetch_add(1, Ordering::Relaxed) < 2 {
                    let timers = self.timers.clone();
                    timers.schedule(clock::now() + Duration::from_secs(1), &self);
                }
            }
        }
        let timers = Arc::new(Timers::new());
        timers.start(&tokio::runtime::Handle::current());
        let timed = Arc::new(Counting {
            alarm: Alarm::default(),
            fired: AtomicU64::new(0),
            timers: timers.clone(),
        });
        let now = clock::now();
        timers.schedule(now + Duration::from_secs(60), &timed);
        timers.schedule(now + Duration::from_secs(1), &timed);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(timed.fired.load(Ordering::Relaxed), 3);
        assert_eq!(timers.len(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn timers_that_are_dropped_elsewhere_wait_for_no_deadline() {
        for _ in 0..200 {
            let timers = Arc::new(Timers::new());
            timers.start(&tokio::runtime::Handle::current());
            let timed = Arc::new(Never::default());
            timers.schedule(Duration::from_secs(3_600), &timed);
            let shared = Arc::downgrade(&timers.shared);
            let dropped = tokio::task::spawn_blocking(move || drop(timers));
            dropped.await.expect("no panic");
            while shared.upgrade().is_some() {
                tokio::task::yield_now().await;
            }
        }
    }
}
