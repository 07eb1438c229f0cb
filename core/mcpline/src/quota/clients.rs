//! The current clients of a server, and their usage.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use crate::fair_queue::PeerId;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::counts::{Counted, Counts, Limit};
use super::usage_limit::{Charge, Exceeded, LimitOwner, Usage, UsageLimit, share_of};

/// Identifies a client for its limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    /// An authenticated principal.
    Principal(String),
    /// The address of its requests; for IPv6 the network, because one host may use any number of addresses in it.
    Address(IpAddr),
    /// A user of this machine, by its number.
    #[cfg(all(unix, feature = "stdio"))]
    User(u32),
}

impl ClientKey {
    /// Returns the key of the client at this address.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// The beginning of the names of clients that nothing but their connection identifies.
const CONNECTION: &str = "connection ";

/// Usage of a server by one client.
#[derive(Debug)]
pub(crate) struct ClientQuota {
    /// Unique number of the client, never reused.
    pub(crate) number: u64,
    /// Identifies the client to middleware, also after it has left and come again.
    name: Box<str>,
    /// The peer that its computations are done for.
    pub(crate) peer: PeerId,
    /// The share of each limit that it may use.
    share: f64,
    bytes: Arc<UsageLimit>,
    reclaimable: Mutex<Reclaimable>,
    calls: Arc<UsageLimit>,
    connections: AtomicUsize,
    counts: Arc<Counts>,
}

/// Bytes that are kept for a client's convenience, and can be released when it needs them otherwise.
pub(crate) trait Reclaim: Send + Sync {
    /// Releases what it can. Returns whether that was anything.
    fn reclaim(&self) -> bool;
}

/// Reclaimable entries, oldest first.
#[derive(Default)]
struct Reclaimable {
    queue: VecDeque<Weak<dyn Reclaim>>,
    /// Length at which entries that are gone are removed.
    sweep_at: usize,
}

impl std::fmt::Debug for Reclaimable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reclaimable")
            .field("len", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// Length of the queue at which entries that are gone are removed for the first time.
const FIRST_SWEEP: usize = 64;

/// Maximum number of entries with nothing to release that one charge examines. A client may have tens of thousands, and
/// each short event above its limit would otherwise examine all of them under one lock. The queue rotates: the next
/// charge continues behind them.
const MAX_FRUITLESS_LOOKS: usize = 64;

impl ClientQuota {
    /// Returns a text that identifies the client, also after it has left and come again.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing but its connection identifies the client.
    pub(crate) fn is_connection(&self) -> bool {
        self.name.starts_with(CONNECTION)
    }

    /// Charges bytes that are held for the client. If there is no room, reclaims entries, up to a limit of examined
    /// ones ([`MAX_FRUITLESS_LOOKS`]).
    pub(crate) fn hold_bytes(&self, bytes: usize) -> Result<Charge, Exceeded> {
        let mut looks = MAX_FRUITLESS_LOOKS;
        loop {
            match self.bytes.charge(bytes) {
                Ok(charge) => return Ok(charge),
                Err(exceeded) if !self.reclaim_one(&mut looks) => {
                    self.counts.add_reached(Limit::PeerBytes, exceeded.level);
                    return Err(exceeded);
                }
                Err(_) => {}
            }
        }
    }

    /// Charges bytes without reclaiming others: for foreign threads, which must not run code that frees the streams of
    /// others.
    pub(crate) fn hold_bytes_if_free(&self, bytes: usize) -> Result<Charge, Exceeded> {
        let charged = self.bytes.charge(bytes);
        self.count_if_reached(Limit::PeerBytes, charged)
    }

    /// Charges bytes that only improve speed: within half of the limit, to leave room for what is necessary.
    pub(crate) fn hold_spare_bytes(&self, bytes: usize) -> Result<Charge, Exceeded> {
        self.bytes.charge_within_half(bytes)
    }

    /// Charges bytes that exist already and must be held.
    pub(crate) fn hold_bytes_anyway(&self, bytes: usize) -> Charge {
        self.bytes.charge_anyway(bytes)
    }

    /// Returns the number of bytes that are held for the client.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.used()
    }

    /// Adds a reclaimable entry.
    pub(crate) fn add_reclaimable(&self, reclaimable: Weak<dyn Reclaim>) {
        let mut held = self.lock_reclaimable();
        if held.queue.len() >= held.sweep_at.max(FIRST_SWEEP) {
            held.queue.retain(|held| held.strong_count() > 0);
            held.sweep_at = 2 * held.queue.len();
        }
        held.queue.push_back(reclaimable);
    }

    /// Reclaims the oldest entry that has something to release, if it is among the next `looks` existing ones. Entries
    /// that are gone are removed and do not count. Reduces `looks` by the entries that had nothing.
    fn reclaim_one(&self, looks: &mut usize) -> bool {
        // Dropped after the lock, because the last reference to a stream may hold a session.
        let mut looked_at = Vec::new();
        let mut held = self.lock_reclaimable();
        let mut reclaimed = false;
        for _ in 0..held.queue.len() {
            if *looks == 0 {
                break;
            }
            let Some(oldest) = held.queue.pop_front() else {
                break;
            };
            let Some(there) = oldest.upgrade() else {
                continue;
            };
            reclaimed = there.reclaim();
            looked_at.push(there);
            // It may keep more later.
            held.queue.push_back(oldest);
            if reclaimed {
                break;
            }
            *looks -= 1;
        }
        drop(held);
        reclaimed
    }

    fn lock_reclaimable(&self) -> MutexGuard<'_, Reclaimable> {
        self.reclaimable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the share of a limit that the client may use.
    pub(crate) fn share_of(&self, limit: usize) -> usize {
        share_of(limit, self.share)
    }

    /// Counts a call until the returned charge is dropped.
    pub(crate) fn begin_call(&self) -> Result<Charge, Exceeded> {
        self.count_if_reached(Limit::Calls, self.calls.charge(1))
    }

    /// Counts if a limit was reached.
    #[inline]
    fn count_if_reached(
        &self,
        limit: Limit,
        charged: Result<Charge, Exceeded>,
    ) -> Result<Charge, Exceeded> {
        if let Err(exceeded) = &charged {
            self.counts.add_reached(limit, exceeded.level);
        }
        charged
    }

    /// Returns the counters of its server.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Counts an HTTP connection until the returned guard is dropped. Returns `None` if there are `most` already.
    pub(crate) fn open_connection(self: &Arc<Self>, most: usize) -> Option<OpenConnection> {
        let mut open = self.open_pipe(most)?;
        open._counted = Some(self.counts.http_connection());
        Some(open)
    }

    /// Counts a connection that the server lists itself, until the returned guard is dropped. Returns `None` if there are
    /// `most` already.
    pub(crate) fn open_pipe(self: &Arc<Self>, most: usize) -> Option<OpenConnection> {
        let opened = self
            .connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < most).then_some(open + 1)
            });
        if opened.is_err() {
            self.counts
                .add_reached(Limit::Connections, LimitOwner::Client);
            return None;
        }
        Some(OpenConnection {
            client: self.clone(),
            _counted: None,
        })
    }
}

