//! Calls on their way to a foreign event loop.

use mcpline_protocol::RpcError;

use crate::background;
use crate::fair_queue::FairQueue;
use crate::server::{Call, Handler, HandlerError};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls that wait until a foreign loop drains them.
///
/// Bounded: above its capacity a call is answered with a busy error at once, so that memory stays bounded while the
/// loop is stuck, and reading continues.
///
/// Peers take turns. A loop drains a number of calls and then does its other work, so a client with many queued calls
/// could otherwise delay the calls of others for many iterations of the loop.
pub struct CallQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    capacity: usize,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct State<T> {
    calls: FairQueue<(T, Call)>,
    /// A wake-up is pending, or the loop was woken and has not drained yet.
    waking: bool,
    closed: bool,
}

/// The queue has reached its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("server busy: {capacity} calls are waiting for their handlers; try again later")]
pub struct QueueFull {
    /// Maximum number of waiting calls.
    pub capacity: usize,
}

impl<T> Clone for CallQueue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> CallQueue<T> {
    /// Creates a queue for at most `capacity` calls. `wake` wakes the foreign loop, which then drains. It is called
    /// from an I/O thread, once for all calls since the last drain, and must not block.
    pub fn new(capacity: usize, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    calls: FairQueue::default(),
                    waking: false,
                    closed: false,
                }),
                capacity,
                wake: Box::new(wake),
            }),
        }
    }

    /// Returns a handler that puts its calls into this queue, each with `tag`: whatever the foreign side needs to find
    /// its function.
    pub fn handler(&self, tag: T) -> Arc<dyn Handler> {
        Arc::new(QueuedHandler {
            queue: self.clone(),
            tag,
        })
    }

    /// Takes up to `most` calls, one of each peer in turn. The loop is woken again when further calls arrive, or if
    /// some are left.
    pub fn drain(&self, most: usize, into: &mut Vec<(T, Call)>) {
        let left = {
            let mut state = self.shared.lock();
            let next = || {
                let (tag, call) = state.calls.pop()?;
                call.record_queue_time();
                Some((tag, call))
            };
            into.extend(std::iter::from_fn(next).take(most));
            let left = !state.calls.is_empty();
            state.waking = left;
            left
        };
        if left {
            (self.shared.wake)();
        }
    }

    /// Takes the next call, that of the peer whose turn it is, and returns how many are left. The loop is woken when a call
    /// arrives after none was left: until then, a thread that has taken one must take another.
    pub fn take(&self) -> Option<(T, Call, usize)> {
        let mut state = self.shared.lock();
        let taken = state.calls.pop();
        let left = state.calls.len();
        state.waking = left > 0;
        drop(state);
        let (tag, call) = taken?;
        call.record_queue_time();
        Some((tag, call, left))
    }

    /// Gathers calls until the returned guard is dropped; if some are left then, the loop is woken at once. For a
    /// thread that receives calls and can drain them itself.
    pub fn gather(&self) -> WakeupHold<'_, T> {
        let woken = std::mem::replace(&mut self.shared.lock().waking, true);
        WakeupHold { queue: self, woken }
    }

    /// Returns the number of waiting calls.
    pub fn len(&self) -> usize {
        self.shared.lock().calls.len()
    }

    /// Returns whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue, because the loop is gone: waiting and later calls are answered with an error.
    pub fn close(&self) {
        let calls = {
            let mut state = self.shared.lock();
            state.closed = true;
            std::mem::take(&mut state.calls)
        };
        drop(calls);
    }

    /// Puts a call into the queue.
    pub fn push(&self, tag: T, call: Call) {
        let peer = call.quota_peer();
        let wake = {
            let mut state = self.shared.lock();
            if state.closed {
                drop(state);
                call.reply(Err(HandlerError::Internal(
                    "the event loop is closed".into(),
                )));
                return;
            }
            if state.calls.len() >= self.shared.capacity {
                drop(state);
                let capacity = self.shared.capacity;
                let busy = RpcError::busy(QueueFull { capacity }.to_string());
                call.reply(Err(HandlerError::Rpc(busy)));
                return;
            }
            state.calls.push(peer, (tag, call));
            !std::mem::replace(&mut state.waking, true)
        };
        if wake {
            self.wake_later();
        }
    }

    /// Wakes the loop after this scheduler turn, in which more calls may arrive.
    fn wake_later(&self) {
        let shared = self.shared.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                background::spawn_unboxed(&runtime, async move {
                    tokio::task::yield_now().await;
                    (shared.wake)();
                });
            }
            Err(_) => (shared.wake)(),
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prevents wake-ups of the loop. See [`CallQueue::gather`].
pub struct WakeupHold<'a, T> {
    queue: &'a CallQueue<T>,
    /// A wake-up was pending before.
    woken: bool,
}

impl<T> Drop for WakeupHold<'_, T> {
    fn drop(&mut self) {
        let left = {
            let mut state = self.queue.shared.lock();
            let left = !state.calls.is_empty();
            state.waking = left;
            left
        };
        if left && !self.woken {
            (self.queue.shared.wake)();
        }
    }
}

impl<T> std::fmt::Debug for WakeupHold<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WakeupHold").finish_non_exhaustive()
    }
}

struct QueuedHandler<T> {
    queue: CallQueue<T>,
    tag: T,
}

impl<T: Clone + Send + Sync + 'static> Handler for QueuedHandler<T> {
    fn call(&self, call: Call) {
        self.queue.push(self.tag.clone(), call);
    }
}

impl<T> std::fmt::Debug for CallQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallQueue")
            .field("waiting", &self.shared.lock().calls.len())
            .field("capacity", &self.shared.capacity)
            .finish()
    }
}
