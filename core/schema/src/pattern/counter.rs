//! Counts characters of one set in a row, for all the ways at once in which a simulation has come to count them.
//!
//! Each way began somewhere. All of them read the same characters, so they go on and end together: only those that have
//! read the most they may drop out, oldest first. So the positions where they began are enough, and of these as few as
//! decide: the newest where a run may be empty, the oldest where it may go on for ever.

use std::collections::VecDeque;

use super::program::Run;
use super::tree::UNBOUNDED;

/// The ways that are being counted. Positions are in characters, from where reading began.
#[derive(Clone, Default)]
pub(super) struct RunCounter {
    /// Where the oldest began: at all positions from the first to the second.
    oldest: Option<(u32, u32)>,
    /// Where others did, in order; none of these spans touches another.
    newer: VecDeque<(u32, u32)>,
}

impl RunCounter {
    pub(super) fn is_counting(&self) -> bool {
        self.oldest.is_some()
    }

    /// Begins to count at a position, which is not before any other.
    pub(super) fn begin(&mut self, run: &Run, at: u32) {
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

    /// A character of the set has been read, up to this position. Says whether a way has read enough.
    pub(super) fn advance(&mut self, run: &Run, at: u32) -> bool {
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

    /// Another character has been read.
    pub(super) fn end(&mut self) {
        self.oldest = None;
        self.newer.clear();
    }
}
