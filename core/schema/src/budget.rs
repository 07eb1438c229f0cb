//! The cost limit of one compilation or validation, in steps.

use std::sync::atomic::{AtomicBool, Ordering};

/// How many steps may pass between two checks of the interrupt flag: less than a millisecond.
const STEPS_PER_INTERRUPT_CHECK: usize = 1 << 16;

/// How many bytes are counted, compared or hashed per step: a step takes some nanoseconds.
const BYTES_PER_STEP: usize = 16;

/// The remaining steps. All work that grows with a schema or a value is charged to it, so the number of spent steps is
/// the cost of a computation on any machine.
#[derive(Clone, Copy, Debug)]
pub struct StepBudget<'a> {
    /// Steps that may be spent before the flag is checked again.
    until_check: usize,
    /// Steps that may be spent after that check.
    after_check: usize,
    total: usize,
    interrupt: Option<&'a AtomicBool>,
    interrupted: bool,
}

impl<'a> StepBudget<'a> {
    /// A budget of `steps` steps. Setting `interrupt` takes all of them away.
    pub fn new(steps: usize, interrupt: Option<&'a AtomicBool>) -> Self {
        Self {
            until_check: 0,
            after_check: steps,
            total: steps,
            interrupt,
            interrupted: false,
        }
    }

    /// A new budget of `steps` steps with the same interrupt flag.
    pub fn with_same_interrupt(&self, steps: usize) -> Self {
        Self::new(steps, self.interrupt)
    }

    /// Spends `steps` steps; `None` if fewer remain or the interrupt flag is set.
    #[inline]
    pub fn charge(&mut self, steps: usize) -> Option<()> {
        match self.until_check.checked_sub(steps) {
            Some(until_check) => {
                self.until_check = until_check;
                Some(())
            }
            None => self.charge_after_check(steps),
        }
    }

    #[cold]
    fn charge_after_check(&mut self, steps: usize) -> Option<()> {
        let flag = self.interrupt.map(|flag| flag.load(Ordering::Relaxed));
        self.interrupted |= flag.unwrap_or_default();
        let left = self.remaining().checked_sub(steps);
        let Some(left) = left.filter(|_| !self.interrupted) else {
            (self.until_check, self.after_check) = (0, 0);
            return None;
        };
        self.until_check = left.min(STEPS_PER_INTERRUPT_CHECK);
        self.after_check = left - self.until_check;
        Some(())
    }

    /// Spends the steps of reading `bytes` bytes.
    #[inline]
    pub fn charge_bytes(&mut self, bytes: usize) -> Option<()> {
        self.charge(1 + bytes / BYTES_PER_STEP)
    }

    /// Runs `work` with at most `max_steps` steps of this budget.
    pub fn with_limit<T>(&mut self, max_steps: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let part = self.remaining().min(max_steps);
        let kept = self.remaining() - part;
        (self.until_check, self.after_check) = (0, part);
        let outcome = work(self);
        (self.until_check, self.after_check) = (0, self.remaining().saturating_add(kept));
        outcome
    }

    /// Spends all steps, because another limit was reached.
    pub(crate) fn exhaust(&mut self) {
        (self.until_check, self.after_check) = (0, 0);
    }

    /// The number of remaining steps.
    pub fn remaining(&self) -> usize {
        self.until_check + self.after_check
    }

    /// The number of spent steps; all of them once a charge failed.
    pub fn spent(&self) -> usize {
        self.total - self.remaining()
    }

    /// Whether the interrupt flag was seen set.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_spent_and_ends_with_the_last_step() {
        let mut budget = StepBudget::new(3 * STEPS_PER_INTERRUPT_CHECK, None);
        assert_eq!(budget.charge(STEPS_PER_INTERRUPT_CHECK + 1), Some(()));
        assert_eq!(budget.spent(), STEPS_PER_INTERRUPT_CHECK + 1);
        assert_eq!(budget.charge(2 * STEPS_PER_INTERRUPT_CHECK - 1), Some(()));
        assert_eq!(budget.remaining(), 0);
        assert_eq!(budget.charge(1), None);
        assert!(!budget.is_interrupted());
    }

    #[test]
    fn an_interrupt_ends_it_within_a_slice() {
        let flag = AtomicBool::new(false);
        let mut budget = StepBudget::new(usize::MAX, Some(&flag));
        assert_eq!(budget.charge(1), Some(()));
        flag.store(true, Ordering::Relaxed);
        let taken = (0..=STEPS_PER_INTERRUPT_CHECK).take_while(|_| budget.charge(1).is_some());
        assert!(taken.count() <= STEPS_PER_INTERRUPT_CHECK);
        assert!(budget.is_interrupted() && budget.remaining() == 0);
    }

    #[test]
    fn limited_work_leaves_the_remaining_budget() {
        let mut budget = StepBudget::new(1_000, None);
        assert_eq!(budget.with_limit(10, |part| part.charge(11)), None);
        assert_eq!((budget.remaining(), budget.spent()), (990, 10));
        assert_eq!(budget.with_limit(10, |part| part.charge(4)), Some(()));
        assert_eq!(budget.remaining(), 986);
    }
}
