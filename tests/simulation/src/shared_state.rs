//! The store, the event log and the bus, and the connection of each replica to them.
//!
//! Their contents are those of [`MemorySharing`]; here are the delays and faults between it and the replicas, as the
//! traits in `mcpline::sharing` allow them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{
    Bus, EventLog, LoggedEvents, MemorySharing, Pending, SaveOutcome, SessionStore, SharingError,
    Subscription,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::plant::Plant;
use crate::replica::SESSION_IDLE_TIMEOUT;
use crate::world::World;

/// How long the store remembers removed sessions: a `save` of a replica that has not received yet that the session ended has
/// no effect. Longer than any delay of the bus.
const TOMBSTONE_LIFETIME: Duration = Duration::from_secs(60);

/// A replica that has a session asks the store for it, or saves it, more often than this.
const HOLDING_TIME: Duration = SESSION_IDLE_TIMEOUT.saturating_mul(5);

/// How long a replica that is cut off waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// A fault of a replica's connection has an effect for this long: the delays of the bus and the log, and waiting requests.
const AFTERMATH: Duration = Duration::from_secs(5);

type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

/// A subscriber of the bus, with the connection of its replica.
type Subscriber = (Arc<Link>, Receiver);

/// The shared state itself.
#[derive(Default)]
pub(crate) struct Store {
    memory: MemorySharing,
    removed: Mutex<Tombstones>,
    /// By replica, and by a number.
    subscribers: Mutex<BTreeMap<(u64, u64), Subscriber>>,
    holders: Mutex<Holders>,
}

/// The replicas that may have a session: those that have recently asked the store for it, or saved it. The others ignore what the
/// bus says about it, so it is not delivered to them: a thousand replicas would do little else.
#[derive(Default)]
struct Holders {
    recent: HashMap<String, Vec<u64>>,
    earlier: HashMap<String, Vec<u64>>,
    recent_since: Option<Instant>,
}

impl Holders {
    fn add(&mut self, session: &str, replica: u64) {
        let now = Instant::now();
        if now - *self.recent_since.get_or_insert(now) > HOLDING_TIME {
            self.earlier = std::mem::take(&mut self.recent);
            self.recent_since = Some(now);
        }
        if let Some(holders) = self.recent.get_mut(session) {
            if !holders.contains(&replica) {
                holders.push(replica);
            }
            return;
        }
        self.recent.insert(session.to_owned(), vec![replica]);
    }

    fn of(&self, session: &str) -> Vec<u64> {
        let both = [&self.earlier, &self.recent];
        let holders = both.into_iter().filter_map(|known| known.get(session));
        let mut holders: Vec<u64> = holders.flatten().copied().collect();
        holders.sort_unstable();
        holders.dedup();
        holders
    }
}

#[derive(Default)]
struct Tombstones {
    by_id: HashMap<String, Instant>,
    by_age: VecDeque<(Instant, String)>,
}

impl Tombstones {
    fn add(&mut self, id: &str) {
        let now = Instant::now();
        while let Some((since, _)) = self.by_age.front()
            && now - *since > TOMBSTONE_LIFETIME
            && let Some((_, id)) = self.by_age.pop_front()
        {
            self.by_id.remove(&id);
        }
        self.by_id.insert(id.to_owned(), now);
        self.by_age.push_back((now, id.to_owned()));
    }
}

/// A replica's connection to the shared state.
pub(crate) struct Link {
    replica: u64,
    world: Arc<World>,
    state: Mutex<LinkState>,
    /// Notified when the log has taken an event.
    logged: Notify,
}

#[derive(Default)]
struct LinkState {
    /// The process has ended: nothing that it does has an effect any more.
    is_dead: bool,
    cut_off_until: Option<Instant>,
    /// The bus delivers to this replica only then.
    bus_late_until: Option<Instant>,
    late: VecDeque<(Receiver, Bytes)>,
    /// What it publishes. `None` after the end of the process, which ends the task that distributes it.
    published: Option<mpsc::UnboundedSender<(Instant, Bytes)>>,
    last_published: Option<Instant>,
    /// What the log has yet to take, in order.
    log: VecDeque<LogWrite>,
    is_writing_log: bool,
    /// When operations failed or the connection was cut off, from and until.
    disturbances: Vec<(Duration, Duration)>,
}

