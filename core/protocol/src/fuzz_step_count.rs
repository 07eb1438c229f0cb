//! Steps of work that no budget bounds, counted for fuzz targets: they fail where the number grows faster than the input.

use std::cell::Cell;

thread_local! {
    static COUNTED: Cell<usize> = const { Cell::new(0) };
}

/// Counts so many steps.
pub(crate) fn count(steps: usize) {
    COUNTED.set(COUNTED.get().wrapping_add(steps));
}

/// How many steps this thread has counted.
pub fn counted() -> usize {
    COUNTED.get()
}
