//! The messages of one handler that middleware delays. They keep their order, and the handler's outcome follows them.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Waker};

use mcpline_protocol::wire::Raw;
use tokio::sync::watch;

use crate::background;
use crate::span::SpanScope;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::call::CallState;

/// Maximum number of notifications of one handler that wait for middleware, and of their bytes. Further ones are dropped: a
/// handler that reports faster than middleware takes must not fill the memory.
const MAX_WAITING: usize = 1_024;
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// The report of a progress notification that waits.
pub(in super::super) type LatestReport = Arc<Mutex<Raw>>;

/// What happens with a message, up to the point where the next one may follow.
type Delivery = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A message that waits for those before it.
pub(in super::super) struct WaitingMessage {
    delivery: Delivery,
    /// In bytes.
    size: usize,
    /// The report that a later one may replace, if it is a progress notification.
    progress: Option<LatestReport>,
}

impl WaitingMessage {
    pub(in super::super) fn new(
        size: usize,
        delivery: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self {
            delivery: Box::pin(delivery),
            size,
            progress: None,
        }
    }

    pub(in super::super) fn with_progress(mut self, progress: Option<LatestReport>) -> Self {
        self.progress = progress;
        self
    }
}

#[derive(Default)]
pub(in super::super) struct MessageQueue(Mutex<State>);

#[derive(Default)]
struct State {
    /// With their sizes in bytes.
    waiting: VecDeque<(Delivery, usize)>,
    waiting_bytes: usize,
    /// The report of the progress notification that waits last, which a later one replaces.
    last_progress: Option<LatestReport>,
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
            state.waiting_bytes = 0;
            state.last_progress = None;
            (state.end.take(), std::mem::take(&mut state.waiting))
        };
        drop((end, waiting));
    }

    /// Adds a delivery if another one is in progress, or begins it. Returns `None` if it is queued.
    fn begin(&self, waiting: WaitingMessage) -> Option<Delivery> {
        let mut state = self.lock();
        if !state.is_busy {
            state.is_busy = true;
            return Some(waiting.delivery);
        }
        state.waiting_bytes += waiting.size;
        state.last_progress = waiting.progress;
        state.waiting.push_back((waiting.delivery, waiting.size));
        None
    }

    /// Returns the next delivery. After the last one the queue is not busy any more.
    fn next(&self) -> Option<Delivery> {
        let mut state = self.lock();
        let next = state.waiting.pop_front();
        state.is_busy = next.is_some();
        let (next, size) = next?;
        state.waiting_bytes -= size;
        if state.waiting.is_empty() {
            // Its delivery reads the report now.
            state.last_progress = None;
        }
        Some(next)
    }
}

impl CallState {
    /// Whether messages of the handler are being delivered, which what follows must not overtake.
    #[inline]
    pub(in super::super) fn delivers_messages(&self) -> bool {
        self.server.middlewares.has_message_middleware() && self.messages.lock().is_busy
    }

    /// Whether no further notification of this size may wait.
    pub(in super::super) fn has_too_many_messages(&self, size: usize) -> bool {
        let state = self.messages.lock();
        !state.waiting.is_empty()
            && (state.waiting.len() >= MAX_WAITING
                || state.waiting_bytes + size > MAX_WAITING_BYTES)
    }

    /// Replaces the report of the progress notification that waits last, if one does and nothing was sent after it.
    pub(in super::super) fn replace_waiting_progress(&self, report: &Raw) -> bool {
        let state = self.messages.lock();
        let Some(latest) = &state.last_progress else {
            return false;
        };
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = report.clone();
        true
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
    pub(in super::super) fn deliver(self: &Arc<Self>, waiting: WaitingMessage) {
        let Some(mut delivery) = self.messages.begin(waiting) else {
            return;
        };
        let runtime = self.lock_current_request().connection.runtime().clone();
        // The handler may run on a thread of its own.
        let entered = runtime.enter();
        let mut now = TaskContext::from_waker(Waker::noop());
        while delivery.as_mut().poll(&mut now).is_ready() {
            match self.messages.next() {
                Some(next) => delivery = next,
                None => return,
            }
        }
        drop(entered);
        let (call, scope) = (self.clone(), SpanScope::current());
        background::spawn_unboxed(&runtime, async move {
            loop {
                std::future::poll_fn(|cx| scope.in_scope(|| delivery.as_mut().poll(cx))).await;
                match call.messages.next() {
                    Some(next) => delivery = next,
                    None => return,
                }
            }
        });
    }
}
