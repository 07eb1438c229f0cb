//! Determines which thread drives the I/O of a server: its I/O thread, or an event loop's thread while that is idle.
//!
//! Waking another thread costs more than most calls. An event loop that this package runs therefore drives the runtime
//! on its own thread, while it waits for its events ([`crate::io_driver`]). The I/O thread then stands by: if a handler
//! blocks the loop's thread for some milliseconds, the I/O thread drives instead, so that pings and cancellations are
//! served, and returns the runtime when the loop wants it. It checks the time only while calls arrive; an idle server
//! sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::event_loop::lock;

/// Interval at which the I/O thread checks whether the loop's thread is back. Between one and two of these pass before
/// it drives instead of the loop.
const TICK: Duration = Duration::from_millis(2);
/// After this many ticks without a turn of the loop, the I/O thread sleeps until there is one.
const CALM_TICKS: u32 = 20;

/// No loop drives: the I/O thread does.
const FREE: u64 = 0;
/// The loop's thread drives.
const HERE: u64 = 1;
/// The loop's thread is doing something else.
const AWAY: u64 = 2;
const PHASES: u64 = 3;
const TURN: u64 = 4;

/// State by which the I/O thread and a driving loop coordinate.
#[derive(Default)]
pub(crate) struct IoDriverHandoff {
    /// The phase, and the number of its changes.
    state: AtomicU64,
    /// Whether the I/O thread checks the time.
    armed: AtomicBool,
    /// Whether the I/O thread drives, or is about to.
    driving: AtomicBool,
    stopped: AtomicBool,
    /// Makes the I/O thread check the state while it drives.
    look: Notify,
    sleep: Mutex<()>,
    /// Makes the I/O thread check the state while it stands by.
    woken: Condvar,
}

impl IoDriverHandoff {
    /// Reports that the loop's thread begins to drive.
    pub(crate) fn enter(&self) {
        self.change(HERE);
        if self.driving.load(Ordering::SeqCst) {
            self.look.notify_one();
        }
    }

    /// Reports that the loop's thread stops driving to do something else.
    pub(crate) fn leave(&self) {
        self.change(AWAY);
        if !self.armed.swap(true, Ordering::SeqCst) {
            let _sleep = lock(&self.sleep);
            self.woken.notify_one();
        }
    }

    /// Reports that the loop does not drive any more.
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

    /// Main function of the I/O thread: `drive` drives the runtime until the loop wants it back.
    pub(crate) fn run_io_thread(&self, mut drive: impl FnMut(&Self)) {
        while !self.is_stopped() {
            self.driving.store(true, Ordering::SeqCst);
            drive(self);
            self.driving.store(false, Ordering::SeqCst);
            self.stand_by();
        }
    }

    /// Waits until a loop wants to drive, or until the end.
    pub(crate) async fn wait_until_wanted(&self) {
        while self.phase() != HERE && !self.is_stopped() {
            self.look.notified().await;
        }
    }

    /// Waits until the I/O thread has to drive, or until the end.
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
                // The loop may have left just before, when this was still armed.
                if self.state.load(Ordering::SeqCst) != now {
                    self.armed.store(true, Ordering::SeqCst);
                }
            }
        }
    }

    fn change(&self, phase: u64) {
        // Only one thread changes it at a time: the one that runs the loop.
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
