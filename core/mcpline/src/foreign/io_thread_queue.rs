//! Actions on their way from foreign threads to an I/O thread.

use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::wire::Raw;
use tokio::sync::Notify;

use crate::background;
use crate::quota::{Charge, UNCHARGED_BYTES};
use crate::server::{Call, Context, HandlerError, InputRequest, Reply};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An action of a foreign thread for an I/O thread.
pub enum IoAction {
    /// Ends a call.
    Reply(Call, Result<Reply, HandlerError>),
    /// Sends an input request of a handler.
    InputRequest(Context, InputRequest, InputResponseCallback),
    /// Anything else that the I/O thread has to do, in order with the rest.
    Run(Box<dyn FnOnce() + Send>),
}

/// Approximate memory size of an action without its content.
pub(super) const REPORT_BYTES: usize = 256;

/// Receives the client's response to an input request.
pub type InputResponseCallback = Box<dyn FnOnce(Result<Raw, InputRequestError>) + Send>;

/// Collects [`IoAction`]s from any thread, and runs them in batches in one task on the I/O thread.
///
/// Cheap to clone. The task ends when the last clone is dropped.
pub struct IoThreadQueue {
    shared: Arc<Shared>,
}

struct Shared {
    done: Mutex<IoQueueState>,
    filled: Notify,
    /// Number of clones. The count of `Arc` is not enough: if two are dropped concurrently, neither may see that it is
    /// the last.
    clones: AtomicUsize,
    attended: AtomicBool,
    /// Held while actions run, which keeps them in order when two threads run them.
    running: Mutex<Vec<QueuedAction>>,
    /// Takes the actions that are left or queued once the runtime has shut down. Without one they are dropped.
    successor: Option<IoThreadQueue>,
}

#[derive(Default)]
struct IoQueueState {
    waiting: Vec<QueuedAction>,
    /// Whether the task was woken for the waiting actions.
    is_woken: bool,
    /// Whether actions were queued by [`IoThreadQueue::push_without_wake`] since the last [`IoThreadQueue::wake`].
    is_wake_due: bool,
    /// Whether the runtime has shut down, so that later actions would never run.
    closed: bool,
}

/// What wakes the task for queued actions.
enum Wake {
    /// The thread that queues them, at once.
    Now,
    /// A later call of [`IoThreadQueue::wake`].
    Later,
    /// Nothing: a thread runs them.
    Never,
}

/// An action that waits for the I/O thread.
struct QueuedAction {
    action: IoAction,
    /// Charge for its content. Results and input requests must not get lost, so they are charged beyond the client's
    /// limit.
    charge: Option<Charge>,
}

impl From<IoAction> for QueuedAction {
    fn from(action: IoAction) -> Self {
        // Calls in flight bound the number of results, so short ones are not charged. Other actions of a call were
        // charged when they were created.
        let charge = match &action {
            IoAction::Reply(call, Ok(reply)) => match reply.held_bytes() {
                bytes if bytes >= UNCHARGED_BYTES => {
                    Some(call.context().client().hold_bytes_anyway(bytes))
                }
                _ => None,
            },
            IoAction::InputRequest(context, input_request, _) => {
                let bytes = input_request
                    .params
                    .as_ref()
                    .map_or(0, |params| params.as_bytes().len());
                Some(context.client().hold_bytes_anyway(REPORT_BYTES + bytes))
            }
            IoAction::Reply(..) | IoAction::Run(_) => None,
        };
        Self { action, charge }
    }
}

impl QueuedAction {
    fn run(self) {
        // The messages that it sends have their own charges.
        drop(self.charge);
        self.action.run();
    }
}

