//! References between documents: URIs, and the JSON pointers in their fragments (RFC 6901).

use std::borrow::Cow;

use fluent_uri::{Uri, UriRef};
use serde_json::Value;

use crate::percent;

/// The URI of a document without one, so that relative references have a base.
const UNNAMED: &str = "document:///";

/// Returns the absolute URI of a document: `uri` itself, or resolved against that of the first document.
pub(crate) fn absolute(uri: &str, base: Option<&str>) -> Result<String, String> {
    let base = base.unwrap_or(UNNAMED);
    let base = Uri::parse(base).map_err(|error| format!("{base:?} is not a URI: {error}"))?;
    let reference = UriRef::parse(uri).map_err(|error| format!("{uri:?} is not a URI: {error}"))?;
    let resolved = reference.resolve_against(&base);
    let resolved = resolved.map_err(|error| format!("{uri:?} cannot be resolved: {error}"))?;
    let resolved = resolved.as_str();
    Ok(resolved
        .split_once('#')
        .map_or(resolved, |(uri, _)| uri)
        .to_owned())
}

/// Returns an absolute URI without its fragment.
pub(crate) fn parsed(uri: &str) -> Result<String, String> {
    let uri = Uri::parse(uri).map_err(|error| error.to_string())?;
    let uri = uri.as_str();
    Ok(uri.split_once('#').map_or(uri, |(uri, _)| uri).to_owned())
}

/// Returns a URI as its author knows it.
pub(crate) fn shown(uri: &str) -> &str {
    uri.strip_prefix(UNNAMED).unwrap_or(uri)
}

/// A place in one of the documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DocumentLocation {
    /// The number of the document: 0 is the first.
    pub(crate) document: usize,
    /// The JSON pointer, without the `#`.
    pub(crate) pointer: String,
}

impl DocumentLocation {
    pub(crate) fn new(document: usize, pointer: impl Into<String>) -> Self {
        Self {
            document,
            pointer: pointer.into(),
        }
    }

    /// Returns the place of a member or an element.
    pub(crate) fn child(&self, name: &str) -> Self {
        let mut pointer = String::with_capacity(self.pointer.len() + 1 + name.len());
        pointer.push_str(&self.pointer);
        pointer.push('/');
        match name.contains(['~', '/']) {
            true => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            false => pointer.push_str(name),
        }
        Self::new(self.document, pointer)
    }

    /// Returns the last part of the pointer.
    pub(crate) fn name(&self) -> String {
        unescaped(self.pointer.rsplit('/').next().unwrap_or_default()).into_owned()
    }
}

/// Returns the value that a JSON pointer leads to, as `Value::pointer` does. Few names are escaped, so few are copied.
pub(crate) fn value_at<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.is_empty() {
        return Some(root);
    }
    let mut names = pointer.strip_prefix('/')?.split('/').map(unescaped);
    names.try_fold(root, |value, name| match value {
        Value::Object(members) => members.get(&*name),
        Value::Array(items) => items.get(index(&name)?),
        _ => None,
    })
}

fn unescaped(name: &str) -> Cow<'_, str> {
    match name.contains('~') {
        true => Cow::Owned(name.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(name),
    }
}

/// Reads the index of an element: digits without a leading zero.
fn index(name: &str) -> Option<usize> {
    let is_index = name == "0" || !name.starts_with(['0', '+']);
    is_index.then(|| name.parse().ok()).flatten()
}

/// Splits a reference into the URI of a document, which may be empty, and a JSON pointer.
///
/// # Errors
///
/// The fragment is not a JSON pointer.
pub(crate) fn split(reference: &str) -> Result<(&str, String), String> {
    let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let pointer = percent::decoded(fragment)
        .ok_or_else(|| "its fragment is not percent-encoded UTF-8".to_owned())?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(
            "its fragment is an anchor: only JSON pointers (`#/…`) are supported".to_owned(),
        );
    }
    Ok((uri, pointer))
}

/// Returns the `$ref` of an object.
pub(crate) fn of(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_values_that_pointers_lead_to() {
        let root = json!({
            "a": [1, {"b": 2}], "a/b": 3, "c~d": 4, "~1": 5, "": 6, "0": 7, "e": {"": {"": 8}},
        });
        let pointers = [
            "", "/", "/a", "/a/0", "/a/1/b", "/a/2", "/a/01", "/a/+1", "/a/-", "/a/", "/a/0/b",
            "/a~1b", "/c~0d", "/~01", "/~1", "/0", "/e//", "/e/", "a", "/b",
        ];
        for pointer in pointers {
            assert_eq!(value_at(&root, pointer), root.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn escapes_the_names_of_children() {
        let place = DocumentLocation::new(0, "/paths")
            .child("/a~b/{c}")
            .child("get");
        assert_eq!(place.pointer, "/paths/~1a~0b~1{c}/get");
    }
}
