//! Searches for an expression by simulating all states at once.
//!
//! A match may begin at each position, so all beginnings are simulated together, and each state counts once per
//! position: time is linear in the text. Look-arounds are searched for before the expressions that contain them: a
//! lookbehind holds where a forward search for it ends, and a lookahead where a backward search does. The result for
//! each is one bit per position.

use crate::budget::StepBudget;

use super::counter::RepetitionCounter;
use super::position::{Direction, is_boundary, is_line_end, next};
use super::program::{MAX_BIT_STATES, Machine, Op, Program};
use super::states::{BitStates, ListStates, States};

/// One bit for each position where a look-around may hold.
type PositionBits = Vec<u64>;

struct Simulation<'a> {
    program: &'a Program,
    text: &'a str,
    /// The positions where each look-around holds, as far as they have been searched for.
    look_around_positions: Vec<PositionBits>,
}

/// Whether the program's expression matches anywhere in a text.
pub(super) fn is_found(program: &Program, text: &str, budget: &mut StepBudget<'_>) -> Option<bool> {
    let mut simulation = Simulation {
        program,
        text,
        look_around_positions: Vec::new(),
    };
    for look in &program.look_arounds {
        let mut positions = vec![0; text.len() / 64 + 1];
        simulation.run(look, Some(&mut positions), budget)?;
        simulation.look_around_positions.push(positions);
    }
    simulation.run(&program.main, None, budget)
}

impl Simulation<'_> {
    /// Runs a machine. With `positions` it runs to the end, and records the positions of all matches there.
    fn run(
        &self,
        machine: &Machine,
        positions: Option<&mut PositionBits>,
        budget: &mut StepBudget<'_>,
    ) -> Option<bool> {
        let size = machine.ops.len();
        if size <= MAX_BIT_STATES {
            self.simulate(
                [BitStates::default(), BitStates::default()],
                machine,
                positions,
                budget,
            )
        } else {
            self.simulate(
                [ListStates::of(size), ListStates::of(size)],
                machine,
                positions,
                budget,
            )
        }
    }

    fn simulate<S: States>(
        &self,
        [mut now, mut then]: [S; 2],
        machine: &Machine,
        mut positions: Option<&mut PositionBits>,
        budget: &mut StepBudget<'_>,
    ) -> Option<bool> {
        let (text, sets) = (self.text, self.program.sets.as_slice());
        let mut counters = vec![RepetitionCounter::default(); machine.runs.len()];
        // The counters with open runs.
        let mut counting: Vec<usize> = Vec::new();
        let mut at = match machine.direction {
            Direction::Forward => 0,
            Direction::Backward => text.len(),
        };
        let mut count: u32 = 0;
        // In this case a state that only leads to itself need not be left for each character.
        let straight = machine.is_anchored && machine.direction == Direction::Forward;
        now.add(machine, 0);
        let found = 'text: loop {
            // A position costs a step even if nothing is left to visit: one bit per position is stored.
            budget.charge(1)?;
            if at != 0 {
                now.remove(machine.starts);
            }
            if at != text.len() {
                now.remove(machine.ends);
            }
            if straight
                && counting.is_empty()
                && let Some(state) = now.single_remaining(machine.loops)
                && let Some(Op::Set(index)) = machine.ops.get(usize::from(state))
            {
                let set = sets.get(*index as usize)?;
                let rest = text.as_bytes().get(at..)?.iter();
                let passed = rest.take_while(|byte| set.contains_ascii(**byte)).count();
                if passed > 0 {
                    budget.charge(passed)?;
                    count = count.checked_add(u32::try_from(passed).ok()?)?;
                    at += passed;
                    now.clear();
                    now.add(machine, state + 1);
                }
            }
            let ahead = next(text, at, machine.direction);
            while let Some(state) = now.take() {
                budget.charge(1)?;
                let op = machine.ops.get(usize::from(state))?;
                let goes_on = match *op {
                    Op::Char(char) => {
                        if ahead.is_some_and(|(next, _)| next == char) {
                            then.add(machine, state + 1);
                        }
                        false
                    }
                    Op::Set(index) => {
                        if let Some((char, _)) = ahead
                            && sets.get(index as usize)?.contains(char)
                        {
                            then.add(machine, state + 1);
                        }
                        false
                    }
                    Op::CountedRepetition(index) => {
                        let index = index as usize;
                        let (run, counter) = (machine.runs.get(index)?, counters.get_mut(index)?);
                        if !counter.is_counting() {
                            counting.push(index);
                        }
                        counter.begin(run, count);
                        run.min == 0
                    }
                    Op::Split(first, second) => {
                        now.add(machine, first);
                        now.add(machine, second);
                        false
                    }
                    Op::Jump(to) => {
                        now.add(machine, to);
                        false
                    }
                    Op::Start => at == 0,
                    Op::End => at == text.len(),
                    Op::LineStart => is_line_end(text, at, Direction::Backward),
                    Op::LineEnd => is_line_end(text, at, Direction::Forward),
                    Op::Boundary {
                        negated,
                        ignore_case,
                    } => is_boundary(text, at, ignore_case) != negated,
                    Op::LookAround { look, negated } => {
                        let positions = self.look_around_positions.get(usize::from(look))?;
                        (positions.get(at / 64)? >> (at % 64) & 1 != 0) != negated
                    }
                    Op::Found => match &mut positions {
                        Some(positions) => {
                            *positions.get_mut(at / 64)? |= 1 << (at % 64);
                            false
                        }
                        None => break 'text true,
                    },
                };
                if goes_on {
                    now.add(machine, state + 1);
                }
            }
            let Some((char, beyond)) = ahead else {
                break false;
            };
            at = beyond;
            count = count.checked_add(1)?;
            // Last, after all runs that begin here have begun.
            let mut number = 0;
            while let Some(&index) = counting.get(number) {
                budget.charge(1)?;
                let (run, counter) = (machine.runs.get(index)?, counters.get_mut(index)?);
                if !sets.get(run.set)?.contains(char) {
                    counter.end();
                } else if counter.advance(run, count) {
                    then.add(machine, run.then);
                }
                if counter.is_counting() {
                    number += 1;
                } else {
                    counting.swap_remove(number);
                }
            }
            std::mem::swap(&mut now, &mut then);
            then.clear();
            if !machine.is_anchored {
                now.add(machine, 0);
            } else if now.is_empty() && counting.is_empty() {
                break false;
            }
        };
        Some(found)
    }
}
