//! What the author of a server gives: definitions, questions, `_meta`, content. Checked where it is given, because a peer
//! that refuses it later tells the author nothing.
//!
//! Each function returns what is wrong in words that begin with its place: `annotations.priority: …`.

mod content;
mod definitions;
mod questions;
mod uris;

pub use content::{content, meta};
pub use definitions::{prompt, resource, resource_template, tool};
pub use questions::{Visit, question, visit};
pub(crate) use questions::{has_role, implies_strings, messages};
pub use uris::{check_file_path, uri};