/// A connection that is counted for its client.
pub(crate) struct OpenConnection {
    client: Arc<ClientQuota>,
    _counted: Option<Counted>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.client.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The table of clients.
#[derive(Debug, Default)]
struct Table {
    clients: Mutex<HashMap<ClientKey, ClientEntry>>,
}

/// The entry of a client.
#[derive(Debug)]
struct ClientEntry {
    /// Alive while a request, a session or a connection uses it.
    quota: Weak<ClientQuota>,
    /// Alive while anything is charged to it: an unread response outlives its request.
    bytes: Weak<UsageLimit>,
}

/// Removes the entry of a client when dropped with the client's budget.
struct ClientEntryGuard {
    key: ClientKey,
    table: Weak<Table>,
}

impl Drop for ClientEntryGuard {
    fn drop(&mut self) {
        let Some(table) = self.table.upgrade() else {
            return;
        };
        let mut clients = table.lock();
        // Another request of the same client may have replaced the entry meanwhile.
        if clients
            .get(&self.key)
            .is_some_and(|listed| listed.bytes.strong_count() == 0)
        {
            clients.remove(&self.key);
        }
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClientKey, ClientEntry>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clients of a server. A client has an entry while anything is held for it.
#[derive(Debug)]
pub(crate) struct ClientTable {
    /// The share of each budget that one client may use: greater than 0, and 1 for all of it.
    share: f64,
    bytes: Arc<UsageLimit>,
    calls: Arc<UsageLimit>,
    table: Arc<Table>,
    next_number: AtomicU64,
    counts: Arc<Counts>,
}

impl ClientTable {
    /// Creates a table for a server with these limits.
    pub(crate) fn new(share: f64, max_bytes: usize, max_calls: usize) -> Self {
        Self {
            share,
            bytes: UsageLimit::of_server(
                "bytes held for peers (max_total_client_bytes)",
                max_bytes,
            ),
            calls: UsageLimit::of_server("calls in flight (max_calls)", max_calls),
            table: Arc::default(),
            next_number: AtomicU64::new(1),
            counts: Arc::default(),
        }
    }

    /// Returns the counters of the server.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Returns how many bytes are held for all clients.
    pub(crate) fn held_bytes(&self) -> Usage {
        self.bytes.usage()
    }

    /// Returns how many calls of all clients are in flight.
    pub(crate) fn calls(&self) -> Usage {
        self.calls.usage()
    }

    /// Returns the client with this key.
    pub(crate) fn client(&self, key: ClientKey) -> Arc<ClientQuota> {
        let mut clients = self.table.lock();
        let listed = clients.get(&key);
        if let Some(client) = listed.and_then(|listed| listed.quota.upgrade()) {
            return client;
        }
        let charged = listed.and_then(|listed| listed.bytes.upgrade());
        let bytes = charged.unwrap_or_else(|| {
            let listing = ClientEntryGuard {
                key: key.clone(),
                table: Arc::downgrade(&self.table),
            };
            UsageLimit::of_client_with_drop_guard(&self.bytes, self.share, Some(Box::new(listing)))
        });
        let listed_bytes = Arc::downgrade(&bytes);
        let name = match &key {
            ClientKey::Principal(principal) => format!("principal {principal}"),
            ClientKey::Address(address) => format!("address {address}"),
            #[cfg(all(unix, feature = "stdio"))]
            ClientKey::User(user) => format!("user {user}"),
        };
        let client = self.make(Some(name), self.share, bytes);
        let listed = ClientEntry {
            quota: Arc::downgrade(&client),
            bytes: listed_bytes,
        };
        clients.insert(key, listed);
        client
    }

    /// Creates a client that is the only one of its connection: the other end of a pipe.
    pub(crate) fn sole_client(&self) -> Arc<ClientQuota> {
        self.make(
            None,
            self.share,
            UsageLimit::of_client(&self.bytes, self.share),
        )
    }

    /// Creates the quota of clients that cannot be told apart: requests of a mount that does not provide their
    /// addresses. Only the server's limits apply to them.
    pub(crate) fn unknown_clients(&self) -> Arc<ClientQuota> {
        let name = Some("unknown".to_owned());
        self.make(name, 1.0, UsageLimit::of_client(&self.bytes, 1.0))
    }

    /// Creates a client. Without a name, it is that of its number.
    fn make(&self, name: Option<String>, share: f64, bytes: Arc<UsageLimit>) -> Arc<ClientQuota> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let name = name.unwrap_or_else(|| format!("{CONNECTION}{number}"));
        Arc::new(ClientQuota {
            number,
            name: name.into(),
            peer: PeerId::new(),
            share,
            bytes,
            reclaimable: Mutex::default(),
            calls: UsageLimit::of_client(&self.calls, share),
            connections: AtomicUsize::new(0),
            counts: self.counts.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ClientTable {
        ClientTable::new(0.25, 1_000, 8)
    }

    fn at(address: &str) -> ClientKey {
        ClientKey::of_address(address.parse().expect("an address"))
    }

    #[test]
    fn requests_from_one_address_are_one_client_while_something_is_held() {
        let table = table();
        let first = table.client(at("192.0.2.1"));
        assert_eq!(first.number, table.client(at("192.0.2.1")).number);
        assert_ne!(first.number, table.client(at("192.0.2.2")).number);
        let number = first.number;
        drop(first);
        assert!(
            table.table.lock().is_empty(),
            "nothing is kept of clients that left"
        );
        assert_ne!(number, table.client(at("192.0.2.1")).number);
    }

    #[test]
    fn charges_that_outlive_their_request_count_for_the_next_one() {
        let table = table();
        let first = table.client(at("192.0.2.1"));
        let charge = first.hold_bytes(200).expect("room");
        drop(first);
        let second = table.client(at("192.0.2.1"));
        assert!(second.hold_bytes(100).is_err(), "its share is 250");
        assert!(table.client(at("192.0.2.2")).hold_bytes(100).is_ok());
        drop(second);
        drop(charge);
        assert!(table.table.lock().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        assert_eq!(at("2001:db8::1"), at("2001:db8:0:0:ffff::2"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
    }

    #[test]
    fn a_client_is_refused_past_its_share_of_calls_and_connections() {
        let table = table();
        let greedy = table.client(at("192.0.2.1"));
        let _calls = [
            greedy.begin_call().expect("room"),
            greedy.begin_call().expect("room"),
        ];
        assert!(greedy.begin_call().is_err());
        assert!(table.client(at("192.0.2.2")).begin_call().is_ok());
        let open = greedy.open_connection(1).expect("the first");
        assert!(greedy.open_connection(1).is_none());
        drop(open);
        assert!(greedy.open_connection(1).is_some());
    }

    #[test]
    fn unknown_clients_have_the_limits_of_the_server() {
        let table = table();
        let unknown = table.unknown_clients();
        assert!(unknown.hold_bytes(1_000).is_ok());
    }

    #[test]
    fn reclaimable_bytes_make_room() {
        struct Kept(Mutex<Option<Charge>>);
        impl Reclaim for Kept {
            fn reclaim(&self) -> bool {
                self.0.lock().expect("no panic").take().is_some()
            }
        }
        let table = table();
        let client = table.client(at("192.0.2.1"));
        let kept: Vec<Arc<dyn Reclaim>> = (0..5)
            .map(|_| {
                let charge = client.hold_bytes(50).expect("room");
                let kept: Arc<dyn Reclaim> = Arc::new(Kept(Mutex::new(Some(charge))));
                client.add_reclaimable(Arc::downgrade(&kept));
                kept
            })
            .collect();
        let held = client.hold_bytes(120).expect("three make room");
        assert_eq!(client.bytes.used(), 220);
        assert!(client.hold_bytes(200).is_err());
        drop((held, kept));
        assert_eq!(client.bytes.used(), 0);
    }

    #[test]
    fn a_charge_examines_few_entries_and_the_next_one_continues_behind_them() {
        struct Entry {
            looks: Arc<AtomicUsize>,
            charge: Mutex<Option<Charge>>,
        }
        impl Reclaim for Entry {
            fn reclaim(&self) -> bool {
                self.looks.fetch_add(1, Ordering::Relaxed);
                self.charge.lock().expect("no panic").take().is_some()
            }
        }
        let table = table();
        let client = table.client(at("192.0.2.1"));
        let looks = Arc::new(AtomicUsize::new(0));
        let add = |charge| {
            let (looks, charge) = (looks.clone(), Mutex::new(charge));
            let entry: Arc<dyn Reclaim> = Arc::new(Entry { looks, charge });
            client.add_reclaimable(Arc::downgrade(&entry));
            entry
        };
        let mut entries: Vec<_> = (0..MAX_FRUITLESS_LOOKS + 10).map(|_| add(None)).collect();
        let charge = client.hold_bytes(250).expect("all of its share");
        entries.push(add(Some(charge)));
        assert!(client.hold_bytes(1).is_err());
        assert_eq!(looks.load(Ordering::Relaxed), MAX_FRUITLESS_LOOKS);
        assert!(client.hold_bytes(1).is_ok(), "the last entry makes room");
        assert_eq!(looks.load(Ordering::Relaxed), MAX_FRUITLESS_LOOKS + 11);
    }
}
