//! Counts consecutive characters of one set, for all runs that a simulation is counting at the same time.
//!
//! Each run began at a position. All of them read the same characters, so they continue and end together; only those
//! that have reached the maximum drop out, oldest first. So it is enough to keep the starting positions, and only those
//! that matter: the newest one if a run may be empty, the oldest one if it may be unbounded.

use std::collections::VecDeque;

use super::program::CountedRepetition;
use super::tree::UNBOUNDED;

/// The runs that are being counted. Positions are in characters from the start of reading.
#[derive(Clone, Default)]
pub(super) struct RepetitionCounter {
    /// The starting positions of the oldest runs: all from the first to the second.
    oldest: Option<(u32, u32)>,
    /// The other starting positions, in order; no two of these spans touch.
    newer: VecDeque<(u32, u32)>,
}

impl RepetitionCounter {
    pub(super) fn is_counting(&self) -> bool {
        self.oldest.is_some()
    }

    /// Begins a run at a position, which is not before any other.
    pub(super) fn begin(&mut self, run: &CountedRepetition, at: u32) {
        let Some(oldest) = &mut self.oldest else {
            self.oldest = Some((at, at));
            return;
        };
        if run.min == 0 {
            *oldest = (at, at);
        } else if run.max != UNBOUNDED {
            let newest = self.newer.back_mut().unwrap_or(oldest);
            if newest.1.saturating_add(1) >= at {
                newest.1 = at;
            } else {
                self.newer.push_back((at, at));
            }
        }
    }

    /// Reads a character of the set, up to this position. Returns whether a run has read enough.
    pub(super) fn advance(&mut self, run: &CountedRepetition, at: u32) -> bool {
        let first = if run.max == UNBOUNDED {
            0
        } else {
            at.saturating_sub(run.max)
        };
        while let Some(oldest) = &mut self.oldest {
            if oldest.1 >= first {
                oldest.0 = oldest.0.max(first);
                return at - oldest.0 >= run.min;
            }
            self.oldest = self.newer.pop_front();
        }
        false
    }

    /// Reads a character that is not in the set.
    pub(super) fn end(&mut self) {
        self.oldest = None;
        self.newer.clear();
    }
}
