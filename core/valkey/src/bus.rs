//! The bus: local subscribers, and the task that reads what other processes publish.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use mcpline_runtime::WarningLimit;
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::connection::{Connection, Connector};
use crate::failure::Failure;
use crate::keys::Keys;
use crate::limits::{
    BUS_READ_TIMEOUT, MAX_BATCH_BYTES, MAX_READ_EVENTS, MAX_READ_TIMEOUTS, MAX_SENDERS, WARNINGS,
};
use crate::scripts;

/// What is called with each message.
pub(crate) type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

/// The subscribers in this process.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<State>);

#[derive(Default)]
struct State {
    by_number: HashMap<u64, Receiver>,
    next: u64,
}

impl Subscribers {
    /// Adds a subscriber; returns its number.
    pub(crate) fn add(&self, receive: Receiver) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.by_number.insert(number, receive);
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        let receive = self.lock().by_number.remove(&number);
        // Dropped outside the lock, because it may hold something that subscribes itself.
        drop(receive);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_number.is_empty()
    }

    pub(crate) fn deliver(&self, message: &Bytes) {
        let receivers: Vec<Receiver> = self.lock().by_number.values().cloned().collect();
        for receive in receivers {
            receive(message.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this process receives what others publish from now on.
#[derive(Default)]
pub(crate) struct BusReadiness {
    is_listening: AtomicBool,
    /// Whether the listener knows its position on the bus, or has failed to connect.
    has_tried: watch::Sender<bool>,
}

impl BusReadiness {
    /// Notes that there is a listener; returns whether there was none.
    pub(crate) fn listen(&self) -> bool {
        !self.is_listening.swap(true, Ordering::Relaxed)
    }

    /// Waits until the listener, if there is one, knows its position on the bus or has failed to connect, but not longer than
    /// this time.
    ///
    /// A process that reads or saves a session after it has joined receives everything that others publish about the
    /// session afterwards. Nothing is published while Valkey is unreachable.
    pub(crate) async fn wait(&self, timeout: Duration) {
        if !self.is_listening.load(Ordering::Relaxed) {
            return;
        }
        let mut has_tried = self.has_tried.subscribe();
        // Either is fine.
        let _ = tokio::time::timeout(timeout, has_tried.wait_for(|tried| *tried)).await;
    }

    fn note_tried(&self) {
        self.has_tried.send_replace(true);
    }
}

/// Reads the bus, and continues where it was after the connection is lost.
pub(crate) struct Listener {
    pub(crate) subscribers: Weak<Subscribers>,
    pub(crate) connector: Arc<Connector>,
    joined: Arc<BusReadiness>,
    pub(crate) bus: String,
    /// The name of this process on the bus.
    pub(crate) own: String,
    positions: Positions,
    /// How many messages to read at once.
    read_count: usize,
    /// How many times in a row one message was not read in time, although the server answered before.
    timeouts: u32,
    senders: Senders,
    warnings: WarningLimit,
    /// Whether the latest failure was logged, and its end was not.
    has_warned: bool,
    losses: WarningLimit,
}

impl Listener {
    pub(crate) fn new(
        subscribers: &Arc<Subscribers>,
        connector: Arc<Connector>,
        joined: Arc<BusReadiness>,
        keys: &Keys,
        own: String,
    ) -> Self {
        Self {
            subscribers: Arc::downgrade(subscribers),
            connector,
            joined,
            bus: keys.bus(),
            own,
            positions: Positions::default(),
            read_count: MAX_READ_EVENTS,
            timeouts: 0,
            senders: Senders::default(),
            warnings: WarningLimit::new(WARNINGS),
            has_warned: false,
            losses: WarningLimit::new(WARNINGS),
        }
    }

    /// Reads until the subscribers are dropped.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::default();
        while self.subscribers.strong_count() > 0 {
            let demotions = self.connector.demotions();
            let failure = match self.connector.connect(BUS_READ_TIMEOUT).await {
                Ok(mut connection) => self.follow(&mut connection, demotions, &mut backoff).await,
                Err(failure) => Err(failure),
            };
            let Err(failure) = failure else { return };
            self.joined.note_tried();
            if let Some(suppressed) = self.warnings.admit() {
                tracing::warn!(
                    error = %failure,
                    suppressed,
                    "cannot receive messages from other processes over Valkey; retrying"
                );
                self.has_warned = true;
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Reads over a connection until it fails.
    async fn follow(
        &mut self,
        connection: &mut Connection,
        mut demotions: watch::Receiver<u64>,
        backoff: &mut Backoff,
    ) -> Result<(), Failure> {
        let after = self.positions.latest.unwrap_or_default();
        let found = BusPosition::find(connection, &self.bus, after).await?;
        let mut position = self.positions.resume(found.latest);
        self.joined.note_tried();
        if self.timeouts >= MAX_READ_TIMEOUTS && position == after {
            self.timeouts = 0;
            position = self.skip_large(position, &found);
        }
        loop {
            self.positions.latest = Some(position);
            let mut wait = redis::cmd("XREAD");
            wait.arg("COUNT").arg(self.read_count);
            wait.arg("BLOCK").arg(milliseconds(BUS_READ_TIMEOUT));
            wait.arg("STREAMS").arg(&self.bus).arg(position.to_string());
            let read: Option<Streams> = {
                let mut reading = pin!(connection.query(&wait));
                let mut demoted = pin!(demotions.changed());
                poll_fn(|context| {
                    if let Poll::Ready(read) = reading.as_mut().poll(context) {
                        return Poll::Ready(read);
                    }
                    let demoted = demoted.as_mut().poll(context);
                    demoted.map(|_| Err(Failure::Demoted("as the writer found".to_owned())))
                })
                .await
            }
            .inspect_err(|failure| self.note_failed_read(failure))?;
            self.read_count = MAX_READ_EVENTS;
            self.timeouts = 0;
            backoff.reset();
            if std::mem::take(&mut self.has_warned) {
                // A warning, like the other line: Python and Node show nothing else.
                tracing::warn!("messages from other processes over Valkey are received again");
            }
            let Some(subscribers) = self.subscribers.upgrade() else {
                return Ok(());
            };
            for (id, fields) in read.into_iter().flatten().flat_map(|(_, entries)| entries) {
                position = EntryId::parse(&id)
                    .ok_or_else(|| Failure::Unreadable(format!("the id {id:?} on the bus")))?;
                self.receive(&subscribers, fields);
            }
        }
    }

    fn note_failed_read(&mut self, failure: &Failure) {
        if matches!(failure, Failure::TimedOut(_)) {
            self.timeouts += u32::from(self.read_count == 1);
            // As many messages at once may be too many for the timeout.
            self.read_count = 1;
        }
    }

    /// Returns the position after the next message if that one is large: it cannot be read within the timeout, and all later
    /// ones wait for it. A small one is not the reason for timeouts.
    fn skip_large(&self, position: EntryId, found: &BusPosition) -> EntryId {
        let Some(next) = found.next.filter(|_| found.next_bytes > MAX_BATCH_BYTES) else {
            return position;
        };
        if let Some(suppressed) = self.losses.admit() {
            tracing::warn!(
                bytes = found.next_bytes,
                suppressed,
                "dropped a message of another process: it is too large to be read from Valkey within the timeout"
            );
        }
        next
    }

    fn receive(&mut self, subscribers: &Subscribers, fields: Vec<Vec<u8>>) {
        let Some((sender, number, message)) = message(fields) else {
            tracing::debug!("ignored a message on the bus that this version cannot read");
            return;
        };
        if sender == self.own {
            // Delivered when it was published.
            return;
        }
        match self.senders.note(&sender, number) {
            SequenceCheck::Duplicate => return,
            SequenceCheck::InOrder => {}
            SequenceCheck::Gap(missed) => {
                if let Some(suppressed) = self.losses.admit() {
                    tracing::warn!(missed, suppressed, "messages of another process were lost");
                }
            }
        }
        subscribers.deliver(&message);
    }
}

type Entries = Vec<(String, Vec<Vec<u8>>)>;
type Streams = Vec<(String, Entries)>;

/// Reads the fields of a message: its sender, its number there, and the message.
fn message(fields: Vec<Vec<u8>>) -> Option<(String, u64, Bytes)> {
    let [s, sender, n, number, d, message] = <[Vec<u8>; 6]>::try_from(fields).ok()?;
    if (&s[..], &n[..], &d[..]) != (b"s", b"n", b"d") {
        return None;
    }
    let number = std::str::from_utf8(&number).ok()?.parse().ok()?;
    Some((String::from_utf8(sender).ok()?, number, message.into()))
}

/// Where the messages on the bus are.
struct BusPosition {
    latest: EntryId,
    /// The first message after a position.
    next: Option<EntryId>,
    next_bytes: usize,
}

impl BusPosition {
    /// Finds the latest message and the first one after this position. Does not transfer them, however large they are.
    async fn find(connection: &mut Connection, bus: &str, after: EntryId) -> Result<Self, Failure> {
        let mut find = redis::cmd("EVAL");
        find.arg(scripts::POSITION).arg(1).arg(bus);
        find.arg(EntryId(after.0, after.1.saturating_add(1)).to_string());
        let (latest, next, next_bytes): (String, String, usize) = connection.query(&find).await?;
        Ok(Self {
            latest: EntryId::parse(&latest).unwrap_or_default(),
            next: EntryId::parse(&next),
            next_bytes,
        })
    }
}

/// The id of an entry of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct EntryId(u64, u64);

impl EntryId {
    fn parse(id: &str) -> Option<Self> {
        let (time, number) = id.split_once('-')?;
        Some(Self(time.parse().ok()?, number.parse().ok()?))
    }
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// Positions of this process on the bus.
#[derive(Debug, Default)]
struct Positions {
    /// Where it joined: it does not receive what was published before.
    first: EntryId,
    /// The latest message that was read.
    latest: Option<EntryId>,
}

impl Positions {
    /// Returns the position after which to read on a new connection. `last` is that of the latest message on the bus.
    fn resume(&mut self, last: EntryId) -> EntryId {
        match self.latest {
            None => {
                self.first = last;
                last
            }
            // The server has lost messages, because it was restarted or a replica was promoted. Those that were read
            // before are recognized by their numbers.
            Some(latest) if last < latest => {
                self.first = self.first.min(last);
                self.first
            }
            Some(latest) => latest,
        }
    }
}

/// The numbers of the latest messages of each sender, to recognize messages that are written or read twice.
#[derive(Debug, Default)]
struct Senders {
    by_name: HashMap<String, Latest>,
    received: u64,
}

#[derive(Debug)]
struct Latest {
    number: u64,
    /// When it was received, in the count of messages.
    at: u64,
}

/// How the number of a message relates to the sender's previous one.
#[derive(Debug, PartialEq, Eq)]
enum SequenceCheck {
    /// It was received before.
    Duplicate,
    /// It follows the previous one, or is the first.
    InOrder,
    /// This many messages are missing before it.
    Gap(u64),
}

impl Senders {
    fn note(&mut self, sender: &str, number: u64) -> SequenceCheck {
        self.received += 1;
        let at = self.received;
        if let Some(latest) = self.by_name.get_mut(sender) {
            if number <= latest.number {
                return SequenceCheck::Duplicate;
            }
            let missed = number - latest.number - 1;
            *latest = Latest { number, at };
            return match missed {
                0 => SequenceCheck::InOrder,
                missed => SequenceCheck::Gap(missed),
            };
        }
        if self.by_name.len() >= MAX_SENDERS {
            let quietest = self.by_name.iter().min_by_key(|(_, latest)| latest.at);
            if let Some(quietest) = quietest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&quietest);
            }
        }
        self.by_name
            .insert(sender.to_owned(), Latest { number, at });
        SequenceCheck::InOrder
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_read_twice_are_recognized_and_gaps_counted() {
        let mut senders = Senders::default();
        assert_eq!(senders.note("a", 7), SequenceCheck::InOrder);
        assert_eq!(senders.note("b", 1), SequenceCheck::InOrder);
        assert_eq!(senders.note("a", 7), SequenceCheck::Duplicate);
        assert_eq!(senders.note("a", 8), SequenceCheck::InOrder);
        assert_eq!(senders.note("a", 11), SequenceCheck::Gap(2));
        assert_eq!(senders.note("a", 9), SequenceCheck::Duplicate);
    }

    #[test]
    fn senders_are_bounded_and_the_quietest_is_forgotten() {
        let mut senders = Senders::default();
        for sender in 0..MAX_SENDERS {
            senders.note(&sender.to_string(), 1);
        }
        senders.note("0", 2);
        senders.note("another", 1);
        assert_eq!(senders.by_name.len(), MAX_SENDERS);
        assert_eq!(senders.note("0", 2), SequenceCheck::Duplicate);
        assert_eq!(senders.note("1", 1), SequenceCheck::InOrder);
    }

    #[test]
    fn messages_before_a_process_joined_are_not_read_after_a_failover() {
        let mut positions = Positions::default();
        assert_eq!(positions.resume(EntryId(20, 0)), EntryId(20, 0));
        positions.latest = Some(EntryId(30, 0));
        assert_eq!(positions.resume(EntryId(40, 0)), EntryId(30, 0));
        assert_eq!(positions.resume(EntryId(25, 0)), EntryId(20, 0));
        // A server without its data, whose clock is behind.
        assert_eq!(positions.resume(EntryId(10, 0)), EntryId(10, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn operations_do_not_wait_for_a_listener_that_failed_to_connect() {
        let readiness = BusReadiness::default();
        assert!(readiness.listen());
        let began = tokio::time::Instant::now();
        let timeout = Duration::from_secs(2);
        readiness.wait(timeout).await;
        assert_eq!(began.elapsed(), timeout);
        readiness.note_tried();
        readiness.wait(timeout).await;
        assert_eq!(began.elapsed(), timeout);
    }

    #[test]
    fn ids_of_entries_are_ordered_by_time_and_number() {
        let [small, large] = ["9-2", "10-1"].map(|id| EntryId::parse(id).expect("an id"));
        assert!(EntryId::default() < small && small < large);
        assert_eq!(large.to_string(), "10-1");
        assert_eq!(EntryId::parse("10"), None);
    }
}
