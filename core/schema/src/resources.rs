//! The resources of a schema, and the targets of references: URIs, anchors and JSON pointers, within the schema only.

use std::collections::HashMap;

use fluent_uri::{Uri, UriRef};
use serde_json::{Map, Value};

use crate::SchemaError;
use crate::budget::StepBudget;
use crate::dialect::Dialect;
use crate::program::ResourceId;

/// The base URI of a schema without a URI.
const DEFAULT_BASE_URI: &str = "mcpline:///";

/// A schema with all schemas inside it.
pub(crate) struct Resources<'a> {
    resources: Vec<Resource<'a>>,
    by_uri: HashMap<String, ResourceId>,
    /// The resource of each schema, by the schema's address.
    resource_by_schema: HashMap<*const Value, ResourceId>,
}

struct Resource<'a> {
    schema: &'a Value,
    uri: Uri<String>,
    dialect: Dialect,
    anchors: HashMap<&'a str, &'a Value>,
    dynamic: HashMap<&'a str, &'a Value>,
}

/// The target of a reference.
pub(crate) enum Target<'a> {
    Schema(&'a Value, ResourceId),
    /// A metaschema: values that match are schemas of that dialect.
    Dialect(Dialect),
}

impl<'a> Resources<'a> {
    /// Finds the resources of a schema.
    ///
    /// # Errors
    /// When a schema inside has an unknown dialect, or an `$id` that is not a URI.
    pub(crate) fn of(
        schema: &'a Value,
        dialect: Dialect,
        budget: &mut StepBudget<'_>,
    ) -> Result<Self, SchemaError> {
        let nameless = Uri::parse(DEFAULT_BASE_URI.to_owned())
            .map_err(|_| invalid_uri_error(DEFAULT_BASE_URI))?;
        let mut found = Self {
            resources: Vec::new(),
            by_uri: HashMap::new(),
            resource_by_schema: HashMap::new(),
        };
        found.add(schema, nameless, dialect);
        found.visit(schema, 0, budget)?;
        Ok(found)
    }

    fn add(&mut self, schema: &'a Value, uri: Uri<String>, dialect: Dialect) -> ResourceId {
        let id = ResourceId::try_from(self.resources.len()).unwrap_or(ResourceId::MAX);
        self.by_uri.entry(uri.as_str().to_owned()).or_insert(id);
        self.resources.push(Resource {
            schema,
            uri,
            dialect,
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        });
        id
    }

