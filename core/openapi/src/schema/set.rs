//! One generated schema with the definitions that it refers to: only those in use, written in place where that is short.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::convert::is_annotation;
use super::{Direction, Position};
use crate::document::Document;
use crate::error::DocumentError;
use crate::limits::{MAX_DESCRIPTION_BYTES, MAX_SCHEMA_DEPTH};
use crate::names::{self, UniqueNames};
use crate::reference::DocumentLocation;

/// Marks a reference while a schema is built; replaced by `$ref` or by the schema itself. No keyword has this name, and members
/// of a document that have it are left out.
pub(super) const MARK: &str = "\u{0}reference";

/// A definition of up to this many bytes is written in place, however often it is used.
const SHORT_BYTES: usize = 120;

/// The longest name of a definition, in characters.
const MAX_DEFINITION_NAME_CHARS: usize = 64;

/// The number of bytes that a schema has at least.
const MIN_SCHEMA_BYTES: usize = 8;

/// How a schema is shortened until it has the size that is allowed: the largest number of references in a row, of schemas
/// within each other, and of bytes of a description. What is deeper becomes an outline. If nothing suffices, the schema is
/// empty.
const SHORTER: [(usize, usize, usize); 11] = [
    (usize::MAX, usize::MAX, MAX_DESCRIPTION_BYTES),
    (usize::MAX, usize::MAX, 500),
    (4, usize::MAX, 500),
    (3, usize::MAX, 500),
    (2, usize::MAX, 500),
    (1, usize::MAX, 500),
    (1, 5, 200),
    (0, 4, 200),
    (0, 2, 200),
    (0, 1, 100),
    (0, 0, 0),
];

/// Schemas that are converted together.
pub(crate) struct SchemaSet<'d> {
    pub(crate) document: &'d Document,
    pub(crate) direction: Direction,
    pub(crate) max_references: usize,
    pub(crate) max_nesting: usize,
    pub(crate) max_description_bytes: usize,
    numbers: HashMap<DocumentLocation, usize>,
    definitions: Vec<Definition>,
    waiting: VecDeque<usize>,
    names: UniqueNames,
    /// The number of bytes that may still be converted.
    left: usize,
    pub(crate) reached: LargestSizes,
}

/// The most references in a row, schemas within each other and bytes of a description that a conversion has met.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LargestSizes {
    pub(crate) references: usize,
    pub(crate) nesting: usize,
    pub(crate) description_bytes: usize,
}

impl LargestSizes {
    /// Whether a conversion with these limits would do the same.
    fn is_within(self, (references, nesting, description_bytes): (usize, usize, usize)) -> bool {
        self.references <= references
            && self.nesting < nesting
            && self.description_bytes <= description_bytes
    }
}

struct Definition {
    name: String,
    place: DocumentLocation,
    references: usize,
    schema: Value,
}

/// Why a conversion ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The document is wrong.
    Document(DocumentError),
    /// The schemas are too large.
    TooLarge,
}

impl From<DocumentError> for Stop {
    fn from(error: DocumentError) -> Self {
        Self::Document(error)
    }
}

/// A schema, and what it has cost.
pub(crate) struct BuiltSchema {
    pub(crate) schema: Value,
    /// The size of the schema, in bytes of JSON.
    pub(crate) bytes: usize,
    /// About how many bytes were converted for it, in all attempts.
    pub(crate) converted_bytes: usize,
}

/// Builds a schema of at most `max_bytes`: an empty one, if it cannot be shortened to that. `root` converts the parts.
///
/// # Errors
///
/// As those of `root`.
pub(crate) fn build<'d>(
    document: &'d Document,
    direction: Direction,
    max_bytes: usize,
    root: impl Fn(&mut SchemaSet<'d>) -> Result<Value, Stop>,
) -> Result<BuiltSchema, DocumentError> {
    // Parts that are left out at the end, such as hidden properties, count at first.
    let budget = max_bytes.saturating_mul(2);
    let mut converted_bytes = 0_usize;
    let mut reached: Option<LargestSizes> = None;
    for limits in SHORTER {
        if reached.is_some_and(|reached| reached.is_within(limits)) {
            continue;
        }
        let (max_references, max_nesting, max_description_bytes) = limits;
        let mut set = SchemaSet {
            document,
            direction,
            max_references,
            max_nesting,
            max_description_bytes,
            numbers: HashMap::new(),
            definitions: Vec::new(),
            waiting: VecDeque::new(),
            names: UniqueNames::new(MAX_DEFINITION_NAME_CHARS),
            left: budget,
            reached: LargestSizes::default(),
        };
        let built = root(&mut set).and_then(|schema| set.finish(schema));
        converted_bytes = converted_bytes.saturating_add(budget - set.left);
        reached = Some(set.reached);
        match built {
            Ok(schema) => {
                let bytes = schema.to_string().len();
                if bytes <= max_bytes {
                    return Ok(BuiltSchema {
                        schema,
                        bytes,
                        converted_bytes,
                    });
                }
            }
            Err(Stop::TooLarge) => {}
            Err(Stop::Document(error)) => return Err(error),
        }
    }
    let schema = Value::Object(Map::new());
    let bytes = schema.to_string().len();
    Ok(BuiltSchema {
        schema,
        bytes,
        converted_bytes,
    })
}

