//! Checks definitions of features at their registration. `Some` is a warning about a malformed key of `_meta`.

use crate::vocabulary::{Prompt, Resource, ResourceTemplate, TaskSupport, Tool};

use super::content::{annotations, extra_meta};
use super::uris;

/// Checks a tool's definition, except for its schemas.
///
/// # Errors
/// If it must run as a task, which mcpline's servers don't support, or its `_meta` has a reserved key.
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
/// If its URI is invalid (RFC 3986), its annotations have invalid values, or its `_meta` has a reserved key.
pub fn resource(resource: &Resource) -> Result<Option<String>, String> {
    uris::uri(&resource.uri)?;
    annotations(resource.annotations.as_ref())?;
    extra_meta(resource.meta.as_ref())
}

/// Checks the definition of a resource template, except for its syntax.
///
/// # Errors
/// If its URIs would have no scheme, or an invalid one (RFC 3986, section 3.1); otherwise as for [`resource`].
pub fn resource_template(template: &ResourceTemplate) -> Result<Option<String>, String> {
    uris::template_scheme(&template.uri_template)?;
    annotations(template.annotations.as_ref())?;
    extra_meta(template.meta.as_ref())
}

/// Checks a prompt's definition.
///
/// # Errors
/// If its `_meta` has a reserved key.
pub fn prompt(prompt: &Prompt) -> Result<Option<String>, String> {
    extra_meta(prompt.meta.as_ref())
}
