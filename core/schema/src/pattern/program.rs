//! Compiled expressions.

use super::position::Direction;
use super::set::Set;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: Machine,
    /// The look-arounds; those within others come first.
    pub(super) look_arounds: Vec<Machine>,
    pub(super) sets: Vec<Set>,
}

/// The operations of the whole expression, or of one look-around. They begin at 0, and each continues with the next one
/// unless it says otherwise.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) ops: Vec<Op>,
    pub(super) runs: Vec<CountedRepetition>,
    pub(super) direction: Direction,
    /// Whether it can only match where reading begins.
    pub(super) is_anchored: bool,
    /// For a machine with at most [`MAX_BIT_STATES`] operations: for each one, the operations that it leads to
    /// unconditionally, or itself, as bits.
    pub(super) reachable: Vec<u64>,
    /// Which of these continue only at the start of the text.
    pub(super) starts: u64,
    /// Which of these continue only at the end of the text.
    pub(super) ends: u64,
    /// Which of these read a character of a set and lead only to themselves, except at the ends of the text.
    pub(super) loops: u64,
}

/// The largest number of operations of a machine whose states fit into the bits of one word: nearly all expressions in
/// use.
pub(super) const MAX_BIT_STATES: usize = 64;

impl Machine {
    pub(super) fn new(ops: Vec<Op>, runs: Vec<CountedRepetition>, direction: Direction) -> Self {
        let mut machine = Self {
            ops,
            runs,
            direction,
            is_anchored: false,
            reachable: Vec::new(),
            starts: 0,
            ends: 0,
            loops: 0,
        };
        if machine.ops.len() <= MAX_BIT_STATES {
            let (op_indexes, ops) = (0..machine.ops.len(), &machine.ops);
            let all = |wanted: fn(&Op) -> bool| {
                let bit = |(op_index, op)| u64::from(wanted(op)) << op_index;
                ops.iter()
                    .enumerate()
                    .map(bit)
                    .fold(0, |all, bit| all | bit)
            };
            machine.starts = all(|op| matches!(op, Op::Start));
            machine.ends = all(|op| matches!(op, Op::End));
            let sets = all(|op| matches!(op, Op::Set(_)));
            machine.reachable = op_indexes
                .map(|op_index| reachable(ops, op_index))
                .collect();
            let after = machine.reachable.iter().skip(1).enumerate();
            let inside = !(machine.starts | machine.ends);
            machine.loops = sets
                & after
                    .filter(|&(op_index, reachable)| reachable & inside == 1 << op_index)
                    .fold(0, |loops, (op_index, _)| loops | 1 << op_index);
        }
        machine
    }
}

/// The operations that an operation of a small machine leads to unconditionally.
fn reachable(ops: &[Op], op_index: usize) -> u64 {
    let (mut reachable, mut left, mut seen) = (0, 1_u64 << op_index, 0);
    while left != 0 {
        let op_index = left.trailing_zeros();
        let bit: u64 = 1 << op_index;
        seen |= bit;
        match ops.get(op_index as usize) {
            Some(Op::Split(first, second)) => left |= 1 << first | 1 << second,
            Some(Op::Jump(to)) => left |= 1 << to,
            _ => reachable |= bit,
        }
        left &= !seen;
    }
    reachable
}

/// An operation. Indices of operations fit into 16 bits: there are at most `MAX_PATTERN_OPERATIONS`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// Reads this character.
    Char(u32),
    /// Reads a character of the set with this index.
    Set(u32),
    /// Reads consecutive characters of a set, as the run with this index describes.
    CountedRepetition(u32),
    /// Continues at two operations.
    Split(u16, u16),
    Jump(u16),
    /// Continues at the start of the text.
    Start,
    /// Continues at the end of the text.
    End,
    /// Continues at the start of a line.
    LineStart,
    /// Continues at the end of a line.
    LineEnd,
    /// Continues at a word boundary, or where there is none.
    Boundary {
        negated: bool,
        ignore_case: bool,
    },
    /// Continues where the look-around with this index holds, or where it doesn't.
    LookAround {
        look: u16,
        negated: bool,
    },
    /// A match is complete.
    Found,
}

/// Consecutive characters of one set: `[a-z]{1,63}`. Counted instead of expanded, so that bounds cost nothing.
#[derive(Debug)]
pub(super) struct CountedRepetition {
    /// An index into the sets.
    pub(super) set: usize,
    pub(super) min: u32,
    /// `UNBOUNDED` means no bound.
    pub(super) max: u32,
    /// The next operation.
    pub(super) then: u16,
}
