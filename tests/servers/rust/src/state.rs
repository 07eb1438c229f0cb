//! State of the server process: gates, cancelled labels, the watched resource.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// The process's state.
#[derive(Debug)]
pub(crate) struct State {
    /// Gates that are open.
    pub(crate) gates: Marks,
    /// Labels of calls that were cancelled.
    pub(crate) cancelled: Marks,
    /// Ids of completed URL elicitations.
    pub(crate) completed: Marks,
    version: AtomicU64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            gates: Marks::default(),
            cancelled: Marks::default(),
            completed: Marks::default(),
            version: AtomicU64::new(1),
        }
    }
}

impl State {
    /// The version of the watched resource.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Increments the version of the watched resource.
    pub(crate) fn raise(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A set of names that can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    names: Mutex<HashSet<String>>,
    changed: Notify,
}

impl Marks {
    /// Adds a name permanently.
    pub(crate) fn set(&self, name: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned());
        drop(names);
        self.changed.notify_waiters();
    }

    /// Whether a name is in the set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.contains(name)
    }

    /// Waits until a name is in the set.
    pub(crate) async fn wait(&self, name: &str) {
        loop {
            let changed = self.changed.notified();
            if self.is_set(name) {
                return;
            }
            changed.await;
        }
    }
}