impl SchemaSet<'_> {
    /// Counts a schema that is converted.
    pub(crate) fn count_one(&mut self) -> Result<(), Stop> {
        self.count(MIN_SCHEMA_BYTES)
    }

    /// Counts bytes that the schema will have.
    pub(crate) fn count(&mut self, bytes: usize) -> Result<(), Stop> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Stop::TooLarge)
            }
        }
    }

    /// Copies a value of the document that is no schema, and counts it. `None` for one that would be taken for a reference.
    pub(crate) fn copy(&mut self, value: &Value) -> Result<Option<Value>, Stop> {
        let bytes = size_within(value, self.left).ok_or(Stop::TooLarge)?;
        self.count(bytes)?;
        Ok((!has_mark(value)).then(|| value.clone()))
    }

    /// Returns a description, cut to its limit. `None` if there is none.
    pub(crate) fn description(&mut self, text: &str) -> Result<Option<Value>, Stop> {
        let text = text.trim();
        self.reached.description_bytes = self.reached.description_bytes.max(text.len());
        if text.is_empty() || self.max_description_bytes == 0 {
            return Ok(None);
        }
        let max_bytes = self.max_description_bytes.min(text.len());
        let is_boundary = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=max_bytes).rev().find(is_boundary).unwrap_or(0);
        let cut = match end < text.len() {
            true => format!("{}…", &text[..end]),
            false => text.to_owned(),
        };
        self.count(cut.len())?;
        Ok(Some(Value::from(cut)))
    }

    /// Returns a reference to the schema at a place, which becomes a definition.
    pub(crate) fn refer(
        &mut self,
        target: &DocumentLocation,
        position: Position,
    ) -> Result<Map<String, Value>, Stop> {
        let references = position.references + 1;
        self.reached.references = self.reached.references.max(references);
        if references > self.max_references {
            return Ok(match self.outline(target) {
                Value::Object(outline) => outline,
                _ => Map::new(),
            });
        }
        let number = match self.numbers.get(target) {
            Some(number) => *number,
            None => {
                let number = self.definitions.len();
                let name = names::sanitized(&target.name(), MAX_DEFINITION_NAME_CHARS);
                let name = match name.is_empty() {
                    true => "schema".to_owned(),
                    false => name,
                };
                self.definitions.push(Definition {
                    name: self.names.take(name),
                    place: target.clone(),
                    references,
                    schema: Value::Null,
                });
                self.numbers.insert(target.clone(), number);
                self.waiting.push_back(number);
                number
            }
        };
        Ok(Map::from_iter([(MARK.to_owned(), Value::from(number))]))
    }

    /// Converts the definitions, and writes them in place or under `$defs`.
    fn finish(&mut self, root: Value) -> Result<Value, Stop> {
        // In order of their distance, so that each has the smallest one that leads to it.
        while let Some(number) = self.waiting.pop_front() {
            let definition = &self.definitions[number];
            let (place, references) = (definition.place.clone(), definition.references);
            self.definitions[number].schema =
                self.convert(&place, Position::at_reference(references))?;
        }
        let mut writer = Writer {
            is_inline: self.inline_definitions(&root),
            definitions: &self.definitions,
            kept: Vec::new(),
            is_kept: vec![false; self.definitions.len()],
        };
        let mut root = writer.write(root, 0);
        let mut definitions = Map::new();
        let mut next = 0;
        while let Some(number) = writer.kept.get(next).copied() {
            next += 1;
            let definition = &self.definitions[number];
            let schema = writer.write(definition.schema.clone(), 0);
            definitions.insert(definition.name.clone(), schema);
        }
        if let Value::Object(root) = &mut root
            && !definitions.is_empty()
        {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Ok(root)
    }

    /// Decides which definitions are written in place: those that don't contain themselves, and are short or used once.
    fn inline_definitions(&self, root: &Value) -> Vec<bool> {
        let count = self.definitions.len();
        let mut uses = vec![0_usize; count];
        let mut inner = Vec::with_capacity(count);
        for number in marks(root) {
            if let Some(uses) = uses.get_mut(number) {
                *uses += 1;
            }
        }
        for definition in &self.definitions {
            let marks: Vec<_> = marks(&definition.schema)
                .into_iter()
                .filter(|number| *number < count)
                .collect();
            for number in &marks {
                uses[*number] += 1;
            }
            inner.push(marks);
        }
        let recursive = in_cycles(&inner);
        (0..count)
            .map(|number| {
                let definition = &self.definitions[number].schema;
                let is_short =
                    || inner[number].is_empty() && definition.to_string().len() <= SHORT_BYTES;
                !recursive[number] && (uses[number] <= 1 || is_short())
            })
            .collect()
    }
}

