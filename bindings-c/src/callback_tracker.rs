//! Who has callbacks: a server or a client. It knows where they run, how many run, and when none runs any more.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpline::foreign::PeerId;
use mcpline::foreign::workers::Refused;

use crate::event_loop::Loop;
use crate::executor::{self, CallbackExecutor, Job};
use crate::library::Library;
use crate::pool::BlockedWorker;
use crate::status::{Done, Fault};
use crate::user::UserData;

/// The callbacks of one server or client.
pub(crate) struct CallbackTracker {
    library: Arc<Library>,
    /// Who takes turns with the clients of servers: a client's callbacks, and those of a server that are for no client.
    peer: PeerId,
    /// The host's loop, if it has one.
    events: OnceLock<Arc<Loop>>,
    gate: Mutex<Gate>,
    emptied: Condvar,
    /// All that callbacks were given, to be released when they can't run any more.
    data: Mutex<Vec<Weak<UserData>>>,
    this: Weak<Self>,
}

#[derive(Default)]
struct Gate {
    /// How many callbacks run or are about to.
    running: usize,
    /// How many finalizers have not run.
    unreleased: usize,
    /// Somebody waits for none to.
    closing: bool,
    closed: bool,
}

/// A callback that runs or is about to. The gate waits for it.
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
    pub(crate) fn new(library: Arc<Library>) -> Arc<Self> {
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

    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Has callbacks run on this loop from now on.
    ///
    /// # Errors
    ///
    /// Invalid: there is one already.
    pub(crate) fn use_loop(&self, events: Arc<Loop>) -> Done {
        let set = self.events.set(events);
        set.map_err(|_| Fault::invalid("a loop is used already"))
    }

    /// Where callbacks run.
    pub(crate) fn place(&self) -> CallbackExecutor {
        let pool = self.library.pool().clone();
        match self.events.get() {
            Some(events) => CallbackExecutor::Loop(events.clone(), pool),
            None => CallbackExecutor::Pool(pool),
        }
    }

    /// Has it run where callbacks run; here if nothing runs there any more. Closing doesn't wait for it.
    pub(crate) fn run(&self, job: Job) {
        self.run_for(self.peer, job);
    }

    /// The same for this peer.
    pub(crate) fn run_for(&self, peer: PeerId, job: Job) {
        match self.place().run(peer, job) {
            Ok(()) => {}
            Err(Refused::Closed(job) | Refused::Full(job)) => job.run(),
        }
    }

    /// Has a callback run, unless the owner is closed; closing waits for it. Returns whether it will run.
    pub(crate) fn call_back(&self, callback: impl FnOnce() + Send + 'static) -> bool {
        self.call_back_for(self.peer, callback)
    }

    /// The same for this peer.
    pub(crate) fn call_back_for(
        &self,
        peer: PeerId,
        callback: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Some(entered) = self.enter() else {
            return false;
        };
        self.run_for(peer, Job::Run(Box::new(move || entered.run(callback))));
        true
    }

    /// Keeps data for a callback, which is released when the owner closes at the latest.
    pub(crate) fn keep(&self, data: &Arc<UserData>) {
        self.keep_for(self.peer, data);
    }

    /// The same for a callback of this peer.
    pub(crate) fn keep_for(&self, peer: PeerId, data: &Arc<UserData>) {
        let Some(this) = self.this.upgrade() else {
            return;
        };
        if !data.belong(&this, peer) {
            return;
        }
        self.gate().unreleased += 1;
        let mut kept = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == kept.capacity() {
            kept.retain(|data| data.strong_count() > 0);
        }
        kept.push(Arc::downgrade(data));
    }

    /// Runs a callback or a finalizer on this thread, which can't wait for the owner's end meanwhile.
    fn run_here<T>(&self, callback: impl FnOnce() -> T) -> T {
        executor::running(self.number(), callback)
    }

    /// Runs a finalizer of data that was kept. Closing waits for it.
    pub(crate) fn release(&self, finalize: impl FnOnce()) {
        self.run_here(finalize);
        self.less(|gate| gate.unreleased -= 1);
    }

    /// Lets a callback run, unless the owner is closed.
    pub(crate) fn enter(&self) -> Option<RunningCallback> {
        let mut gate = self.gate();
        if gate.closed {
            return None;
        }
        gate.running += 1;
        drop(gate);
        self.this.upgrade().map(RunningCallback)
    }

    /// Whether this thread may wait for the owner's callbacks to end.
    ///
    /// # Errors
    ///
    /// Would block: this is within one of them, or a thread that must not wait at all.
    pub(crate) fn may_close(&self) -> Done {
        executor::may_wait()?;
        if executor::runs_here(self.number()) {
            return Err(Fault::would_deadlock());
        }
        Ok(())
    }

    /// Waits until no callback runs or is about to, then lets none run any more, and releases what they were given. On
    /// the thread of the owner's loop, dispatches it meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Self::may_close`].
    pub(crate) fn close(&self) -> Done {
        self.close_with(|| {})
    }

    /// The same. `end` ends what no callback can end any more, before what callbacks were given is released.
    ///
    /// # Errors
    ///
    /// As [`Self::may_close`].
    pub(crate) fn close_with(&self, end: impl FnOnce()) -> Done {
        self.may_close()?;
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
        // What another thread is about to release is waited for.
        waiter.wait_for(None, |gate| gate.unreleased == 0)
    }

    /// A call has ended, which somebody may wait for.
    pub(crate) fn call_ended(&self) {
        self.less(|_| {});
    }

    /// Waits until no call is left, which is asked each time that one has ended, or the time is over.
    ///
    /// # Errors
    ///
    /// As [`Self::may_close`].
    pub(crate) fn wait_for_calls(
        &self,
        is_left: impl Fn() -> bool,
        until: Option<Instant>,
    ) -> Done {
        self.may_close()?;
        self.gate().closing = true;
        self.closing_waiter().wait_for(until, |_| !is_left())
    }

    /// There is less of something that somebody may wait for the end of.
    fn less(&self, change: impl FnOnce(&mut Gate)) {
        let wake = {
            let mut gate = self.gate();
            change(&mut gate);
            gate.closing
        };
        if wake {
            self.emptied.notify_all();
            if let Some(events) = self.events.get() {
                events.poke();
            }
        }
    }

    /// Lets no callback run any more, without waiting. What they were given is released with the last that holds it.
    pub(crate) fn shut(&self) {
        self.gate().closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate().closed
    }

    /// Has this thread be one that waits for something of the owner's: to be asked for before that is begun, so that what is
    /// refused has done nothing.
    ///
    /// # Errors
    ///
    /// Would block; busy.
    pub(crate) fn waiter(&self) -> Done<Waiter<'_>> {
        executor::may_wait()?;
        Ok(match self.events_here() {
            Some(events) => Waiter::on_loop(self, events),
            None => Waiter::on_thread(self, self.library.pool().block()?),
        })
    }

    /// The same for what closes something, which is not refused however many threads wait. To be asked for where waiting is
    /// allowed.
    pub(crate) fn closing_waiter(&self) -> Waiter<'_> {
        match self.events_here() {
            Some(events) => Waiter::on_loop(self, events),
            None => Waiter::on_thread(self, self.library.pool().block_anyway()),
        }
    }

    /// Whether somebody waits for the callbacks to end.
    #[cfg(test)]
    pub(crate) fn is_closing(&self) -> bool {
        self.gate().closing
    }

    /// The owner's loop, if this is the thread that dispatches it.
    fn events_here(&self) -> Option<&Arc<Loop>> {
        self.events.get().filter(|events| events.is_mine())
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells owners apart.
    fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A thread that waits for something of an owner's, until this is dropped.
pub(crate) struct Waiter<'o> {
    owner: &'o CallbackTracker,
    /// Dispatched meanwhile: it is this thread's.
    events: Option<&'o Arc<Loop>>,
    _blocked: Option<BlockedWorker<'o>>,
}

