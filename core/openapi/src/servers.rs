//! The servers that a document names.

use serde_json::Value;

use crate::document::Document;
use crate::operation::Operation;
use crate::reference::{self, DocumentLocation};

impl Document {
    /// Returns the URL of the first server of an operation, without a `/` at its end: that of the operation, of its path,
    /// or of the document. `None` if it is relative and the URL of the document is not known.
    pub(crate) fn server_of(&self, operation: &Operation) -> Option<String> {
        let places = [
            operation.place.child("servers"),
            operation.path_place.child("servers"),
            DocumentLocation::new(0, "/servers"),
        ];
        let mut servers = places.iter().map(|place| self.at(&place.child("0")));
        let server = servers.find_map(|server| server);
        let url = match server {
            Some(server) => expanded(server)?,
            // The specification's default.
            None => "/".to_owned(),
        };
        let absolute = match self.url() {
            Some(base) => reference::absolute(&url, Some(base)).ok()?,
            None if url.contains("://") => url,
            None => return None,
        };
        Some(absolute.trim_end_matches('/').to_owned())
    }
}

/// Returns a server's URL with the defaults of its variables.
fn expanded(server: &Value) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        if let Some(default) = variable.get("default").and_then(Value::as_str) {
            url = url.replace(&format!("{{{name}}}"), default);
        }
    }
    (!url.contains(['{', '}'])).then_some(url)
}
