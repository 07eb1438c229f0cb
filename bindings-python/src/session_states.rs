//! The state of sessions: a dictionary for each session that a handler has used one in.
//!
//! The server of a session owns the dictionaries, so that the garbage collector sees what they refer to. The core's session
//! has only a number, and removes the dictionary when it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::event_loop::lock;

/// The dictionaries of a server's sessions.
#[derive(Default)]
pub(crate) struct SessionStates {
    dictionaries: Mutex<HashMap<u64, Py<PyDict>>>,
    last_number: AtomicU64,
}

/// What the core keeps with a session.
#[derive(Default)]
pub(crate) struct SessionNumber(OnceLock<Registration>);

struct Registration {
    number: u64,
    states: Weak<SessionStates>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let states = self.states.upgrade();
        let ended = states.and_then(|states| lock(&states.dictionaries).remove(&self.number));
        // Without the interpreter lock, its reference is released the next time that a thread takes the lock.
        drop(ended);
    }
}

impl SessionStates {
    /// Returns the dictionary of a session, created at first use.
    pub(crate) fn dictionary<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        session: &SessionNumber,
    ) -> Bound<'py, PyDict> {
        let registration = session.0.get_or_init(|| Registration {
            number: self.last_number.fetch_add(1, Ordering::Relaxed) + 1,
            states: Arc::downgrade(self),
        });
        let mut dictionaries = lock(&self.dictionaries);
        let dictionary = dictionaries
            .entry(registration.number)
            .or_insert_with(|| PyDict::new(py).unbind());
        dictionary.bind(py).clone()
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(dictionaries) = self.dictionaries.try_lock() {
            for dictionary in dictionaries.values() {
                visit.call(dictionary)?;
            }
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        if let Ok(mut dictionaries) = self.dictionaries.try_lock() {
            let taken = std::mem::take(&mut *dictionaries);
            drop(dictionaries);
            drop(taken);
        }
    }
}
