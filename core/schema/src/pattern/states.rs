//! The states of a simulation at one position: operations of a machine, each at most once.

use super::program::{MAX_BIT_STATES, Machine};

/// A set of states, from which states are taken one by one while others may be added.
pub(super) trait States {
    /// Adds a state, or the states that it leads to, unless it has been in the set since the last clearing.
    fn add(&mut self, machine: &Machine, state: u16);
    /// Takes a state that has not been taken yet.
    fn take(&mut self) -> Option<u16>;
    fn clear(&mut self);
    /// Whether no state is left to take.
    fn is_empty(&self) -> bool;
    /// Removes states that lead nowhere, if the set supports it: otherwise they would fail one by one.
    fn remove(&mut self, states: u64);
    /// The only remaining state, if it is known and one of `states`.
    fn single_remaining(&self, states: u64) -> Option<u16>;
}

/// States of a machine with at most [`MAX_BIT_STATES`] states: one bit each.
#[derive(Clone, Copy, Default)]
pub(super) struct BitStates {
    left: u64,
    seen: u64,
}

impl States for BitStates {
    #[inline]
    fn add(&mut self, machine: &Machine, state: u16) {
        let reachable = machine.reachable.get(usize::from(state)).copied();
        let new = reachable.unwrap_or_default() & !self.seen;
        self.seen |= new;
        self.left |= new;
    }

    #[inline]
    fn take(&mut self) -> Option<u16> {
        if self.left == 0 {
            return None;
        }
        let state = self.left.trailing_zeros();
        self.left &= self.left - 1;
        const { assert!(MAX_BIT_STATES <= u64::BITS as usize) };
        Some(state as u16)
    }

    #[inline]
    fn clear(&mut self) {
        *self = Self::default();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.left == 0
    }

    #[inline]
    fn remove(&mut self, states: u64) {
        self.left &= !states;
    }

    #[inline]
    fn single_remaining(&self, states: u64) -> Option<u16> {
        (self.left & states != 0 && self.left.is_power_of_two())
            .then(|| self.left.trailing_zeros() as u16)
    }
}

/// States of a machine of any size, as a list.
pub(super) struct ListStates {
    /// In the order of their addition.
    list: Vec<u16>,
    taken: usize,
    /// One bit per state.
    seen: Vec<u64>,
}

impl ListStates {
    pub(super) fn of(size: usize) -> Self {
        Self {
            list: Vec::new(),
            taken: 0,
            seen: vec![0; size.div_ceil(64)],
        }
    }
}

impl States for ListStates {
    fn add(&mut self, _: &Machine, state: u16) {
        let bit = 1 << (state & 63);
        if let Some(word) = self.seen.get_mut(usize::from(state / 64))
            && *word & bit == 0
        {
            *word |= bit;
            self.list.push(state);
        }
    }

    fn take(&mut self) -> Option<u16> {
        let state = *self.list.get(self.taken)?;
        self.taken += 1;
        Some(state)
    }

    fn clear(&mut self) {
        for state in self.list.drain(..) {
            if let Some(word) = self.seen.get_mut(usize::from(state / 64)) {
                *word = 0;
            }
        }
        self.taken = 0;
    }

    fn is_empty(&self) -> bool {
        self.taken == self.list.len()
    }

    fn remove(&mut self, _: u64) {}

    fn single_remaining(&self, _: u64) -> Option<u16> {
        None
    }
}
