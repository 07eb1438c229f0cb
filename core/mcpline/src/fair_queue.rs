//! A queue in which peers take turns: one entry of each in turn, however many entries a peer has.
//!
//! Used wherever peers compete within a process: for processors ([`offload`](crate::offload)), and for worker threads
//! and event loops of foreign code ([`foreign`](crate::foreign)). A peer that fills a queue then only delays its own
//! entries.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// A participant of turns: a client of a server, or the server of a client.
///
/// For a server's clients it is the unit of limits: a client with many sessions or connections is one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerId(u64);

impl PeerId {
    /// Creates a peer that differs from all others of this process.
    pub fn new() -> Self {
        // Only counted.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for PeerId {
    fn default() -> Self {
        Self::new()
    }
}

/// Entries of peers. The next entry is the oldest one of the peer whose turn it is. Of peers without entries only the
/// last one is kept: most queues are empty most of the time, and used by one peer.
#[derive(Debug)]
pub struct FairQueue<T> {
    /// The slots of peers in the order of their turns, each with the turn's number. Turns of peers whose entries were
    /// removed stay until they come up or there are many.
    order: VecDeque<(u64, usize)>,
    slots: Vec<PeerEntries<T>>,
    /// Unused slots.
    free: Vec<usize>,
    slot_of: HashMap<PeerId, usize, BuildHasherDefault<PeerHasher>>,
    /// The slot of the peer whose entry was added last.
    last: usize,
    /// The slot of the kept peer without entries.
    empty: Option<usize>,
    /// Number of the next turn or entry.
    next: u64,
    len: usize,
}

/// The entries of a peer.
#[derive(Debug)]
struct PeerEntries<T> {
    peer: Option<PeerId>,
    /// Number of the peer's turn.
    turn: u64,
    /// Numbered entries, oldest first.
    queue: VecDeque<(u64, T)>,
}

/// Maximum number of entries whose memory an empty peer keeps.
const KEPT_ENTRIES: usize = 64;

/// Number of turns from which stale ones are removed.
const FEWEST_STALE_TURNS: usize = 16;

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
            slot_of: HashMap::default(),
            last: 0,
            empty: None,
            next: 0,
            len: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Adds an entry behind the others of its peer. A peer that had none gets its turn after the other peers. Returns
    /// the entry's number.
    pub fn push(&mut self, peer: PeerId, entry: T) -> u64 {
        self.next += 1;
        let number = self.next;
        let at = match self.slots.get(self.last) {
            Some(slot) if slot.peer == Some(peer) => self.last,
            _ => self.slot_for(peer),
        };
        self.last = at;
        let slot = &mut self.slots[at];
        if slot.queue.is_empty() {
            slot.turn = number;
            self.order.push_back((number, at));
            if self.empty == Some(at) {
                self.empty = None;
            }
        }
        slot.queue.push_back((number, entry));
        self.len += 1;
        number
    }

    /// Takes the next entry. Its peer's next turn comes after those of the others.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_with_peer().map(|(_, entry)| entry)
    }

    /// Like [`Self::pop`], and returns the peer as well.
    pub fn pop_with_peer(&mut self) -> Option<(PeerId, T)> {
        loop {
            let (turn, at) = self.order.pop_front()?;
            if let Some(taken) = self.take(turn, at) {
                return Some(taken);
            }
        }
    }

    /// Like [`Self::pop_with_peer`], for the first peer in turn that matches. The turns of the others do not change.
    pub fn pop_of(&mut self, mut is_one: impl FnMut(PeerId) -> bool) -> Option<(PeerId, T)> {
        let place = self.place_of(&mut is_one)?;
        let (turn, at) = self.order.remove(place)?;
        self.take(turn, at)
    }

    /// Returns whether a matching peer has an entry.
    pub fn has_entry_of(&self, mut is_one: impl FnMut(PeerId) -> bool) -> bool {
        self.place_of(&mut is_one).is_some()
    }

    /// Returns the position of the first matching peer in the order.
    fn place_of(&self, is_one: &mut impl FnMut(PeerId) -> bool) -> Option<usize> {
        self.order.iter().position(|(turn, at)| {
            let slot = &self.slots[*at];
            slot.turn == *turn && !slot.queue.is_empty() && slot.peer.is_some_and(&mut *is_one)
        })
    }

    /// Takes the oldest entry of the peer with this turn, unless the turn is stale.
    fn take(&mut self, turn: u64, at: usize) -> Option<(PeerId, T)> {
        let slot = &mut self.slots[at];
        let peer = slot.peer.filter(|_| slot.turn == turn)?;
        let (_, entry) = slot.queue.pop_front()?;
        if slot.queue.is_empty() {
            self.has_emptied(at);
        } else {
            self.next += 1;
            slot.turn = self.next;
            self.order.push_back((self.next, at));
        }
        self.len -= 1;
        Some((peer, entry))
    }

    /// Removes the entry with this number, if it is still there.
    pub fn remove(&mut self, peer: PeerId, number: u64) -> Option<T> {
        let at = *self.slot_of.get(&peer)?;
        let slot = &mut self.slots[at];
        let place = slot
            .queue
            .binary_search_by_key(&number, |(number, _)| *number);
        let (_, removed) = slot.queue.remove(place.ok()?)?;
        self.len -= 1;
        if slot.queue.is_empty() {
            self.has_emptied(at);
            if self.order.len() > 2 * self.slot_of.len() + FEWEST_STALE_TURNS {
                let slots = &self.slots;
                self.order
                    .retain(|(turn, at)| slots[*at].turn == *turn && !slots[*at].queue.is_empty());
            }
        }
        Some(removed)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the slot of a peer, and assigns one if it has none.
    fn slot_for(&mut self, peer: PeerId) -> usize {
        *self.slot_of.entry(peer).or_insert_with(|| {
            let slot = PeerEntries {
                peer: Some(peer),
                turn: 0,
                queue: VecDeque::new(),
            };
            match self.free.pop() {
                Some(at) => {
                    self.slots[at] = slot;
                    at
                }
                None => {
                    self.slots.push(slot);
                    self.slots.len() - 1
                }
            }
        })
    }

    /// Keeps a peer without entries in place of the previous one.
    fn has_emptied(&mut self, at: usize) {
        if self.slots[at].queue.capacity() > KEPT_ENTRIES {
            self.slots[at].queue = VecDeque::new();
        }
        let Some(before) = self.empty.replace(at) else {
            return;
        };
        let slot = &mut self.slots[before];
        slot.queue = VecDeque::new();
        if let Some(peer) = slot.peer.take() {
            self.slot_of.remove(&peer);
        }
        self.free.push(before);
    }

    /// Returns the numbers of kept peers and turns.
    #[cfg(test)]
    fn kept(&self) -> (usize, usize) {
        (self.slot_of.len(), self.order.len())
    }
}

