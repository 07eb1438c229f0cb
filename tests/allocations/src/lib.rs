//! An allocator for tests that records the largest allocation, and the sum of all.
//!
//! Rust aborts when an allocation fails, so a peer must not be able to name the size of one. A test that sends hostile
//! lengths asserts with [`RecordingAllocator::largest`] that no allocation was larger than what was sent accounts for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which records the largest allocation of all threads, and the sum of all.
#[derive(Debug)]
pub struct RecordingAllocator {
    largest: AtomicUsize,
    total: AtomicUsize,
}

impl RecordingAllocator {
    /// For a `#[global_allocator]`.
    #[allow(
        clippy::new_without_default,
        reason = "a static is made of it, which takes no default"
    )]
    pub const fn new() -> Self {
        Self {
            largest: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
        }
    }

    /// Starts anew.
    pub fn reset(&self) {
        self.largest.store(0, Ordering::SeqCst);
        self.total.store(0, Ordering::SeqCst);
    }

    /// The size of the largest allocation since [`reset`](Self::reset), in bytes. That of a reallocation is its new size.
    pub fn largest(&self) -> usize {
        self.largest.load(Ordering::SeqCst)
    }

    /// All bytes that were allocated since [`reset`](Self::reset), those given back included. A reallocation counts with its new
    /// size, so that what grows little by little is quadratic.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }

    fn record(&self, size: usize) {
        self.largest.fetch_max(size, Ordering::Relaxed);
        self.total.fetch_add(size, Ordering::Relaxed);
    }
}

// SAFETY: everything is the system's allocator's to do.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.record(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.record(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.record(size);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
