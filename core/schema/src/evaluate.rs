//! Evaluates a value against a compiled schema within a budget. The rules are in `rules`.

mod rules;

use serde_json::Value;

use crate::broken_rule::BrokenRule;
use crate::budget::StepBudget;
use crate::evaluated::{self, EvaluatedMembers};
use crate::limits::MAX_EVALUATION_DEPTH;
use crate::metaschema::{SchemaCheckError, check_schema};
use crate::program::{Node, NodeId, Program, ResourceId};
use crate::value_cost;
use crate::value_path::{PathSegment, value_path};

/// Why an evaluation stopped.
#[derive(Debug)]
pub(crate) enum EvaluationError {
    /// The value breaks a rule. The report is only written with `explain`.
    BrokenRule(Option<Box<BrokenRule>>),
    /// The budget is exhausted or the nesting limit reached, so the result is unknown.
    BudgetExhausted,
}

impl EvaluationError {
    /// The same error with `suffix` appended to its path.
    fn with_path_suffix(mut self, suffix: &str) -> Self {
        if let Self::BrokenRule(Some(broken)) = &mut self {
            broken.path.push_str(suffix);
        }
        self
    }
}

pub(crate) type EvaluationResult = Result<(), EvaluationError>;

/// Evaluates a value against a program. `explain`: whether to report the broken rule.
pub(crate) fn evaluate(
    program: &Program,
    value: &Value,
    budget: &mut StepBudget<'_>,
    explain: bool,
) -> EvaluationResult {
    let mut evaluator = Evaluator {
        program,
        budget: *budget,
        explain,
        depth: 0,
        path: Vec::new(),
        resources: Vec::new(),
    };
    let outcome = evaluator.evaluate_node(0, value, None);
    *budget = evaluator.budget;
    outcome
}

struct Evaluator<'a, 'b> {
    program: &'a Program,
    budget: StepBudget<'b>,
    explain: bool,
    depth: usize,
    /// The path into the value.
    path: Vec<PathSegment<'a>>,
    /// The resources that were entered on the way: the dynamic scope.
    resources: Vec<ResourceId>,
}

impl<'a> Evaluator<'a, '_> {
    fn charge(&mut self, steps: usize) -> EvaluationResult {
        self.budget
            .charge(steps)
            .ok_or(EvaluationError::BudgetExhausted)
    }

    fn charge_bytes(&mut self, bytes: usize) -> EvaluationResult {
        self.budget
            .charge_bytes(bytes)
            .ok_or(EvaluationError::BudgetExhausted)
    }

    /// Charges the cost of reading a complete value.
    fn charge_value(&mut self, value: &Value) -> EvaluationResult {
        value_cost::charge_value(value, &mut self.budget).ok_or(EvaluationError::BudgetExhausted)
    }

    /// Evaluates a value against a node, and records in `evaluated` which members its rules evaluate.
    fn evaluate_node(
        &mut self,
        id: NodeId,
        value: &'a Value,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        self.charge(NODE_STEPS)?;
        let program = self.program;
        let node = program
            .nodes
            .get(id as usize)
            .ok_or(EvaluationError::BudgetExhausted)?;
        let rules = match node {
            Node::Anything => return Ok(()),
            Node::Nothing => {
                return self.fail_rule("falseSchema", || "must not be present".to_owned());
            }
            Node::Schema(dialect) => {
                return match check_schema(value, *dialect, &mut self.budget) {
                    Ok(()) => Ok(()),
                    Err(SchemaCheckError::InvalidSchema(invalid)) => self
                        .fail_rule("$ref", || invalid.message)
                        .map_err(|stop| stop.with_path_suffix(&invalid.path)),
                    Err(SchemaCheckError::BudgetExhausted) => Err(EvaluationError::BudgetExhausted),
                };
            }
            Node::Rules(rules) => rules,
        };
        self.charge(rules.rules.len())?;
        if self.depth == MAX_EVALUATION_DEPTH {
            return Err(EvaluationError::BudgetExhausted);
        }
        let enters = self.resources.last() != Some(&rules.resource);
        if enters {
            self.resources.push(rules.resource);
        }
        self.depth += 1;
        let outcome = if rules.uses_evaluated || evaluated.is_some() {
            self.evaluate_and_record(rules, value, evaluated)
        } else {
            rules
                .rules
                .iter()
                .try_for_each(|rule| self.evaluate_rule(rule, rules.dialect, value, None))
        };
        self.depth -= 1;
        if enters {
            self.resources.pop();
        }
        outcome
    }

    fn evaluate_and_record(
        &mut self,
        rules: &'a crate::program::Rules,
        value: &'a Value,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        self.charge(evaluated::member_count(value) / RECORDED_MEMBERS_PER_STEP)?;
        let mut own = EvaluatedMembers::of(value);
        for rule in &rules.rules {
            self.evaluate_rule(rule, rules.dialect, value, Some(&mut own))?;
        }
        if let Some(evaluated) = evaluated {
            evaluated.extend(&own);
        }
        Ok(())
    }

    /// Evaluates a member of the value against a node.
    fn evaluate_member(
        &mut self,
        segment: PathSegment<'a>,
        id: NodeId,
        member: &'a Value,
    ) -> EvaluationResult {
        self.path.push(segment);
        let outcome = self.evaluate_node(id, member, None);
        self.path.pop();
        outcome
    }

    /// The error of a broken rule.
    fn fail_rule(
        &mut self,
        rule: &'static str,
        message: impl FnOnce() -> String,
    ) -> EvaluationResult {
        if self.explain {
            self.charge(EXPLANATION_STEPS)?;
        }
        Err(EvaluationError::BrokenRule(self.explain.then(|| {
            Box::new(BrokenRule {
                path: value_path(&self.path),
                rule,
                message: message(),
                types: None,
            })
        })))
    }

    /// Like [`Evaluator::fail_rule`], unless `is_met`.
    fn require(
        &mut self,
        is_met: bool,
        rule: &'static str,
        message: impl FnOnce() -> String,
    ) -> EvaluationResult {
        if is_met {
            Ok(())
        } else {
            self.fail_rule(rule, message)
        }
    }
}

/// The steps of trying a subschema, besides one per rule.
const NODE_STEPS: usize = 4;

/// The steps of writing the report of a broken rule, which has some kilobytes at most.
const EXPLANATION_STEPS: usize = 256;

/// How many members are recorded or merged per step.
const RECORDED_MEMBERS_PER_STEP: usize = 16;
