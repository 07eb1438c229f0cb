//! A test allocator that records the size of the largest allocation and the sum of all.
//!
//! Rust aborts when an allocation fails, so a peer must not determine the size of one. A test that sends hostile
//! lengths asserts with [`RecordingAllocator::largest`] that no allocation was larger than the bytes that it sent
//! explain.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator with records of the largest allocation of all threads, and of the sum of all.
#[derive(Debug)]
pub struct RecordingAllocator {
    largest: AtomicUsize,
    total: AtomicUsize,
}

impl RecordingAllocator {
    /// Creates an allocator for `#[global_allocator]`.
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

    /// Resets the records.
    pub fn reset(&self) {
        self.largest.store(0, Ordering::SeqCst);
        self.total.store(0, Ordering::SeqCst);
    }

    /// The size of the largest allocation since [`reset`](Self::reset), in bytes. That of a reallocation is its new size.
    pub fn largest(&self) -> usize {
        self.largest.load(Ordering::SeqCst)
    }

    /// The sum of all allocations since [`reset`](Self::reset), in bytes, including freed ones. A reallocation counts
    /// with its new size, so that a buffer that grows in small steps has a quadratic sum.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }

    fn record(&self, size: usize) {
        self.largest.fetch_max(size, Ordering::Relaxed);
        self.total.fetch_add(size, Ordering::Relaxed);
    }
}

// SAFETY: every method forwards to the allocator of the system.
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
