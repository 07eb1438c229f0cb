//! Compiles an expression to a program.
//!
//! An expression is compiled for reading forward. Its lookaheads are compiled for reading backward and its lookbehinds
//! for reading forward, so that one pass over the text finds every position where one of them holds (see `simulation`).

use crate::budget::StepBudget;
use crate::limits::MAX_PATTERN_OPERATIONS;

use super::PatternError;
use super::position::Direction;
use super::program::{CountedRepetition, Machine, Op, Program};
use super::set::Set;
use super::tree::{LookAround, Node, Repeat, Tree, UNBOUNDED};

/// The longest run of characters that is expanded instead of counted.
const MAX_UNROLLED_CHARS: u32 = 4;

struct Compiler<'a, 'b> {
    /// The operations of the current machine.
    ops: Vec<Op>,
    runs: Vec<CountedRepetition>,
    direction: Direction,
    /// The completed machines.
    look_arounds: Vec<Machine>,
    /// The index in `look_arounds` of each look-around of the tree, once it is compiled.
    look_around_machines: Vec<Option<u16>>,
    sets: Vec<Set>,
    /// The number of operations written and parts visited.
    size: usize,
    budget: &'a mut StepBudget<'b>,
}

/// The steps of visiting a part of an expression.
const VISIT_STEPS: usize = 4;

/// Compiles a tree to a program.
pub(super) fn compile(tree: Tree, budget: &mut StepBudget<'_>) -> Result<Program, PatternError> {
    let mut compiler = Compiler {
        ops: Vec::new(),
        runs: Vec::new(),
        direction: Direction::Forward,
        look_arounds: Vec::new(),
        look_around_machines: vec![None; tree.look_arounds],
        sets: tree.sets,
        size: 0,
        budget,
    };
    compiler.write_node(&tree.root)?;
    let mut main = compiler.finish_machine()?;
    main.is_anchored = tree.root.is_anchored();
    Ok(Program {
        main,
        look_arounds: compiler.look_arounds,
        sets: compiler.sets,
    })
}

pub(super) fn too_large_error() -> PatternError {
    PatternError {
        message: "the expression is too large, with all that it repeats",
        position: 0,
    }
}

/// An index of an operation, or of something with at least one: there are fewer than 2^16.
fn to_u16(op_index: usize) -> u16 {
    u16::try_from(op_index).unwrap_or(u16::MAX)
}

