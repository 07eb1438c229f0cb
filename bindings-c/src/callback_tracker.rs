//! Tracks the callbacks of a server or client: where they run, how many are running, and when the last one has
//! returned.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpline::foreign::PeerId;
use mcpline::foreign::workers::Refused;

use crate::event_loop::Loop;
use crate::executor::{self, CallbackExecutor, Job};
use crate::pool::BlockedWorker;
use crate::shared_runtime::SharedRuntime;
use crate::status::{Fault, FaultResult};
use crate::user_data::UserData;

/// The callbacks of one server or client.
pub(crate) struct CallbackTracker {
    library: Arc<SharedRuntime>,
    /// The peer for callbacks that belong to no client of a server: a client's own callbacks, and a server's general
    /// ones.
    peer: PeerId,
    /// The host's loop, if it uses one.
    events: OnceLock<Arc<Loop>>,
    gate: Mutex<CallbackCounts>,
    emptied: Condvar,
    /// User data of all callbacks, to be released when no callback can run any more.
    data: Mutex<Vec<Weak<UserData>>>,
    this: Weak<Self>,
}

#[derive(Default)]
struct CallbackCounts {
    /// Number of callbacks that are running or about to run.
    running: usize,
    /// Number of finalizers that have not run.
    unreleased: usize,
    /// Whether a thread is waiting for callbacks to end.
    closing: bool,
    closed: bool,
}

/// A callback that is running or about to run. Closing its owner waits until this is dropped.
pub(crate) struct RunningCallback(Arc<CallbackTracker>);

impl RunningCallback {
    pub(crate) fn owner(&self) -> &Arc<CallbackTracker> {
        &self.0
    }

    /// Runs the callback.
    pub(crate) fn run<T>(&self, callback: impl FnOnce() -> T) -> T {
        self.0.run_here(callback)
    }
}

