//! Hands a pipe over to another task while a handler keeps the thread that reads it.
//!
//! Handlers begin on the thread that reads their client's messages, because most of them finish at once, and a change of
//! threads would cost each call more than all else. One that blocks or computes there would delay the client's other
//! messages. So the pipe is lent while a handler begins ([`while_lent`]): if that takes too long, the [`watcher`](super::watcher)
//! takes it, and another task reads on. Messages are processed in their order all the same, as far as to the start of
//! their handlers.

use std::any::Any;
use std::cell::Cell;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, thread_local};

use super::watcher;

/// What reads and writes a pipe, with its buffers.
pub(crate) type AnyPipe = Box<dyn Any + Send>;

thread_local! {
    /// The pipe that this thread reads, while it processes a message.
    static READ: Cell<Option<Loan>> = const { Cell::new(None) };
}

struct Loan {
    pipe: AnyPipe,
    handoff: Arc<PipeHandoff>,
}

/// Where a pipe is while a handler begins.
pub(crate) struct PipeHandoff {
    state: Mutex<State>,
    /// Starts a task that reads on.
    read_on: Box<dyn Fn(Arc<PipeHandoff>, AnyPipe) + Send + Sync>,
}

#[derive(Default)]
struct State {
    pipe: Option<AnyPipe>,
    /// Counts loans.
    loans: u64,
    /// How many there were when the watcher looked last; `None` if it does not look.
    seen: Option<u64>,
}

impl PipeHandoff {
    /// `read_on` starts a task that continues with the pipe. It may be called on any thread.
    pub(crate) fn new(read_on: impl Fn(Arc<Self>, AnyPipe) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            read_on: Box::new(read_on),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task that reads the pipe.
    pub(crate) fn spawn_reader(self: &Arc<Self>, pipe: AnyPipe) {
        (self.read_on)(self.clone(), pipe);
    }

    /// Runs `receive`, which processes a message. Returns the pipe, unless another task has taken it over meanwhile.
    pub(crate) fn process(
        self: &Arc<Self>,
        pipe: AnyPipe,
        receive: impl FnOnce(),
    ) -> Option<AnyPipe> {
        /// Sets what the thread read before, also after a panic.
        struct Restore(Option<Loan>);
        impl Drop for Restore {
            fn drop(&mut self) {
                READ.with(|read| read.set(self.0.take()));
            }
        }
        let handoff = self.clone();
        // A handler may process messages of another pipe.
        let _outer = Restore(READ.with(|read| read.replace(Some(Loan { pipe, handoff }))));
        receive();
        READ.with(Cell::take).map(|loan| loan.pipe)
    }

    fn lend(self: &Arc<Self>, pipe: AnyPipe) {
        let mut state = self.lock();
        state.pipe = Some(pipe);
        state.loans += 1;
        if state.seen.is_none() {
            state.seen = Some(state.loans);
            drop(state);
            watcher::watch(self.clone());
        }
    }

    /// The watcher does not look; the next loan asks it again.
    pub(super) fn set_unwatched(&self) {
        self.lock().seen = None;
    }

    /// Lets another task read on if a handler has kept the pipe since the last look. Returns whether to look again.
    pub(super) fn let_other_task_read(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if state.seen != Some(state.loans) {
            state.seen = Some(state.loans);
            return true;
        }
        // No message since the last look, or a handler that still keeps its thread.
        state.seen = None;
        let overdue = state.pipe.take();
        drop(state);
        if let Some(pipe) = overdue {
            tracing::debug!("a handler keeps its thread: another one reads the client's messages");
            self.spawn_reader(pipe);
        }
        false
    }
}

/// Runs what may block. Meanwhile, another task can take over the pipe that this thread reads.
pub(crate) fn while_lent<T>(run: impl FnOnce() -> T) -> T {
    let Some(Loan { pipe, handoff }) = READ.with(Cell::take) else {
        return run();
    };
    handoff.lend(pipe);
    let result = run();
    // If it was taken over, it may be lent again, by another thread: then this one reads on.
    let pipe = handoff.lock().pipe.take();
    if let Some(pipe) = pipe {
        READ.with(|read| read.set(Some(Loan { pipe, handoff })));
    }
    result
}