impl<'o> Waiter<'o> {
    fn on_loop(owner: &'o CallbackTracker, events: &'o Arc<Loop>) -> Self {
        Self {
            owner,
            events: Some(events),
            _blocked: None,
        }
    }

    fn on_thread(owner: &'o CallbackTracker, blocked: Option<BlockedWorker<'o>>) -> Self {
        Self {
            owner,
            events: None,
            _blocked: blocked,
        }
    }

    /// Waits until a latch is set, or the time is over: then `None`.
    ///
    /// # Errors
    ///
    /// The loop can't be dispatched any more.
    pub(crate) fn wait<T>(&self, latch: &Latch<T>, until: Option<Instant>) -> Done<Option<T>> {
        let Some(events) = self.events else {
            return Ok(latch.take(until));
        };
        latch.watch(events);
        events.dispatch_until(|| latch.is_set(), until)?;
        Ok(latch.try_take())
    }

    /// Waits until the gate is this, or the time is over.
    fn wait_for(&self, until: Option<Instant>, is: impl Fn(&mut Gate) -> bool) -> Done {
        if let Some(events) = self.events {
            let ready = || is(&mut self.owner.gate());
            return events.dispatch_until(ready, until).map(drop);
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
        self.0.less(|gate| gate.running -= 1);
    }
}

/// Something that one thread waits for and another gives. Clones are the same.
pub(crate) struct Latch<T>(Arc<LatchValue<T>>);

struct LatchValue<T> {
    value: Mutex<Option<T>>,
    set: Condvar,
    /// Who has to be told besides.
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
            watcher.poke();
        }
    }

    fn watch(&self, watcher: &Arc<Loop>) {
        // One thread waits for a latch, so it is set once.
        let _ = self.0.watcher.set(watcher.clone());
    }

    fn is_set(&self) -> bool {
        self.lock().is_some()
    }

    fn try_take(&self) -> Option<T> {
        self.lock().take()
    }

    /// Waits until it is set, or the time is over: then `None`.
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
