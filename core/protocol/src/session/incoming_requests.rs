//! The client's requests in flight: each ends exactly once.

use std::collections::HashMap;
use std::collections::hash_map;

use foldhash::quality::RandomState;

use crate::revision::Revision;
use crate::vocabulary::LoggingLevel;
use crate::wire::{Raw, RequestId};

use super::notification_limiter::{LogMessage, NotificationLimiter};

/// Identifies a request in flight within its session. Never reused within one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(u64);

impl RequestKey {
    fn new(index: usize, generation: u32) -> Self {
        Self((u64::from(generation) << 32) | index as u64)
    }

    fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// One request in flight. `C` is the driver's handle of the handler that serves it.
#[derive(Debug)]
pub(super) struct IncomingRequest<C> {
    pub(super) id: RequestId,
    pub(super) progress_token: Option<Raw>,
    /// The minimum level of log messages for this request, on revisions where each request has one.
    pub(super) log_level: Option<LoggingLevel>,
    /// The request's revision. `None` while it is only reserved: then nothing is sent for it.
    pub(super) revision: Option<Revision>,
    pub(super) last_progress: Option<f64>,
    pub(super) progress: NotificationLimiter,
    /// The limiter of its log messages, on revisions where each request has its own level. Most requests log nothing.
    pub(super) log: Option<Box<NotificationLimiter<LogMessage<Vec<u8>>>>>,
    pub(super) handle: Option<C>,
}

impl<C> IncomingRequest<C> {
    /// A new request, for which nothing has been sent.
    pub(super) fn new(id: RequestId, revision: Option<Revision>) -> Self {
        Self {
            id,
            progress_token: None,
            log_level: None,
            revision,
            last_progress: None,
            progress: NotificationLimiter::default(),
            log: None,
            handle: None,
        }
    }
}

/// Requests in flight, by key and by id.
#[derive(Debug)]
pub(super) struct IncomingRequests<C> {
    slots: Vec<RequestSlot<C>>,
    free: Vec<u32>,
    /// The peer chooses the ids, but only ids in flight are stored, and the hashes are seeded.
    ids: HashMap<RequestId, RequestKey, RandomState>,
}

#[derive(Debug)]
struct RequestSlot<C> {
    generation: u32,
    entry: Option<IncomingRequest<C>>,
}

impl<C> IncomingRequests<C> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: HashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Adds a request for which nothing has been sent, as [`IncomingRequest::new`] makes it. `None` if its id is
    /// already in flight.
    pub(super) fn insert(
        &mut self,
        id: &RequestId,
        revision: Option<Revision>,
    ) -> Option<(RequestKey, &mut IncomingRequest<C>)> {
        let hash_map::Entry::Vacant(vacancy) = self.ids.entry(id.clone()) else {
            return None;
        };
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.slots.push(RequestSlot {
                    generation: 0,
                    entry: None,
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        let key = RequestKey::new(index, slot.generation);
        vacancy.insert(key);
        // Made in place: an entry is large.
        let entry = slot
            .entry
            .insert(IncomingRequest::new(id.clone(), revision));
        Some((key, entry))
    }

    pub(super) fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        self.ids.get(id).copied()
    }

    pub(super) fn get_mut(&mut self, key: RequestKey) -> Option<&mut IncomingRequest<C>> {
        let slot = self.slots.get_mut(key.index())?;
        if RequestKey::new(key.index(), slot.generation) != key {
            return None;
        }
        slot.entry.as_mut()
    }

    /// Removes a request, and returns what `read` takes from it.
    pub(super) fn remove<T>(
        &mut self,
        key: RequestKey,
        read: impl FnOnce(&mut IncomingRequest<C>) -> T,
    ) -> Option<T> {
        let slot = self.slots.get_mut(key.index())?;
        if RequestKey::new(key.index(), slot.generation) != key {
            return None;
        }
        // Read in place: an entry is large, and moving it would be most of the work of ending a call.
        let entry = slot.entry.as_mut()?;
        self.ids.remove(&entry.id);
        let taken = read(entry);
        slot.entry = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index() as u32);
        Some(taken)
    }

    pub(super) fn keys(&self) -> Vec<RequestKey> {
        let mut keys: Vec<_> = self.ids.values().copied().collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestKey, &IncomingRequest<C>)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let entry = slot.entry.as_ref()?;
            Some((RequestKey::new(index, slot.generation), entry))
        })
    }

    pub(super) fn iter_mut(
        &mut self,
    ) -> impl Iterator<Item = (RequestKey, &mut IncomingRequest<C>)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(index, slot)| {
                let key = RequestKey::new(index, slot.generation);
                Some((key, slot.entry.as_mut()?))
            })
    }
}
