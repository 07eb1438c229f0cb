//! References between documents: URIs, and the JSON pointers in their fragments (RFC 6901).

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
pub(crate) struct Place {
    /// The number of the document: 0 is the first.
    pub(crate) document: usize,
    /// The JSON pointer, without the `#`.
    pub(crate) pointer: String,
}

impl Place {
    pub(crate) fn new(document: usize, pointer: impl Into<String>) -> Self {
        Self {
            document,
            pointer: pointer.into(),
        }
    }

    /// Returns the place of a member or an element.
    pub(crate) fn child(&self, name: &str) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        Self::new(self.document, format!("{}/{name}", self.pointer))
    }

    /// Returns the last part of the pointer.
    pub(crate) fn name(&self) -> String {
        let last = self.pointer.rsplit('/').next().unwrap_or_default();
        last.replace("~1", "/").replace("~0", "~")
    }
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
