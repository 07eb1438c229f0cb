//! Tools and resources for the operations of an HTTP API that an OpenAPI document describes.
//!
//! [`OpenApi`] adds them to a [`Server`](crate::Server). The crate `mcpline-openapi` reads the document, and says what a
//! request and a response contain; this module selects operations, names them, and sends the requests.
//!
//! ```no_run
//! use mcpline::Server;
//! use mcpline::openapi::{Credential, ImportAs, OpenApi};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = std::fs::read("openapi.json")?;
//! let pets = OpenApi::from_json(&document)?
//!     .with_base_url("https://api.example.com/v1")
//!     .with_credential("token", Credential::Secret(std::env::var("PETS_TOKEN")?))
//!     .select(|operation| match operation.is_deprecated {
//!         true => ImportAs::Nothing,
//!         false => ImportAs::Tool,
//!     });
//! let server = Server::new("pets", "1.0.0");
//! server.add(pets)?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod api_client;
mod credential_provider;
mod failure;
mod handlers;
mod http_client;
mod import;
mod large_integers;
mod settings;

pub use crate::http_client::{ConnectTarget, HttpConnector, HttpSettings, Proxy};
pub use credential_provider::{CredentialFuture, CredentialProvider};
pub use http_client::{ApiHttpClient, BoxError, HttpResponseFuture, ResponseBody};
pub use import::{ImportAs, OpenApi};
pub use mcpline_openapi::{Credential, Credentials, Document, DocumentError, Method, Operation};
pub use settings::OpenApiSettings;
