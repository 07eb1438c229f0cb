//! Who drives the I/O of a server: its I/O thread, or an event loop's thread while that has nothing else to do.
//!
//! Waking another thread costs more than most calls. An event loop that we run ourselves therefore drives the
//! runtime on its own thread, from within the wait for its events ([`crate::io_driver`]). The I/O thread then stands
//! by: when a handler keeps the loop's thread from coming back for some milliseconds, it drives in its stead, so
//! that pings and cancellations are served, and gives the runtime back when the loop wants it. It looks at the
//! clock only while calls come; an idle server sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::event_loop::lock;

/// How often the I/O thread looks whether the loop's thread has come back. Between one and two of these pass
/// before it drives in the loop's stead.
const TICK: Duration = Duration::from_millis(2);
/// After this many ticks without a turn of the loop, the I/O thread sleeps until there is one.
const CALM_TICKS: u32 = 20;

/// No loop drives: the I/O thread does.
const FREE: u64 = 0;
/// The loop's thread drives.
const HERE: u64 = 1;
/// The loop's thread does something else.
const AWAY: u64 = 2;
const PHASES: u64 = 3;
const TURN: u64 = 4;

/// What the I/O thread and a loop that drives agree by.
#[derive(Default)]
pub(crate) struct RuntimeOwnership {
    /// The phase, and how often it has changed.
    state: AtomicU64,
    /// The I/O thread looks at the clock.
    armed: AtomicBool,
    /// The I/O thread drives, or is about to.
    driving: AtomicBool,
    stopped: AtomicBool,
    /// Tells the I/O thread, while it drives, to look at the state.
    look: Notify,
    sleep: Mutex<()>,
    /// Tells the I/O thread, while it stands by, to look at the state.
    woken: Condvar,
}

impl RuntimeOwnership {
    /// The loop's thread begins to drive.
    pub(crate) fn enter(&self) {
        self.change(HERE);
        if self.driving.load(Ordering::SeqCst) {
            self.look.notify_one();
        }
    }

    /// The loop's thread goes off to do something else.
    pub(crate) fn leave(&self) {
        self.change(AWAY);
        if !self.armed.swap(true, Ordering::SeqCst) {
            let _sleep = lock(&self.sleep);
            self.woken.notify_one();
        }
    }

    /// The loop doesn't drive any more.
    pub(crate) fn release(&self) {
        self.change(FREE);
        let _sleep = lock(&self.sleep);
        self.woken.notify_one();
    }

    /// Ends the I/O thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.look.notify_one();
        let _sleep = lock(&self.sleep);
        self.woken.notify_one();
    }

    /// What the I/O thread does: `drive` drives the runtime until the baton wants it back.
    pub(crate) fn stand(&self, mut drive: impl FnMut(&Self)) {
        while !self.is_stopped() {
            self.driving.store(true, Ordering::SeqCst);
            drive(self);
            self.driving.store(false, Ordering::SeqCst);
            self.stand_by();
        }
    }

    /// Waits until a loop wants to drive, or the end has come.
    pub(crate) async fn wanted(&self) {
        while self.phase() != HERE && !self.is_stopped() {
            self.look.notified().await;
        }
    }

    /// Waits until nobody drives who should, or the end has come.
    fn stand_by(&self) {
        let mut sleep = lock(&self.sleep);
        let mut last = self.state.load(Ordering::SeqCst);
        let mut calm = 0;
        while !self.is_stopped() && self.phase() != FREE {
            if !self.armed.load(Ordering::SeqCst) {
                sleep = self
                    .woken
                    .wait(sleep)
                    .unwrap_or_else(PoisonError::into_inner);
                last = self.state.load(Ordering::SeqCst);
                continue;
            }
            sleep = self
                .woken
                .wait_timeout(sleep, TICK)
                .map_or_else(|error| error.into_inner().0, |(sleep, _)| sleep);
            let now = self.state.load(Ordering::SeqCst);
            if now != last {
                last = now;
                calm = 0;
                continue;
            }
            if now & PHASES == AWAY {
                return;
            }
            calm += 1;
            if calm >= CALM_TICKS {
                calm = 0;
                self.armed.store(false, Ordering::SeqCst);
                // The loop may have gone off just before, and found it armed.
                if self.state.load(Ordering::SeqCst) != now {
                    self.armed.store(true, Ordering::SeqCst);
                }
            }
        }
    }

    fn change(&self, phase: u64) {
        // One thread at a time changes it: whoever runs the loop.
        let state = self.state.load(Ordering::SeqCst);
        let next = (state & !PHASES).wrapping_add(TURN) | phase;
        self.state.store(next, Ordering::SeqCst);
    }

    fn phase(&self) -> u64 {
        self.state.load(Ordering::SeqCst) & PHASES
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