impl CallbackTracker {
    pub(crate) fn new(library: Arc<SharedRuntime>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            library,
            peer: PeerId::new(),
            events: OnceLock::new(),
            gate: Mutex::default(),
            emptied: Condvar::new(),
            data: Mutex::default(),
            this: this.clone(),
        })
    }

    pub(crate) fn library(&self) -> &Arc<SharedRuntime> {
        &self.library
    }

    /// Runs callbacks on this loop from now on.
    ///
    /// # Errors
    ///
    /// A usage error if there is a loop already.
    pub(crate) fn use_loop(&self, events: Arc<Loop>) -> FaultResult {
        let set = self.events.set(events);
        set.map_err(|_| Fault::invalid("a loop is already set and cannot be replaced"))
    }

    /// Returns the executor that callbacks run on.
    pub(crate) fn callback_executor(&self) -> CallbackExecutor {
        let pool = self.library.pool().clone();
        match self.events.get() {
            Some(events) => CallbackExecutor::Loop(events.clone(), pool),
            None => CallbackExecutor::Pool(pool),
        }
    }

    /// Queues a job where callbacks run; runs it on this thread if nothing runs there any more. Closing does not wait
    /// for it.
    pub(crate) fn run(&self, job: Job) {
        self.enqueue_for_peer(self.peer, job);
    }

    /// Like [`Self::run`], for this peer.
    pub(crate) fn enqueue_for_peer(&self, peer: PeerId, job: Job) {
        match self.callback_executor().run(peer, job) {
            Ok(()) => {}
            Err(Refused::Closed(job) | Refused::Full(job)) => job.run(),
        }
    }

    /// Queues a callback unless the owner is closed. Closing waits for it. Returns whether it will run.
    pub(crate) fn call_back(&self, callback: impl FnOnce() + Send + 'static) -> bool {
        self.call_back_for(self.peer, callback)
    }

    /// Like [`Self::call_back`], for this peer.
    pub(crate) fn call_back_for(
        &self,
        peer: PeerId,
        callback: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Some(entered) = self.enter() else {
            return false;
        };
        self.enqueue_for_peer(peer, Job::Run(Box::new(move || entered.run(callback))));
        true
    }

    /// Keeps the data of a callback, which is released when the owner closes at the latest.
    pub(crate) fn keep(&self, data: &Arc<UserData>) {
        self.keep_for(self.peer, data);
    }

    /// Like [`Self::keep`], for a callback of this peer.
    pub(crate) fn keep_for(&self, peer: PeerId, data: &Arc<UserData>) {
        let Some(this) = self.this.upgrade() else {
            return;
        };
        if !data.set_owner(&this, peer) {
            return;
        }
        self.gate().unreleased += 1;
        let mut kept = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == kept.capacity() {
            kept.retain(|data| data.strong_count() > 0);
        }
        kept.push(Arc::downgrade(data));
    }

    /// Runs a callback or a finalizer on this thread. It cannot wait for the owner's end.
    fn run_here<T>(&self, callback: impl FnOnce() -> T) -> T {
        executor::running(self.number(), callback)
    }

    /// Runs the finalizer of data that was kept. Closing waits for it.
    pub(crate) fn release(&self, finalize: impl FnOnce()) {
        self.run_here(finalize);
        self.update_gate(|gate| gate.unreleased -= 1);
    }

    /// Allows a callback to run. Returns `None` if the owner is closed.
    pub(crate) fn enter(&self) -> Option<RunningCallback> {
        let mut gate = self.gate();
        if gate.closed {
            return None;
        }
        gate.running += 1;
        drop(gate);
        self.this.upgrade().map(RunningCallback)
    }

    /// Checks that this thread may wait for the owner's callbacks to end.
    ///
    /// # Errors
    ///
    /// Would deadlock: this thread runs one of them, or must never wait.
    pub(crate) fn check_may_close(&self) -> FaultResult {
        executor::may_wait()?;
        if executor::runs_here(self.number()) {
            return Err(Fault::would_deadlock());
        }
        Ok(())
    }

    /// Waits until no callback is running or about to run, prevents further ones, and releases their data. On the
    /// thread of the owner's loop, dispatches the loop meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Self::check_may_close`].
    pub(crate) fn close(&self) -> FaultResult {
        self.close_with(|| {})
    }

    /// Like [`Self::close`]. Calls `end` after the last callback and before their data is released.
    ///
    /// # Errors
    ///
    /// As [`Self::check_may_close`].
    pub(crate) fn close_with(&self, end: impl FnOnce()) -> FaultResult {
        self.check_may_close()?;
        let waiter = self.closing_waiter();
        self.gate().closing = true;
        waiter.wait_for(None, |gate| {
            gate.closed |= gate.running == 0;
            gate.closed
        })?;
        end();
        let data = std::mem::take(&mut *self.data.lock().unwrap_or_else(PoisonError::into_inner));
        data.iter()
            .filter_map(Weak::upgrade)
            .for_each(|data| data.finish());
        // Other threads may still be running finalizers.
        waiter.wait_for(None, |gate| gate.unreleased == 0)
    }

    /// Reports the end of a call, which [`Self::wait_for_calls`] may be waiting for.
    pub(crate) fn call_ended(&self) {
        self.update_gate(|_| {});
    }

    /// Waits until `is_left` returns `false`, checked after the end of each call, or until the deadline.
    ///
    /// # Errors
    ///
    /// As [`Self::check_may_close`].
    pub(crate) fn wait_for_calls(
        &self,
        is_left: impl Fn() -> bool,
        until: Option<Instant>,
    ) -> FaultResult {
        self.check_may_close()?;
        self.gate().closing = true;
        self.closing_waiter().wait_for(until, |_| !is_left())
    }

    /// Changes the gate and wakes threads that wait for callbacks, finalizers or calls to end.
    fn update_gate(&self, change: impl FnOnce(&mut CallbackCounts)) {
        let wake = {
            let mut gate = self.gate();
            change(&mut gate);
            gate.closing
        };
        if wake {
            self.emptied.notify_all();
            if let Some(events) = self.events.get() {
                events.wake_waiters();
            }
        }
    }

    /// Prevents further callbacks, without waiting. Their data is released when the last reference to it is dropped.
    pub(crate) fn close_without_waiting(&self) {
        self.gate().closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate().closed
    }

    /// Marks this thread as waiting for something of this owner. Call it before the operation begins, so that a refusal
    /// has no effect.
    ///
    /// # Errors
    ///
    /// Would deadlock; limit exceeded.
    pub(crate) fn waiter(&self) -> FaultResult<Waiter<'_>> {
        executor::may_wait()?;
        Ok(match self.loop_of_this_thread() {
            Some(events) => Waiter::for_loop(self, events),
            None => Waiter {
                // Callbacks that the wait depends on may be those of a server in this process, say.
                borrowed: Loop::of_this_thread(),
                ..Waiter::for_thread(self, self.library.pool().mark_blocked()?)
            },
        })
    }

    /// Like [`Self::waiter`], for closing: it is not refused however many threads wait. Call it only where waiting is
    /// allowed.
    pub(crate) fn closing_waiter(&self) -> Waiter<'_> {
        match self.loop_of_this_thread() {
            Some(events) => Waiter::for_loop(self, events),
            None => Waiter::for_thread(self, self.library.pool().mark_blocked_anyway()),
        }
    }

    /// Whether a thread is waiting for the callbacks to end.
    #[cfg(test)]
    pub(crate) fn is_closing(&self) -> bool {
        self.gate().closing
    }

    /// Returns the owner's loop if this is the thread that dispatches it.
    fn loop_of_this_thread(&self) -> Option<&Arc<Loop>> {
        self.events.get().filter(|events| events.is_mine())
    }

    fn gate(&self) -> MutexGuard<'_, CallbackCounts> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that identifies the owner.
    fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A thread that waits for something of an owner. Drop it when the wait is over.
