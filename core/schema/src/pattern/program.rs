//! What an expression is compiled to.

use super::position::Direction;
use super::set::Set;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: Machine,
    /// The look-arounds; those within others come before them.
    pub(super) look_arounds: Vec<Machine>,
    pub(super) sets: Vec<Set>,
}

/// The operations for the whole expression, or for one look-around. They begin at 0, and each goes on with the one after it
/// unless it says something else.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) ops: Vec<Op>,
    pub(super) runs: Vec<Run>,
    pub(super) direction: Direction,
    /// Whether it can be found where reading begins only.
    pub(super) is_anchored: bool,
    /// Of a machine with no more than [`MAX_BIT_STATES`] operations: for each, those that it leads to without a question asked, or
    /// itself, as bits.
    pub(super) reachable: Vec<u64>,
    /// Which of these go on at the text's start only.
    pub(super) starts: u64,
    /// Which of these go on at the text's end only.
    pub(super) ends: u64,
    /// Which of these read a character of a set and lead to themselves alone, but for the text's ends.
    pub(super) loops: u64,
}

/// Most operations of a machine whose states fit the bits of one word: nearly all that people write.
pub(super) const MAX_BIT_STATES: usize = 64;

impl Machine {
    pub(super) fn new(ops: Vec<Op>, runs: Vec<Run>, direction: Direction) -> Self {
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

/// The operations that one of a few leads to without a question asked.
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

/// One operation. Places among the operations fit 16 bits: there are no more than `MAX_PATTERN_OPERATIONS`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// Reads this character.
    Char(u32),
    /// Reads a character of the set of this index.
    Set(u32),
    /// Reads characters of a set, as many as the run of this index says.
    Run(u32),
    /// Goes on at two places.
    Split(u16, u16),
    Jump(u16),
    /// Goes on at the text's start.
    Start,
    /// Goes on at the text's end.
    End,
    /// Goes on where a line starts.
    LineStart,
    /// Goes on where a line ends.
    LineEnd,
    /// Goes on where a word begins or ends, or where none does.
    Boundary {
        negated: bool,
        ignore_case: bool,
    },
    /// Goes on where the look-around of this index is found, or where it is not.
    LookAround {
        look: u16,
        negated: bool,
    },
    /// It has been found.
    Found,
}

/// Characters of one set in a row: `[a-z]{1,63}`. Counted instead of written out, so that a bound costs nothing.
#[derive(Debug)]
pub(super) struct Run {
    /// An index into the sets.
    pub(super) set: usize,
    pub(super) min: u32,
    /// `UNBOUNDED` is no bound.
    pub(super) max: u32,
    /// Where to go on.
    pub(super) then: u16,
}