impl LinkState {
    fn add_disturbance(&mut self, from: Duration, until: Duration) {
        match self.disturbances.last_mut() {
            Some((begin, end)) if *begin <= from && from <= *end => *end = until.max(*end),
            _ => self.disturbances.push((from, until)),
        }
    }
}

enum LogWrite {
    Append(String, u64, Bytes),
    End(String, u64),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(world: &Arc<World>, replica: u64) -> Arc<Self> {
        let (published, queue) = mpsc::unbounded_channel();
        let link = Arc::new(Self {
            replica,
            world: world.clone(),
            state: Mutex::new(LinkState {
                published: Some(published),
                ..LinkState::default()
            }),
            logged: Notify::new(),
        });
        tokio::spawn(distribute(link.clone(), queue));
        link
    }

    /// Ends the process: its memory and what it has queued are lost.
    pub(crate) fn kill(&self) {
        let mut state = lock(&self.state);
        state.is_dead = true;
        state.published = None;
        state.log.clear();
        let late = std::mem::take(&mut state.late);
        drop(state);
        drop(late);
        let mut subscribers = lock(&self.world.store.subscribers);
        let own = (self.replica, 0)..=(self.replica, u64::MAX);
        let own: Vec<_> = subscribers.range(own).map(|(key, _)| *key).collect();
        let ended: Vec<_> = own
            .iter()
            .filter_map(|key| subscribers.remove(key))
            .collect();
        drop(subscribers);
        drop(ended);
    }

    /// Cuts the replica off from the shared state.
    pub(crate) fn cut_off(&self, time: Duration) {
        let now = self.world.now();
        let mut state = lock(&self.state);
        state.cut_off_until = Some(Instant::now() + time);
        state.add_disturbance(now, now + time + AFTERMATH);
    }

    /// Lets the bus deliver to the replica only after this time.
    pub(crate) fn delay_bus(self: &Arc<Self>, time: Duration) {
        let until = Instant::now() + time;
        let now = self.world.now();
        let mut state = lock(&self.state);
        if state.bus_late_until.is_some() {
            return;
        }
        state.bus_late_until = Some(until);
        state.add_disturbance(now, now + time + AFTERMATH);
        drop(state);
        let link = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            let late = {
                let mut state = lock(&link.state);
                state.bus_late_until = None;
                std::mem::take(&mut state.late)
            };
            for (receive, message) in late {
                if !link.is_dead() {
                    receive(message);
                }
            }
        });
    }

    /// Whether something of the shared state may have failed for the replica between these times.
    pub(crate) fn was_disturbed(&self, from: Duration, until: Duration) -> bool {
        let state = lock(&self.state);
        state
            .disturbances
            .iter()
            .any(|(begin, end)| *begin <= until && *end >= from)
    }

    /// Whether the process has ended.
    pub(crate) fn is_dead(&self) -> bool {
        lock(&self.state).is_dead
    }

    fn cut_off_until(&self) -> Option<Instant> {
        let state = lock(&self.state);
        state.cut_off_until.filter(|until| Instant::now() < *until)
    }

    fn note_failure(&self, since: Duration) {
        let until = self.world.now() + AFTERMATH;
        lock(&self.state).add_disturbance(since, until);
    }

    /// Runs an operation at the store. It goes on if the caller is gone, as a command that was sent does.
    async fn operate<T, F>(
        self: &Arc<Self>,
        operation: impl FnOnce(Arc<World>) -> F + Send + 'static,
    ) -> Result<T, SharingError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SharingError>> + Send + 'static,
    {
        if self.is_dead() {
            return Err(SharingError::new("the process has ended"));
        }
        let (give, given) = oneshot::channel();
        let link = self.clone();
        tokio::spawn(async move {
            let world = link.world.clone();
            let began = world.now();
            if let Some(until) = link.cut_off_until() {
                link.note_failure(began);
                let reaches = world.happens(200);
                tokio::time::sleep(STORE_TIMEOUT).await;
                // The caller may be gone.
                let _ = give.send(Err(SharingError::new("timed out")));
                if reaches {
                    // As a command that a connection still holds when the network works again.
                    tokio::time::sleep_until(until).await;
                    if !link.is_dead() {
                        let _ = operation(world).await;
                        link.note_failure(began);
                    }
                }
                return;
            }
            world.pause(0, 4).await;
            let result = operation(world.clone()).await;
            let loses_reply = world.has_faults() && world.happens(2);
            let result = match loses_reply || link.cut_off_until().is_some() {
                true => {
                    link.note_failure(began);
                    tokio::time::sleep(STORE_TIMEOUT).await;
                    link.note_failure(began);
                    Err(SharingError::new("timed out"))
                }
                false => {
                    world.pause(0, 4).await;
                    result
                }
            };
            let _ = give.send(result);
        });
        match given.await {
            Ok(result) => result,
            Err(_) => Err(SharingError::new("the process has ended")),
        }
    }
}

