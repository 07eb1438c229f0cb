//! Handles: tokens that stand for what C works with. They look like pointers, and none is ever followed.
//!
//! A token is a place in a table and how often that place was taken, so that one whose object has ended is told from
//! the next object's: using a handle too late is an error, not a crash.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::status::{Done, Fault};

/// The low bits of a token are its place, counted from one: no token is `NULL`.
const PLACE_BITS: u32 = if usize::BITS == 64 { 24 } else { 16 };
const PLACES: usize = (1 << PLACE_BITS) - 1;

/// What is open of one kind.
pub(crate) struct Table<T> {
    /// What it is a table of, for errors.
    what: &'static str,
    open: Mutex<HandleSlots<T>>,
}

struct HandleSlots<T> {
    places: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    taken: usize,
    value: Option<T>,
}

/// A token as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(usize);

impl Token {
    /// As the handle that C is given.
    pub(crate) fn handle<H>(self) -> *mut H {
        std::ptr::without_provenance_mut(self.0)
    }

    /// What C gave.
    pub(crate) fn of<H>(handle: *const H) -> Self {
        Self(handle.addr())
    }
}

impl<T: Clone> Table<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            open: Mutex::new(HandleSlots {
                places: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// Takes a place for what `make` makes, which is told its token.
    ///
    /// # Errors
    ///
    /// Busy: no place is left.
    pub(crate) fn open(&self, make: impl FnOnce(Token) -> T) -> Done<T> {
        let mut open = self.lock();
        let place = match open.free.pop() {
            Some(place) => place as usize,
            None if open.places.len() < PLACES => {
                open.places.push(Slot {
                    taken: 0,
                    value: None,
                });
                open.places.len() - 1
            }
            None => {
                let text = format!("no more than {PLACES} {}s can be open at once", self.what);
                return Err(Fault::new(crate::mcpl_status::MCPL_LIMIT_EXCEEDED, text));
            }
        };
        let entry = &mut open.places[place];
        entry.taken = entry.taken.wrapping_add(1);
        let value = make(Token(entry.taken << PLACE_BITS | (place + 1)));
        entry.value = Some(value.clone());
        Ok(value)
    }

    /// What the handle stands for.
    ///
    /// # Errors
    ///
    /// `NULL`, or ended.
    pub(crate) fn get<H>(&self, handle: *const H) -> Done<T> {
        if handle.is_null() {
            return Err(Fault::invalid(format!("the {} is NULL", self.what)));
        }
        let token = Token::of(handle);
        let open = self.lock();
        let found = self
            .place(&open, token)
            .and_then(|place| open.places[place].value.clone());
        found.ok_or_else(|| Fault::stale_handle(self.what))
    }

    /// Ends a token: what it stood for, if it stood for anything.
    pub(crate) fn take(&self, token: Token) -> Option<T> {
        let mut open = self.lock();
        let place = self.place(&open, token)?;
        let value = open.places[place].value.take()?;
        open.free.push(place as u32);
        Some(value)
    }

    /// As [`Self::take`], of a handle that C gave.
    ///
    /// # Errors
    ///
    /// `NULL`, or ended.
    pub(crate) fn end<H>(&self, handle: *const H) -> Done<T> {
        if handle.is_null() {
            return Err(Fault::invalid(format!("the {} is NULL", self.what)));
        }
        self.take(Token::of(handle))
            .ok_or_else(|| Fault::stale_handle(self.what))
    }

    /// All that are open and are this.
    pub(crate) fn all(&self, is: impl Fn(&T) -> bool) -> Vec<T> {
        let open = self.lock();
        let values = open.places.iter().filter_map(|place| place.value.as_ref());
        values.filter(|value| is(value)).cloned().collect()
    }

    fn place(&self, open: &HandleSlots<T>, token: Token) -> Option<usize> {
        let place = (token.0 & PLACES).checked_sub(1)?;
        let taken = open.places.get(place)?.taken;
        (taken << PLACE_BITS | (place + 1) == token.0).then_some(place)
    }

    fn lock(&self) -> MutexGuard<'_, HandleSlots<T>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_an_ended_object_is_not_the_next_objects() {
        let table = Table::new("thing");
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
    fn what_was_never_a_token_is_refused() {
        let table = Table::<u8>::new("thing");
        let null = table.get(std::ptr::null::<u8>()).unwrap_err();
        assert_eq!(null.status, crate::mcpl_status::MCPL_USAGE_ERROR);
        for number in [1, 7, usize::MAX, 1 << PLACE_BITS] {
            let other = table.get(Token(number).handle::<u8>()).unwrap_err();
            assert_eq!(other.status, crate::mcpl_status::MCPL_STALE_HANDLE);
        }
    }
}