/// Returns about how many bytes of JSON a value has, unless there are more than `max`. It takes no longer than that.
pub(crate) fn size_within(value: &Value, max: usize) -> Option<usize> {
    let mut size = 0_usize;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        size += match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.len() + 2,
            Value::Object(members) => 4 * members.len() + 2,
            _ => 1,
        };
        if size > max {
            return None;
        }
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => {
                size += members.keys().map(String::len).sum::<usize>();
                waiting.extend(members.values());
            }
            _ => {}
        }
    }
    (size <= max).then_some(size)
}

/// Whether a value contains a member with the name that marks references.
fn has_mark(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_mark),
        Value::Object(members) => members.contains_key(MARK) || members.values().any(has_mark),
        _ => false,
    }
}

/// Returns the numbers of the definitions that a schema refers to, as often as it does.
fn marks(schema: &Value) -> Vec<usize> {
    let mut found = Vec::new();
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => {
                found.extend(number_of(members));
                waiting.extend(members.values());
            }
            _ => {}
        }
    }
    found
}

fn number_of(schema: &Map<String, Value>) -> Option<usize> {
    usize::try_from(schema.get(MARK)?.as_u64()?).ok()
}

/// Returns which nodes of a graph can reach themselves: those in strongly connected components with an edge (Tarjan's
/// algorithm, without recursion).
fn in_cycles(edges: &[Vec<usize>]) -> Vec<bool> {
    const UNSEEN: usize = usize::MAX;
    let count = edges.len();
    let mut order = vec![UNSEEN; count];
    let mut low = vec![0; count];
    let mut on_stack = vec![false; count];
    let mut cyclic = vec![false; count];
    let mut stack = Vec::new();
    let mut next_order = 0;
    for start in 0..count {
        if order[start] != UNSEEN {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((node, edge)) = path.pop() {
            if edge == 0 {
                order[node] = next_order;
                low[node] = next_order;
                next_order += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&target) = edges[node].get(edge) {
                path.push((node, edge + 1));
                if order[target] == UNSEEN {
                    path.push((target, 0));
                } else if on_stack[target] {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            if low[node] == order[node] {
                let start = stack.iter().rposition(|other| *other == node).unwrap_or(0);
                let component = stack.split_off(start);
                let is_cyclic = component.len() > 1 || edges[node].contains(&node);
                for member in component {
                    on_stack[member] = false;
                    cyclic[member] = is_cyclic;
                }
            }
            if let Some((parent, _)) = path.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    cyclic
}

struct Writer<'s> {
    is_inline: Vec<bool>,
    definitions: &'s [Definition],
    /// The definitions that are referred to.
    kept: Vec<usize>,
    is_kept: Vec<bool>,
}

impl Writer<'_> {
    fn write(&mut self, value: Value, depth: usize) -> Value {
        match value {
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.write(item, depth + 1));
                Value::Array(items.collect())
            }
            Value::Object(mut members) => {
                let number = number_of(&members).filter(|number| *number < self.definitions.len());
                members.shift_remove(MARK);
                let mut written = Map::new();
                for (name, value) in members {
                    let value = self.write(value, depth + 1);
                    written.insert(name, value);
                }
                match number {
                    Some(number) => self.resolve(number, written, depth),
                    None => Value::Object(written),
                }
            }
            other => other,
        }
    }

    /// Returns a definition, or a reference to it, with the keywords beside the reference.
    fn resolve(&mut self, number: usize, beside: Map<String, Value>, depth: usize) -> Value {
        let definition = &self.definitions[number];
        // Arrays and objects of keywords count, so this is about half as many schemas.
        if !self.is_inline[number] || depth > 2 * MAX_SCHEMA_DEPTH / 3 {
            if !std::mem::replace(&mut self.is_kept[number], true) {
                self.kept.push(number);
            }
            let mut reference = Map::new();
            reference.insert(
                "$ref".to_owned(),
                format!("#/$defs/{}", definition.name).into(),
            );
            reference.extend(beside);
            return Value::Object(reference);
        }
        let schema = self.write(definition.schema.clone(), depth);
        let Value::Object(mut schema) = schema else {
            return match beside.is_empty() {
                true => schema,
                false => Value::Object(beside),
            };
        };
        let conflicts = |name: &String| schema.contains_key(name) && !is_annotation(name);
        if beside.keys().any(conflicts) {
            let mut both = beside;
            match both.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(Value::Object(schema)),
                _ => drop(both.insert(
                    "allOf".to_owned(),
                    Value::Array(vec![Value::Object(schema)]),
                )),
            }
            return Value::Object(both);
        }
        schema.extend(beside);
        Value::Object(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_all_nodes_in_cycles() {
        let edges = [vec![1], vec![2, 3], vec![1], vec![], vec![4], vec![0]];
        let expected = [false, true, true, false, true, false];
        assert_eq!(in_cycles(&edges), expected);
    }
}
