//! What the code under test costs: steps that it counts, and bytes that it allocates. Neither depends on the machine, so a
//! target can fail on an input that costs more than its size allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline_protocol::fuzz_step_count;

/// The system's allocator, counting.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's allocator's to do.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What is moved counts, too: growing little by little is quadratic.
        ALLOCATED.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Steps counted by the code itself.
    pub steps: usize,
    /// Bytes allocated, those that were given back included.
    pub bytes: usize,
}

impl Cost {
    /// Does something, and says what it took.
    pub fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (steps, bytes) = (fuzz_step_count::counted(), ALLOCATED.load(Ordering::Relaxed));
        let outcome = work();
        let cost = Self {
            steps: fuzz_step_count::counted() - steps,
            bytes: ALLOCATED.load(Ordering::Relaxed) - bytes,
        };
        (outcome, cost)
    }

    /// That it is no more than `base` and `each` for each of so many units of the input.
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