pub(crate) struct Waiter<'o> {
    owner: &'o CallbackTracker,
    /// The loop that this thread dispatches while it waits.
    events: Option<&'o Arc<Loop>>,
    /// Like `events`, but a loop of others, which another thread may begin to dispatch.
    borrowed: Option<Arc<Loop>>,
    _blocked: Option<BlockedWorker<'o>>,
}

impl<'o> Waiter<'o> {
    fn for_loop(owner: &'o CallbackTracker, events: &'o Arc<Loop>) -> Self {
        Self {
            owner,
            events: Some(events),
            borrowed: None,
            _blocked: None,
        }
    }

    fn for_thread(owner: &'o CallbackTracker, blocked: Option<BlockedWorker<'o>>) -> Self {
        Self {
            owner,
            events: None,
            borrowed: None,
            _blocked: blocked,
        }
    }

    /// Waits until a latch is set. Returns `None` if the deadline passes first.
    ///
    /// # Errors
    ///
    /// The loop can no longer be dispatched.
    pub(crate) fn wait<T>(
        &self,
        latch: &Latch<T>,
        until: Option<Instant>,
    ) -> FaultResult<Option<T>> {
        let Some(events) = self.events else {
            if let Some(events) = &self.borrowed {
                latch.watch(events);
                // Fails if another thread dispatches the loop from now on, or it was freed.
                if events.dispatch_until(&|| latch.is_set(), until).is_ok() {
                    return Ok(latch.try_take());
                }
            }
            return Ok(latch.take(until));
        };
        latch.watch(events);
        events.dispatch_until(&|| latch.is_set(), until)?;
        Ok(latch.try_take())
    }

    /// Waits until the gate meets a condition, or until the deadline.
    fn wait_for(
        &self,
        until: Option<Instant>,
        is: impl Fn(&mut CallbackCounts) -> bool,
    ) -> FaultResult {
        if let Some(events) = self.events {
            let ready = || is(&mut self.owner.gate());
            return events.dispatch_until(&ready, until).map(drop);
        }
        let emptied = &self.owner.emptied;
        let mut gate = self.owner.gate();
        while !is(&mut gate) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            gate = match left {
                None => emptied.wait(gate).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Ok(()),
                Some(left) => {
                    let waited = emptied.wait_timeout(gate, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Ok(())
    }
}

impl Drop for RunningCallback {
    fn drop(&mut self) {
        self.0.update_gate(|gate| gate.running -= 1);
    }
}

/// A value that one thread waits for and another sets. Clones share the value.
pub(crate) struct Latch<T>(Arc<LatchValue<T>>);

struct LatchValue<T> {
    value: Mutex<Option<T>>,
    set: Condvar,
    /// The loop of the waiting thread, to be woken as well.
    watcher: OnceLock<Arc<Loop>>,
}

impl<T> Clone for Latch<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Latch<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(LatchValue {
            value: Mutex::new(None),
            set: Condvar::new(),
            watcher: OnceLock::new(),
        }))
    }

    pub(crate) fn set(&self, value: T) {
        *self.lock() = Some(value);
        self.0.set.notify_all();
        if let Some(watcher) = self.0.watcher.get() {
            watcher.wake_waiters();
        }
    }

    fn watch(&self, watcher: &Arc<Loop>) {
        // Only one thread waits for a latch, so this is set once.
        let _ = self.0.watcher.set(watcher.clone());
    }

    fn is_set(&self) -> bool {
        self.lock().is_some()
    }

    fn try_take(&self) -> Option<T> {
        self.lock().take()
    }

    /// Waits until the latch is set. Returns `None` if the deadline passes first.
    pub(crate) fn take(&self, until: Option<Instant>) -> Option<T> {
        let mut value = self.lock();
        while value.is_none() {
            value = match until {
                None => self
                    .0
                    .set
                    .wait(value)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let waited = self.0.set.wait_timeout(value, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        value.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
