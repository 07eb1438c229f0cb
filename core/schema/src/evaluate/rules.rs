//! What each rule demands of a value.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{MARKS_PER_STEP, Outcome, Stop, Walk};
use crate::dialect::Dialect;
use crate::equality::{are_equal, are_unique};
use crate::marks::Marks;
use crate::pattern::Pattern;
use crate::place::Place;
use crate::program::{Contains, If, Items, Named, Node, NodeId, Properties, Rule};
use crate::types::Types;
use crate::wording::Reasons;
use crate::{number, wording};

impl<'a> Walk<'a, '_> {
    /// Holds a value against a rule of a schema of this dialect.
    pub(super) fn rule(
        &mut self,
        rule: &'a Rule,
        dialect: Dialect,
        value: &'a Value,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        match rule {
            Rule::Type(types) => self.types(*types, dialect, value),
            Rule::Const(expected) => {
                if self.equal(expected, value)? {
                    return Ok(());
                }
                self.charge_told(std::slice::from_ref(expected))?;
                self.broken("const", || wording::constant(expected))
            }
            Rule::Enum(options) => {
                for option in options {
                    if self.equal(option, value)? {
                        return Ok(());
                    }
                }
                self.charge_told(options)?;
                self.broken("enum", || wording::options(options))
            }
            Rule::Maximum(_)
            | Rule::Minimum(_)
            | Rule::ExclusiveMaximum(_)
            | Rule::ExclusiveMinimum(_)
            | Rule::MultipleOf(_) => match value {
                Value::Number(value) => self.of_number(rule, value),
                _ => Ok(()),
            },
            Rule::MaxLength(_) | Rule::MinLength(_) | Rule::Pattern(_) | Rule::Format(_) => {
                match value {
                    Value::String(value) => self.of_string(rule, value),
                    _ => Ok(()),
                }
            }
            Rule::MaxItems(_)
            | Rule::MinItems(_)
            | Rule::UniqueItems
            | Rule::Items(_)
            | Rule::Contains(_)
            | Rule::UnevaluatedItems(_) => match value {
                Value::Array(items) => self.of_array(rule, dialect, items, marks),
                _ => Ok(()),
            },
            Rule::MaxProperties(_)
            | Rule::MinProperties(_)
            | Rule::Required(_)
            | Rule::DependentRequired(..)
            | Rule::PropertyNames(_)
            | Rule::Properties(_)
            | Rule::UnevaluatedProperties(_) => match value {
                Value::Object(members) => self.of_object(rule, members, marks),
                _ => Ok(()),
            },
            _ => self.composed(rule, value, marks),
        }
    }

    fn types(&mut self, types: Types, dialect: Dialect, value: &Value) -> Outcome {
        if types.hold(value, dialect) {
            return Ok(());
        }
        self.broken("type", || wording::types(types))
            .map_err(|mut stop| {
                if let Stop::Broken(Some(broken)) = &mut stop {
                    broken.types = Some(types);
                }
                stop
            })
    }

    fn of_number(&mut self, rule: &'a Rule, value: &Number) -> Outcome {
        let (kept, name, demand, limit) = match rule {
            Rule::Maximum(limit) => {
                let kept = number::compare(value, limit).is_le();
                (kept, "maximum", "at most", limit)
            }
            Rule::Minimum(limit) => {
                let kept = number::compare(value, limit).is_ge();
                (kept, "minimum", "at least", limit)
            }
            Rule::ExclusiveMaximum(limit) => {
                let kept = number::compare(value, limit).is_lt();
                (kept, "exclusiveMaximum", "less than", limit)
            }
            Rule::ExclusiveMinimum(limit) => {
                let kept = number::compare(value, limit).is_gt();
                (kept, "exclusiveMinimum", "greater than", limit)
            }
            Rule::MultipleOf(of) => {
                let kept = number::is_multiple(value, of);
                (kept, "multipleOf", "a multiple of", of)
            }
            _ => return Ok(()),
        };
        self.demand(kept, name, || wording::bound(demand, limit))
    }

    fn of_string(&mut self, rule: &'a Rule, value: &str) -> Outcome {
        match rule {
            Rule::MaxLength(most) => {
                let kept = self.compare_length(value, *most)?.is_le();
                self.demand(kept, "maxLength", || wording::characters("at most", *most))
            }
            Rule::MinLength(least) => {
                let kept = self.compare_length(value, *least)?.is_ge();
                self.demand(kept, "minLength", || {
                    wording::characters("at least", *least)
                })
            }
            Rule::Pattern(pattern) => {
                let kept = self.matches(&pattern.it, value)?;
                self.demand(kept, "pattern", || wording::pattern(&pattern.name))
            }
            Rule::Format(format) => {
                let kept = format.fits(value, &mut self.budget).ok_or(Stop::Spent)?;
                self.demand(kept, "format", || {
                    format!("must be a valid {}", format.name())
                })
            }
            _ => Ok(()),
        }
    }

    /// How the number of characters compares with a limit. They are counted only where the number of bytes doesn't
    /// tell: a character has one to four.
    fn compare_length(&mut self, text: &str, limit: u64) -> Result<Ordering, Stop> {
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

    fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        are_equal(left, right, &mut self.budget).ok_or(Stop::Spent)
    }

    /// What it costs to read the values that a message repeats.
    fn charge_told(&mut self, values: &[Value]) -> Outcome {
        let values = if self.told { values } else { &[] };
        let mut examined = values.iter().take(wording::EXAMINED);
        examined.try_for_each(|value| self.charge_value(value))
    }

    /// What it costs to look a name up in an object, or among so many sorted ones.
    fn charge_lookup(&mut self, name: &str, sorted: usize) -> Outcome {
        let compared = 1 + sorted.checked_ilog2().unwrap_or_default() as usize;
        self.charge_bytes(name.len().saturating_mul(compared))
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Result<bool, Stop> {
        pattern.is_found(text, &mut self.budget).ok_or(Stop::Spent)
    }

    fn of_array(
        &mut self,
        rule: &'a Rule,
        dialect: Dialect,
        items: &'a [Value],
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let count = items.len() as u64;
        match rule {
            Rule::MaxItems(most) => self.demand(count <= *most, "maxItems", || {
                wording::items("at most", *most)
            }),
            Rule::MinItems(least) => self.demand(count >= *least, "minItems", || {
                wording::items("at least", *least)
            }),
            Rule::UniqueItems => {
                let kept = are_unique(items, &mut self.budget).ok_or(Stop::Spent)?;
                self.demand(kept, "uniqueItems", || {
                    "must not have equal items".to_owned()
                })
            }
            Rule::Items(rule) => self.items(rule, items, marks),
            Rule::Contains(rule) => {
                // Items that are contained count as looked at since 2020-12.
                let marks = marks.filter(|_| dialect == Dialect::Draft202012);
                self.contains(rule, items, marks)
            }
            Rule::UnevaluatedItems(node) => self.unevaluated_items(*node, items, marks),
            _ => Ok(()),
        }
    }

    fn items(&mut self, rule: &'a Items, items: &'a [Value], marks: Option<&mut Marks>) -> Outcome {
        let prefix = rule.prefix.iter().zip(items).enumerate();
        for (index, (node, item)) in prefix {
            self.member(Place::Index(index), *node, item)?;
        }
        let prefix = rule.prefix.len().min(items.len());
        if let Some(rest) = rule.rest {
            if self.is_nothing(rest) && items.len() > prefix {
                return self.broken(rule.keyword, || {
                    wording::items("at most", rule.prefix.len() as u64)
                });
            }
            for (index, item) in items.iter().enumerate().skip(prefix) {
                self.member(Place::Index(index), rest, item)?;
            }
        }
        if let Some(marks) = marks {
            match rule.rest {
                Some(_) => marks.mark_all(),
                None => (0..prefix).for_each(|index| marks.mark(index)),
            }
        }
        Ok(())
    }

    fn contains(
        &mut self,
        rule: &'a Contains,
        items: &'a [Value],
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut found = 0;
        for (index, item) in items.iter().enumerate() {
            // Without marks and a maximum, enough is enough.
            if found >= rule.min && rule.max.is_none() && marks.is_none() {
                break;
            }
            if self.fits(rule.node, item, None)? {
                found += 1;
                if let Some(marks) = &mut marks {
                    marks.mark(index);
                }
            }
        }
        if found < rule.min {
            return match rule.min {
                1 => self.broken("contains", || "must contain a matching item".to_owned()),
                min => self.broken("minContains", || wording::matching("at least", min)),
            };
        }
        let most = rule.max.unwrap_or(u64::MAX);
        self.demand(found <= most, "maxContains", || {
            wording::matching("at most", most)
        })
    }

    fn unevaluated_items(
        &mut self,
        node: NodeId,
        items: &'a [Value],
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let Some(marks) = marks else { return Ok(()) };
        self.charge(items.len() / MARKS_PER_STEP)?;
        for (index, item) in items.iter().enumerate() {
            if marks.has(index) {
                continue;
            }
            if self.is_nothing(node) {
                return self.broken("unevaluatedItems", || {
                    "must not have further items".to_owned()
                });
            }
            self.member(Place::Index(index), node, item)?;
        }
        marks.mark_all();
        Ok(())
    }

    fn of_object(
        &mut self,
        rule: &'a Rule,
        members: &'a Map<String, Value>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let count = members.len() as u64;
        match rule {
            Rule::MaxProperties(most) => self.demand(count <= *most, "maxProperties", || {
                wording::properties("at most", *most)
            }),
            Rule::MinProperties(least) => self.demand(count >= *least, "minProperties", || {
                wording::properties("at least", *least)
            }),
            Rule::Required(names) => {
                for name in names {
                    self.charge_lookup(name, 0)?;
                    if !members.contains_key(name) {
                        return self.broken("required", || wording::missing(name));
                    }
                }
                Ok(())
            }
            Rule::DependentRequired(keyword, lists) => {
                self.dependent_required(keyword, lists, members)
            }
            Rule::PropertyNames(node) => self.property_names(*node, members),
            Rule::Properties(rule) => self.properties(rule, members, marks),
            Rule::UnevaluatedProperties(node) => self.unevaluated_properties(*node, members, marks),
            _ => Ok(()),
        }
    }

    fn dependent_required(
        &mut self,
        keyword: &'static str,
        lists: &[Named<Vec<String>>],
        members: &Map<String, Value>,
    ) -> Outcome {
        for list in lists {
            self.charge_lookup(&list.name, 0)?;
            if !members.contains_key(&list.name) {
                continue;
            }
            for name in &list.it {
                self.charge_lookup(name, 0)?;
                if !members.contains_key(name) {
                    return self.broken(keyword, || wording::missing_beside(name, &list.name));
                }
            }
        }
        Ok(())
    }

    fn property_names(&mut self, node: NodeId, members: &'a Map<String, Value>) -> Outcome {
        for name in members.keys() {
            self.charge_bytes(name.len())?;
            let name = Value::String(name.clone());
            // The name is no part of the value, so it is held against the schema in a walk of its own.
            let mut walk = Walk {
                program: self.program,
                budget: self.budget,
                told: self.told,
                depth: self.depth,
                path: Vec::new(),
                resources: std::mem::take(&mut self.resources),
            };
            let outcome = walk.node(node, &name, None);
            self.budget = walk.budget;
            self.resources = walk.resources;
            outcome.map_err(|stop| self.named(stop))?;
        }
        Ok(())
    }

    /// The same, told of a property's name.
    fn named(&mut self, stop: Stop) -> Stop {
        match stop {
            Stop::Broken(Some(reason)) => {
                match self.broken("propertyNames", || wording::property_name(&reason.message)) {
                    Err(stop) => stop,
                    Ok(()) => Stop::Broken(Some(reason)),
                }
            }
            stop => stop,
        }
    }

    fn properties(
        &mut self,
        rule: &'a Properties,
        members: &'a Map<String, Value>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let refuses_others = rule.additional.is_some_and(|node| self.is_nothing(node));
        let mut unexpected = Vec::new();
        for (index, (name, member)) in members.iter().enumerate() {
            self.charge_lookup(name, rule.named.len())?;
            let place = Place::Name(name);
            let mut known = false;
            if let Ok(at) = rule
                .named
                .binary_search_by(|named| named.name.as_str().cmp(name))
            {
                known = true;
                self.member(place, rule.named[at].it, member)?;
            }
            for pattern in &rule.patterns {
                let (pattern, node) = &pattern.it;
                if self.matches(pattern, name)? {
                    known = true;
                    self.member(place, *node, member)?;
                }
            }
            match rule.additional {
                Some(_) if !known && refuses_others => unexpected.push(name.as_str()),
                Some(node) if !known => self.member(place, node, member)?,
                _ => {}
            }
            if let Some(marks) = &mut marks
                && (known || rule.additional.is_some())
            {
                marks.mark(index);
            }
        }
        self.demand(unexpected.is_empty(), "additionalProperties", || {
            wording::unexpected(&unexpected)
        })
    }

    fn unevaluated_properties(
        &mut self,
        node: NodeId,
        members: &'a Map<String, Value>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let Some(marks) = marks else { return Ok(()) };
        let refuses = self.is_nothing(node);
        let mut unexpected = Vec::new();
        self.charge(members.len() / MARKS_PER_STEP)?;
        for (index, (name, member)) in members.iter().enumerate() {
            if marks.has(index) {
                continue;
            }
            if refuses {
                unexpected.push(name.as_str());
            } else {
                self.member(Place::Name(name), node, member)?;
            }
        }
        marks.mark_all();
        self.demand(unexpected.is_empty(), "unevaluatedProperties", || {
            wording::unexpected(&unexpected)
        })
    }

    fn composed(
        &mut self,
        rule: &'a Rule,
        value: &'a Value,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        match rule {
            Rule::AllOf(nodes) => nodes
                .iter()
                .try_for_each(|node| self.node(*node, value, marks.as_deref_mut())),
            Rule::AnyOf(nodes) => self.alternatives(nodes, false, value, marks),
            Rule::OneOf(nodes) => self.alternatives(nodes, true, value, marks),
            Rule::Not(node) => {
                let kept = !self.fits(*node, value, None)?;
                self.demand(kept, "not", || {
                    "must not fit the excluded schema".to_owned()
                })
            }
            Rule::If(rule) => self.conditional(rule, value, marks),
            Rule::Ref(node) => self.node(*node, value, marks),
            Rule::DynamicRef(node, anchor) => {
                self.charge_lookup(anchor, self.resources.len())?;
                self.charge(self.resources.len())?;
                let node = self.dynamic(anchor).unwrap_or(*node);
                self.node(node, value, marks)
            }
            Rule::DependentSchemas(schemas) => {
                let Value::Object(members) = value else {
                    return Ok(());
                };
                for schema in schemas {
                    self.charge_lookup(&schema.name, 0)?;
                    if members.contains_key(&schema.name) {
                        self.node(schema.it, value, marks.as_deref_mut())?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a value fits some of the nodes; `only` one of them, if that is the rule.
    fn alternatives(
        &mut self,
        nodes: &'a [NodeId],
        only: bool,
        value: &'a Value,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut reasons = Reasons::default();
        let mut fits = false;
        for node in nodes {
            match self.node(*node, value, marks.as_deref_mut()) {
                Ok(()) if only && fits => {
                    return self.broken("oneOf", || {
                        "must fit exactly one of the alternatives, but fits several".to_owned()
                    });
                }
                // Otherwise only marks make a second one matter.
                Ok(()) if !only && marks.is_none() => return Ok(()),
                Ok(()) => fits = true,
                Err(Stop::Broken(reason)) => {
                    if let Some(reason) = reason {
                        reasons.add(&reason);
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
        let rule = if only { "oneOf" } else { "anyOf" };
        self.demand(fits, rule, || reasons.told())
    }

    fn conditional(
        &mut self,
        rule: &'a If,
        value: &'a Value,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let branch = if self.fits(rule.condition, value, marks.as_deref_mut())? {
            rule.then
        } else {
            rule.otherwise
        };
        branch.map_or(Ok(()), |node| self.node(node, value, marks))
    }

    /// Whether a value fits a node, the reason being of no interest.
    fn fits(
        &mut self,
        node: NodeId,
        value: &'a Value,
        marks: Option<&mut Marks>,
    ) -> Result<bool, Stop> {
        let told = std::mem::replace(&mut self.told, false);
        let outcome = self.node(node, value, marks);
        self.told = told;
        match outcome {
            Ok(()) => Ok(true),
            Err(Stop::Broken(_)) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// The node of a dynamic anchor in the outermost of the resources gone through that has it.
    fn dynamic(&self, anchor: &str) -> Option<NodeId> {
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
