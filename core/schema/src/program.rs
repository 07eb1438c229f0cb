//! Compiled schemas: one node per schema, with rules in the order in which they are evaluated.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::dialect::Dialect;
use crate::format::Format;
use crate::pattern::Pattern;
use crate::types::Types;

/// The index of a node in a program.
pub(crate) type NodeId = u32;

/// The index of a resource in a program: a schema with a URI, and those in it without one.
pub(crate) type ResourceId = u32;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Program {
    /// The nodes; the first one is the root schema.
    pub(crate) nodes: Vec<Node>,
    /// For each resource, the targets of `$dynamicAnchor`; `$recursiveAnchor` is the one without a name.
    pub(crate) dynamic: Vec<BTreeMap<String, NodeId>>,
}

/// A compiled subschema.
#[derive(Debug)]
pub(crate) enum Node {
    /// Matches every value.
    Anything,
    /// Matches no value.
    Nothing,
    /// Matches values that are schemas of this dialect.
    Schema(Dialect),
    Rules(Rules),
}

#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) resource: ResourceId,
    pub(crate) dialect: Dialect,
    /// Whether a rule reads which members other rules have evaluated.
    pub(crate) uses_evaluated: bool,
}

/// The requirement of a keyword, or of several that belong together.
#[derive(Debug)]
pub(crate) enum Rule {
    Type(Types),
    Const(Value),
    Enum(Vec<Value>),
    Maximum(Number),
    Minimum(Number),
    ExclusiveMaximum(Number),
    ExclusiveMinimum(Number),
    MultipleOf(Number),
    MaxLength(u64),
    MinLength(u64),
    Pattern(Box<Named<Pattern>>),
    Format(Format),
    MaxItems(u64),
    MinItems(u64),
    UniqueItems,
    MaxProperties(u64),
    MinProperties(u64),
    Required(Vec<String>),
    /// The keyword, and the names that each name requires.
    DependentRequired(&'static str, Vec<Named<Vec<String>>>),
    PropertyNames(NodeId),
    Properties(Box<Properties>),
    Items(Items),
    Contains(Contains),
    DependentSchemas(Vec<Named<NodeId>>),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If(If),
    Ref(NodeId),
    /// The target without dynamic scope, and the dynamic anchor to search for in that scope.
    DynamicRef(NodeId, String),
    UnevaluatedItems(NodeId),
    UnevaluatedProperties(NodeId),
}

/// A value with its name in the schema.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub(crate) name: String,
    pub(crate) value: T,
}

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    /// Sorted by name.
    pub(crate) named: Vec<Named<NodeId>>,
    pub(crate) patterns: Vec<Named<(Pattern, NodeId)>>,
    pub(crate) additional: Option<NodeId>,
}

/// `prefixItems` and `items`, or their equivalents in older dialects.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) prefix: Vec<NodeId>,
    pub(crate) rest: Option<NodeId>,
    /// The keyword that `rest` comes from.
    pub(crate) keyword: &'static str,
}

#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) node: NodeId,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct If {
    pub(crate) condition: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

impl Rule {
    /// The order within its schema: cheap rules first, and those that read evaluated members last.
    pub(crate) fn evaluation_order(&self) -> u8 {
        match self {
            Self::Type(_) => 0,
            Self::Const(_)
            | Self::Maximum(_)
            | Self::Minimum(_)
            | Self::ExclusiveMaximum(_)
            | Self::ExclusiveMinimum(_)
            | Self::MultipleOf(_)
            | Self::MaxLength(_)
            | Self::MinLength(_)
            | Self::MaxItems(_)
            | Self::MinItems(_)
            | Self::MaxProperties(_)
            | Self::MinProperties(_)
            | Self::DependentRequired(..) => 1,
            Self::Enum(_) | Self::Pattern(_) | Self::Format(_) => 2,
            Self::PropertyNames(_) | Self::Properties(_) | Self::Items(_) => 3,
            // So that a misspelt name is reported as such, and not as missing.
            Self::Required(_) | Self::UniqueItems | Self::Contains(_) => 4,
            Self::DependentSchemas(_)
            | Self::AllOf(_)
            | Self::AnyOf(_)
            | Self::OneOf(_)
            | Self::Not(_)
            | Self::If(_)
            | Self::Ref(_)
            | Self::DynamicRef(..) => 5,
            Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_) => 6,
        }
    }
}
