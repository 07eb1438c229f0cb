//! What one compilation or validation may cost, counted in steps.

use std::sync::atomic::{AtomicBool, Ordering};

/// How many steps are taken between two looks at the interrupt flag: less than a millisecond.
const SLICE: usize = 1 << 16;

/// How many bytes are counted, compared or hashed for one step: a step takes some nanoseconds.
const BYTES_PER_STEP: usize = 16;

/// The steps that are left. All that grows with a schema or a value is charged to it, so the number of steps that
/// were spent says what a computation cost, whatever the machine.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    /// May be spent before the next look at the flag.
    slice: usize,
    /// May be spent afterwards.
    rest: usize,
    total: usize,
    interrupt: Option<&'a AtomicBool>,
    interrupted: bool,
}

impl<'a> Budget<'a> {
    /// So many steps. Once `interrupt` is set, none is left.
    pub fn new(steps: usize, interrupt: Option<&'a AtomicBool>) -> Self {
        Self {
            slice: 0,
            rest: steps,
            total: steps,
            interrupt,
            interrupted: false,
        }
    }

    /// Another budget, that ends with the same interrupt.
    pub fn beside(&self, steps: usize) -> Self {
        Self::new(steps, self.interrupt)
    }

    /// Takes off so many steps; `None` if fewer are left, or somebody interrupts.
    #[inline]
    pub fn charge(&mut self, steps: usize) -> Option<()> {
        match self.slice.checked_sub(steps) {
            Some(slice) => {
                self.slice = slice;
                Some(())
            }
            None => self.charge_beyond_slice(steps),
        }
    }

    #[cold]
    fn charge_beyond_slice(&mut self, steps: usize) -> Option<()> {
        let flag = self.interrupt.map(|flag| flag.load(Ordering::Relaxed));
        self.interrupted |= flag.unwrap_or_default();
        let left = self.left().checked_sub(steps);
        let Some(left) = left.filter(|_| !self.interrupted) else {
            (self.slice, self.rest) = (0, 0);
            return None;
        };
        self.slice = left.min(SLICE);
        self.rest = left - self.slice;
        Some(())
    }

    /// Takes off what it costs to look at so many bytes.
    #[inline]
    pub fn charge_bytes(&mut self, bytes: usize) -> Option<()> {
        self.charge(1 + bytes / BYTES_PER_STEP)
    }

    /// Has `work` spend `most` steps of this budget, and no more.
    pub fn within<T>(&mut self, most: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let part = self.left().min(most);
        let kept = self.left() - part;
        (self.slice, self.rest) = (0, part);
        let outcome = work(self);
        (self.slice, self.rest) = (0, self.left().saturating_add(kept));
        outcome
    }

    /// Leaves no steps: something else than their number has run out.
    pub(crate) fn exhaust(&mut self) {
        (self.slice, self.rest) = (0, 0);
    }

    /// How many steps are left.
    pub fn left(&self) -> usize {
        self.slice + self.rest
    }

    /// How many steps were spent; all of them, once there were too few.
    pub fn spent(&self) -> usize {
        self.total - self.left()
    }

    /// Whether the interrupt flag was seen.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_spent_and_ends_with_the_last_step() {
        let mut budget = Budget::new(3 * SLICE, None);
        assert_eq!(budget.charge(SLICE + 1), Some(()));
        assert_eq!(budget.spent(), SLICE + 1);
        assert_eq!(budget.charge(2 * SLICE - 1), Some(()));
        assert_eq!(budget.left(), 0);
        assert_eq!(budget.charge(1), None);
        assert!(!budget.is_interrupted());
    }

    #[test]
    fn an_interrupt_ends_it_within_a_slice() {
        let flag = AtomicBool::new(false);
        let mut budget = Budget::new(usize::MAX, Some(&flag));
        assert_eq!(budget.charge(1), Some(()));
        flag.store(true, Ordering::Relaxed);
        let taken = (0..=SLICE).take_while(|_| budget.charge(1).is_some());
        assert!(taken.count() <= SLICE);
        assert!(budget.is_interrupted() && budget.left() == 0);
    }

    #[test]
    fn a_part_leaves_the_rest_alone() {
        let mut budget = Budget::new(1_000, None);
        assert_eq!(budget.within(10, |part| part.charge(11)), None);
        assert_eq!((budget.left(), budget.spent()), (990, 10));
        assert_eq!(budget.within(10, |part| part.charge(4)), Some(()));
        assert_eq!(budget.left(), 986);
    }
}