/// Closes the queue when its task ends or the runtime drops it: waiting actions may hold references to the queue.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl IoThreadQueue {
    /// Starts the task on this runtime.
    pub fn start(runtime: &tokio::runtime::Handle) -> Self {
        Self::start_before(runtime, None)
    }

    /// Starts a queue of another runtime, which may shut down before this one: actions that it has not run then come
    /// here.
    pub fn start_other(&self, runtime: &tokio::runtime::Handle) -> Self {
        Self::start_before(runtime, Some(self.clone()))
    }

    fn start_before(runtime: &tokio::runtime::Handle, successor: Option<Self>) -> Self {
        let shared = Arc::new(Shared {
            done: Mutex::default(),
            filled: Notify::new(),
            clones: AtomicUsize::new(1),
            attended: AtomicBool::new(true),
            running: Mutex::default(),
            successor,
        });
        let attendance = CloseOnDrop(shared.clone());
        background::spawn(runtime, async move {
            let shared = &attendance.0;
            loop {
                let filled = shared.filled.notified();
                // Read before the queue, so that actions of the last clone still run.
                let last = shared.clones.load(Ordering::SeqCst) == 0;
                if shared.run() {
                    continue;
                }
                if last {
                    return;
                }
                filled.await;
            }
        });
        Self { shared }
    }

    /// Queues one action. Once the runtime has shut down, it is dropped instead, or [taken](Self::start_other) by another
    /// queue.
    pub fn push(&self, action: IoAction) {
        self.push_queued([action.into()]);
    }

    fn push_queued(&self, actions: impl IntoIterator<Item = QueuedAction>) {
        if self.shared.add(actions, Wake::Now) {
            self.shared.filled.notify_one();
        }
    }

    /// Queues several actions at once and leaves `batch` empty.
    pub fn push_all(&self, batch: &mut Vec<IoAction>) {
        if !batch.is_empty() {
            self.push_queued(batch.drain(..).map(QueuedAction::from));
        }
    }

    /// Like [`Self::push`], for a thread that calls [`Self::wake`] after its last action. Returns whether this is the
    /// first one since the last such call.
    pub fn push_without_wake(&self, action: IoAction) -> bool {
        self.shared.add([action.into()], Wake::Later)
    }

    /// Wakes the task for actions queued by [`Self::push_without_wake`].
    pub fn wake(&self) {
        let wakes = {
            let mut done = self.shared.lock();
            done.is_wake_due = false;
            !done.waiting.is_empty() && !std::mem::replace(&mut done.is_woken, true)
        };
        if wakes {
            self.shared.filled.notify_one();
        }
    }

    /// Like [`Self::push`], for a thread that calls [`Self::run`] soon: wakes the runtime only if another thread is in
    /// it.
    pub fn push_and_wake_other(&self, action: IoAction) {
        self.shared.add([action.into()], Wake::Never);
        if self.shared.attended.load(Ordering::SeqCst) {
            self.shared.filled.notify_one();
        }
    }

    /// Sets whether another thread than the one that [pushes](Self::push_and_wake_other) is in the runtime.
    pub fn set_attended(&self, attended: bool) {
        self.shared.attended.store(attended, Ordering::SeqCst);
    }

    /// Runs the queued actions on this thread. Call within the runtime's context.
    pub fn run(&self) {
        self.shared.run();
    }
}

impl Clone for IoThreadQueue {
    fn clone(&self) -> Self {
        self.shared.clones.fetch_add(1, Ordering::SeqCst);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl Drop for IoThreadQueue {
    fn drop(&mut self) {
        // Lets the task notice that no handle is left.
        if self.shared.clones.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.shared.filled.notify_one();
        }
    }
}

impl Shared {
    /// Runs the queued actions. Returns whether there were any.
    fn run(&self) -> bool {
        let mut batch = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut done = self.lock();
            std::mem::swap(&mut done.waiting, &mut *batch);
            done.is_woken = false;
        }
        let any = !batch.is_empty();
        for waiting in batch.drain(..) {
            waiting.run();
        }
        any
    }

    /// Queues actions. Returns whether they are the first ones since the last wake-up of this kind.
    fn add(&self, actions: impl IntoIterator<Item = QueuedAction>, wake: Wake) -> bool {
        let mut done = self.lock();
        if done.closed {
            // Dropped actions may queue others in turn.
            drop(done);
            self.pass_on(actions);
            return false;
        }
        done.waiting.extend(actions);
        let is_pending = match wake {
            Wake::Now => &mut done.is_woken,
            Wake::Later => &mut done.is_wake_due,
            Wake::Never => return false,
        };
        !std::mem::replace(is_pending, true)
    }

