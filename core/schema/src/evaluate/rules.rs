//! Evaluates the rules.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{EvaluationError, EvaluationResult, Evaluator, RECORDED_MEMBERS_PER_STEP};
use crate::dialect::Dialect;
use crate::equality::{are_equal, are_unique};
use crate::evaluated::EvaluatedMembers;
use crate::messages::AlternativeReasons;
use crate::pattern::Pattern;
use crate::program::{Contains, If, Items, Named, Node, NodeId, Properties, Rule};
use crate::types::Types;
use crate::value_path::PathSegment;
use crate::{messages, number};

impl<'a> Evaluator<'a, '_> {
    /// Evaluates a value against a rule of a schema in this dialect.
    pub(super) fn evaluate_rule(
        &mut self,
        rule: &'a Rule,
        dialect: Dialect,
        value: &'a Value,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        match rule {
            Rule::Type(types) => self.evaluate_types(*types, dialect, value),
            Rule::Const(expected) => {
                if self.is_equal(expected, value)? {
                    return Ok(());
                }
                self.charge_reported_values(std::slice::from_ref(expected))?;
                self.fail_rule("const", || messages::constant(expected))
            }
            Rule::Enum(options) => {
                for option in options {
                    if self.is_equal(option, value)? {
                        return Ok(());
                    }
                }
                self.charge_reported_values(options)?;
                self.fail_rule("enum", || messages::options(options))
            }
            Rule::Maximum(_)
            | Rule::Minimum(_)
            | Rule::ExclusiveMaximum(_)
            | Rule::ExclusiveMinimum(_)
            | Rule::MultipleOf(_) => match value {
                Value::Number(value) => self.evaluate_number_rule(rule, value),
                _ => Ok(()),
            },
            Rule::MaxLength(_) | Rule::MinLength(_) | Rule::Pattern(_) | Rule::Format(_) => {
                match value {
                    Value::String(value) => self.evaluate_string_rule(rule, value),
                    _ => Ok(()),
                }
            }
            Rule::MaxItems(_)
            | Rule::MinItems(_)
            | Rule::UniqueItems
            | Rule::Items(_)
            | Rule::Contains(_)
            | Rule::UnevaluatedItems(_) => match value {
                Value::Array(items) => self.evaluate_array_rule(rule, dialect, items, evaluated),
                _ => Ok(()),
            },
            Rule::MaxProperties(_)
            | Rule::MinProperties(_)
            | Rule::Required(_)
            | Rule::DependentRequired(..)
            | Rule::PropertyNames(_)
            | Rule::Properties(_)
            | Rule::UnevaluatedProperties(_) => match value {
                Value::Object(members) => self.evaluate_object_rule(rule, members, evaluated),
                _ => Ok(()),
            },
            _ => self.evaluate_composition(rule, value, evaluated),
        }
    }

    fn evaluate_types(
        &mut self,
        types: Types,
        dialect: Dialect,
        value: &Value,
    ) -> EvaluationResult {
        if types.matches(value, dialect) {
            return Ok(());
        }
        self.fail_rule("type", || messages::types(types))
            .map_err(|mut stop| {
                if let EvaluationError::BrokenRule(Some(broken)) = &mut stop {
                    broken.types = Some(types);
                }
                stop
            })
    }

    fn evaluate_number_rule(&mut self, rule: &'a Rule, value: &Number) -> EvaluationResult {
        let (is_met, name, demand, limit) = match rule {
            Rule::Maximum(limit) => {
                let is_met = number::compare(value, limit).is_le();
                (is_met, "maximum", "at most", limit)
            }
            Rule::Minimum(limit) => {
                let is_met = number::compare(value, limit).is_ge();
                (is_met, "minimum", "at least", limit)
            }
            Rule::ExclusiveMaximum(limit) => {
                let is_met = number::compare(value, limit).is_lt();
                (is_met, "exclusiveMaximum", "less than", limit)
            }
            Rule::ExclusiveMinimum(limit) => {
                let is_met = number::compare(value, limit).is_gt();
                (is_met, "exclusiveMinimum", "greater than", limit)
            }
            Rule::MultipleOf(of) => {
                let is_met = number::is_multiple(value, of);
                (is_met, "multipleOf", "a multiple of", of)
            }
            _ => return Ok(()),
        };
        self.require(is_met, name, || messages::bound(demand, limit))
    }

    fn evaluate_string_rule(&mut self, rule: &'a Rule, value: &str) -> EvaluationResult {
        match rule {
            Rule::MaxLength(most) => {
                let is_met = self.compare_length(value, *most)?.is_le();
                self.require(is_met, "maxLength", || {
                    messages::characters("at most", *most)
                })
            }
            Rule::MinLength(least) => {
                let is_met = self.compare_length(value, *least)?.is_ge();
                self.require(is_met, "minLength", || {
                    messages::characters("at least", *least)
                })
            }
            Rule::Pattern(pattern) => {
                let is_met = self.matches(&pattern.value, value)?;
                self.require(is_met, "pattern", || messages::pattern(&pattern.name))
            }
            Rule::Format(format) => {
                let is_met = format
                    .fits(value, &mut self.budget)
                    .ok_or(EvaluationError::BudgetExhausted)?;
                self.require(is_met, "format", || {
                    format!("must be a valid {}", format.name())
                })
            }
            _ => Ok(()),
        }
    }

    /// Compares the number of characters with a limit. They are only counted if the number of bytes doesn't decide: a
    /// character has one to four.
    fn compare_length(&mut self, text: &str, limit: u64) -> Result<Ordering, EvaluationError> {
        let bytes = text.len() as u64;
        if bytes < limit {
            return Ok(Ordering::Less);
        }
        if bytes.div_ceil(4) > limit {
            return Ok(Ordering::Greater);
        }
        self.charge_bytes(text.len())?;
        Ok((text.chars().count() as u64).cmp(&limit))
    }

    fn is_equal(&mut self, left: &Value, right: &Value) -> Result<bool, EvaluationError> {
        are_equal(left, right, &mut self.budget).ok_or(EvaluationError::BudgetExhausted)
    }

    /// Charges the cost of reading the values that a message repeats.
    fn charge_reported_values(&mut self, values: &[Value]) -> EvaluationResult {
        let values = if self.explain { values } else { &[] };
        let mut examined = values.iter().take(messages::MAX_EXAMINED_ITEMS);
        examined.try_for_each(|value| self.charge_value(value))
    }

    /// Charges the cost of looking a name up in an object, or among `sorted` sorted names.
    fn charge_lookup(&mut self, name: &str, sorted: usize) -> EvaluationResult {
        let compared = 1 + sorted.checked_ilog2().unwrap_or_default() as usize;
        self.charge_bytes(name.len().saturating_mul(compared))
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Result<bool, EvaluationError> {
        pattern
            .is_found(text, &mut self.budget)
            .ok_or(EvaluationError::BudgetExhausted)
    }

    fn evaluate_array_rule(
        &mut self,
        rule: &'a Rule,
        dialect: Dialect,
        items: &'a [Value],
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let count = items.len() as u64;
        match rule {
            Rule::MaxItems(most) => self.require(count <= *most, "maxItems", || {
                messages::items("at most", *most)
            }),
            Rule::MinItems(least) => self.require(count >= *least, "minItems", || {
                messages::items("at least", *least)
            }),
            Rule::UniqueItems => {
                let is_met =
                    are_unique(items, &mut self.budget).ok_or(EvaluationError::BudgetExhausted)?;
                self.require(is_met, "uniqueItems", || {
                    "must not have equal items".to_owned()
                })
            }
            Rule::Items(rule) => self.items(rule, items, evaluated),
            Rule::Contains(rule) => {
                // Since 2020-12, items that match count as evaluated.
                let evaluated = evaluated.filter(|_| dialect == Dialect::Draft202012);
                self.contains(rule, items, evaluated)
            }
            Rule::UnevaluatedItems(node) => self.unevaluated_items(*node, items, evaluated),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        rule: &'a Items,
        items: &'a [Value],
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let prefix = rule.prefix.iter().zip(items).enumerate();
        for (index, (node, item)) in prefix {
            self.evaluate_member(PathSegment::Index(index), *node, item)?;
        }
        let prefix = rule.prefix.len().min(items.len());
        if let Some(rest) = rule.rest {
            if self.is_nothing(rest) && items.len() > prefix {
                return self.fail_rule(rule.keyword, || {
                    messages::items("at most", rule.prefix.len() as u64)
                });
            }
            for (index, item) in items.iter().enumerate().skip(prefix) {
                self.evaluate_member(PathSegment::Index(index), rest, item)?;
            }
        }
        if let Some(evaluated) = evaluated {
            match rule.rest {
                Some(_) => evaluated.insert_all(),
                None => (0..prefix).for_each(|index| evaluated.insert(index)),
            }
        }
        Ok(())
    }

    fn contains(
        &mut self,
        rule: &'a Contains,
        items: &'a [Value],
        mut evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let mut found = 0;
        for (index, item) in items.iter().enumerate() {
            // Without a maximum and a record, reaching the minimum decides.
            if found >= rule.min && rule.max.is_none() && evaluated.is_none() {
                break;
            }
            if self.fits(rule.node, item, None)? {
                found += 1;
                if let Some(evaluated) = &mut evaluated {
                    evaluated.insert(index);
                }
            }
        }
        if found < rule.min {
            return match rule.min {
                1 => self.fail_rule("contains", || "must contain a matching item".to_owned()),
                min => self.fail_rule("minContains", || messages::matching("at least", min)),
            };
        }
        let most = rule.max.unwrap_or(u64::MAX);
        self.require(found <= most, "maxContains", || {
            messages::matching("at most", most)
        })
    }

    fn unevaluated_items(
        &mut self,
        node: NodeId,
        items: &'a [Value],
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let Some(evaluated) = evaluated else {
            return Ok(());
        };
        self.charge(items.len() / RECORDED_MEMBERS_PER_STEP)?;
        for (index, item) in items.iter().enumerate() {
            if evaluated.contains(index) {
                continue;
            }
            if self.is_nothing(node) {
                return self.fail_rule("unevaluatedItems", || {
                    "must not have further items".to_owned()
                });
            }
            self.evaluate_member(PathSegment::Index(index), node, item)?;
        }
        evaluated.insert_all();
        Ok(())
    }

    fn evaluate_object_rule(
        &mut self,
        rule: &'a Rule,
        members: &'a Map<String, Value>,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let count = members.len() as u64;
        match rule {
            Rule::MaxProperties(most) => self.require(count <= *most, "maxProperties", || {
                messages::properties("at most", *most)
            }),
            Rule::MinProperties(least) => self.require(count >= *least, "minProperties", || {
                messages::properties("at least", *least)
            }),
            Rule::Required(names) => {
                for name in names {
                    self.charge_lookup(name, 0)?;
                    if !members.contains_key(name) {
                        return self.fail_rule("required", || messages::missing(name));
                    }
                }
                Ok(())
            }
            Rule::DependentRequired(keyword, lists) => {
                self.dependent_required(keyword, lists, members)
            }
            Rule::PropertyNames(node) => self.property_names(*node, members),
            Rule::Properties(rule) => self.properties(rule, members, evaluated),
            Rule::UnevaluatedProperties(node) => {
                self.unevaluated_properties(*node, members, evaluated)
            }
            _ => Ok(()),
        }
    }

    fn dependent_required(
        &mut self,
        keyword: &'static str,
        lists: &[Named<Vec<String>>],
        members: &Map<String, Value>,
    ) -> EvaluationResult {
        for list in lists {
            self.charge_lookup(&list.name, 0)?;
            if !members.contains_key(&list.name) {
                continue;
            }
            for name in &list.value {
                self.charge_lookup(name, 0)?;
                if !members.contains_key(name) {
                    return self.fail_rule(keyword, || messages::missing_beside(name, &list.name));
                }
            }
        }
        Ok(())
    }

    fn property_names(
        &mut self,
        node: NodeId,
        members: &'a Map<String, Value>,
    ) -> EvaluationResult {
        for name in members.keys() {
            self.charge_bytes(name.len())?;
            let name = Value::String(name.clone());
            // The name is not part of the value, so it is evaluated separately.
            let mut evaluator = Evaluator {
                program: self.program,
                budget: self.budget,
                explain: self.explain,
                depth: self.depth,
                path: Vec::new(),
                resources: std::mem::take(&mut self.resources),
            };
            let outcome = evaluator.evaluate_node(node, &name, None);
            self.budget = evaluator.budget;
            self.resources = evaluator.resources;
            outcome.map_err(|stop| self.as_property_name_error(stop))?;
        }
        Ok(())
    }

    /// Turns an error in a property name into one of the rule `propertyNames`.
    fn as_property_name_error(&mut self, stop: EvaluationError) -> EvaluationError {
        match stop {
            EvaluationError::BrokenRule(Some(reason)) => {
                match self.fail_rule("propertyNames", || messages::property_name(&reason.message)) {
                    Err(stop) => stop,
                    Ok(()) => EvaluationError::BrokenRule(Some(reason)),
                }
            }
            stop => stop,
        }
    }

    fn properties(
        &mut self,
        rule: &'a Properties,
        members: &'a Map<String, Value>,
        mut evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let refuses_others = rule.additional.is_some_and(|node| self.is_nothing(node));
        let mut unexpected = Vec::new();
        for (index, (name, member)) in members.iter().enumerate() {
            self.charge_lookup(name, rule.named.len())?;
            let segment = PathSegment::Name(name);
            let mut known = false;
            if let Ok(at) = rule
                .named
                .binary_search_by(|named| named.name.as_str().cmp(name))
            {
                known = true;
                self.evaluate_member(segment, rule.named[at].value, member)?;
            }
            for pattern in &rule.patterns {
                let (pattern, node) = &pattern.value;
                if self.matches(pattern, name)? {
                    known = true;
                    self.evaluate_member(segment, *node, member)?;
                }
            }
            match rule.additional {
                Some(_) if !known && refuses_others => unexpected.push(name.as_str()),
                Some(node) if !known => self.evaluate_member(segment, node, member)?,
                _ => {}
            }
            if let Some(evaluated) = &mut evaluated
                && (known || rule.additional.is_some())
            {
                evaluated.insert(index);
            }
        }
        self.require(unexpected.is_empty(), "additionalProperties", || {
            messages::unexpected(&unexpected)
        })
    }

    fn unevaluated_properties(
        &mut self,
        node: NodeId,
        members: &'a Map<String, Value>,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let Some(evaluated) = evaluated else {
            return Ok(());
        };
        let refuses = self.is_nothing(node);
        let mut unexpected = Vec::new();
        self.charge(members.len() / RECORDED_MEMBERS_PER_STEP)?;
        for (index, (name, member)) in members.iter().enumerate() {
            if evaluated.contains(index) {
                continue;
            }
            if refuses {
                unexpected.push(name.as_str());
            } else {
                self.evaluate_member(PathSegment::Name(name), node, member)?;
            }
        }
        evaluated.insert_all();
        self.require(unexpected.is_empty(), "unevaluatedProperties", || {
            messages::unexpected(&unexpected)
        })
    }

    fn evaluate_composition(
        &mut self,
        rule: &'a Rule,
        value: &'a Value,
        mut evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        match rule {
            Rule::AllOf(nodes) => nodes
                .iter()
                .try_for_each(|node| self.evaluate_node(*node, value, evaluated.as_deref_mut())),
            Rule::AnyOf(nodes) => self.evaluate_alternatives(nodes, false, value, evaluated),
            Rule::OneOf(nodes) => self.evaluate_alternatives(nodes, true, value, evaluated),
            Rule::Not(node) => {
                let is_met = !self.fits(*node, value, None)?;
                self.require(is_met, "not", || {
                    "must not fit the excluded schema".to_owned()
                })
            }
            Rule::If(rule) => self.evaluate_conditional(rule, value, evaluated),
            Rule::Ref(node) => self.evaluate_node(*node, value, evaluated),
            Rule::DynamicRef(node, anchor) => {
                self.charge_lookup(anchor, self.resources.len())?;
                self.charge(self.resources.len())?;
                let node = self.resolve_dynamic_anchor(anchor).unwrap_or(*node);
                self.evaluate_node(node, value, evaluated)
            }
            Rule::DependentSchemas(schemas) => {
                let Value::Object(members) = value else {
                    return Ok(());
                };
                for schema in schemas {
                    self.charge_lookup(&schema.name, 0)?;
                    if members.contains_key(&schema.name) {
                        self.evaluate_node(schema.value, value, evaluated.as_deref_mut())?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a value matches at least one of the nodes; exactly one with `only`.
    fn evaluate_alternatives(
        &mut self,
        nodes: &'a [NodeId],
        only: bool,
        value: &'a Value,
        mut evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let mut reasons = AlternativeReasons::default();
        let mut fits = false;
        for node in nodes {
            match self.evaluate_node(*node, value, evaluated.as_deref_mut()) {
                Ok(()) if only && fits => {
                    return self.fail_rule("oneOf", || {
                        "must fit exactly one of the alternatives, but fits several".to_owned()
                    });
                }
                // A second match only matters for the record of evaluated members.
                Ok(()) if !only && evaluated.is_none() => return Ok(()),
                Ok(()) => fits = true,
                Err(EvaluationError::BrokenRule(reason)) => {
                    if let Some(reason) = reason {
                        reasons.add(&reason);
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
        let rule = if only { "oneOf" } else { "anyOf" };
        self.require(fits, rule, || reasons.into_message())
    }

    fn evaluate_conditional(
        &mut self,
        rule: &'a If,
        value: &'a Value,
        mut evaluated: Option<&mut EvaluatedMembers>,
    ) -> EvaluationResult {
        let branch = if self.fits(rule.condition, value, evaluated.as_deref_mut())? {
            rule.then
        } else {
            rule.otherwise
        };
        branch.map_or(Ok(()), |node| self.evaluate_node(node, value, evaluated))
    }

    /// Whether a value matches a node, without a report.
    fn fits(
        &mut self,
        node: NodeId,
        value: &'a Value,
        evaluated: Option<&mut EvaluatedMembers>,
    ) -> Result<bool, EvaluationError> {
        let explain = std::mem::replace(&mut self.explain, false);
        let outcome = self.evaluate_node(node, value, evaluated);
        self.explain = explain;
        match outcome {
            Ok(()) => Ok(true),
            Err(EvaluationError::BrokenRule(_)) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// The node of a dynamic anchor in the outermost resource of the dynamic scope that has it.
    fn resolve_dynamic_anchor(&self, anchor: &str) -> Option<NodeId> {
        let program = self.program;
        self.resources.iter().find_map(|resource| {
            let anchors = program.dynamic.get(*resource as usize)?;
            anchors.get(anchor).copied()
        })
    }

    fn is_nothing(&self, node: NodeId) -> bool {
        matches!(self.program.nodes.get(node as usize), Some(Node::Nothing))
    }
}
