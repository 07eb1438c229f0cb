//! Definitions of features, where they are registered. `Some` is a warning: a key of `_meta` that is malformed.

use crate::vocabulary::{Prompt, Resource, ResourceTemplate, TaskSupport, Tool};

use super::content::{annotations, extra_meta};
use super::uris;

/// Checks a tool's definition, beside its schemas.
///
/// # Errors
/// It must run as a task, which mcpline's servers don't have; its `_meta` has a key that it may not have.
pub fn tool(tool: &Tool) -> Result<Option<String>, String> {
    let execution = tool.execution.as_ref();
    if execution.and_then(|execution| execution.task_support.as_ref())
        == Some(&TaskSupport::Required)
    {
        return Err(
            "execution.taskSupport: `required` needs tasks, which mcpline does not serve; use `forbidden`".to_owned(),
        );
    }
    extra_meta(tool.meta.as_ref())
}

/// Checks a resource's definition.
///
/// # Errors
/// Its URI is none (RFC 3986), its annotations have values that they may not have, or its `_meta` has such a key.
pub fn resource(resource: &Resource) -> Result<Option<String>, String> {
    uris::uri(&resource.uri)?;
    annotations(resource.annotations.as_ref())?;
    extra_meta(resource.meta.as_ref())
}

/// Checks the definition of a resource template, beside its syntax.
///
/// # Errors
/// What it makes has no scheme, or an invalid one (RFC 3986, section 3.1); else as for [`resource`].
pub fn resource_template(template: &ResourceTemplate) -> Result<Option<String>, String> {
    uris::template_scheme(&template.uri_template)?;
    annotations(template.annotations.as_ref())?;
    extra_meta(template.meta.as_ref())
}

/// Checks a prompt's definition.
///
/// # Errors
/// Its `_meta` has a key that it may not have.
pub fn prompt(prompt: &Prompt) -> Result<Option<String>, String> {
    extra_meta(prompt.meta.as_ref())
}
