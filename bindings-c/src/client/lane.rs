//! Callbacks that come one at a time, in order, though many threads run callbacks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::owner::{Entered, Owner};
use crate::place::Job;

type Callback = Box<dyn FnOnce() + Send>;

/// A queue of callbacks. Clones are the same queue.
#[derive(Clone)]
pub(crate) struct Lane(Arc<Shared>);

struct Shared {
    owner: Arc<Owner>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Entered, Callback)>,
    /// A thread runs one of them.
    busy: bool,
    /// How many turns came while one ran: it takes them.
    owed: usize,
}

impl Lane {
    pub(crate) fn new(owner: &Arc<Owner>) -> Self {
        Self(Arc::new(Shared {
            owner: owner.clone(),
            state: Mutex::default(),
        }))
    }

    /// Has a callback run after those before, unless the owner is closed. Returns whether it will.
    pub(crate) fn call_back(&self, callback: impl FnOnce() + Send + 'static) -> bool {
        match self.0.owner.enter() {
            Some(entered) => {
                self.put(entered, callback);
                true
            }
            None => false,
        }
    }

    /// The same for one that the owner waits for already.
    pub(crate) fn put(&self, entered: Entered, callback: impl FnOnce() + Send + 'static) {
        self.lock().waiting.push_back((entered, Box::new(callback)));
        // One turn for each, so that a loop that dispatches one at a time gets one at a time.
        let lane = self.clone();
        self.0.owner.run(Job::Run(Box::new(move || lane.turn())));
    }

    fn turn(&self) {
        let mut state = self.lock();
        if state.busy {
            state.owed += 1;
            return;
        }
        state.busy = true;
        loop {
            let next = state.waiting.pop_front();
            drop(state);
            if let Some((entered, callback)) = next {
                entered.run(callback);
            }
            state = self.lock();
            if state.owed == 0 {
                break;
            }
            state.owed -= 1;
        }
        state.busy = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
