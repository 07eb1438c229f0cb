//! The operations of a document, before they are imported.

use serde_json::{Map, Value};

use crate::document::Document;
use crate::error::DocumentError;
use crate::limits::{
    MAX_DESCRIPTION_BYTES, MAX_NAME_CHARS, MAX_OPERATIONS, MAX_TAG_BYTES, MAX_TAGS,
};
use crate::names::{self, UniqueNames};
use crate::reference::DocumentLocation;

/// The HTTP method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `HEAD`
    Head,
    /// `PATCH`
    Patch,
    /// `TRACE`
    Trace,
}

impl Method {
    const ALL: [Self; 8] = [
        Self::Get,
        Self::Put,
        Self::Post,
        Self::Delete,
        Self::Options,
        Self::Head,
        Self::Patch,
        Self::Trace,
    ];

    /// Returns the method as in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Head => "HEAD",
            Self::Patch => "PATCH",
            Self::Trace => "TRACE",
        }
    }

    /// Whether requests change nothing (RFC 9110, section 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Whether a repeated request has no further effect (RFC 9110, section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

/// An operation of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// `operationId`.
    pub id: Option<String>,
    /// The method.
    pub method: Method,
    /// The path, such as `/pets/{id}`.
    pub path: String,
    /// A name for a tool: the operation id, or else method and path, with only letters, digits, `_` and `-`. No two
    /// operations of a document have the same one.
    pub name: String,
    /// A short summary.
    pub summary: Option<String>,
    /// The description: summary and description of the document together.
    pub description: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Whether the document calls it deprecated.
    pub is_deprecated: bool,
    pub(crate) place: DocumentLocation,
    pub(crate) path_place: DocumentLocation,
}

impl Document {
    /// Returns the operations, in the order of the document.
    ///
    /// # Errors
    ///
    /// `paths` has an invalid form, or more than [`MAX_OPERATIONS`] operations; or an operation has more than [`MAX_TAGS`]
    /// tags, or one longer than [`MAX_TAG_BYTES`].
    pub fn operations(&self) -> Result<Vec<Operation>, DocumentError> {
        let mut operations = Vec::new();
        let mut taken = UniqueNames::new(MAX_NAME_CHARS);
        let root = DocumentLocation::new(0, "/paths");
        let Some(paths) = self.at(&root) else {
            return Ok(operations);
        };
        let Some(paths) = paths.as_object() else {
            return Err(self.error(&root, "it must be an object"));
        };
        for path in paths.keys().filter(|path| path.starts_with('/')) {
            let (path_place, item) = self.object(&root.child(path))?;
            for method in Method::ALL {
                let name = method.as_str().to_ascii_lowercase();
                if !item.contains_key(&name) {
                    continue;
                }
                let (place, operation) = self.object(&path_place.child(&name))?;
                if operations.len() == MAX_OPERATIONS {
                    let reason =
                        format!("it has more than {MAX_OPERATIONS} operations (`MAX_OPERATIONS`)");
                    return Err(self.error(&root, reason));
                }
                let id = text(operation, "operationId").filter(|id| !id.is_empty());
                operations.push(Operation {
                    name: name_of(id.as_deref(), method, path, &mut taken),
                    id,
                    method,
                    path: path.clone(),
                    summary: text(operation, "summary")
                        .or_else(|| text(item, "summary"))
                        .map(|summary| cut(summary, MAX_DESCRIPTION_BYTES)),
                    description: description(operation, item),
                    tags: self.tags(&place, operation)?,
                    is_deprecated: operation.get("deprecated") == Some(&Value::Bool(true)),
                    place,
                    path_place: path_place.clone(),
                });
            }
        }
        Ok(operations)
    }

    /// Returns the tags of an operation. Too many or too long ones are an error, because tags select operations: one that is
    /// left out could show an operation that the program hides.
    fn tags(
        &self,
        operation_place: &DocumentLocation,
        operation: &Map<String, Value>,
    ) -> Result<Vec<String>, DocumentError> {
        let tags = operation.get("tags").and_then(Value::as_array);
        let tags = tags.into_iter().flatten().filter_map(Value::as_str);
        let mut taken = Vec::new();
        for tag in tags.filter(|tag| !tag.is_empty()) {
            let reason = if taken.len() == MAX_TAGS {
                format!("it has more than {MAX_TAGS} tags (`MAX_TAGS`)")
            } else if tag.len() > MAX_TAG_BYTES {
                format!("a tag is longer than {MAX_TAG_BYTES} bytes (`MAX_TAG_BYTES`)")
            } else {
                taken.push(tag.to_owned());
                continue;
            };
            return Err(self.error(&operation_place.child("tags"), reason));
        }
        Ok(taken)
    }
}

fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    let text = object.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn name_of(id: Option<&str>, method: Method, path: &str, taken: &mut UniqueNames) -> String {
    let from_id = id.map(|id| names::sanitized(id, MAX_NAME_CHARS));
    let name = from_id.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let method = method.as_str().to_ascii_lowercase();
        names::sanitized(&format!("{method}{path}"), MAX_NAME_CHARS)
    });
    taken.take(name)
}

/// Returns summary and description as one text.
fn description(operation: &Map<String, Value>, item: &Map<String, Value>) -> Option<String> {
    let of = |name: &str| text(operation, name).or_else(|| text(item, name));
    let whole = match (of("summary"), of("description")) {
        (Some(summary), Some(description)) if !description.starts_with(&*summary) => {
            format!("{summary}\n\n{description}")
        }
        (summary, description) => description.or(summary)?,
    };
    Some(cut(whole, MAX_DESCRIPTION_BYTES))
}

/// Cuts a text at a limit in bytes.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let is_boundary = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=limit).rev().find(is_boundary).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
