//! The write queue: operations that wait to be written, in order, with a limit in bytes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline_runtime::WarningLimit;
use tokio::sync::{Notify, oneshot};

use crate::failure::Failure;
use crate::keys;
use crate::limits::{
    ENTRY_BYTES, MAX_BATCH_BYTES, MAX_BATCH_OPERATIONS, MAX_BUS_MESSAGE_BYTES, MAX_QUEUED_BYTES,
    MAX_QUEUED_USES, MAX_REPLACED, WARNINGS,
};

/// An operation that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Save {
        session: String,
        value: Bytes,
        /// The values that it may replace, the oldest first.
        replaces: Vec<Bytes>,
        lifetime: Duration,
    },
    Remove {
        session: String,
    },
    /// Of something that may be used once. Two uses of one key are two operations, unlike saves of one session.
    RecordUse {
        key: String,
        /// Unlike that of any other use, so that one that is sent again is recognized.
        value: Bytes,
        lifetime: Duration,
    },
    Append {
        stream: String,
        number: u64,
        event: Bytes,
    },
    End {
        stream: String,
        /// The number of the last event.
        last: u64,
    },
    Publish {
        /// The number of the message at this process.
        number: u64,
        message: Bytes,
    },
}

impl Operation {
    /// Returns the session or the key that it concerns; `None` for the bus.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Save { session, .. } | Self::Remove { session } => Some(session),
            Self::Append { stream, .. } | Self::End { stream, .. } => {
                Some(keys::split_stream_name(stream).0)
            }
            Self::RecordUse { key, .. } => Some(key),
            Self::Publish { .. } => None,
        }
    }

    /// Lets a session that is saved also replace these values.
    fn may_replace(&mut self, mut earlier: Vec<Bytes>) {
        if let Self::Save { replaces, .. } = self {
            earlier.retain(|value| !replaces.contains(value));
            earlier.append(replaces);
            let surplus = earlier.len().saturating_sub(MAX_REPLACED);
            earlier.drain(..surplus);
            *replaces = earlier;
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Save {
                    value, replaces, ..
                } => value.len() + replaces.iter().map(Bytes::len).sum::<usize>(),
                Self::RecordUse { value, .. } => value.len(),
                Self::Append { event, .. } => event.len(),
                Self::Publish { message, .. } => message.len(),
                Self::Remove { .. } | Self::End { .. } => 0,
            }
    }
}

/// What became of an operation: the session that is stored instead if another process has changed it, or the value of an earlier
/// use.
pub(crate) type Written = Result<Option<Bytes>, Failure>;

type Waiter = oneshot::Sender<Written>;

/// A queued operation, and what waits for its outcome.
pub(crate) struct Entry {
    pub(crate) operation: Operation,
    /// Its place in the order of all operations.
    number: u64,
    /// How many times the server did not answer in time when it was sent alone.
    pub(crate) timeouts: u32,
    /// Whether the server may have executed it.
    was_sent: bool,
    waiters: Vec<Waiter>,
}

impl Entry {
    /// Returns the values that a later save of the session may replace: those that this one may, and its own if it may be
    /// stored.
    fn replaced(self) -> Vec<Bytes> {
        match self.operation {
            Operation::Save {
                mut replaces,
                value,
                ..
            } => {
                replaces.extend(self.was_sent.then_some(value));
                replaces
            }
            _ => Vec::new(),
        }
    }

    /// Whether it exceeds a batch, so that it is sent alone.
    pub(crate) fn is_large(&self) -> bool {
        self.operation.bytes() > MAX_BATCH_BYTES
    }

    /// Reports the outcome to what waits for it.
    fn report(&mut self, outcome: &Written) {
        for waiter in self.waiters.drain(..) {
            // Fails if nothing waits any more.
            let _ = waiter.send(outcome.clone());
        }
    }
}