/// Hashes the numbers of peers. They are counted within the process, so nothing else can choose them.
#[derive(Debug, Default, Clone, Copy)]
struct PeerHasher(u64);

impl Hasher for PeerHasher {
    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(queue: &mut FairQueue<usize>) -> Vec<usize> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn peers_take_turns_however_many_entries_a_peer_has() {
        let mut queue = FairQueue::default();
        let peers = [PeerId::new(), PeerId::new(), PeerId::new()];
        for (peer, count) in [(0, 1_000), (1, 2), (2, 1)] {
            for _ in 0..count {
                queue.push(peers[peer], peer);
            }
        }
        assert_eq!(queue.len(), 1_003);
        let order = taken(&mut queue);
        assert_eq!(order[..6], [0, 1, 2, 0, 1, 0]);
        assert_eq!(order.len(), 1_003);
        assert_eq!(queue.kept(), (1, 0));
    }

    #[test]
    fn a_later_peer_waits_for_one_entry_of_each_other_peer() {
        let mut queue = FairQueue::default();
        let (flood, neighbour) = (PeerId::new(), PeerId::new());
        for _ in 0..1_000 {
            queue.push(flood, 0);
        }
        for _ in 0..10 {
            assert_eq!(queue.pop(), Some(0));
            queue.push(neighbour, 1);
            assert_eq!(queue.pop(), Some(0));
            assert_eq!(queue.pop(), Some(1));
        }
    }

    #[test]
    fn takes_entries_of_some_peers_without_changing_the_turns_of_others() {
        let mut queue = FairQueue::default();
        let peers = [PeerId::new(), PeerId::new(), PeerId::new()];
        for entry in 0..9 {
            queue.push(peers[entry % 3], entry);
        }
        let absent = PeerId::new();
        assert!(!queue.has_entry_of(|peer| peer == absent));
        assert_eq!(queue.pop_of(|peer| peer == absent), None);
        assert!(queue.has_entry_of(|peer| peer != peers[0]));
        // The second peer's: its next turn is after the third's.
        assert_eq!(queue.pop_of(|peer| peer != peers[0]), Some((peers[1], 1)));
        assert_eq!(taken(&mut queue), [0, 2, 4, 3, 5, 7, 6, 8]);
        assert_eq!(queue.kept(), (1, 0));
    }

    #[test]
    fn entries_of_one_peer_come_in_their_order() {
        let mut queue = FairQueue::default();
        let (peer, other) = (PeerId::new(), PeerId::new());
        for number in 0..100 {
            queue.push(peer, number);
            queue.push(other, 1_000 + number);
        }
        let order = taken(&mut queue);
        let (own, others): (Vec<_>, Vec<_>) = order.into_iter().partition(|entry| *entry < 1_000);
        assert_eq!(own, (0..100).collect::<Vec<_>>());
        assert_eq!(others, (1_000..1_100).collect::<Vec<_>>());
    }

    #[test]
    fn removed_entries_leave_nothing_behind() {
        let mut queue = FairQueue::default();
        let (peer, other) = (PeerId::new(), PeerId::new());
        let first = queue.push(peer, 1);
        let second = queue.push(peer, 2);
        queue.push(other, 3);
        assert_eq!(queue.remove(peer, first), Some(1));
        assert_eq!(queue.remove(peer, first), None);
        assert_eq!(queue.remove(other, second), None);
        assert_eq!(queue.remove(peer, second), Some(2));
        // The old turn does not count for later entries.
        queue.push(peer, 4);
        assert_eq!(taken(&mut queue), [3, 4]);
        assert_eq!(queue.kept(), (1, 0));
        queue.push(other, 5);
        for _ in 0..1_000 {
            let peer = PeerId::new();
            let number = queue.push(peer, 6);
            assert_eq!(queue.remove(peer, number), Some(6));
        }
        let (peers, turns) = queue.kept();
        assert_eq!(peers, 2);
        assert!(turns <= 4 + FEWEST_STALE_TURNS, "{turns} turns are kept");
    }
}
