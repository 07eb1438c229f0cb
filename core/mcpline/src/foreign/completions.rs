//! Work on its way back from foreign threads to the I/O thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpline_protocol::session::AskError;
use mcpline_protocol::wire::Raw;
use tokio::sync::Notify;

use crate::background;
use crate::server::{Ask, Call, Context, HandlerError, Reply};

/// One thing that a foreign thread has done or wants done.
pub enum Completion {
    /// A call has ended.
    Reply(Call, Result<Reply, HandlerError>),
    /// A handler asks the client.
    Ask(Context, Ask, AskSink),
    /// Anything else that is to happen on the I/O thread, in order with the rest.
    Run(Box<dyn FnOnce() + Send>),
}

/// Takes the answer to a question.
pub type AskSink = Box<dyn FnOnce(Result<Raw, AskError>) + Send>;

/// Collects [`Completion`]s from any thread and has one task on the I/O thread do them all at once.
///
/// Cheap to clone. The task ends when the last clone is dropped.
#[derive(Clone)]
pub struct Completions {
    shared: Arc<Shared>,
}

struct Shared {
    done: Mutex<Vec<Completion>>,
    filled: Notify,
    attended: AtomicBool,
    /// Held while completions are done, which keeps them in order when two threads do so.
    running: Mutex<Vec<Completion>>,
}

impl Completions {
    /// Starts the task on this runtime.
    pub fn start(runtime: &tokio::runtime::Handle) -> Self {
        let shared = Arc::new(Shared {
            done: Mutex::default(),
            filled: Notify::new(),
            attended: AtomicBool::new(true),
            running: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        background::spawn(runtime, async move {
            while let Some(shared) = weak.upgrade() {
                let filled = shared.filled.notified();
                if !shared.run() {
                    filled.await;
                }
            }
        });
        Self { shared }
    }

    /// Hands over one completion.
    pub fn push(&self, completion: Completion) {
        let first = {
            let mut done = self.shared.lock();
            done.push(completion);
            done.len() == 1
        };
        if first {
            self.shared.filled.notify_one();
        }
    }

    /// Hands over many at once; `batch` is left empty.
    pub fn push_all(&self, batch: &mut Vec<Completion>) {
        if batch.is_empty() {
            return;
        }
        let first = {
            let mut done = self.shared.lock();
            let first = done.is_empty();
            done.append(batch);
            first
        };
        if first {
            self.shared.filled.notify_one();
        }
    }

    /// As [`Self::push`], for a thread that calls [`Self::wake`] when it has handed over all that it has.
    pub fn leave(&self, completion: Completion) {
        self.shared.lock().push(completion);
    }

    /// Has done what was [left](Self::leave).
    pub fn wake(&self) {
        if !self.shared.lock().is_empty() {
            self.shared.filled.notify_one();
        }
    }

    /// As [`Self::push`], for a thread that calls [`Self::run`] soon: wakes the runtime only if another thread
    /// is in it.
    pub fn put(&self, completion: Completion) {
        self.shared.lock().push(completion);
        if self.shared.attended.load(Ordering::SeqCst) {
            self.shared.filled.notify_one();
        }
    }

    /// Says whether another thread than the one that [puts](Self::put) is in the runtime.
    pub fn set_attended(&self, attended: bool) {
        self.shared.attended.store(attended, Ordering::SeqCst);
    }

    /// Does what was handed over, here and now. Within the runtime's context.
    pub fn run(&self) {
        self.shared.run();
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        // Lets the task see that nobody is left to hand over anything.
        if Arc::strong_count(&self.shared) <= 2 {
            self.shared.filled.notify_one();
        }
    }
}

impl Shared {
    /// Returns whether there was anything to do.
    fn run(&self) -> bool {
        let mut batch = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *self.lock(), &mut *batch);
        let any = !batch.is_empty();
        for completion in batch.drain(..) {
            completion.run();
        }
        any
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Completion>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completion {
    /// Does it here and now, for a thread that needn't hand it over. Within the runtime's context.
    pub fn run(self) {
        match self {
            Self::Reply(call, outcome) => call.reply(outcome),
            Self::Ask(context, ask, sink) => context.ask_with(ask, sink),
            Self::Run(run) => run(),
        }
    }
}

impl std::fmt::Debug for Completions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completions")
            .field("waiting", &self.shared.lock().len())
            .finish()
    }
}