    fn close(&self) {
        let mut done = self.lock();
        done.closed = true;
        let waiting = std::mem::take(&mut done.waiting);
        drop(done);
        self.pass_on(waiting);
    }

    /// Passes actions that this runtime will not run to the queue that takes them, or drops them.
    fn pass_on(&self, actions: impl IntoIterator<Item = QueuedAction>) {
        match &self.successor {
            Some(successor) => successor.push_queued(actions),
            None => {
                for QueuedAction { action, .. } in actions {
                    action.discard();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, IoQueueState> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IoAction {
    /// Runs the action on this thread instead of queueing it. Call within the runtime's context.
    pub fn run(self) {
        match self {
            Self::Reply(call, outcome) => call.reply(outcome),
            Self::InputRequest(context, input_request, sink) => {
                context.request_input_with(input_request, sink)
            }
            Self::Run(run) => run(),
        }
    }

    /// Drops the action, because the runtime has shut down. A call with a result still ends with it: its handler did
    /// not drop it.
    fn discard(self) {
        if let Self::Reply(call, outcome) = self {
            call.reply(outcome);
        }
    }
}

impl std::fmt::Debug for IoThreadQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoThreadQueue")
            .field("waiting", &self.shared.lock().waiting.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_task_ends_when_the_last_clones_are_dropped_concurrently() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .expect("a runtime");
        let mut tasks = Vec::new();
        for _ in 0..2_000 {
            let first = IoThreadQueue::start(runtime.handle());
            tasks.push(Arc::downgrade(&first.shared));
            let second = first.clone();
            let together = Barrier::new(2);
            std::thread::scope(|scope| {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    drop(second);
                });
                together.wait();
                drop(first);
            });
        }
        runtime.block_on(async {
            let limit = std::time::Duration::from_secs(60);
            let ended = async {
                while tasks.iter().any(|task| task.strong_count() > 0) {
                    tokio::task::yield_now().await;
                }
            };
            let leaked = || tasks.iter().filter(|task| task.strong_count() > 0).count();
            let timeout = tokio::time::timeout(limit, ended).await;
            assert!(timeout.is_ok(), "{} tasks leaked", leaked());
        });
    }

    #[test]
    fn drops_waiting_and_later_actions_when_the_runtime_shuts_down() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let io_queue = IoThreadQueue::start(runtime.handle());
        // Like a call, which holds its server, whose handlers hold the queue.
        let holding = || {
            let queue = io_queue.clone();
            IoAction::Run(Box::new(move || drop(queue)))
        };
        io_queue.push(holding());
        runtime.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        io_queue.push(holding());
        io_queue.push_without_wake(holding());
        drop(runtime);
        io_queue.push(holding());
        io_queue.push_and_wake_other(holding());
        io_queue.push_all(&mut vec![holding(), holding()]);
        assert_eq!(Arc::strong_count(&io_queue.shared), 1);
    }

    #[test]
    fn actions_that_a_runtime_leaves_are_run_by_the_queue_before() {
        let [lasting, ending] = [(), ()].map(|()| {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.build().expect("a runtime")
        });
        let before = IoThreadQueue::start(lasting.handle());
        let other = before.start_other(ending.handle());
        let (ran, has_run) = std::sync::mpsc::channel();
        let noting = |number: usize| {
            let ran = ran.clone();
            IoAction::Run(Box::new(move || ran.send(number).expect("the test reads")))
        };
        other.push(noting(0));
        assert!(other.push_without_wake(noting(1)), "the first to wake for");
        assert!(!other.push_without_wake(noting(2)), "the second");
        drop(ending);
        other.push(noting(3));
        assert!(!other.push_without_wake(noting(4)), "no wake-up is missing");
        lasting.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        assert_eq!(has_run.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