/// The queue. One task takes batches from it.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the task that takes.
    changed: Notify,
    /// Wakes what waits until everything is written.
    finished: Notify,
    overflows: WarningLimit,
    large_messages: WarningLimit,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::default(),
            finished: Notify::default(),
            overflows: WarningLimit::new(WARNINGS),
            large_messages: WarningLimit::new(WARNINGS),
        }
    }
}

#[derive(Default)]
struct State {
    /// Saved and removed sessions, by number: one operation for each session, because a later one replaces an earlier one.
    sessions: BTreeMap<u64, Entry>,
    /// The numbers in `sessions`.
    by_session: HashMap<String, u64>,
    /// Events and messages. They are dropped before sessions: clients have received the events from this process, and messages are
    /// less than the state of sessions.
    events: VecDeque<Entry>,
    /// Uses. They are dropped before all others, and whenever writing fails: their requests go on without them.
    uses: VecDeque<Entry>,
    /// The number of the next operation.
    next: u64,
    /// Bytes of the entries, and of the batch that was taken last.
    bytes: usize,
    /// Bytes of the batch that was taken last.
    taken: usize,
    /// Why the last attempt to write failed; `None` after a success.
    failure: Option<Failure>,
    published: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds an operation.
    pub(crate) fn push(&self, operation: Operation) {
        let dropped = self.lock().push(operation, Vec::new());
        self.report_overflow(dropped);
        self.changed.notify_one();
    }

    /// Adds a message for the bus, unless it is too large for it.
    pub(crate) fn publish(&self, message: Bytes) {
        if message.len() > MAX_BUS_MESSAGE_BYTES {
            if let Some(suppressed) = self.large_messages.admit() {
                tracing::warn!(
                    bytes = message.len(),
                    limit = MAX_BUS_MESSAGE_BYTES,
                    suppressed,
                    "dropped a message for other processes: it is too large for the bus"
                );
            }
            return;
        }
        let mut state = self.lock();
        state.published += 1;
        let operation = Operation::Publish {
            number: state.published,
            message,
        };
        let dropped = state.push(operation, Vec::new());
        drop(state);
        self.report_overflow(dropped);
        self.changed.notify_one();
    }

