//! Upgrades calls to event streams when they have sent nothing for too long.
//!
//! Most calls are answered immediately, and a timer for each would cost more than some of them. A single task watches
//! all that wait; it ends when none do.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::background;
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::post_response::PostResponse;

/// Granularity: the task checks all exchanges at most this many times per `stream_upgrade_delay`, so an upgrade may be late by
/// that fraction.
const SHARES: u32 = 64;

/// The exchanges of one service that wait for their outcome.
pub(super) struct StreamUpgradeTimers {
    silence: Duration,
    state: Mutex<WaitingExchanges>,
    /// The runtime of the task, if it is not that of the first exchange.
    runtime: OnceLock<Handle>,
}

#[derive(Default)]
struct WaitingExchanges {
    /// The waiting exchanges and when they began. Slots are reused.
    waiting: Vec<Option<(Instant, Arc<PostResponse>)>>,
    free: Vec<usize>,
    /// Whether the task is running.
    watched: bool,
}

/// The entry of a waiting exchange, removed on drop.
pub(super) struct StreamUpgradeTimer {
    upgrade_timers: Arc<StreamUpgradeTimers>,
    index: usize,
}

impl StreamUpgradeTimers {
    /// Creates timers for exchanges that may send nothing for this long.
    pub(super) fn new(silence: Duration) -> Arc<Self> {
        Arc::new(Self {
            silence,
            state: Mutex::default(),
            runtime: OnceLock::new(),
        })
    }

    /// Sets the runtime of the task: that of an exchange could be held up by a handler.
    pub(super) fn set_runtime(&self, runtime: &Handle) {
        // Set once.
        let _ = self.runtime.set(runtime.clone());
    }

    /// Turns the exchange [into a stream](PostResponse::upgrade_to_stream) if it is not decided in time. Call within a runtime.
    pub(super) fn watch(self: &Arc<Self>, exchange: &Arc<PostResponse>) -> StreamUpgradeTimer {
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
            match self.runtime.get() {
                Some(runtime) => drop(background::spawn(runtime, self.clone().run())),
                None => drop(background::spawn_here(self.clone().run())),
            }
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
                exchange.upgrade_to_stream();
            }
            let Some(earliest) = earliest else { return };
            next = (earliest + self.silence).max(now + self.silence / SHARES);
        }
    }

    /// Takes the exchanges that are due. Also returns since when the oldest of the others has waited.
    fn take_due(&self, now: Instant) -> (Vec<Arc<PostResponse>>, Option<Instant>) {
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

    fn lock(&self) -> MutexGuard<'_, WaitingExchanges> {
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
        // Outside the lock: this may be the last reference to the exchange.
        drop(left);
    }
}
