//! Holding a value against a program: the walk through schemas, and what it may cost. The rules are in `rules`.

mod rules;

use serde_json::Value;

use crate::check::check;
use crate::limits::MAX_SCHEMA_NESTING;
use crate::marks::{self, Marks};
use crate::place::{Place, pointer};
use crate::program::{Node, NodeId, Program, ResourceId};
use crate::types::Types;

/// Why a value doesn't fit, told.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// A JSON pointer into the value.
    pub(crate) path: String,
    /// The keyword.
    pub(crate) rule: &'static str,
    /// What the rule demands.
    pub(crate) message: String,
    /// The types that would fit, if that is the rule.
    pub(crate) types: Option<Types>,
}

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

/// What a walk may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// How often a subschema is tried, or something of that size is done.
    pub(crate) tries: usize,
    /// Steps of regular expressions.
    pub(crate) steps: usize,
}

/// Holds a value against a program; `told` is whether the reason is wanted.
pub(crate) fn evaluate(program: &Program, value: &Value, budget: Budget, told: bool) -> Outcome {
    let mut walk = Walk {
        program,
        budget,
        told,
        depth: 0,
        path: Vec::new(),
        resources: Vec::new(),
    };
    walk.node(0, value, None)
}

struct Walk<'a> {
    program: &'a Program,
    budget: Budget,
    told: bool,
    depth: usize,
    /// Where in the value.
    path: Vec<Place<'a>>,
    /// The resources gone through to here: the dynamic scope.
    resources: Vec<ResourceId>,
}

impl<'a> Walk<'a> {
    fn spend(&mut self, tries: usize) -> Outcome {
        match self.budget.tries.checked_sub(tries) {
            Some(left) => {
                self.budget.tries = left;
                Ok(())
            }
            None => Err(Stop::Spent),
        }
    }

    /// Holds a value against a node. What its rules look at is marked in `marks`.
    fn node(&mut self, id: NodeId, value: &'a Value, marks: Option<&mut Marks>) -> Outcome {
        self.spend(1)?;
        let program = self.program;
        let node = program.nodes.get(id as usize).ok_or(Stop::Spent)?;
        let rules = match node {
            Node::Anything => return Ok(()),
            Node::Nothing => {
                return self.broken("falseSchema", || "must not be present".to_owned());
            }
            Node::Schema(dialect) => {
                self.spend(deep_size(value))?;
                return check(value, *dialect).or_else(|misfit| {
                    self.broken("$ref", || misfit.message)
                        .map_err(|stop| stop.within(&misfit.place))
                });
            }
            Node::Rules(rules) => rules,
        };
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
        self.spend(marks::size(value) / MARKS_PER_TRY)?;
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
    fn broken(&self, rule: &'static str, message: impl FnOnce() -> String) -> Outcome {
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
    fn demand(&self, kept: bool, rule: &'static str, message: impl FnOnce() -> String) -> Outcome {
        if kept {
            Ok(())
        } else {
            self.broken(rule, message)
        }
    }
}

/// So many marks are made or joined for one try.
const MARKS_PER_TRY: usize = 64;

/// How many values there are in a value, itself included.
fn deep_size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(deep_size).sum(),
        Value::Object(members) => members.values().map(deep_size).sum(),
        _ => 0,
    }
}
