//! Locks and atomics: those of `std::sync`, or shuttle's of the same names in builds for models (`tools/models`).
//!
//! A model runs the real code on threads that shuttle switches at every lock and atomic that it knows. State that
//! several threads of a model share must use locks from here: one that shuttle does not know and that is held at a
//! switch would stop the whole model. Counters, and code that is not modelled, may use `std::sync`.
//!
//! `Arc` is the standard library's in both cases. So are tokio's channels and `Notify`, whose operations are single
//! steps for
//! shuttle. Tasks come from [`background`](crate::background), which starts them as shuttle's.

#[cfg(all(feature = "server", not(all(test, mcpline_models))))]
pub(crate) use std::sync::Condvar;
#[cfg(not(all(test, mcpline_models)))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, atomic};

#[cfg(all(test, mcpline_models))]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, atomic};

/// Each thread of a model has its own.
#[cfg(all(feature = "server", test, mcpline_models))]
pub(crate) use shuttle::thread_local;
#[cfg(all(feature = "server", not(all(test, mcpline_models))))]
pub(crate) use std::thread_local;

pub(crate) use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// A point where another thread may run although shuttle sees none: before a flag of `std::sync`, or between two steps
/// of tokio's channels.
#[inline]
pub(crate) fn yield_point() {
    #[cfg(all(test, mcpline_models))]
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}
