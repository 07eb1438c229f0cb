//! Compiles a schema to a program.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Map, Number, Value};

use crate::SchemaError;
use crate::budget::StepBudget;
use crate::dialect::{Dialect, KeywordShape};
use crate::format::Format;
use crate::limits::MAX_SCHEMA_PATTERN_OPERATIONS;
use crate::metaschema::check_schema;
use crate::number;
use crate::pattern::Pattern;
use crate::program::{
    Contains, If, Items, Named, Node, NodeId, Program, Properties, ResourceId, Rule, Rules,
};
use crate::resources::{Resources, Target};
use crate::types::Types;
use crate::value_path::{PathSegment, value_path};

/// The steps for a node: its keywords are looked up among those of the dialect, and its rules are sorted.
const NODE_STEPS: usize = 64;

/// Compiles a schema of a dialect.
///
/// # Errors
/// When the schema is invalid, references anything outside itself, or exceeds the budget.
pub(crate) fn compile(
    schema: &Value,
    dialect: Dialect,
    budget: &mut StepBudget<'_>,
) -> Result<Program, SchemaError> {
    check_schema(schema, dialect, budget)?;
    let resources = Resources::of(schema, dialect, budget)?;
    let dynamic = vec![BTreeMap::new(); resources.len()];
    let mut compiler = SchemaCompiler {
        resources,
        program: Program {
            nodes: Vec::new(),
            dynamic,
        },
        nodes: HashMap::new(),
        remaining_pattern_operations: MAX_SCHEMA_PATTERN_OPERATIONS,
        budget,
        pending: VecDeque::new(),
    };
    let resource = compiler.resources.resource_of(schema).unwrap_or_default();
    compiler.node(schema, resource);
    let anchors: Vec<_> = compiler.resources.dynamic_anchors().collect();
    for (resource, name, schema) in anchors {
        let node = compiler.node(schema, resource);
        compiler.program.dynamic[resource as usize].insert(name.to_owned(), node);
    }
    // Without recursion: a chain of references may be as long as the schema.
    while let Some((id, schema, resource)) = compiler.pending.pop_front() {
        let node = compiler.compile_node(schema, resource)?;
        compiler.program.nodes[id as usize] = node;
    }
    Ok(compiler.program)
}

struct SchemaCompiler<'a, 'b, 'c> {
    resources: Resources<'a>,
    program: Program,
    /// The node of each schema, by the schema's address.
    nodes: HashMap<*const Value, NodeId>,
    /// How many operations the remaining regular expressions may be compiled to.
    remaining_pattern_operations: usize,
    budget: &'b mut StepBudget<'c>,
    /// Schemas with a node that are not compiled yet.
    pending: VecDeque<(NodeId, &'a Value, ResourceId)>,
}

type Members<'a> = &'a Map<String, Value>;

impl<'a> SchemaCompiler<'a, '_, '_> {
    /// Returns the node of a schema, which is compiled later.
    fn node(&mut self, schema: &'a Value, resource: ResourceId) -> NodeId {
        if let Some(id) = self.nodes.get(&std::ptr::from_ref(schema)) {
            return *id;
        }
        let resource = self.resources.resource_of(schema).unwrap_or(resource);
        let id = self.add(Node::Anything);
        self.nodes.insert(schema, id);
        self.pending.push_back((id, schema, resource));
        id
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId::try_from(self.program.nodes.len()).unwrap_or(NodeId::MAX);
        self.program.nodes.push(node);
        id
    }

