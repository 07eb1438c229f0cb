//! Adapts values to the revision of a peer: what an older peer cannot read is rewritten or left out,
//! never sent raw.
//!
//! Definitions are adapted as typed values, once per revision. Results are adapted as raw JSON on
//! every call, so the common case, nothing to do, returns the bytes untouched. Input requests and their
//! responses are adapted as JSON, too: a few members change.

mod content;
mod definition;
mod input_request;
mod input_response;
mod request;
mod schema;

pub use content::{ToolOutput, content_blocks, prompt_messages, tool_output};
pub use definition::{
    client_capabilities, implementation, progress, prompt, resource, resource_template,
    server_capabilities, tool,
};
pub use input_request::{InexpressibleInputRequest, create_message_params, elicit_params};
pub use input_response::{InexpressibleInputResponse, input_response, needs_adapting};
pub use request::request_params;
pub use schema::wraps_output;