    /// Adds an operation and waits for its outcome, but not while writing fails: then the operation is done later, and
    /// the failure is returned at once. A use is not done later.
    pub(crate) async fn push_and_wait(&self, operation: Operation, timeout: Duration) -> Written {
        let (waiter, outcome) = oneshot::channel();
        let (failure, dropped) = {
            let mut state = self.lock();
            let failure = state.failure.clone();
            if matches!(operation, Operation::RecordUse { .. }) {
                if let Some(failure) = failure {
                    return Err(failure);
                }
                if state.uses.len() >= MAX_QUEUED_USES {
                    return Err(Failure::Overflow);
                }
            }
            let waiters = failure.is_none().then_some(waiter).into_iter().collect();
            let dropped = state.push(operation, waiters);
            (failure, dropped)
        };
        self.report_overflow(dropped);
        self.changed.notify_one();
        if let Some(failure) = failure {
            return Err(failure);
        }
        match tokio::time::timeout(timeout, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Failure::Unreachable("the runtime has ended".to_owned())),
            Err(_) => Err(Failure::TimedOut(timeout)),
        }
    }

    /// Takes the next operations; `None` once the queue is closed and empty.
    pub(crate) async fn take(&self) -> Option<Vec<Entry>> {
        loop {
            // Registered before the state is read, so that no change is missed.
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                let batch = state.take();
                if !batch.is_empty() {
                    return Some(batch);
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Ends a batch: `kept` is tried again, before all others. `failure` is why; `None` if everything was written.
    pub(crate) fn finish_batch(&self, kept: Vec<Entry>, failure: Option<Failure>) {
        let mut state = self.lock();
        state.bytes -= state.taken;
        state.taken = 0;
        for entry in kept.into_iter().rev() {
            state.put_back(entry);
        }
        if let Some(failure) = &failure {
            let failed = Err(failure.clone());
            let state = &mut *state;
            for entry in state.sessions.values_mut().chain(&mut state.events) {
                entry.report(&failed);
            }
            for mut entry in state.uses.drain(..) {
                entry.report(&failed);
                state.bytes -= entry.operation.bytes();
            }
        }
        state.failure = failure;
        let dropped = state.shrink();
        drop(state);
        self.finished.notify_waiters();
        self.report_overflow(dropped);
    }

    /// Waits until nothing is queued.
    pub(crate) async fn flush(&self) {
        loop {
            // Registered before the state is read, so that no change is missed.
            let finished = self.finished.notified();
            if self.lock().bytes == 0 {
                return;
            }
            finished.await;
        }
    }

    /// Lets [`take`](Self::take) end once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until the queue is closed or this time is over.
    pub(crate) async fn sleep(&self, time: Duration) {
        let closed = async {
            loop {
                let changed = self.changed.notified();
                if self.is_closed() {
                    return;
                }
                changed.await;
            }
        };
        // Either is fine.
        let _ = tokio::time::timeout(time, closed).await;
    }

    fn report_overflow(&self, dropped: usize) {
        if dropped > 0
            && let Some(suppressed) = self.overflows.admit()
        {
            tracing::warn!(
                dropped,
                suppressed,
                "Valkey is too slow or unreachable: dropped the oldest queued operations"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of what waits.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl State {
    /// Adds an operation; returns how many were dropped for it.
    fn push(&mut self, mut operation: Operation, mut waiters: Vec<Waiter>) -> usize {
        let number = self.next;
        self.next += 1;
        let replaces = match &operation {
            Operation::Save { session, .. } | Operation::Remove { session } => Some(session),
            _ => None,
        };
        let Some(session) = replaces else {
            self.bytes += operation.bytes();
            let queue = match &operation {
                Operation::RecordUse { .. } => &mut self.uses,
                _ => &mut self.events,
            };
            queue.push_back(Entry {
                operation,
                number,
                timeouts: 0,
                was_sent: false,
                waiters,
            });
            return self.shrink();
        };
        let earlier = self.by_session.insert(session.clone(), number);
        if let Some(mut earlier) = earlier.and_then(|earlier| self.sessions.remove(&earlier)) {
            self.bytes -= earlier.operation.bytes();
            waiters.append(&mut earlier.waiters);
            operation.may_replace(earlier.replaced());
        }
        self.bytes += operation.bytes();
        let entry = Entry {
            operation,
            number,
            timeouts: 0,
            was_sent: false,
            waiters,
        };
        self.sessions.insert(number, entry);
        self.shrink()
    }

    /// Puts an entry that was taken before all others, unless a later operation replaces it.
    fn put_back(&mut self, mut entry: Entry) {
        if let Operation::Save { session, .. } | Operation::Remove { session } = &entry.operation {
            if let Some(later) = self.by_session.get(session)
                && let Some(later) = self.sessions.get_mut(later)
            {
                later.waiters.append(&mut entry.waiters);
                self.bytes -= later.operation.bytes();
                entry.was_sent = true;
                later.operation.may_replace(entry.replaced());
                self.bytes += later.operation.bytes();
                return;
            }
            self.by_session.insert(session.clone(), entry.number);
            self.bytes += entry.operation.bytes();
            entry.was_sent = true;
            self.sessions.insert(entry.number, entry);
        } else {
            self.bytes += entry.operation.bytes();
            match &entry.operation {
                Operation::RecordUse { .. } => self.uses.push_front(entry),
                _ => self.events.push_front(entry),
            }
        }
    }

    fn shrink(&mut self) -> usize {
        let mut dropped = 0;
        while self.bytes > MAX_QUEUED_BYTES && self.len() > 1 {
            let oldest = self
                .uses
                .pop_front()
                .or_else(|| self.events.pop_front())
                .or_else(|| self.pop_session());
            let Some(mut oldest) = oldest else { break };
            self.bytes -= oldest.operation.bytes();
            oldest.report(&Err(Failure::Overflow));
            dropped += 1;
        }
        dropped
    }

    fn pop_session(&mut self) -> Option<Entry> {
        let (_, entry) = self.sessions.pop_first()?;
        if let Some(session) = entry.operation.session() {
            self.by_session.remove(session);
        }
        Some(entry)
    }

    fn len(&self) -> usize {
        self.sessions.len() + self.events.len() + self.uses.len()
    }

    /// Returns the oldest entry.
    fn oldest(&self) -> Option<&Entry> {
        let session = self.sessions.first_key_value().map(|(_, entry)| entry);
        let others = [self.events.front(), self.uses.front()];
        let entries = others.into_iter().chain([session]).flatten();
        entries.min_by_key(|entry| entry.number)
    }

    /// Removes the oldest entry.
    fn pop_oldest(&mut self) -> Option<Entry> {
        match self.oldest()?.operation {
            Operation::Save { .. } | Operation::Remove { .. } => self.pop_session(),
            Operation::RecordUse { .. } => self.uses.pop_front(),
            _ => self.events.pop_front(),
        }
    }

    fn take(&mut self) -> Vec<Entry> {
        let mut batch: Vec<Entry> = Vec::new();
        while batch.len() < MAX_BATCH_OPERATIONS
            && let Some(oldest) = self.oldest()
        {
            let bytes = oldest.operation.bytes();
            if !batch.is_empty() && self.taken + bytes > MAX_BATCH_BYTES {
                break;
            }
            self.taken += bytes;
            batch.extend(self.pop_oldest());
        }
        batch
    }
}

/// Reports the outcome of an operation that was not kept.
pub(crate) fn report_outcome(mut entry: Entry, outcome: Written) {
    entry.report(&outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1024 * 1024;
    const LIFETIME: Duration = Duration::from_secs(181);

    fn large(number: u64) -> Operation {
        Operation::Append {
            stream: "session/1".to_owned(),
            number,
            event: Bytes::from(vec![0; LARGE]),
        }
    }

    fn save(session: &str, bytes: usize) -> Operation {
        Operation::Save {
            session: session.to_owned(),
            value: Bytes::from(vec![0; bytes]),
            replaces: Vec::new(),
            lifetime: Duration::MAX,
        }
    }

    fn number(entry: &Entry) -> u64 {
        match entry.operation {
            Operation::Append { number, .. } | Operation::Publish { number, .. } => number,
            _ => u64::MAX,
        }
    }

    async fn drain(queue: &Queue) -> Vec<u64> {
        queue.close();
        let mut numbers = Vec::new();
        while let Some(batch) = queue.take().await {
            numbers.extend(batch.iter().map(number));
            queue.finish_batch(Vec::new(), None);
        }
        numbers
    }

    #[tokio::test]
    async fn the_oldest_are_dropped_above_the_limit_of_bytes() {
        let queue = Queue::default();
        let fitting = (MAX_QUEUED_BYTES / (LARGE + ENTRY_BYTES)) as u64;
        for number in 0..2 * fitting {
            queue.push(large(number));
            assert!(queue.bytes() <= MAX_QUEUED_BYTES);
        }
        assert_eq!(
            drain(&queue).await,
            (fitting..2 * fitting).collect::<Vec<_>>()
        );
        assert_eq!(queue.bytes(), 0);
    }

    #[tokio::test]
    async fn what_is_kept_comes_first_again_and_counts() {
        let queue = Queue::default();
        for number in 0..4 {
            queue.push(large(number));
        }
        let batch = queue.take().await.expect("a batch");
        assert_eq!(batch.len(), 1, "one MiB at a time");
        let held = queue.bytes();
        queue.finish_batch(batch, Some(Failure::TimedOut(Duration::ZERO)));
        assert_eq!(queue.bytes(), held);
        assert_eq!(drain(&queue).await, [0, 1, 2, 3]);
    }

    #[tokio::test]
    async fn a_dropped_operation_reports_overflow() {
        let queue = Queue::default();
        let filling = async {
            for number in 0..=(MAX_QUEUED_BYTES / LARGE) {
                queue.push(save(&number.to_string(), LARGE));
            }
        };
        let waiting = queue.push_and_wait(save("one", 0), Duration::MAX);
        let (saved, ()) = tokio::join!(waiting, filling);
        assert_eq!(saved, Err(Failure::Overflow));
    }

    #[tokio::test]
    async fn events_and_messages_are_dropped_before_sessions() {
        let queue = Queue::default();
        queue.push(save("saved", 0));
        queue.push(Operation::Remove {
            session: "removed".to_owned(),
        });
        for number in 0..40 {
            queue.push(large(number));
            queue.publish(Bytes::from(vec![0; LARGE]));
        }
        let batch = queue.take().await.expect("a batch");
        let sessions: Vec<_> = batch
            .iter()
            .map(|entry| entry.operation.session())
            .collect();
        assert_eq!(sessions[..2], [Some("saved"), Some("removed")]);
    }

    #[tokio::test]
    async fn a_session_that_is_saved_again_or_removed_is_queued_once() {
        let queue = Queue::default();
        let other = save("other", 0);
        let again = async {
            queue.push(other.clone());
            for _ in 0..100 {
                queue.push(save("one", LARGE));
            }
            let batch = queue.take().await.expect("a batch");
            let operations: Vec<_> = batch.iter().map(|entry| &entry.operation).collect();
            assert_eq!(operations, [&other], "a batch has at most one MiB");
            queue.push(Operation::Remove {
                session: "one".to_owned(),
            });
            queue.finish_batch(Vec::new(), None);
            let mut batch = queue.take().await.expect("a batch");
            let remove = batch.pop().expect("an operation");
            assert_eq!(
                remove.operation,
                Operation::Remove {
                    session: "one".to_owned()
                }
            );
            assert!(batch.is_empty());
            report_outcome(remove, Ok(None));
            queue.finish_batch(Vec::new(), None);
            assert_eq!(queue.bytes(), 0);
        };
        let (saved, ()) = tokio::join!(queue.push_and_wait(save("one", 7), Duration::MAX), again);
        assert_eq!(saved, Ok(None));
    }

    fn record_use(key: &str, value: &'static str) -> Operation {
        Operation::RecordUse {
            key: key.to_owned(),
            value: Bytes::from_static(value.as_bytes()),
            lifetime: LIFETIME,
        }
    }

    #[tokio::test]
    async fn uses_are_not_queued_while_writing_fails() {
        let queue = Queue::default();
        let waits = queue.push_and_wait(record_use("one", "first"), Duration::MAX);
        let fails = async {
            let batch = queue.take().await.expect("a batch");
            queue.push(large(1));
            queue.finish_batch(batch, Some(Failure::Overflow));
        };
        let (used, ()) = tokio::join!(waits, fails);
        assert_eq!(used, Err(Failure::Overflow));
        let used = queue.push_and_wait(record_use("two", "first"), Duration::MAX);
        assert_eq!(used.await, Err(Failure::Overflow));
        assert_eq!(queue.bytes(), LARGE + ENTRY_BYTES);
        assert_eq!(drain(&queue).await, [1]);
    }

    #[tokio::test]
    async fn uses_have_a_limit_and_are_dropped_before_events() {
        let queue = Queue::default();
        queue.push(large(0));
        for number in 0..MAX_QUEUED_USES {
            queue.push(record_use(&number.to_string(), "first"));
        }
        let used = queue.push_and_wait(record_use("one", "first"), Duration::MAX);
        assert_eq!(used.await, Err(Failure::Overflow));
        let fitting = (MAX_QUEUED_BYTES / (LARGE + ENTRY_BYTES)) as u64;
        for number in 1..fitting {
            queue.push(large(number));
        }
        let numbers = drain(&queue).await;
        let events: Vec<_> = numbers.into_iter().filter(|it| *it != u64::MAX).collect();
        assert_eq!(events, (0..fitting).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn uses_of_one_key_are_not_merged_and_keep_their_order_when_sent_again() {
        let queue = Queue::default();
        let (first, second) = (record_use("one", "first"), record_use("one", "second"));
        let writing = async {
            let batch = queue.take().await.expect("a batch");
            queue.finish_batch(batch, None);
            let batch = queue.take().await.expect("a batch");
            let operations: Vec<_> = batch.iter().map(|entry| entry.operation.clone()).collect();
            assert_eq!(operations, [first.clone(), second.clone()]);
            let stored = Bytes::from_static(b"first");
            for (entry, outcome) in batch.into_iter().zip([None, Some(stored)]) {
                report_outcome(entry, Ok(outcome));
            }
            queue.finish_batch(Vec::new(), None);
        };
        let (one, two, ()) = tokio::join!(
            queue.push_and_wait(first.clone(), Duration::MAX),
            queue.push_and_wait(second.clone(), Duration::MAX),
            writing
        );
        assert_eq!(
            (one, two),
            (Ok(None), Ok(Some(Bytes::from_static(b"first"))))
        );
        assert_eq!(queue.bytes(), 0);
    }

    #[tokio::test]
    async fn a_kept_save_does_not_replace_a_later_one() {
        let queue = Queue::default();
        queue.push(save("one", 1));
        let batch = queue.take().await.expect("a batch");
        queue.push(save("one", 2));
        queue.finish_batch(batch, Some(Failure::TimedOut(Duration::ZERO)));
        let batch = queue.take().await.expect("a batch");
        let operations: Vec<_> = batch.iter().map(|entry| &entry.operation).collect();
        let mut later = save("one", 2);
        // The server may have executed the first one.
        later.may_replace(vec![Bytes::from(vec![0; 1])]);
        assert_eq!(operations, [&later]);
        queue.finish_batch(Vec::new(), None);
        assert_eq!(queue.bytes(), 0);
    }

    #[tokio::test]
    async fn a_save_may_replace_what_queued_ones_before_it_may_replace() {
        let queue = Queue::default();
        let value = |number: u8| Bytes::from(vec![number]);
        for number in 1..10 {
            queue.push(Operation::Save {
                session: "one".to_owned(),
                value: value(number),
                replaces: vec![value(number / 2)],
                lifetime: Duration::MAX,
            });
        }
        let batch = queue.take().await.expect("a batch");
        let Operation::Save { replaces, .. } = &batch[0].operation else {
            panic!("not a save");
        };
        assert_eq!(replaces[..], [1, 2, 3, 4].map(value));
        queue.finish_batch(Vec::new(), None);
        assert_eq!(queue.bytes(), 0);
    }

    #[tokio::test]
    async fn nothing_waits_while_writing_fails_but_all_is_written_later() {
        let queue = Queue::default();
        let remove = |session: &str| Operation::Remove {
            session: session.to_owned(),
        };
        let failure = Failure::Unreachable("closed".to_owned());
        let failing = async {
            let batch = queue.take().await.expect("a batch");
            queue.finish_batch(batch, Some(failure.clone()));
        };
        let (first, ()) = tokio::join!(queue.push_and_wait(remove("a"), Duration::MAX), failing);
        assert_eq!(first, Err(failure.clone()));
        let second = queue.push_and_wait(remove("b"), Duration::MAX).await;
        assert_eq!(second, Err(failure));
        let batch = queue.take().await.expect("a batch");
        let sessions: Vec<_> = batch
            .iter()
            .map(|entry| entry.operation.session())
            .collect();
        assert_eq!(sessions, [Some("a"), Some("b")]);
    }
}
