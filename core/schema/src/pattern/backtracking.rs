//! Searches with expressions that have back references: by trying one way after another, as ECMA-262 describes it.
//!
//! That can take exponential time, so what it may take is in the hands of the caller. What is left to try, and what is to
//! be undone then, lies on a stack of its own; each step adds at most one thing to it. Only look-arounds within each other
//! recurse.

use crate::budget::Budget;
use crate::limits::MAX_PATTERN_FRAMES;

use super::folding::fold_case;
use super::position::{Direction, is_boundary, is_line_end, next};
use super::program::{Machine, Op, Program, Run};

/// An entry of the backtracking stack.
enum Frame {
    /// Go on at this operation, from this position.
    Resume { op: usize, at: usize },
    /// Leave a run at other positions: the next one to try is `near` where few are preferred, else `far`.
    ExitRun { run: usize, near: usize, far: usize },
    /// A slot held this before.
    Restore { slot: usize, position: usize },
}

/// The value of a slot without a position.
const UNSET_SLOT: usize = usize::MAX;

struct Backtracker<'a, 'b> {
    program: &'a Program,
    text: &'a str,
    slots: Vec<usize>,
    frames: Vec<Frame>,
    budget: &'a mut Budget<'b>,
}

/// Whether the program's expression is found in a text.
pub(super) fn is_found(program: &Program, text: &str, budget: &mut Budget<'_>) -> Option<bool> {
    let mut backtracker = Backtracker {
        program,
        text,
        slots: vec![UNSET_SLOT; program.slots],
        frames: Vec::new(),
        budget,
    };
    let mut start = 0;
    loop {
        if backtracker.match_at(&program.main, start)? {
            return Some(true);
        }
        match next(text, start, Direction::Forward) {
            Some((_, beyond)) if !program.main.is_anchored => start = beyond,
            _ => return Some(false),
        }
    }
}

impl Backtracker<'_, '_> {
    /// Takes steps off what may be spent. Each adds at most one thing to the stack, whose size is looked at here, too.
    fn spend(&mut self, steps: usize) -> Option<()> {
        self.budget.charge(steps)?;
        (self.frames.len() < MAX_PATTERN_FRAMES).then_some(())
    }

    /// Whether a machine is found at a position. If not, all is as before. `None` when too much has been spent.
    fn match_at(&mut self, machine: &Machine, at: usize) -> Option<bool> {
        let base = self.frames.len();
        let mut next_state = Some((0, at));
        loop {
            let Some((op, at)) = next_state else {
                match self.backtrack(machine, base)? {
                    None => return Some(false),
                    other => next_state = other,
                }
                continue;
            };
            self.spend(1)?;
            let goes_on = match *machine.ops.get(op)? {
                Op::Found => return Some(true),
                Op::Char(char) => {
                    next_state = next(self.text, at, machine.direction)
                        .filter(|(next, _)| *next == char)
                        .map(|(_, beyond)| (op + 1, beyond));
                    continue;
                }
                Op::Set(index) => {
                    let set = self.program.sets.get(index as usize)?;
                    next_state = next(self.text, at, machine.direction)
                        .filter(|(char, _)| set.contains(*char))
                        .map(|(_, beyond)| (op + 1, beyond));
                    continue;
                }
                Op::Run(index) => {
                    next_state = None;
                    let index = index as usize;
                    let run = machine.runs.get(index)?;
                    if let Some((near, far)) = self.run_ends(run, at, machine.direction)? {
                        self.frames.push(Frame::ExitRun {
                            run: index,
                            near,
                            far,
                        });
                    }
                    continue;
                }
                Op::Split(first, second) => {
                    let op = usize::from(second);
                    self.frames.push(Frame::Resume { op, at });
                    next_state = Some((usize::from(first), at));
                    continue;
                }
                Op::Jump(to) => {
                    next_state = Some((usize::from(to), at));
                    continue;
                }
                Op::Reference { slot, ignore_case } => {
                    next_state = self
                        .match_back_reference(slot as usize, at, machine.direction, ignore_case)?
                        .map(|beyond| (op + 1, beyond));
                    continue;
                }
                Op::Start => at == 0,
                Op::End => at == self.text.len(),
                Op::LineStart => is_line_end(self.text, at, Direction::Backward),
                Op::LineEnd => is_line_end(self.text, at, Direction::Forward),
                Op::Boundary {
                    negated,
                    ignore_case,
                } => is_boundary(self.text, at, ignore_case) != negated,
                Op::LookAround { look, negated } => {
                    self.match_look_around(usize::from(look), negated, at)?
                }
                Op::Save(slot) => {
                    self.save_slot(slot as usize, at)?;
                    true
                }
                Op::Clear(first, end) => {
                    for slot in first..end {
                        self.spend(1)?;
                        self.save_slot(usize::from(slot), UNSET_SLOT)?;
                    }
                    true
                }
                Op::CheckProgress(slot) => *self.slots.get(slot as usize)? != at,
            };
            next_state = goes_on.then_some((op + 1, at));
        }
    }

