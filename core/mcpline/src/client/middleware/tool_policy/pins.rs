//! The definitions of tools as they were when they were first listed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::difference::difference;

/// Maximum size of all definitions that are kept, in bytes as JSON: as much as a client accepts of a list by default.
pub(super) const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Maximum size of the changed definitions that can be accepted, in bytes as JSON. Others are known to have changed, and can be
/// accepted by an edit of the file.
const MAX_CHANGED_BYTES: usize = 8 * 1024 * 1024;

/// Members of a definition that are not compared: they change neither what a model reads nor what a host does.
const IGNORED: [&str; 1] = ["icons"];

/// Definitions by the names of their tools.
pub(super) type Definitions = BTreeMap<String, Arc<Value>>;

/// The pinned definitions of one server, and what is known of its current ones.
#[derive(Debug, Default)]
pub(super) struct Pins {
    definitions: Definitions,
    bytes: usize,
    /// Tools that were listed with their pinned definition, since the list was last outdated.
    verified: HashSet<String>,
    /// Pinned tools whose definition is another one.
    changed: HashMap<String, Change>,
    changed_bytes: usize,
    /// Tools whose change was accepted since the file was written.
    accepted: HashSet<String>,
    /// Whether there are definitions that the file does not have.
    is_unwritten: bool,
}

/// How the definition of a tool has changed.
#[derive(Debug)]
struct Change {
    difference: String,
    /// `None` if it is too large to be kept.
    definition: Option<Arc<Value>>,
    bytes: usize,
}

/// What pins say about a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PinCheck {
    /// It has the pinned definition, or was pinned just now.
    Same,
    /// Its definition is another one; with the difference.
    Changed(String),
    /// There is no room for its definition.
    Full,
}

impl Pins {
    pub(super) fn new(definitions: Definitions) -> Self {
        let bytes = definitions.iter().map(|(name, of)| size(name, of)).sum();
        Self {
            definitions,
            bytes,
            ..Self::default()
        }
    }

    pub(super) fn pinned(&self, name: &str) -> Option<Arc<Value>> {
        self.definitions.get(name).cloned()
    }

    /// Records a definition that was compared with `pinned`, which was pinned then. Pins it if there was none.
    pub(super) fn record(
        &mut self,
        name: &str,
        definition: Arc<Value>,
        compared: PinComparison,
    ) -> PinCheck {
        match compared {
            PinComparison::Same => {
                self.remove_change(name);
                self.verified.insert(name.to_owned());
                PinCheck::Same
            }
            PinComparison::Unknown => {
                if let Some(pinned) = self.pinned(name) {
                    // Pinned by a concurrent list.
                    let compared = PinComparison::of(Some(&pinned), &definition);
                    return self.record(name, definition, compared);
                }
                let bytes = size(name, &definition);
                if self.bytes + bytes > MAX_BYTES {
                    return PinCheck::Full;
                }
                self.bytes += bytes;
                self.definitions.insert(name.to_owned(), definition);
                self.verified.insert(name.to_owned());
                self.is_unwritten = true;
                PinCheck::Same
            }
            PinComparison::Different(difference) => {
                self.verified.remove(name);
                self.remove_change(name);
                let bytes = size(name, &definition);
                let is_kept = self.changed_bytes + bytes <= MAX_CHANGED_BYTES;
                let bytes = if is_kept { bytes } else { 0 };
                self.changed_bytes += bytes;
                let change = Change {
                    difference: difference.clone(),
                    definition: is_kept.then_some(definition),
                    bytes,
                };
                self.changed.insert(name.to_owned(), change);
                PinCheck::Changed(difference)
            }
        }
    }

    fn remove_change(&mut self, name: &str) -> Option<Change> {
        let change = self.changed.remove(name)?;
        self.changed_bytes -= change.bytes;
        Some(change)
    }

    /// Returns the difference of a tool that has changed.
    pub(super) fn difference(&self, name: &str) -> Option<&str> {
        self.changed
            .get(name)
            .map(|change| change.difference.as_str())
    }

    /// Returns the tools that have changed, with their differences, by name.
    pub(super) fn changes(&self) -> Vec<(String, String)> {
        let all = self.changed.iter();
        let mut all: Vec<_> = all
            .map(|(name, change)| (name.clone(), change.difference.clone()))
            .collect();
        all.sort();
        all
    }

    pub(super) fn is_verified(&self, name: &str) -> bool {
        self.verified.contains(name)
    }

    /// Forgets which tools have their pinned definition: the list may be another one now.
    pub(super) fn clear_verified(&mut self) {
        self.verified.clear();
    }

    /// Pins the changed definition of a tool. Returns whether there was one.
    pub(super) fn accept(&mut self, name: &str) -> bool {
        let Some(definition) = self
            .remove_change(name)
            .and_then(|change| change.definition)
        else {
            return false;
        };
        self.definitions.insert(name.to_owned(), definition);
        self.verified.insert(name.to_owned());
        self.accepted.insert(name.to_owned());
        self.is_unwritten = true;
        true
    }

    /// Returns what has to be written to the file, and which tools replace those of the file; `None` if nothing has changed.
    pub(super) fn take_unwritten(&mut self) -> Option<(Definitions, HashSet<String>)> {
        std::mem::take(&mut self.is_unwritten)
            .then(|| (self.definitions.clone(), std::mem::take(&mut self.accepted)))
    }

    /// Takes over what the file has, which another client may have written.
    pub(super) fn adopt(&mut self, written: Definitions) {
        for (name, definition) in written {
            let own = self.definitions.get(&name);
            if own.is_none_or(|own| **own != *definition) {
                self.verified.remove(&name);
                self.bytes += size(&name, &definition);
                if let Some(own) = self.definitions.insert(name.clone(), definition) {
                    self.bytes -= size(&name, &own);
                }
            }
        }
    }

    /// Records that the file could not be written.
    pub(super) fn record_failed_write(&mut self, accepted: HashSet<String>) {
        self.is_unwritten = true;
        self.accepted.extend(accepted);
    }
}

/// How a definition compares with the pinned one.
#[derive(Debug)]
pub(super) enum PinComparison {
    /// None is pinned.
    Unknown,
    Same,
    /// With the difference.
    Different(String),
}

impl PinComparison {
    pub(super) fn of(pinned: Option<&Value>, definition: &Value) -> Self {
        match pinned {
            None => Self::Unknown,
            Some(pinned) if pinned == definition => Self::Same,
            Some(pinned) => Self::Different(difference(pinned, definition)),
        }
    }
}

/// Returns the part of a definition that is compared.
pub(super) fn compared(mut definition: Value) -> Value {
    if let Some(members) = definition.as_object_mut() {
        members.retain(|name, _| !IGNORED.contains(&name.as_str()));
    }
    definition
}

fn size(name: &str, definition: &Value) -> usize {
    name.len() + definition.to_string().len()
}
