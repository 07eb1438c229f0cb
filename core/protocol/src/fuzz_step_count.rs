//! Counts steps of work without a budget for fuzz targets, which fail where the number grows faster than the input.

use std::cell::Cell;

thread_local! {
    static COUNTED: Cell<usize> = const { Cell::new(0) };
}

/// Counts this many steps.
pub(crate) fn count(steps: usize) {
    COUNTED.set(COUNTED.get().wrapping_add(steps));
}

/// The number of steps that this thread has counted.
pub fn counted() -> usize {
    COUNTED.get()
}
