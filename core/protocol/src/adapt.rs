//! Fitting values to the revision of a peer: what an older peer cannot read is rewritten or left out,
//! never sent raw.
//!
//! Definitions are adapted as typed values, once per revision. Results are adapted as raw JSON on
//! every call, so the common case, nothing to do, returns the bytes untouched. Questions, and the answers of a
//! client, are adapted as JSON, too: it is a few members that change.

mod answer;
mod content;
mod definition;
mod question;
mod schema;

pub use answer::{CannotAnswer, client_answer, needs_adapting};
pub use content::{ToolOutput, content_blocks, prompt_messages, tool_output};
pub use definition::{
    client_capabilities, implementation, progress, prompt, resource, resource_template,
    server_capabilities, tool,
};
pub use question::{CannotAsk, create_message_params, elicit_params};
pub use schema::wraps_output;
