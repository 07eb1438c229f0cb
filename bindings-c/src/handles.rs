//! Handles: tokens for the objects that C uses. They look like pointers but are never dereferenced.
//!
//! A token holds the index of a slot in a table and how often that slot was used. The token of an ended object
//! therefore differs from that of its successor in the slot: using a stale handle is an error, not a crash.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::status::{Fault, FaultResult};

/// The low bits of a token are its slot, counted from one: no token is `NULL`.
const SLOT_BITS: u32 = if usize::BITS == 64 { 24 } else { 16 };
const MAX_SLOTS: usize = (1 << SLOT_BITS) - 1;

/// The open objects of one kind.
pub(crate) struct HandleTable<T> {
    /// What the objects are called in errors.
    what: &'static str,
    open: Mutex<HandleSlots<T>>,
}

struct HandleSlots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: usize,
    value: Option<T>,
}

/// A handle as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HandleToken(usize);

impl HandleToken {
    /// Returns the handle for C.
    pub(crate) fn handle<H>(self) -> *mut H {
        std::ptr::without_provenance_mut(self.0)
    }

    /// Returns the token of a handle that C passed.
    pub(crate) fn of<H>(handle: *const H) -> Self {
        Self(handle.addr())
    }
}

impl<T: Clone> HandleTable<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            open: Mutex::new(HandleSlots {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// Takes a slot for the object that `make` creates from its token.
    ///
    /// # Errors
    ///
    /// Limit exceeded: no slot is free.
    pub(crate) fn open(&self, make: impl FnOnce(HandleToken) -> T) -> FaultResult<T> {
        let mut open = self.lock();
        let slot = match open.free.pop() {
            Some(slot) => slot as usize,
            None if open.slots.len() < MAX_SLOTS => {
                open.slots.push(Slot {
                    generation: 0,
                    value: None,
                });
                open.slots.len() - 1
            }
            None => {
                let text = format!(
                    "no more than {MAX_SLOTS} {}s can be open at once",
                    self.what
                );
                return Err(Fault::new(crate::mcpl_status::MCPL_LIMIT_EXCEEDED, text));
            }
        };
        let entry = &mut open.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        let value = make(HandleToken(entry.generation << SLOT_BITS | (slot + 1)));
        entry.value = Some(value.clone());
        Ok(value)
    }

    /// Returns the object behind a handle.
    ///
    /// # Errors
    ///
    /// The handle is `NULL`, or its object has ended.
    pub(crate) fn get<H>(&self, handle: *const H) -> FaultResult<T> {
        if handle.is_null() {
            return Err(Fault::invalid(format!("the {} is NULL", self.what)));
        }
        let token = HandleToken::of(handle);
        let open = self.lock();
        let found = self
            .slot(&open, token)
            .and_then(|slot| open.slots[slot].value.clone());
        found.ok_or_else(|| Fault::stale_handle(self.what))
    }

    /// Ends a token. Returns its object, unless it has ended before.
    pub(crate) fn take(&self, token: HandleToken) -> Option<T> {
        let mut open = self.lock();
        let slot = self.slot(&open, token)?;
        let value = open.slots[slot].value.take()?;
        open.free.push(slot as u32);
        Some(value)
    }

    /// Like [`Self::take`], for a handle that C passed.
    ///
    /// # Errors
    ///
    /// The handle is `NULL`, or its object has ended.
    pub(crate) fn end<H>(&self, handle: *const H) -> FaultResult<T> {
        if handle.is_null() {
            return Err(Fault::invalid(format!("the {} is NULL", self.what)));
        }
        self.take(HandleToken::of(handle))
            .ok_or_else(|| Fault::stale_handle(self.what))
    }

    /// Returns all open objects that match a predicate.
    pub(crate) fn all(&self, is: impl Fn(&T) -> bool) -> Vec<T> {
        let open = self.lock();
        let values = open.slots.iter().filter_map(|slot| slot.value.as_ref());
        values.filter(|value| is(value)).cloned().collect()
    }

    fn slot(&self, open: &HandleSlots<T>, token: HandleToken) -> Option<usize> {
        let slot = (token.0 & MAX_SLOTS).checked_sub(1)?;
        let generation = open.slots.get(slot)?.generation;
        (generation << SLOT_BITS | (slot + 1) == token.0).then_some(slot)
    }

    fn lock(&self) -> MutexGuard<'_, HandleSlots<T>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_reuses_the_token_of_an_ended_object() {
        let table = HandleTable::new("thing");
        let mut first = None;
        table.open(|token| first.insert(token).0).unwrap();
        let first = first.unwrap();
        assert!(table.get(first.handle::<u8>()).is_ok());
        assert!(table.take(first).is_some());
        assert!(table.take(first).is_none());
        let mut second = None;
        table.open(|token| second.insert(token).0).unwrap();
        assert_ne!(first, second.unwrap());
        let late = table.get(first.handle::<u8>()).unwrap_err();
        assert_eq!(late.status, crate::mcpl_status::MCPL_STALE_HANDLE);
    }

    #[test]
    fn rejects_handles_that_were_never_issued() {
        let table = HandleTable::<u8>::new("thing");
        let null = table.get(std::ptr::null::<u8>()).unwrap_err();
        assert_eq!(null.status, crate::mcpl_status::MCPL_USAGE_ERROR);
        for number in [1, 7, usize::MAX, 1 << SLOT_BITS] {
            let other = table.get(HandleToken(number).handle::<u8>()).unwrap_err();
            assert_eq!(other.status, crate::mcpl_status::MCPL_STALE_HANDLE);
        }
    }
}
