//! Static state that a forked child does not share with its parent.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A static value of this process, created when it is first used. A forked child has another one than its parent: a thread
/// of the parent may have held a lock in it at the time of the fork, and never releases it in the child.
pub(crate) struct PerProcess<T: 'static> {
    current: AtomicPtr<Owned<T>>,
    create: fn() -> T,
}

struct Owned<T> {
    process: u32,
    value: T,
}

impl<T: Sync> PerProcess<T> {
    pub(crate) const fn new(create: fn() -> T) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            create,
        }
    }

    /// Returns the value. Those of parents are never dropped, which could need their locks.
    pub(crate) fn get(&'static self) -> &'static T {
        let process = std::process::id();
        let mut current = self.current.load(Ordering::Acquire);
        loop {
            // SAFETY: The pointer is null, or comes from `Box::into_raw` below, so that the value is valid and is never released.
            if let Some(owned) = unsafe { current.as_ref() }
                && owned.process == process
            {
                return &owned.value;
            }
            let owned = Box::into_raw(Box::new(Owned {
                process,
                value: (self.create)(),
            }));
            let exchanged =
                self.current
                    .compare_exchange(current, owned, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                // SAFETY: The value was leaked, and is not changed or freed from here on.
                Ok(_) => return unsafe { &(*owned).value },
                Err(other) => {
                    // SAFETY: No other thread has seen the pointer.
                    drop(unsafe { Box::from_raw(owned) });
                    current = other;
                }
            }
        }
    }
}
