//! The clients of a server that are there now, and what each of them uses.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::turn_queue::PeerId;

use super::budget::{Budget, Charge, Exceeded, share_of};

/// Who a client is, for what it may use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    /// Who was authenticated.
    Principal(String),
    /// Where requests come from; of IPv6 the network, because one host has as many addresses there as it likes.
    Address(IpAddr),
}

impl ClientKey {
    /// The client at this address.
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

/// What one client uses of its server.
#[derive(Debug)]
pub(crate) struct ClientQuota {
    /// Tells clients apart; never used again.
    pub(crate) number: u64,
    /// For whom its computations are.
    pub(crate) peer: PeerId,
    /// The part of each limit that it may use.
    share: f64,
    bytes: Arc<Budget>,
    reclaimable: Mutex<Reclaimable>,
    calls: Arc<Budget>,
    connections: AtomicUsize,
}

/// Bytes that are kept for a client's convenience and can be given back when it needs them for something else.
pub(crate) trait Reclaim: Send + Sync {
    /// Gives back what it can; whether that was anything.
    fn reclaim(&self) -> bool;
}

/// What can be reclaimed, oldest first.
#[derive(Default)]
struct Reclaimable {
    queue: VecDeque<Weak<dyn Reclaim>>,
    /// At which length those that are gone are removed.
    sweep_at: usize,
}

impl std::fmt::Debug for Reclaimable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reclaimable")
            .field("len", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// At which length of the queue what can be reclaimed is first looked through for what is gone.
const FIRST_SWEEP: usize = 64;

/// How many entries with nothing to give back one charge looks at. A client may have tens of thousands, and each short
/// event past its limit would look at all of them under one lock. The queue rotates: the next charge goes on behind them.
const MAX_FRUITLESS_LOOKS: usize = 64;

impl ClientQuota {
    /// Charges bytes that are held for the client. Gives up what can be reclaimed, as far as it looks
    /// ([`MAX_FRUITLESS_LOOKS`]), if there is no room otherwise.
    pub(crate) fn hold_bytes(&self, bytes: usize) -> Result<Charge, Exceeded> {
        let mut looks = MAX_FRUITLESS_LOOKS;
        loop {
            match self.bytes.charge(bytes) {
                Ok(charge) => return Ok(charge),
                Err(exceeded) if !self.reclaim_one(&mut looks) => return Err(exceeded),
                Err(_) => {}
            }
        }
    }

    /// Charges bytes, and reclaims nothing to make room for them: for foreign threads, which must not run what frees the
    /// streams of others.
    pub(crate) fn hold_bytes_if_free(&self, bytes: usize) -> Result<Charge, Exceeded> {
        self.bytes.charge(bytes)
    }

    /// Charges bytes that only make something faster: within half of the limit, so that what is needed has room.
    pub(crate) fn hold_spare_bytes(&self, bytes: usize) -> Result<Charge, Exceeded> {
        self.bytes.charge_within_half(bytes)
    }

    /// Charges bytes that exist already and must be held.
    pub(crate) fn hold_bytes_anyway(&self, bytes: usize) -> Charge {
        self.bytes.charge_anyway(bytes)
    }

    /// How many bytes are held for the client.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.used()
    }

    /// Adds to what can be reclaimed.
    pub(crate) fn add_reclaimable(&self, reclaimable: Weak<dyn Reclaim>) {
        let mut held = self.lock_reclaimable();
        if held.queue.len() >= held.sweep_at.max(FIRST_SWEEP) {
            held.queue.retain(|held| held.strong_count() > 0);
            held.sweep_at = 2 * held.queue.len();
        }
        held.queue.push_back(reclaimable);
    }

    /// Reclaims the oldest that has something to give back, if it is among the next `looks` of those that exist. What is
    /// gone is removed and doesn't count. Reduces `looks` by those that had nothing.
    fn reclaim_one(&self, looks: &mut usize) -> bool {
        // Dropped after the lock: the last reference to a stream may hold a session.
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

    /// How much of a limit the client may use.
    pub(crate) fn share_of(&self, limit: usize) -> usize {
        share_of(limit, self.share)
    }

    /// Counts a call until what this returns is dropped.
    pub(crate) fn begin_call(&self) -> Result<Charge, Exceeded> {
        self.calls.charge(1)
    }

    /// Counts a connection until what this returns is dropped; `None` if there are `most` already.
    pub(crate) fn open_connection(self: &Arc<Self>, most: usize) -> Option<OpenConnection> {
        self.connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < most).then_some(open + 1)
            })
            .ok()?;
        Some(OpenConnection(self.clone()))
    }
}

