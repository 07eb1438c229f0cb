//! Runs callbacks one at a time and in order, although many threads run callbacks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::callback_tracker::{CallbackTracker, RunningCallback};
use crate::executor::Job;

type QueuedCallback = Box<dyn FnOnce() + Send>;

/// A queue of callbacks. Clones are the same queue.
#[derive(Clone)]
pub(super) struct SerialQueue(Arc<SerialQueueInner>);

struct SerialQueueInner {
    owner: Arc<CallbackTracker>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(RunningCallback, QueuedCallback)>,
    /// Whether a thread is running one of the callbacks.
    is_busy: bool,
    /// The number of turns that came meanwhile: that thread takes them.
    owed_turns: usize,
}

impl SerialQueue {
    pub(super) fn new(owner: &Arc<CallbackTracker>) -> Self {
        Self(Arc::new(SerialQueueInner {
            owner: owner.clone(),
            state: Mutex::default(),
        }))
    }

    /// Queues a callback after earlier ones, unless the owner is closed.
    pub(super) fn call_back(&self, callback: impl FnOnce() + Send + 'static) {
        if let Some(entered) = self.0.owner.enter() {
            self.push(entered, Box::new(callback));
        }
    }

    /// Queues a callback that the owner is already waiting for.
    pub(super) fn push(&self, entered: RunningCallback, callback: QueuedCallback) {
        self.lock().waiting.push_back((entered, callback));
        // One turn per callback, so that a loop that dispatches one job at a time runs one callback at a time.
        let queue = self.clone();
        self.0.owner.run(Job::Run(Box::new(move || queue.turn())));
    }

    fn turn(&self) {
        let mut state = self.lock();
        if state.is_busy {
            state.owed_turns += 1;
            return;
        }
        state.is_busy = true;
        loop {
            let next = state.waiting.pop_front();
            drop(state);
            if let Some((entered, callback)) = next {
                entered.run(callback);
            }
            state = self.lock();
            if state.owed_turns == 0 {
                break;
            }
            state.owed_turns -= 1;
        }
        state.is_busy = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
