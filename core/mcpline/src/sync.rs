//! Locks and atomics: `std::sync`, or shuttle's of the same names where the crate's models are built (`tools/models`).
//!
//! A model runs the real code on threads that shuttle switches between, at every lock and atomic that it knows of. Whatever
//! several threads meet at and a model goes through takes its locks from here: one that shuttle doesn't know and that is held
//! at a switch would stop the whole model. What is only counted, or not modelled, may use `std::sync`.
//!
//! `Arc` is the standard library's in both. So are tokio's channels and `Notify`, each of whose operations is one step to
//! shuttle; tasks come from [`background`](crate::background), which starts them as shuttle's.

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

/// A moment at which another thread may run, where shuttle sees none: before a flag of `std::sync` that others are given, or
/// between two steps of tokio's channels.
#[inline]
pub(crate) fn switch() {
    #[cfg(all(test, mcpline_models))]
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}