    fn visit(
        &mut self,
        schema: &'a Value,
        within: ResourceId,
        budget: &mut StepBudget<'_>,
    ) -> Result<(), SchemaError> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        let here = self.enter_resource(schema, members, within, budget)?;
        self.resource_by_schema.insert(schema, here);
        let dialect = self.dialect(here);
        if dialect.ref_hides_siblings() && members.contains_key("$ref") {
            return Ok(());
        }
        self.anchors(schema, members, here);
        for (keyword, value) in members {
            for (_, schema) in dialect.shape(keyword).subschemas(value) {
                self.visit(schema, here, budget)?;
            }
        }
        Ok(())
    }

    /// Returns the resource of a schema: a new one if the schema has its own URI.
    fn enter_resource(
        &mut self,
        schema: &'a Value,
        members: &'a Map<String, Value>,
        within: ResourceId,
        budget: &mut StepBudget<'_>,
    ) -> Result<ResourceId, SchemaError> {
        let outer = self.dialect(within);
        let is_root = std::ptr::eq(self.resources[0].schema, schema);
        let has_id = ["$id", "id"].into_iter().any(|id| members.contains_key(id));
        let dialect = if is_root || !has_id {
            outer
        } else {
            Dialect::of(schema, outer)?
        };
        if dialect.ref_hides_siblings() && members.contains_key("$ref") {
            return Ok(within);
        }
        let id = members.get(dialect.id()).and_then(Value::as_str);
        let Some(id) = id.filter(|id| !id.is_empty() && !id.starts_with('#')) else {
            return Ok(within);
        };
        self.charge(id, within, budget).ok_or(SchemaError::Limit)?;
        let (uri, _) = self
            .resolve(id, within)
            .ok_or_else(|| invalid_uri_error(id))?;
        Ok(self.add(schema, uri, dialect))
    }

    fn anchors(&mut self, schema: &'a Value, members: &'a Map<String, Value>, here: ResourceId) {
        let resource = &mut self.resources[here as usize];
        let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
        match resource.dialect {
            Dialect::Draft202012 => {
                if let Some(name) = text("$dynamicAnchor") {
                    resource.anchors.entry(name).or_insert(schema);
                    resource.dynamic.entry(name).or_insert(schema);
                }
                if let Some(name) = text("$anchor") {
                    resource.anchors.entry(name).or_insert(schema);
                }
            }
            Dialect::Draft201909 => {
                if let Some(name) = text("$anchor") {
                    resource.anchors.entry(name).or_insert(schema);
                }
                if members.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
                    resource.dynamic.entry("").or_insert(schema);
                }
            }
            older => {
                if let Some((_, name)) = text(older.id()).and_then(|id| id.split_once('#'))
                    && !name.is_empty()
                {
                    resource.anchors.entry(name).or_insert(schema);
                }
            }
        }
    }

    pub(crate) fn dialect(&self, resource: ResourceId) -> Dialect {
        self.resources[resource as usize].dialect
    }

    /// The resource of a schema that has been visited.
    pub(crate) fn resource_of(&self, schema: &Value) -> Option<ResourceId> {
        self.resource_by_schema
            .get(&std::ptr::from_ref(schema))
            .copied()
    }

    /// The number of resources.
    pub(crate) fn len(&self) -> usize {
        self.resources.len()
    }

    /// The dynamic anchors of all resources.
    pub(crate) fn dynamic_anchors(&self) -> impl Iterator<Item = (ResourceId, &'a str, &'a Value)> {
        self.resources.iter().zip(0..).flat_map(|(resource, id)| {
            let anchors = resource.dynamic.iter();
            anchors.map(move |(name, schema)| (id, *name, *schema))
        })
    }

    /// The name of the dynamic anchor that a reference from a resource ends in, if it does.
    pub(crate) fn dynamic_anchor(&self, reference: &str, from: ResourceId) -> Option<String> {
        let (uri, fragment) = self.resolve(reference, from)?;
        let resource = *self.by_uri.get(uri.as_str())?;
        let anchors = &self.resources[resource as usize].dynamic;
        anchors.contains_key(fragment.as_str()).then_some(fragment)
    }

    /// The target of a reference from a resource; `None` if there is none within the schema.
    pub(crate) fn resolve_target(&self, reference: &str, from: ResourceId) -> Option<Target<'a>> {
        let (uri, fragment) = self.resolve(reference, from)?;
        let Some(id) = self.by_uri.get(uri.as_str()).copied() else {
            let dialect = Dialect::from_uri(uri.as_str())?;
            return fragment.is_empty().then_some(Target::Dialect(dialect));
        };
        let resource = &self.resources[id as usize];
        if fragment.is_empty() {
            return Some(Target::Schema(resource.schema, id));
        }
        if fragment.starts_with('/') {
            return self.resolve_pointer(resource.schema, id, &fragment);
        }
        let schema = resource.anchors.get(fragment.as_str())?;
        Some(Target::Schema(schema, id))
    }

    /// Charges the cost of resolving a reference: the base URI is copied, and its own parts are looked up.
    pub(crate) fn charge(
        &self,
        reference: &str,
        from: ResourceId,
        budget: &mut StepBudget<'_>,
    ) -> Option<()> {
        let base = &self.resources.get(from as usize)?.uri;
        budget.charge_bytes(base.as_str().len())?;
        budget.charge(reference.len())
    }

    /// Resolves a reference against the URI of a resource. Returns it with its decoded fragment.
    fn resolve(&self, reference: &str, from: ResourceId) -> Option<(Uri<String>, String)> {
        let reference = UriRef::parse(reference).ok()?;
        let fragment = match reference.fragment() {
            Some(encoded) => encoded.decode().to_string().ok()?.into_owned(),
            None => String::new(),
        };
        let base = &self.resources[from as usize].uri;
        if reference.as_str().is_empty() || reference.as_str().starts_with('#') {
            return Some((base.clone(), fragment));
        }
        let mut uri = reference.strip_fragment().resolve_against(base).ok()?;
        uri.set_fragment(None);
        Some((uri, fragment))
    }

    /// The value at a JSON pointer, and the resource that it is in.
    fn resolve_pointer(
        &self,
        schema: &'a Value,
        resource: ResourceId,
        pointer: &str,
    ) -> Option<Target<'a>> {
        let mut schema = schema;
        let mut resource = resource;
        for name in pointer.split('/').skip(1) {
            schema = match schema {
                Value::Object(members) => members.get(&unescape_token(name))?,
                Value::Array(elements) => elements.get(index(name)?)?,
                _ => return None,
            };
            resource = self.resource_of(schema).unwrap_or(resource);
        }
        Some(Target::Schema(schema, resource))
    }
}

/// Decodes a name in a JSON pointer (RFC 6901).
fn unescape_token(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn index(digits: &str) -> Option<usize> {
    let is_canonical = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| is_canonical)
}

fn invalid_uri_error(id: &str) -> SchemaError {
    SchemaError::Reference(id.to_owned())
}
