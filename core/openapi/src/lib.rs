//! OpenAPI 3.0 and 3.1 documents as tools and resources, without I/O.
//!
//! A [`Document`] lists its [`Operation`]s. [`Document::import`] makes an [`ImportedOperation`] of one: the JSON Schemas of
//! its arguments and of its result, the HTTP request for given arguments ([`RequestParts`]), and the meaning of the response
//! ([`Outcome`]). Whoever uses this crate sends the requests.
//!
//! ```
//! use mcpline_openapi::{Credentials, Document, ImportOptions};
//! use serde_json::json;
//!
//! let document = Document::new(json!({
//!     "openapi": "3.1.0",
//!     "info": {"title": "Pets", "version": "1"},
//!     "paths": {
//!         "/pets/{id}": {
//!             "get": {
//!                 "operationId": "getPet",
//!                 "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
//!                 "responses": {"200": {"description": "The pet"}}
//!             }
//!         }
//!     }
//! }))?;
//! let operations = document.operations()?;
//! let pet = document.import(&operations[0], &ImportOptions::default())?;
//! assert_eq!(pet.input_schema["required"], json!(["id"]));
//!
//! let arguments = json!({"id": 7});
//! let request = pet.request(arguments.as_object().unwrap(), &Credentials::default())?;
//! assert_eq!((request.method, &*request.path_and_query), ("GET", "/pets/7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod body;
mod document;
mod error;
mod imported_operation;
pub mod limits;
mod multipart;
mod names;
mod operation;
mod parameter;
mod percent;
mod reference;
mod resource;
mod response;
mod schema;
mod security;
mod servers;
mod style;

pub use document::Document;
pub use error::{ArgumentError, DocumentError};
pub use imported_operation::{ImportOptions, ImportedOperation, RequestParts};
pub use operation::{Method, Operation};
pub use response::{Outcome, ResponseParts, status_text};
pub use security::{Credential, Credentials};
