//! Looks out for calls that have been silent for too long.
//!
//! Most calls are answered at once, and a timer for each would cost more than some of them. One task looks after
//! all that wait; it ends when none does.

use std::time::Duration;

use tokio::time::Instant;

use crate::background;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::exchange::Exchange;

/// How late, in shares of the silence itself, an exchange may be noticed: the task looks at all of them no more
/// often than that.
const SHARES: u32 = 64;

/// The exchanges of one service that wait for their outcome.
pub(super) struct StreamUpgradeTimers {
    silence: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since when who waits. Places are used again.
    waiting: Vec<Option<(Instant, Arc<Exchange>)>>,
    free: Vec<usize>,
    /// The task runs.
    watched: bool,
}

/// A place among those that wait; given up when dropped.
pub(super) struct StreamUpgradeTimer {
    upgrade_timers: Arc<StreamUpgradeTimers>,
    index: usize,
}

impl StreamUpgradeTimers {
    /// For exchanges that may be silent for this long.
    pub(super) fn new(silence: Duration) -> Arc<Self> {
        Arc::new(Self {
            silence,
            state: Mutex::default(),
        })
    }

    /// Has the exchange [broken off](Exchange::break_silence) if it isn't decided in time. Within a runtime.
    pub(super) fn watch(self: &Arc<Self>, exchange: &Arc<Exchange>) -> StreamUpgradeTimer {
        let entry = Some((Instant::now(), exchange.clone()));
        let mut state = self.lock();
        let index = match state.free.pop() {
            Some(index) => {
                state.waiting[index] = entry;
                index
            }
            None => {
                state.waiting.push(entry);
                state.waiting.len() - 1
            }
        };
        if !std::mem::replace(&mut state.watched, true) {
            background::spawn_here(self.clone().run());
        }
        drop(state);
        StreamUpgradeTimer {
            upgrade_timers: self.clone(),
            index,
        }
    }

    async fn run(self: Arc<Self>) {
        let mut next = Instant::now() + self.silence;
        loop {
            tokio::time::sleep_until(next).await;
            let now = Instant::now();
            let (due, earliest) = self.take_due(now);
            for exchange in due {
                exchange.break_silence();
            }
            let Some(earliest) = earliest else { return };
            next = (earliest + self.silence).max(now + self.silence / SHARES);
        }
    }

    /// Those whose time has come, and since when the oldest of the others waits.
    fn take_due(&self, now: Instant) -> (Vec<Arc<Exchange>>, Option<Instant>) {
        let mut state = self.lock();
        let mut due = Vec::new();
        let mut earliest: Option<Instant> = None;
        for place in &mut state.waiting {
            let Some((since, _)) = place else { continue };
            if *since + self.silence > now {
                earliest = Some(earliest.map_or(*since, |earliest| earliest.min(*since)));
            } else if let Some((_, exchange)) = place.take() {
                due.push(exchange);
            }
        }
        state.watched = earliest.is_some();
        (due, earliest)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamUpgradeTimer {
    fn drop(&mut self) {
        let left = {
            let mut state = self.upgrade_timers.lock();
            state.free.push(self.index);
            state.waiting[self.index].take()
        };
        // Outside of the lock: it may be the last that holds the exchange.
        drop(left);
    }
}
