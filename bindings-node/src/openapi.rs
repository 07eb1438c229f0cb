//! Import of an HTTP API.

use std::sync::{Mutex, PoisonError};

use mcpline::foreign::options::OpenApiOptions;
use mcpline::foreign::{OpenApiFunctions, OpenApiImport};
use napi::{Error, Result};
use napi_derive::napi;

use crate::failure::Failure;
use crate::server::{Server, read};

/// An HTTP API whose operations JavaScript selects.
#[napi]
pub struct OpenApi {
    /// `None` once its operations have been added.
    import: Mutex<Option<OpenApiImport>>,
}

#[napi]
impl OpenApi {
    /// Reads a document: see [`OpenApiImport::read`]. `document` is JSON, and so are `options`, which are [`OpenApiOptions`].
    /// Handlers of the server by number: `client` sends the requests, and `credentials` return those of `schemes`.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        server: &Server,
        document: String,
        options: String,
        client: Option<u32>,
        schemes: Vec<String>,
        credentials: Vec<u32>,
    ) -> Result<Self> {
        let options: OpenApiOptions = read("the options", &options)?;
        let credentials = credentials.into_iter().map(|number| server.handler(number));
        let functions = OpenApiFunctions {
            http_client: client.map(|number| server.handler(number)),
            credentials: schemes.into_iter().zip(credentials).collect(),
            ..OpenApiFunctions::default()
        };
        let import = OpenApiImport::read(document.as_bytes(), options, functions);
        Ok(Self {
            import: Mutex::new(Some(import.map_err(|error| Failure::core(&error))?)),
        })
    }

    /// Returns the operations as JSON: see [`OpenApiImport::operations`].
    #[napi(catch_unwind)]
    pub fn operations(&self) -> Result<String> {
        let import = self.import.lock().unwrap_or_else(PoisonError::into_inner);
        let import = import.as_ref().ok_or_else(already_added_error)?;
        Ok(import.operations().as_str().to_owned())
    }

    /// Adds operations to a server: see [`OpenApiImport::add`].
    #[napi(catch_unwind)]
    pub fn add(&self, server: &Server, selected: Vec<String>) -> Result<Vec<String>> {
        let import = self
            .import
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let added = import
            .ok_or_else(already_added_error)?
            .add(server.core(), &selected);
        Ok(added.map_err(|error| Failure::core(&error))?)
    }
}

fn already_added_error() -> Error {
    Error::from_reason("the operations have been added already")
}
