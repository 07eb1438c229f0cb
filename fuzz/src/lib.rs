//! The cost of the code under test: steps that it counts, and bytes that it allocates. Neither depends on the machine,
//! so a target can fail on an input that costs more than its size allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline_protocol::fuzz_step_count;

/// The system allocator with a counter.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Moved memory counts, too: growing in small steps is quadratic.
        ALLOCATED.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The cost of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Steps counted by the code itself.
    pub steps: usize,
    /// Allocated bytes, including those that were freed.
    pub bytes: usize,
}

impl Cost {
    /// Runs `work` and measures its cost.
    pub fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (steps, bytes) = (
            fuzz_step_count::counted(),
            ALLOCATED.load(Ordering::Relaxed),
        );
        let outcome = work();
        let cost = Self {
            steps: fuzz_step_count::counted() - steps,
            bytes: ALLOCATED.load(Ordering::Relaxed) - bytes,
        };
        (outcome, cost)
    }

    /// Panics unless the cost is at most `base` plus `each` for every unit of the input.
    #[track_caller]
    pub fn is_at_most(self, base: Self, each: Self, units: usize) {
        let steps = base.steps + each.steps * units;
        let bytes = base.bytes + each.bytes * units;
        assert!(
            self.steps <= steps && self.bytes <= bytes,
            "{self:?} for {units} units: more than {steps} steps, or {bytes} bytes"
        );
    }
}
