//! Responses that are being written to requests that the session no longer knows, and what has to wait for them.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, PoisonError};

type Callback = Box<dyn FnOnce() + Send>;

/// Counts responses from before their requests leave the session until they are written.
#[derive(Default)]
pub(crate) struct ResponseWrites {
    open: AtomicUsize,
    /// Whether `at_end` has a callback, so that a write that ends need not lock it.
    has_callback: AtomicBool,
    at_end: Mutex<Option<Callback>>,
}

/// A response that is being written, until it is dropped.
pub(crate) struct ResponseWriteGuard<'a>(&'a ResponseWrites);

impl ResponseWrites {
    pub(crate) fn begin(&self) -> ResponseWriteGuard<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        ResponseWriteGuard(self)
    }

    /// Whether none is being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }

    /// Calls `callback` as soon as none is being written, on the thread that ends the last write; at once if there is none. It
    /// replaces an earlier callback that still waits.
    pub(crate) fn at_end(&self, callback: impl FnOnce() + Send + 'static) {
        *self.lock_callback() = Some(Box::new(callback));
        // Before the count is read, as a write decrements the count before it reads this: one of the two sees the other.
        self.has_callback.store(true, Ordering::SeqCst);
        if self.is_idle() {
            self.call_back();
        }
    }

    fn call_back(&self) {
        let callback = self.lock_callback().take();
        if let Some(callback) = callback {
            callback();
        }
    }

    fn lock_callback(&self) -> crate::sync::MutexGuard<'_, Option<Callback>> {
        self.at_end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ResponseWriteGuard<'_> {
    fn drop(&mut self) {
        let is_last = self.0.open.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.0.has_callback.load(Ordering::SeqCst) {
            self.0.call_back();
        }
    }
}
