//! Searches with expressions that have back references: by trying one way after another, as ECMA-262 describes it.
//!
//! That can take exponential time, so what it may take is in the hands of the caller. What is left to try, and what is to
//! be undone then, lies on a stack of its own; each step adds at most one thing to it. Only look-arounds within each other
//! recurse.

use crate::budget::Budget;
use crate::limits::MAX_PATTERN_FRAMES;

use super::folding::folded;
use super::program::{Machine, Op, Program, Run};
use super::reading::{Direction, is_boundary, is_line_end, next};

/// What is on the stack.
enum Frame {
    /// Go on at this operation, from this position.
    Resume { op: usize, at: usize },
    /// Leave a run at other positions: the next one to try is `near` where few are preferred, else `far`.
    Leave { run: usize, near: usize, far: usize },
    /// A slot held this before.
    Restore { slot: usize, position: usize },
}

/// What a slot holds that holds no position.
const NOWHERE: usize = usize::MAX;

struct Walk<'a, 'b> {
    program: &'a Program,
    text: &'a str,
    slots: Vec<usize>,
    frames: Vec<Frame>,
    budget: &'a mut Budget<'b>,
}

/// Whether the program's expression is found in a text.
pub(super) fn is_found(program: &Program, text: &str, budget: &mut Budget<'_>) -> Option<bool> {
    let mut walk = Walk {
        program,
        text,
        slots: vec![NOWHERE; program.slots],
        frames: Vec::new(),
        budget,
    };
    let mut start = 0;
    loop {
        if walk.attempt(&program.main, start)? {
            return Some(true);
        }
        match next(text, start, Direction::Forward) {
            Some((_, beyond)) if !program.main.anchored => start = beyond,
            _ => return Some(false),
        }
    }
}

impl Walk<'_, '_> {
    /// Takes steps off what may be spent. Each adds at most one thing to the stack, whose size is looked at here, too.
    fn spend(&mut self, steps: usize) -> Option<()> {
        self.budget.charge(steps)?;
        (self.frames.len() < MAX_PATTERN_FRAMES).then_some(())
    }

    /// Whether a machine is found at a position. If not, all is as before. `None` when too much has been spent.
    fn attempt(&mut self, machine: &Machine, at: usize) -> Option<bool> {
        let base = self.frames.len();
        let mut way = Some((0, at));
        loop {
            let Some((op, at)) = way else {
                match self.other_way(machine, base)? {
                    None => return Some(false),
                    other => way = other,
                }
                continue;
            };
            self.spend(1)?;
            let goes_on = match *machine.ops.get(op)? {
                Op::Found => return Some(true),
                Op::Char(char) => {
                    way = next(self.text, at, machine.direction)
                        .filter(|(next, _)| *next == char)
                        .map(|(_, beyond)| (op + 1, beyond));
                    continue;
                }
                Op::Set(index) => {
                    let set = self.program.sets.get(index as usize)?;
                    way = next(self.text, at, machine.direction)
                        .filter(|(char, _)| set.contains(*char))
                        .map(|(_, beyond)| (op + 1, beyond));
                    continue;
                }
                Op::Run(index) => {
                    way = None;
                    let index = index as usize;
                    let run = machine.runs.get(index)?;
                    if let Some((near, far)) = self.measure(run, at, machine.direction)? {
                        self.frames.push(Frame::Leave {
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
                    way = Some((usize::from(first), at));
                    continue;
                }
                Op::Jump(to) => {
                    way = Some((usize::from(to), at));
                    continue;
                }
                Op::Reference { slot, ignore_case } => {
                    way = self
                        .again(slot as usize, at, machine.direction, ignore_case)?
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
                Op::Look { look, negated } => self.look(usize::from(look), negated, at)?,
                Op::Save(slot) => {
                    self.keep(slot as usize, at)?;
                    true
                }
                Op::Clear(first, end) => {
                    for slot in first..end {
                        self.spend(1)?;
                        self.keep(usize::from(slot), NOWHERE)?;
                    }
                    true
                }
                Op::Moved(slot) => *self.slots.get(slot as usize)? != at,
            };
            way = goes_on.then_some((op + 1, at));
        }
    }

    /// Undoes what led nowhere, down to what was on the stack before, and says where to go on instead.
    fn other_way(&mut self, machine: &Machine, base: usize) -> Option<Option<(usize, usize)>> {
        while self.frames.len() > base {
            match self.frames.pop()? {
                Frame::Resume { op, at } => return Some(Some((op, at))),
                Frame::Restore { slot, position } => *self.slots.get_mut(slot)? = position,
                Frame::Leave {
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
                        self.frames.push(Frame::Leave {
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

    /// The nearest and the farthest position where a run may end that begins here.
    fn measure(
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

    /// The position beyond what a group has captured, if that comes again. What has captured nothing comes anywhere.
    fn again(
        &mut self,
        slot: usize,
        at: usize,
        direction: Direction,
        ignore_case: bool,
    ) -> Option<Option<usize>> {
        let (start, end) = (*self.slots.get(slot)?, *self.slots.get(slot + 1)?);
        if start == NOWHERE || end == NOWHERE {
            return Some(Some(at));
        }
        let captured = self.text.get(start..end)?;
        self.spend(captured.len())?;
        if ignore_case {
            return Some(self.alike(captured, at, direction));
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

    /// The position beyond what differs from a text in nothing but case.
    fn alike(&self, expected: &str, mut at: usize, direction: Direction) -> Option<usize> {
        let mut within = match direction {
            Direction::Forward => 0,
            Direction::Backward => expected.len(),
        };
        while let Some((wanted, beyond)) = next(expected, within, direction) {
            within = beyond;
            let (char, beyond) = next(self.text, at, direction)?;
            if folded(char) != folded(wanted) {
                return None;
            }
            at = beyond;
        }
        Some(at)
    }

    /// Whether a look-around goes on. What it captures stays, but there is no other way through it.
    fn look(&mut self, index: usize, negated: bool, at: usize) -> Option<bool> {
        let look = self.program.looks.get(index)?;
        let base = self.frames.len();
        let found = self.attempt(look, at)?;
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

    /// Puts a position into a slot, until what comes after has led nowhere.
    fn keep(&mut self, slot: usize, position: usize) -> Option<()> {
        let held = self.slots.get_mut(slot)?;
        let before = std::mem::replace(held, position);
        self.frames.push(Frame::Restore {
            slot,
            position: before,
        });
        Some(())
    }
}
