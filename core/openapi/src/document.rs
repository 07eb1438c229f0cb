//! Documents: their version, and the values that references in them lead to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::DocumentError;
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_REFERENCE_HOPS};
use crate::reference::{self, DocumentLocation};

/// An OpenAPI document of version 3.0 or 3.1, with the other documents that it refers to.
#[derive(Debug, Clone)]
pub struct Document {
    /// The first one is the OpenAPI document.
    documents: Vec<Source>,
    has_url: bool,
}

#[derive(Debug, Clone)]
struct Source {
    uri: String,
    value: Value,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// It is not JSON, is larger than [`MAX_DOCUMENT_BYTES`], or as for [`Document::new`].
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        if json.len() > MAX_DOCUMENT_BYTES {
            let reason = format!(
                "it has {} bytes, and at most {MAX_DOCUMENT_BYTES} are read (`MAX_DOCUMENT_BYTES`)",
                json.len()
            );
            return Err(DocumentError::new("#", reason));
        }
        let value = serde_json::from_slice(json).map_err(|error| {
            let reason = format!(
                "it is not JSON: {error}. If it is YAML, parse it first and pass the object"
            );
            DocumentError::new("#", reason)
        })?;
        Self::new(value)
    }

    /// Creates a document from its value.
    ///
    /// # Errors
    ///
    /// It is not an OpenAPI document of version 3.
    pub fn new(value: Value) -> Result<Self, DocumentError> {
        let version = value.get("openapi").and_then(Value::as_str);
        let reason = match version {
            Some(version) if version.starts_with("3.") => None,
            Some(version) => Some(format!(
                "its version is {version:?}, and 3.0 and 3.1 are supported"
            )),
            None if value.get("swagger").is_some() => {
                Some("it is a Swagger 2.0 document: convert it to OpenAPI 3 first".to_owned())
            }
            None => Some("it has no member `openapi` with its version".to_owned()),
        };
        match reason {
            Some(reason) => Err(DocumentError::new("#", reason)),
            None => Ok(Self {
                documents: vec![Source {
                    uri: reference::absolute("", None).unwrap_or_default(),
                    value,
                }],
                has_url: false,
            }),
        }
    }

    /// Sets the URL of the document, which relative references and server URLs are resolved against. Call it before
    /// [`with_other`](Self::with_other).
    ///
    /// # Errors
    ///
    /// It is not an absolute URI.
    pub fn with_url(mut self, url: &str) -> Result<Self, DocumentError> {
        let absolute = reference::parsed(url).map_err(|error| {
            let reason = format!("{url:?} is not an absolute URL: {error}");
            DocumentError::new("document URL", reason)
        })?;
        self.documents[0].uri = absolute;
        self.has_url = true;
        Ok(self)
    }

    /// Adds a document that references lead to. `uri` is as in the references of the first document, without the
    /// fragment, or absolute.
    ///
    /// # Errors
    ///
    /// `uri` is not a URI reference.
    pub fn with_other(mut self, uri: &str, value: Value) -> Result<Self, DocumentError> {
        let absolute = reference::absolute(uri, Some(&self.documents[0].uri));
        let uri = absolute.map_err(|reason| DocumentError::new("other documents", reason))?;
        self.documents.push(Source { uri, value });
        Ok(self)
    }

    /// Returns the URIs of the documents that are referred to, and are not here. Those of references in the data of
    /// examples are included.
    pub fn missing_documents(&self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for source in &self.documents {
            let mut waiting = vec![&source.value];
            while let Some(value) = waiting.pop() {
                match value {
                    Value::Array(items) => waiting.extend(items),
                    Value::Object(members) => {
                        if let Some(reference) = reference::of(value)
                            && let Some((uri, _)) = reference::split(reference).ok()
                            && let Ok(uri) = reference::absolute(uri, Some(&source.uri))
                            && !self.documents.iter().any(|known| known.uri == uri)
                        {
                            missing.insert(reference::shown(&uri).to_owned());
                        }
                        waiting.extend(members.values());
                    }
                    _ => {}
                }
            }
        }
        missing
    }

    /// Returns `info.title`.
    pub fn title(&self) -> Option<&str> {
        self.root().pointer("/info/title").and_then(Value::as_str)
    }

    /// Returns `info.version`.
    pub fn version(&self) -> Option<&str> {
        self.root().pointer("/info/version").and_then(Value::as_str)
    }

    pub(crate) fn root(&self) -> &Value {
        &self.documents[0].value
    }

    /// Returns the URL of the first document, if it is known.
    pub(crate) fn url(&self) -> Option<&str> {
        self.has_url.then_some(&*self.documents[0].uri)
    }

    /// Returns the value at a place.
    pub(crate) fn at(&self, place: &DocumentLocation) -> Option<&Value> {
        reference::value_at(&self.documents.get(place.document)?.value, &place.pointer)
    }

    /// Returns a place as text for errors.
    pub(crate) fn show(&self, place: &DocumentLocation) -> String {
        match place.document {
            0 => format!("#{}", place.pointer),
            other => {
                let uri = self.documents.get(other).map_or("", |source| &*source.uri);
                format!("{}#{}", reference::shown(uri), place.pointer)
            }
        }
    }

    pub(crate) fn error(
        &self,
        place: &DocumentLocation,
        reason: impl Into<String>,
    ) -> DocumentError {
        DocumentError::new(self.show(place), reason)
    }

    /// Follows references from a place, until there is a value that is none.
    ///
    /// # Errors
    ///
    /// A reference leads nowhere, to a document that is missing, or in a circle.
    pub(crate) fn follow(
        &self,
        place: &DocumentLocation,
    ) -> Result<(DocumentLocation, &Value), DocumentError> {
        let mut here = place.clone();
        for _ in 0..MAX_REFERENCE_HOPS {
            let Some(value) = self.at(&here) else {
                return Err(self.error(place, format!("{} does not exist", self.show(&here))));
            };
            match reference::of(value) {
                Some(reference) => here = self.target(reference, &here)?,
                None => return Ok((here, value)),
            }
        }
        Err(self.error(place, "its references lead in a circle"))
    }

    /// Returns the place that a reference leads to.
    ///
    /// # Errors
    ///
    /// As for [`follow`](Self::follow), for one reference.
    pub(crate) fn target(
        &self,
        reference: &str,
        from: &DocumentLocation,
    ) -> Result<DocumentLocation, DocumentError> {
        let wrong =
            |reason: &str| self.error(from, format!("the reference {reference:?}: {reason}"));
        let (uri, pointer) = reference::split(reference).map_err(|reason| wrong(&reason))?;
        let document = if uri.is_empty() {
            from.document
        } else {
            let base = self.documents.get(from.document).map(|source| &*source.uri);
            let uri = reference::absolute(uri, base).map_err(|reason| wrong(&reason))?;
            let known = self.documents.iter().position(|known| known.uri == uri);
            known.ok_or_else(|| {
                let shown = reference::shown(&uri);
                wrong(&format!(
                    "the document {shown:?} is not here, and is not fetched: pass it with this URI \
                     (`external_documents`)"
                ))
            })?
        };
        let target = DocumentLocation::new(document, pointer);
        match self.at(&target) {
            Some(_) => Ok(target),
            None => Err(wrong("it leads nowhere")),
        }
    }

    /// Follows references to an object.
    pub(crate) fn object(
        &self,
        place: &DocumentLocation,
    ) -> Result<(DocumentLocation, &Map<String, Value>), DocumentError> {
        let (place, value) = self.follow(place)?;
        match value.as_object() {
            Some(object) => Ok((place, object)),
            None => Err(self.error(&place, "it must be an object")),
        }
    }
}
