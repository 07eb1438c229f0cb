//! Holding a value against a program: the walk through schemas, and what it may cost. The rules are in `rules`.

mod rules;

use serde_json::Value;

use crate::broken::Broken;
use crate::budget::Budget;
use crate::check::{Failure, check};
use crate::cost;
use crate::limits::MAX_SCHEMA_NESTING;
use crate::marks::{self, Marks};
use crate::place::{Place, pointer};
use crate::program::{Node, NodeId, Program, ResourceId};

/// Why a walk ended before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A rule is broken. Told only where that was asked for.
    Broken(Option<Box<Broken>>),
    /// What may be spent is spent, or the walk is nested too deeply: nothing can be said.
    Spent,
}

impl Stop {
    /// The same, told of a place within the value that it was told of.
    fn within(mut self, place: &str) -> Self {
        if let Self::Broken(Some(broken)) = &mut self {
            broken.path.push_str(place);
        }
        self
    }
}

pub(crate) type Outcome = Result<(), Stop>;

/// Holds a value against a program; `told` is whether the reason is wanted.
pub(crate) fn evaluate(
    program: &Program,
    value: &Value,
    budget: &mut Budget<'_>,
    told: bool,
) -> Outcome {
    let mut walk = Walk {
        program,
        budget: *budget,
        told,
        depth: 0,
        path: Vec::new(),
        resources: Vec::new(),
    };
    let outcome = walk.node(0, value, None);
    *budget = walk.budget;
    outcome
}

struct Walk<'a, 'b> {
    program: &'a Program,
    budget: Budget<'b>,
    told: bool,
    depth: usize,
    /// Where in the value.
    path: Vec<Place<'a>>,
    /// The resources gone through to here: the dynamic scope.
    resources: Vec<ResourceId>,
}

impl<'a> Walk<'a, '_> {
    fn charge(&mut self, steps: usize) -> Outcome {
        self.budget.charge(steps).ok_or(Stop::Spent)
    }

    fn charge_bytes(&mut self, bytes: usize) -> Outcome {
        self.budget.charge_bytes(bytes).ok_or(Stop::Spent)
    }

    /// What it costs to read a whole value.
    fn charge_value(&mut self, value: &Value) -> Outcome {
        cost::charge_value(value, &mut self.budget).ok_or(Stop::Spent)
    }

    /// Holds a value against a node. What its rules look at is marked in `marks`.
    fn node(&mut self, id: NodeId, value: &'a Value, marks: Option<&mut Marks>) -> Outcome {
        self.charge(NODE_STEPS)?;
        let program = self.program;
        let node = program.nodes.get(id as usize).ok_or(Stop::Spent)?;
        let rules = match node {
            Node::Anything => return Ok(()),
            Node::Nothing => {
                return self.broken("falseSchema", || "must not be present".to_owned());
            }
            Node::Schema(dialect) => {
                return match check(value, *dialect, &mut self.budget) {
                    Ok(()) => Ok(()),
                    Err(Failure::Misfit(misfit)) => self
                        .broken("$ref", || misfit.message)
                        .map_err(|stop| stop.within(&misfit.place)),
                    Err(Failure::Spent) => Err(Stop::Spent),
                };
            }
            Node::Rules(rules) => rules,
        };
        self.charge(rules.rules.len())?;
        if self.depth == MAX_SCHEMA_NESTING {
            return Err(Stop::Spent);
        }
        let enters = self.resources.last() != Some(&rules.resource);
        if enters {
            self.resources.push(rules.resource);
        }
        self.depth += 1;
        let outcome = if rules.marks || marks.is_some() {
            self.marking(rules, value, marks)
        } else {
            rules
                .rules
                .iter()
                .try_for_each(|rule| self.rule(rule, rules.dialect, value, None))
        };
        self.depth -= 1;
        if enters {
            self.resources.pop();
        }
        outcome
    }

    fn marking(
        &mut self,
        rules: &'a crate::program::Rules,
        value: &'a Value,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        self.charge(marks::size(value) / MARKS_PER_STEP)?;
        let mut own = Marks::of(value);
        for rule in &rules.rules {
            self.rule(rule, rules.dialect, value, Some(&mut own))?;
        }
        if let Some(marks) = marks {
            marks.add(&own);
        }
        Ok(())
    }

    /// Holds a member of the value against a node.
    fn member(&mut self, place: Place<'a>, id: NodeId, member: &'a Value) -> Outcome {
        self.path.push(place);
        let outcome = self.node(id, member, None);
        self.path.pop();
        outcome
    }

    /// That a rule is broken.
    fn broken(&mut self, rule: &'static str, message: impl FnOnce() -> String) -> Outcome {
        if self.told {
            self.charge(TELLING_STEPS)?;
        }
        Err(Stop::Broken(self.told.then(|| {
            Box::new(Broken {
                path: pointer(&self.path),
                rule,
                message: message(),
                types: None,
            })
        })))
    }

    /// As [`Walk::broken`], unless the rule is kept.
    fn demand(
        &mut self,
        kept: bool,
        rule: &'static str,
        message: impl FnOnce() -> String,
    ) -> Outcome {
        if kept {
            Ok(())
        } else {
            self.broken(rule, message)
        }
    }
}

/// The steps of trying a subschema, beside one for each of its rules.
const NODE_STEPS: usize = 4;

/// The steps of saying which rule is broken, and where: some kilobytes are written at most.
const TELLING_STEPS: usize = 256;

/// So many marks are made or joined for one step.
const MARKS_PER_STEP: usize = 16;