    fn compile_node(
        &mut self,
        schema: &'a Value,
        resource: ResourceId,
    ) -> Result<Node, SchemaError> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return Ok(Node::Nothing),
            _ => return Ok(Node::Anything),
        };
        self.budget.charge(NODE_STEPS).ok_or(SchemaError::Limit)?;
        let dialect = self.resources.dialect(resource);
        let mut schema = NodeBuilder {
            members,
            resource,
            dialect,
            rules: Vec::new(),
        };
        if let Some(reference) = schema.text("$ref") {
            let node = self.resolve_reference(reference, resource)?;
            schema.rules.push(Rule::Ref(node));
        }
        if schema.rules.is_empty() || !dialect.ref_hides_siblings() {
            self.compile_dynamic_reference(&mut schema)?;
            schema.compile_general_rules();
            schema.compile_number_rules();
            self.compile_string_rules(&mut schema)?;
            self.compile_array_rules(&mut schema);
            self.compile_object_rules(&mut schema)?;
            self.compile_composition_rules(&mut schema);
            self.compile_subschemas(&schema);
        }
        let mut rules = schema.rules;
        rules.sort_by_key(Rule::evaluation_order);
        if rules.is_empty() {
            return Ok(Node::Anything);
        }
        let uses_evaluated = rules.iter().any(|rule| {
            matches!(
                rule,
                Rule::UnevaluatedItems(_) | Rule::UnevaluatedProperties(_)
            )
        });
        Ok(Node::Rules(Rules {
            rules,
            resource,
            dialect,
            uses_evaluated,
        }))
    }

    /// Returns the target node of a reference.
    fn resolve_reference(
        &mut self,
        reference: &str,
        from: ResourceId,
    ) -> Result<NodeId, SchemaError> {
        self.resources
            .charge(reference, from, self.budget)
            .ok_or(SchemaError::Limit)?;
        match self.resources.resolve_target(reference, from) {
            Some(Target::Schema(schema, resource)) => {
                if !self.nodes.contains_key(&std::ptr::from_ref(schema)) {
                    // The target may be in a place where no keyword has a schema.
                    let dialect = self.resources.dialect(resource);
                    check_schema(schema, dialect, self.budget)?;
                }
                Ok(self.node(schema, resource))
            }
            Some(Target::Dialect(dialect)) => Ok(self.add(Node::Schema(dialect))),
            None => Err(SchemaError::Reference(reference.to_owned())),
        }
    }

    fn compile_dynamic_reference(
        &mut self,
        schema: &mut NodeBuilder<'a>,
    ) -> Result<(), SchemaError> {
        let keyword = match schema.dialect {
            Dialect::Draft202012 => "$dynamicRef",
            Dialect::Draft201909 => "$recursiveRef",
            _ => return Ok(()),
        };
        let Some(reference) = schema.text(keyword) else {
            return Ok(());
        };
        let node = self.resolve_reference(reference, schema.resource)?;
        self.resources
            .charge(reference, schema.resource, self.budget)
            .ok_or(SchemaError::Limit)?;
        let anchor = self.resources.dynamic_anchor(reference, schema.resource);
        schema.rules.push(match anchor {
            Some(anchor) => Rule::DynamicRef(node, anchor),
            None => Rule::Ref(node),
        });
        Ok(())
    }

    fn child(&mut self, schema: &NodeBuilder<'a>, keyword: &str) -> Option<NodeId> {
        let child = schema.get(keyword)?;
        Some(self.node(child, schema.resource))
    }

    fn children(&mut self, schema: &NodeBuilder<'a>, keyword: &str) -> Option<Vec<NodeId>> {
        let children = schema.get(keyword)?.as_array()?;
        let nodes = children.iter().map(|it| self.node(it, schema.resource));
        Some(nodes.collect())
    }

    fn children_by_name(&mut self, schema: &NodeBuilder<'a>, keyword: &str) -> Vec<Named<NodeId>> {
        let members = schema.get(keyword).and_then(Value::as_object);
        members
            .into_iter()
            .flatten()
            .filter(|(_, child)| !child.is_array())
            .map(|(name, child)| Named {
                name: name.clone(),
                value: self.node(child, schema.resource),
            })
            .collect()
    }

    fn compile_string_rules(&mut self, schema: &mut NodeBuilder<'a>) -> Result<(), SchemaError> {
        schema.compile_count_rule("maxLength", Rule::MaxLength);
        schema.compile_count_rule("minLength", Rule::MinLength);
        if let Some(source) = schema.text("pattern") {
            let value = self.compile_pattern(source, &["pattern"])?;
            let name = source.to_owned();
            let rule = Rule::Pattern(Box::new(Named { name, value }));
            schema.rules.push(rule);
        }
        if schema.dialect.asserts_formats() {
            let format = schema.text("format").and_then(Format::from_name);
            schema.rules.extend(format.map(Rule::Format));
        }
        Ok(())
    }

    /// Compiles the regular expression at the path `at` of the schema.
    fn compile_pattern(&mut self, source: &str, at: &[&str]) -> Result<Pattern, SchemaError> {
        let invalid = |message: String| {
            let path: Vec<_> = at.iter().map(|name| PathSegment::Name(name)).collect();
            SchemaError::Invalid {
                path: value_path(&path),
                message,
            }
        };
        let pattern =
            Pattern::compile(source, self.budget).map_err(|error| invalid(error.to_string()))?;
        let left = self
            .remaining_pattern_operations
            .checked_sub(pattern.size());
        self.remaining_pattern_operations = left.ok_or_else(|| {
            invalid("the patterns of the schema are too large together".to_owned())
        })?;
        Ok(pattern)
    }

    fn compile_array_rules(&mut self, schema: &mut NodeBuilder<'a>) {
        schema.compile_count_rule("maxItems", Rule::MaxItems);
        schema.compile_count_rule("minItems", Rule::MinItems);
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            schema.rules.push(Rule::UniqueItems);
        }
        let has_prefix = schema.dialect == Dialect::Draft202012;
        let items = if has_prefix {
            Items {
                prefix: self.children(schema, "prefixItems").unwrap_or_default(),
                rest: self.child(schema, "items"),
                keyword: "items",
            }
        } else if let Some(prefix) = self.children(schema, "items") {
            Items {
                prefix,
                rest: self.child(schema, "additionalItems"),
                keyword: "additionalItems",
            }
        } else {
            Items {
                prefix: Vec::new(),
                rest: self.child(schema, "items"),
                keyword: "items",
            }
        };
        if items.rest.is_some() || !items.prefix.is_empty() {
            schema.rules.push(Rule::Items(items));
        }
        if let Some(node) = self.child(schema, "contains") {
            let min = schema.count_keyword("minContains").unwrap_or(1);
            let max = schema.count_keyword("maxContains");
            schema
                .rules
                .push(Rule::Contains(Contains { node, min, max }));
        }
        if let Some(node) = self.child(schema, "unevaluatedItems") {
            schema.rules.push(Rule::UnevaluatedItems(node));
        }
    }

    fn compile_object_rules(&mut self, schema: &mut NodeBuilder<'a>) -> Result<(), SchemaError> {
        schema.compile_count_rule("maxProperties", Rule::MaxProperties);
        schema.compile_count_rule("minProperties", Rule::MinProperties);
        if let Some(names) = schema.get("required").and_then(string_list) {
            schema.rules.push(Rule::Required(names));
        }
        let mut named = self.children_by_name(schema, "properties");
        named.sort_by(|left, right| left.name.cmp(&right.name));
        let mut patterns = Vec::new();
        for Named { name, value } in self.children_by_name(schema, "patternProperties") {
            let pattern = self.compile_pattern(&name, &["patternProperties", &name])?;
            let value = (pattern, value);
            patterns.push(Named { name, value });
        }
        let additional = self.child(schema, "additionalProperties");
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            schema.rules.push(Rule::Properties(Box::new(Properties {
                named,
                patterns,
                additional,
            })));
        }
        if let Some(node) = self.child(schema, "propertyNames") {
            schema.rules.push(Rule::PropertyNames(node));
        }
        let dependent = if schema.dialect.ref_hides_siblings() {
            ["dependencies", "dependencies"]
        } else {
            ["dependentRequired", "dependentSchemas"]
        };
        schema.compile_dependent_required(dependent[0]);
        let dependent = self.children_by_name(schema, dependent[1]);
        if !dependent.is_empty() {
            schema.rules.push(Rule::DependentSchemas(dependent));
        }
        if let Some(node) = self.child(schema, "unevaluatedProperties") {
            schema.rules.push(Rule::UnevaluatedProperties(node));
        }
        Ok(())
    }

    fn compile_composition_rules(&mut self, schema: &mut NodeBuilder<'a>) {
        let all = self.children(schema, "allOf").map(Rule::AllOf);
        let any = self.children(schema, "anyOf").map(Rule::AnyOf);
        let one = self.children(schema, "oneOf").map(Rule::OneOf);
        schema.rules.extend([all, any, one].into_iter().flatten());
        if let Some(node) = self.child(schema, "not") {
            schema.rules.push(Rule::Not(node));
        }
        if let Some(condition) = self.child(schema, "if") {
            let then = self.child(schema, "then");
            let otherwise = self.child(schema, "else");
            schema.rules.push(Rule::If(If {
                condition,
                then,
                otherwise,
            }));
        }
    }

    /// Compiles the subschemas that no rule refers to, so that unresolvable references are found everywhere.
    fn compile_subschemas(&mut self, schema: &NodeBuilder<'a>) {
        for (keyword, value) in schema.members {
            for (_, child) in schema.dialect.shape(keyword).subschemas(value) {
                self.node(child, schema.resource);
            }
        }
    }
}

