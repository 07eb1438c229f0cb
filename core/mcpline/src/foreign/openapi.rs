//! Import of an HTTP API from foreign code: its operations are listed, the author selects, and the selected ones are added.

use mcpline_protocol::wire::Raw;
use serde_json::{Value, json};

use crate::error::Error;
use crate::openapi::{Document, DocumentError, ImportAs, OpenApi, Operation};
use crate::server::Server;

use super::options::OpenApiOptions;

/// An HTTP API whose operations can be added to a server.
#[derive(Debug)]
pub struct OpenApiImport {
    api: OpenApi,
    operations: Vec<Operation>,
}

impl OpenApiImport {
    /// Reads a document, in JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the document or an option is invalid.
    pub fn read(document: &[u8], mut options: OpenApiOptions) -> Result<Self, Error> {
        let usage = |error: DocumentError| Error::usage(error.to_string());
        let mut document = Document::from_json(document).map_err(usage)?;
        if let Some(url) = options.document_url.take() {
            document = document.with_url(&url).map_err(usage)?;
        }
        for (uri, value) in std::mem::take(&mut options.external_documents) {
            document = document.with_other(&uri, value).map_err(usage)?;
        }
        let mut outcome = Ok(());
        let api =
            OpenApi::new(document).with_settings(|settings| outcome = options.apply(settings));
        outcome?;
        Ok(Self {
            operations: api.operations()?,
            api,
        })
    }

    /// Returns the operations as a JSON array of objects with `id`, `method`, `path`, `name`, `summary`, `description`, `tags`
    /// and `deprecated`; what an operation does not have is `null`.
    pub fn operations(&self) -> Raw {
        let operations = self.operations.iter().map(|operation| {
            json!({
                "id": operation.id,
                "method": operation.method.as_str(),
                "path": operation.path,
                "name": operation.name,
                "summary": operation.summary,
                "description": operation.description,
                "tags": operation.tags,
                "deprecated": operation.is_deprecated,
            })
        });
        let operations = Value::Array(operations.collect()).to_string();
        Raw::from_trusted(operations.into_bytes())
    }

    /// Adds operations to a server, all or none. `selected` has one entry for each operation: `tool`, `resource`, or
    /// `nothing`. Returns the names of tools, and the URIs or templates of resources.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): an entry is none of these words, or as for
    /// [`OpenApi::add_to_server`].
    pub fn add(self, server: &Server, selected: &[String]) -> Result<Vec<String>, Error> {
        let words = selected.iter().map(|word| match &**word {
            "tool" => Ok(ImportAs::Tool),
            "resource" => Ok(ImportAs::Resource),
            "nothing" => Ok(ImportAs::Nothing),
            other => Err(Error::usage(format!(
                "`select` returned {other:?}: return `tool`, `resource` or `nothing`"
            ))),
        });
        let words: Vec<_> = words.collect::<Result<_, _>>()?;
        let selected: std::collections::HashMap<_, _> = self
            .operations
            .into_iter()
            .map(|operation| operation.name)
            .zip(words)
            .collect();
        let select = move |operation: &Operation| {
            let import_as = selected.get(&operation.name).copied();
            import_as.unwrap_or(ImportAs::Nothing)
        };
        self.api.select(select).add_to_server(server)
    }
}