/// An index of something that takes at least one character of the schema.
fn to_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Compiler<'_, '_> {
    fn spend(&mut self) -> Result<(), PatternError> {
        self.size += 1;
        // Parts without operations, such as empty groups, are visited nonetheless.
        if self.size > MAX_PATTERN_OPERATIONS || self.budget.charge(VISIT_STEPS).is_none() {
            return Err(too_large_error());
        }
        Ok(())
    }

    fn write(&mut self, op: Op) -> Result<usize, PatternError> {
        self.spend()?;
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    fn next_op_index(&self) -> u16 {
        to_u16(self.ops.len())
    }

    fn set_op(&mut self, op_index: usize, op: Op) {
        if let Some(written) = self.ops.get_mut(op_index) {
            *written = op;
        }
    }

    /// Returns the completed machine.
    fn finish_machine(&mut self) -> Result<Machine, PatternError> {
        self.write(Op::Found)?;
        Ok(Machine::new(
            std::mem::take(&mut self.ops),
            std::mem::take(&mut self.runs),
            self.direction,
        ))
    }

    fn write_node(&mut self, node: &Node) -> Result<(), PatternError> {
        self.spend()?;
        match node {
            Node::Empty => {}
            Node::Char(char) => {
                self.write(Op::Char(*char))?;
            }
            Node::Set(index) => {
                self.write(Op::Set(to_u32(*index)))?;
            }
            Node::Start => {
                self.write(Op::Start)?;
            }
            Node::End => {
                self.write(Op::End)?;
            }
            Node::LineStart => {
                self.write(Op::LineStart)?;
            }
            Node::LineEnd => {
                self.write(Op::LineEnd)?;
            }
            Node::Boundary {
                negated,
                ignore_case,
            } => {
                self.write(Op::Boundary {
                    negated: *negated,
                    ignore_case: *ignore_case,
                })?;
            }
            Node::Sequence(nodes) => match self.direction {
                Direction::Forward => nodes.iter().try_for_each(|node| self.write_node(node))?,
                Direction::Backward => nodes
                    .iter()
                    .rev()
                    .try_for_each(|node| self.write_node(node))?,
            },
            Node::Choice(nodes) => self.write_choice(nodes)?,
            Node::LookAround(look) => {
                let index = self.write_look_around(look)?;
                self.write(Op::LookAround {
                    look: index,
                    negated: look.negated,
                })?;
            }
            Node::Repeat(repeat) => self.write_repeat(repeat)?,
        }
        Ok(())
    }

    fn write_choice(&mut self, nodes: &[Node]) -> Result<(), PatternError> {
        let mut jumps = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            if number + 1 == nodes.len() {
                self.write_node(node)?;
                break;
            }
            let split = self.write(Op::Jump(0))?;
            self.write_node(node)?;
            jumps.push(self.write(Op::Jump(0))?);
            self.set_op(split, Op::Split(to_u16(split + 1), self.next_op_index()));
        }
        for jump in jumps {
            self.set_op(jump, Op::Jump(self.next_op_index()));
        }
        Ok(())
    }

    /// Compiles a look-around, unless that has been done: in repetitions it is needed only once.
    fn write_look_around(&mut self, look: &LookAround) -> Result<u16, PatternError> {
        if let Some(Some(index)) = self.look_around_machines.get(look.index) {
            return Ok(*index);
        }
        let (ops, runs) = (
            std::mem::take(&mut self.ops),
            std::mem::take(&mut self.runs),
        );
        let direction = self.direction;
        self.direction = if look.behind {
            Direction::Forward
        } else {
            Direction::Backward
        };
        self.write_node(&look.inner)?;
        let machine = self.finish_machine()?;
        (self.ops, self.runs, self.direction) = (ops, runs, direction);
        let index = to_u16(self.look_arounds.len());
        self.look_arounds.push(machine);
        if let Some(known) = self.look_around_machines.get_mut(look.index) {
            *known = Some(index);
        }
        Ok(index)
    }

    fn write_repeat(&mut self, repeat: &Repeat) -> Result<(), PatternError> {
        if let Some(set) = self.counted_set(repeat) {
            return self.write_run(repeat, set);
        }
        let mut last = self.ops.len();
        for _ in 0..repeat.min {
            last = self.ops.len();
            self.write_node(&repeat.inner)?;
        }
        if repeat.max == UNBOUNDED {
            if repeat.min > 0 {
                // The last required round is also the one that may be repeated.
                let split = Op::Split(to_u16(last), to_u16(self.ops.len() + 1));
                self.write(split)?;
                return Ok(());
            }
            let split = self.write(Op::Jump(0))?;
            self.write_node(&repeat.inner)?;
            self.write(Op::Jump(to_u16(split)))?;
            self.set_split(split);
            return Ok(());
        }
        let mut splits = Vec::new();
        for _ in repeat.min..repeat.max {
            splits.push(self.write(Op::Jump(0))?);
            self.write_node(&repeat.inner)?;
        }
        for split in splits {
            self.set_split(split);
        }
        Ok(())
    }

    /// Makes an operation continue either with the following one, or here.
    fn set_split(&mut self, op_index: usize) {
        let split = Op::Split(to_u16(op_index + 1), self.next_op_index());
        self.set_op(op_index, split);
    }

    /// The index of the set, if the repetition is of a single character and better counted than expanded.
    fn counted_set(&mut self, repeat: &Repeat) -> Option<usize> {
        let few = if repeat.max == UNBOUNDED {
            repeat.min
        } else {
            repeat.max
        };
        if few <= MAX_UNROLLED_CHARS {
            return None;
        }
        match repeat.inner {
            Node::Set(index) => Some(index),
            Node::Char(char) => {
                self.sets.push(Set::of(char));
                Some(self.sets.len() - 1)
            }
            _ => None,
        }
    }

    fn write_run(&mut self, repeat: &Repeat, set: usize) -> Result<(), PatternError> {
        let op = Op::CountedRepetition(to_u32(self.runs.len()));
        self.write(op)?;
        self.runs.push(CountedRepetition {
            set,
            min: repeat.min,
            max: repeat.max,
            then: self.next_op_index(),
        });
        Ok(())
    }
}