/// A connection that counts as its client's.
pub(crate) struct OpenConnection(Arc<ClientQuota>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where requests find their client.
#[derive(Debug, Default)]
struct Table {
    clients: Mutex<HashMap<ClientKey, ClientEntry>>,
}

/// A client that is listed.
#[derive(Debug)]
struct ClientEntry {
    /// There while a request, a session or a connection uses it.
    quota: Weak<ClientQuota>,
    /// There while anything is charged to it: a response that nobody reads outlives its request.
    bytes: Weak<Budget>,
}

/// Ends the listing of a client when it is dropped, with the client's budget.
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
        // Another request of the same client may have come in between.
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

/// The clients of a server. One is listed for as long as anything is held for it.
#[derive(Debug)]
pub(crate) struct ClientTable {
    /// What one client may use of each budget: more than 0, and 1 for all of it.
    share: f64,
    bytes: Arc<Budget>,
    calls: Arc<Budget>,
    table: Arc<Table>,
    next_number: AtomicU64,
}

impl ClientTable {
    /// The clients of a server with these limits.
    pub(crate) fn new(share: f64, max_bytes: usize, max_calls: usize) -> Self {
        Self {
            share,
            bytes: Budget::of_server("bytes held for peers (max_peer_bytes)", max_bytes),
            calls: Budget::of_server("calls in flight (max_calls)", max_calls),
            table: Arc::default(),
            next_number: AtomicU64::new(1),
        }
    }

    /// The client with this key.
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
            Budget::of_client_holding(&self.bytes, self.share, Some(Box::new(listing)))
        });
        let listed_bytes = Arc::downgrade(&bytes);
        let client = self.make(self.share, bytes);
        let listed = ClientEntry {
            quota: Arc::downgrade(&client),
            bytes: listed_bytes,
        };
        clients.insert(key, listed);
        client
    }

    /// A client that is the only one to use its connection: the other end of a pipe.
    pub(crate) fn sole_client(&self) -> Arc<ClientQuota> {
        self.make(self.share, Budget::of_client(&self.bytes, self.share))
    }

    /// Clients that nothing tells apart: requests of a mount that doesn't say where they come from. Only the limits of the
    /// server hold for them.
    pub(crate) fn unknown_clients(&self) -> Arc<ClientQuota> {
        self.make(1.0, Budget::of_client(&self.bytes, 1.0))
    }

    fn make(&self, share: f64, bytes: Arc<Budget>) -> Arc<ClientQuota> {
        Arc::new(ClientQuota {
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            peer: PeerId::new(),
            share,
            bytes,
            reclaimable: Mutex::default(),
            calls: Budget::of_client(&self.calls, share),
            connections: AtomicUsize::new(0),
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
    fn requests_from_one_address_are_one_client_for_as_long_as_something_is_held() {
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
    fn what_outlives_its_request_counts_for_the_next_one() {
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
    fn clients_that_nothing_tells_apart_have_the_limits_of_the_server() {
        let table = table();
        let unknown = table.unknown_clients();
        assert!(unknown.hold_bytes(1_000).is_ok());
    }

    #[test]
    fn what_is_kept_for_convenience_makes_room() {
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
    fn a_charge_looks_at_few_entries_and_the_next_one_goes_on_behind_them() {
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