    /// Undoes the failed attempt down to the stack height `base`, and returns the state to continue with.
    fn backtrack(&mut self, machine: &Machine, base: usize) -> Option<Option<(usize, usize)>> {
        while self.frames.len() > base {
            match self.frames.pop()? {
                Frame::Resume { op, at } => return Some(Some((op, at))),
                Frame::Restore { slot, position } => *self.slots.get_mut(slot)? = position,
                Frame::ExitRun {
                    run: index,
                    mut near,
                    mut far,
                } => {
                    self.spend(1)?;
                    let run = machine.runs.get(index)?;
                    let at = if run.greedy { far } else { near };
                    if near != far {
                        if run.greedy {
                            far = next(self.text, far, machine.direction.opposite())?.1;
                        } else {
                            near = next(self.text, near, machine.direction)?.1;
                        }
                        self.frames.push(Frame::ExitRun {
                            run: index,
                            near,
                            far,
                        });
                    }
                    return Some(Some((usize::from(run.then), at)));
                }
            }
        }
        Some(None)
    }

    /// The nearest and the farthest end of a run that begins here.
    fn run_ends(
        &mut self,
        run: &Run,
        mut at: usize,
        direction: Direction,
    ) -> Option<Option<(usize, usize)>> {
        let set = self.program.sets.get(run.set)?;
        let mut count = 0;
        let mut near = (run.min == 0).then_some(at);
        while count < run.max {
            match next(self.text, at, direction) {
                Some((char, beyond)) if set.contains(char) => at = beyond,
                _ => break,
            }
            self.spend(1)?;
            count += 1;
            if count == run.min {
                near = Some(at);
            }
        }
        Some(near.map(|near| (near, at)))
    }

    /// The position after a repetition of what a group has captured. A group without a capture matches the empty text.
    fn match_back_reference(
        &mut self,
        slot: usize,
        at: usize,
        direction: Direction,
        ignore_case: bool,
    ) -> Option<Option<usize>> {
        let (start, end) = (*self.slots.get(slot)?, *self.slots.get(slot + 1)?);
        if start == UNSET_SLOT || end == UNSET_SLOT {
            return Some(Some(at));
        }
        let captured = self.text.get(start..end)?;
        self.spend(captured.len())?;
        if ignore_case {
            return Some(self.match_ignoring_case(captured, at, direction));
        }
        Some(match direction {
            Direction::Forward => self
                .text
                .get(at..)?
                .starts_with(captured)
                .then(|| at + captured.len()),
            Direction::Backward => self
                .text
                .get(..at)?
                .ends_with(captured)
                .then(|| at - captured.len()),
        })
    }

    /// The position after a text that differs from `expected` only in case.
    fn match_ignoring_case(
        &self,
        expected: &str,
        mut at: usize,
        direction: Direction,
    ) -> Option<usize> {
        let mut within = match direction {
            Direction::Forward => 0,
            Direction::Backward => expected.len(),
        };
        while let Some((wanted, beyond)) = next(expected, within, direction) {
            within = beyond;
            let (char, beyond) = next(self.text, at, direction)?;
            if fold_case(char) != fold_case(wanted) {
                return None;
            }
            at = beyond;
        }
        Some(at)
    }

    /// Whether a look-around holds. Its captures stay; it is not backtracked into.
    fn match_look_around(&mut self, index: usize, negated: bool, at: usize) -> Option<bool> {
        let look = self.program.look_arounds.get(index)?;
        let base = self.frames.len();
        let found = self.match_at(look, at)?;
        if found && negated {
            while self.frames.len() > base {
                if let Some(Frame::Restore { slot, position }) = self.frames.pop() {
                    *self.slots.get_mut(slot)? = position;
                }
            }
        } else if found {
            let mut kept = base;
            for number in base..self.frames.len() {
                if matches!(self.frames.get(number), Some(Frame::Restore { .. })) {
                    self.frames.swap(kept, number);
                    kept += 1;
                }
            }
            self.frames.truncate(kept);
        }
        Some(found != negated)
    }

    /// Stores a position in a slot; backtracking restores the previous one.
    fn save_slot(&mut self, slot: usize, position: usize) -> Option<()> {
        let held = self.slots.get_mut(slot)?;
        let before = std::mem::replace(held, position);
        self.frames.push(Frame::Restore {
            slot,
            position: before,
        });
        Some(())
    }
}