/// The parts of the shared state as one replica reaches them.
pub(crate) struct Connected(pub(crate) Arc<Link>);

impl SessionStore for Connected {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        let (id, replica) = (id.to_owned(), self.0.replica);
        lock(&self.0.world.store.holders).add(&id, replica);
        Box::pin(self.0.operate(move |world| async move {
            let store = &world.store;
            if lock(&store.removed).by_id.contains_key(&id) {
                return Ok(SaveOutcome::Saved);
            }
            let mut replaces = replaces;
            if world.is_planted(Plant::StoreNotAtomic) {
                let stored = store.memory.load(&id).await?;
                if let Some(stored) = stored {
                    if stored != replaces && stored != session {
                        return Ok(SaveOutcome::Conflict(stored));
                    }
                    world.pause(1, 4).await;
                    if let Some(stored) = store.memory.load(&id).await? {
                        replaces = stored;
                    }
                }
            }
            let saved = store.memory.save(&id, session, replaces, lifetime).await;
            let is_saved = matches!(saved, Ok(SaveOutcome::Saved));
            world.trace(format_args!("store: save {id} at {replica}: {is_saved}"));
            saved
        }))
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        let (id, replica) = (id.to_owned(), self.0.replica);
        lock(&self.0.world.store.holders).add(&id, replica);
        Box::pin(self.0.operate(move |world| async move {
            let loaded = world.store.memory.load(&id).await;
            let is_known = matches!(loaded, Ok(Some(_)));
            world.trace(format_args!("store: load {id} at {replica}: {is_known}"));
            loaded
        }))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        let (id, replica) = (id.to_owned(), self.0.replica);
        lock(&self.0.world.store.holders).add(&id, replica);
        Box::pin(self.0.operate(move |world| async move {
            if world.is_planted(Plant::StoreKeepsRemoved) {
                return Ok(());
            }
            world.trace(format_args!("store: remove {id} at {replica}"));
            lock(&world.store.removed).add(&id);
            world.store.memory.remove(&id).await
        }))
    }
}

impl Link {
    fn write_log(self: &Arc<Self>, write: LogWrite) {
        let mut state = lock(&self.state);
        if state.is_dead {
            return;
        }
        state.log.push_back(write);
        if std::mem::replace(&mut state.is_writing_log, true) {
            return;
        }
        drop(state);
        let link = self.clone();
        tokio::spawn(async move {
            loop {
                if let Some(until) = link.cut_off_until() {
                    tokio::time::sleep_until(until).await;
                }
                link.world.pause(0, 4).await;
                let write = {
                    let mut state = lock(&link.state);
                    let write = state.log.pop_front();
                    state.is_writing_log = write.is_some();
                    write
                };
                match write {
                    None => break,
                    Some(LogWrite::Append(stream, number, event)) => {
                        link.world.store.memory.append(&stream, number, event);
                    }
                    Some(LogWrite::End(stream, last)) => {
                        link.world.store.memory.end(&stream, last);
                    }
                }
                link.logged.notify_waiters();
            }
            link.logged.notify_waiters();
        });
    }
}

