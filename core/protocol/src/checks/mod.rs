//! Checks what the author of a server provides: definitions, input requests, `_meta`, content. An error here reaches
//! the author; a rejection by the peer would not.
//!
//! Each function returns a message that begins with the place of the error: `annotations.priority: …`.

mod content;
mod definitions;
mod input_requests;
mod path_safety;
mod schemas;
mod uris;

pub use content::{content, meta};
pub use definitions::{prompt, resource, resource_template, tool};
pub use input_requests::{UrlSafety, elicitation_url, input_request};
pub(crate) use input_requests::{has_role, implies_strings, messages};
pub use path_safety::{path_text, path_variables};
pub use schemas::author_schema;
pub use uris::uri;
