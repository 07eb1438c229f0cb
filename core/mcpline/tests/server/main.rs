//! Servers through the public API: definitions, handlers, limits and what clients of every revision see of them.

#[path = "../support/mod.rs"]
mod support;

mod author_mistakes;
mod blocking_handlers;
mod completions;
mod composition;
mod custom_methods;
mod custom_notifications;
mod custom_transports;
mod debug_mode;
mod definitions;
mod error_chains;
mod extensions;
mod faults;
mod feature_selection;
mod input_requests;
mod limits;
mod lines;
mod macros;
mod metrics;
mod named_pipe;
mod openapi;
mod registry;
mod resource_not_found;
mod session_state;
mod shutdown;
mod stats;
mod suspended_handlers;
mod template_lists;
mod tool_errors;
mod tool_timeouts;
mod tool_transforms;
mod typed_arguments;
mod unix_socket;
mod url_elicitation;