impl EventLog for Connected {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.0
            .write_log(LogWrite::Append(stream.to_owned(), number, event));
    }

    fn end(&self, stream: &str, last: u64) {
        self.0.write_log(LogWrite::End(stream.to_owned(), last));
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            loop {
                let logged = self.0.logged.notified();
                if !lock(&self.0.state).is_writing_log {
                    return Ok(());
                }
                logged.await;
            }
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        let stream = stream.to_owned();
        Box::pin(self.0.operate(move |world| async move {
            let planted = |plant, share| world.is_planted(plant) && world.happens(share);
            let repeats = after > 0 && planted(Plant::LogRepeats, 100);
            let after = after - u64::from(repeats);
            let read = world.store.memory.read(&stream, after).await?;
            let Some(mut logged) = read else {
                return Ok(None);
            };
            let is_lossy = stream.bytes().map(u64::from).sum::<u64>() % 10 == 0;
            if logged.ended && is_lossy && world.is_planted(Plant::LogLosesTail) {
                logged.events.pop();
            }
            // A log may return a part of a long stream.
            let events = logged.events.len() as u64;
            if events > 1 && world.happens(300) {
                let part = world.between(1, events - 1);
                logged
                    .events
                    .truncate(usize::try_from(part).unwrap_or(usize::MAX));
                return Ok(Some(LoggedEvents::part(logged.events)));
            }
            Ok(Some(logged))
        }))
    }
}

impl Bus for Connected {
    fn publish(&self, message: Bytes) {
        let link = &self.0;
        if link.is_dead() || link.cut_off_until().is_some() {
            return;
        }
        let delay = Duration::from_millis(link.world.between(0, 8));
        let mut state = lock(&link.state);
        let at = state.last_published.max(Some(Instant::now() + delay));
        state.last_published = at;
        if let (Some(at), Some(published)) = (at, &state.published) {
            // The receiver lives as long as the process.
            let _ = published.send((at, message));
        }
    }

    fn subscribe(&self, receive: Receiver) -> Subscription {
        let world = self.0.world.clone();
        let key = (self.0.replica, world.number());
        let subscriber = (self.0.clone(), receive);
        lock(&world.store.subscribers).insert(key, subscriber);
        Subscription::new(move || {
            let ended = lock(&world.store.subscribers).remove(&key);
            drop(ended);
        })
    }
}

impl Store {
    /// Returns the subscribers that a message may concern.
    fn subscribers_of(&self, message: &[u8]) -> Vec<Subscriber> {
        let subscribers = lock(&self.subscribers);
        let Some(session) = session_of(message) else {
            return subscribers.values().cloned().collect();
        };
        let holders = lock(&self.holders).of(session).into_iter();
        let holders =
            holders.flat_map(|replica| subscribers.range((replica, 0)..=(replica, u64::MAX)));
        holders.map(|(_, subscriber)| subscriber.clone()).collect()
    }
}

/// Returns the session that a message of the bus is about, as the store names it.
fn session_of(message: &[u8]) -> Option<&str> {
    const MEMBER: &str = "\"session\":\"";
    let message = std::str::from_utf8(message).ok()?;
    let (_, session) = message.split_once(MEMBER)?;
    session.split('"').next()
}

/// Distributes what a replica publishes, in order.
async fn distribute(link: Arc<Link>, mut queue: mpsc::UnboundedReceiver<(Instant, Bytes)>) {
    let world = link.world.clone();
    while let Some((at, message)) = queue.recv().await {
        tokio::time::sleep_until(at).await;
        let subscribers = world.store.subscribers_of(&message);
        for (subscriber, receive) in subscribers {
            if world.is_planted(Plant::BusDrops) && world.happens(20) {
                continue;
            }
            let mut state = lock(&subscriber.state);
            let is_cut_off = state
                .cut_off_until
                .is_some_and(|until| Instant::now() < until);
            if state.is_dead || is_cut_off {
                continue;
            }
            if state.bus_late_until.is_some() {
                state.late.push_back((receive, message.clone()));
                continue;
            }
            drop(state);
            receive(message.clone());
        }
        if link.is_dead() {
            return;
        }
    }
}