/// The keywords of a schema that is being compiled, and the rules for them.
struct NodeBuilder<'a> {
    members: Members<'a>,
    resource: ResourceId,
    dialect: Dialect,
    rules: Vec<Rule>,
}

impl<'a> NodeBuilder<'a> {
    /// The value of a keyword, if the dialect has it.
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        let value = self.members.get(keyword)?;
        (self.dialect.shape(keyword) != KeywordShape::Anything || keyword == "const")
            .then_some(value)
    }

    fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    fn number_keyword(&self, keyword: &str) -> Option<Number> {
        self.get(keyword)?.as_number().cloned()
    }

    fn count_keyword(&self, keyword: &str) -> Option<u64> {
        number::natural(self.get(keyword)?.as_number()?)
    }

    fn compile_count_rule(&mut self, keyword: &str, rule: fn(u64) -> Rule) {
        self.rules.extend(self.count_keyword(keyword).map(rule));
    }

    fn compile_general_rules(&mut self) {
        if let Some(types) = self.get("type").and_then(Types::of) {
            self.rules.push(Rule::Type(types));
        }
        if let Some(options) = self.get("enum").and_then(Value::as_array) {
            self.rules.push(Rule::Enum(options.clone()));
        }
        if self.dialect > Dialect::Draft4
            && let Some(expected) = self.get("const")
        {
            self.rules.push(Rule::Const(expected.clone()));
        }
    }

    fn compile_number_rules(&mut self) {
        // In draft 4, the keywords of exclusive bounds are flags that modify the other bounds.
        let is_exclusive = |keyword| self.get(keyword) == Some(&Value::Bool(true));
        let maximum = self
            .number_keyword("maximum")
            .map(match is_exclusive("exclusiveMaximum") {
                true => Rule::ExclusiveMaximum,
                false => Rule::Maximum,
            });
        let minimum = self
            .number_keyword("minimum")
            .map(match is_exclusive("exclusiveMinimum") {
                true => Rule::ExclusiveMinimum,
                false => Rule::Minimum,
            });
        let below = self
            .number_keyword("exclusiveMaximum")
            .map(Rule::ExclusiveMaximum);
        let above = self
            .number_keyword("exclusiveMinimum")
            .map(Rule::ExclusiveMinimum);
        let multiple = self.number_keyword("multipleOf").map(Rule::MultipleOf);
        let rules = [maximum, minimum, below, above, multiple];
        self.rules.extend(rules.into_iter().flatten());
    }

    fn compile_dependent_required(&mut self, keyword: &'static str) {
        let lists = self.get(keyword).and_then(Value::as_object);
        let required: Vec<_> = lists
            .into_iter()
            .flatten()
            .filter_map(|(name, list)| {
                let name = name.clone();
                string_list(list).map(|value| Named { name, value })
            })
            .collect();
        if !required.is_empty() {
            self.rules.push(Rule::DependentRequired(keyword, required));
        }
    }
}

fn string_list(list: &Value) -> Option<Vec<String>> {
    let names = list.as_array()?.iter();
    Some(names.filter_map(Value::as_str).map(str::to_owned).collect())
}
