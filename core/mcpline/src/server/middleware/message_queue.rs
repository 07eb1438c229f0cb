//! The messages of one handler that middleware delays. They keep their order, and the handler's outcome follows them.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Waker};

use tokio::sync::watch;
use tracing::Span;

use crate::background;
use crate::sync::{Mutex, MutexGuard, PoisonError};

use super::super::call::CallState;

/// Maximum number of notifications of one handler that wait for middleware. Further ones are dropped: a handler that reports
/// faster than middleware takes must not fill the memory.
const MAX_WAITING: usize = 1_024;

/// What happens with a message, up to the point where the next one may follow.
pub(in super::super) type Delivery = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
pub(in super::super) struct MessageQueue(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Delivery>,
    /// Whether a message is being delivered.
    is_busy: bool,
    /// Dropped when the call is cancelled.
    end: Option<watch::Sender<()>>,
}

impl MessageQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is closed when the call is cancelled.
    fn end(&self) -> watch::Receiver<()> {
        self.lock()
            .end
            .get_or_insert_with(|| watch::channel(()).0)
            .subscribe()
    }

    /// Ends the deliveries.
    pub(in super::super) fn close(&self) {
        let (end, waiting) = {
            let mut state = self.lock();
            (state.end.take(), std::mem::take(&mut state.waiting))
        };
        drop((end, waiting));
    }

    /// Adds a delivery if another one is in progress, or begins it. Returns `None` if it is queued.
    fn begin(&self, delivery: Delivery) -> Option<Delivery> {
        let mut state = self.lock();
        if !state.is_busy {
            state.is_busy = true;
            return Some(delivery);
        }
        state.waiting.push_back(delivery);
        None
    }

    /// Returns the next delivery. After the last one the queue is not busy any more.
    fn next(&self) -> Option<Delivery> {
        let mut state = self.lock();
        let next = state.waiting.pop_front();
        state.is_busy = next.is_some();
        next
    }
}

impl CallState {
    /// Whether messages of the handler are being delivered, which what follows must not overtake.
    #[inline]
    pub(in super::super) fn delivers_messages(&self) -> bool {
        self.server.middlewares.see_messages() && self.messages.lock().is_busy
    }

    /// Whether no further notification may wait.
    pub(in super::super) fn has_too_many_messages(&self) -> bool {
        self.messages.lock().waiting.len() >= MAX_WAITING
    }

    /// Returns a receiver that is closed when the call is cancelled.
    pub(in super::super) fn cancelled(&self) -> watch::Receiver<()> {
        let end = self.messages.end();
        if self.is_cancelled() {
            self.messages.close();
        }
        end
    }

    /// Delivers a message after those before it: on this thread, and in a task if it has to wait.
    pub(in super::super) fn deliver(self: &crate::sync::Arc<Self>, delivery: Delivery) {
        let Some(mut delivery) = self.messages.begin(delivery) else {
            return;
        };
        let mut now = TaskContext::from_waker(Waker::noop());
        while delivery.as_mut().poll(&mut now).is_ready() {
            match self.messages.next() {
                Some(next) => delivery = next,
                None => return,
            }
        }
        let runtime = self.lock_current_request().connection.runtime().clone();
        let (call, span) = (self.clone(), Span::current());
        background::spawn_unboxed(&runtime, async move {
            loop {
                std::future::poll_fn(|cx| span.in_scope(|| delivery.as_mut().poll(cx))).await;
                match call.messages.next() {
                    Some(next) => delivery = next,
                    None => return,
                }
            }
        });
    }
}
