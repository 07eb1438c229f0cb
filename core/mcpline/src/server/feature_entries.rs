//! Tools, resources, templates and prompts as the registry keeps them: checked definitions with their options and
//! handlers.

use std::time::Duration;

use mcpline_protocol::adapt;
use mcpline_protocol::checks;
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::session::{Change, Rate, TokenBucket};
use mcpline_protocol::uri_template::UriTemplate;
use mcpline_protocol::vocabulary::{Prompt, Resource, ResourceTemplate, Tool, is_recommended_name};
use mcpline_protocol::wire::header::ParamHeaders;
use serde_json::Value;

use crate::error::Error;
use crate::sync::{Arc, Mutex, PoisonError};

use super::call_kind::CallKind;
use super::feature_options::{PromptOptions, ResourceOptions, ToolOptions};
use super::handler::Handler;
use super::item_list::ItemList;
use super::registry::Registry;
use super::tool_transform::ToolTransform;

/// What the registry needs to know of an entry of any kind.
pub(crate) trait FeatureEntry: Clone {
    const KIND: CallKind;
    /// The change of a list that clients are notified of.
    const CHANGE: Change;
    /// Whether arguments of such features have completers.
    const IS_COMPLETED: bool;

    /// The list of the registry that has entries of this kind.
    fn list(registry: &Registry) -> &ItemList<Self>;
    fn list_mut(registry: &mut Registry) -> &mut ItemList<Self>;

    /// Returns the name of the tool or prompt, or the URI of the resource or template.
    fn key(&self) -> &str;
    fn tags(&self) -> &[String];

    /// Returns the name of a feature that is mounted with a prefix.
    fn prefixed_key(prefix: &str, name: &str) -> String;

    /// Returns a copy with another name.
    ///
    /// # Errors
    ///
    /// The name is invalid.
    fn with_key(&self, name: &str) -> Result<Self, Error>;

    /// Returns the copy that a mount changes. Tools alone can be changed.
    ///
    /// # Errors
    ///
    /// The change is impossible.
    fn transformed_by(&self, _transform: &ToolTransform) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

#[derive(Clone)]
pub(crate) struct ToolEntry {
    pub(crate) tool: Tool,
    pub(crate) options: ToolOptions,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) input: Option<CompiledSchema>,
    pub(crate) output: Option<CompiledSchema>,
    /// The output schema is not an object's: older revisions get the structured content wrapped.
    pub(crate) wrapped: bool,
    pub(crate) headers: ParamHeaders,
    /// Rate limit of its calls, with the current state.
    pub(crate) bucket: Option<(Rate, Arc<Mutex<TokenBucket>>)>,
}

#[derive(Clone)]
pub(crate) struct ResourceEntry {
    pub(crate) resource: Resource,
    pub(crate) options: ResourceOptions,
    pub(crate) handler: Arc<dyn Handler>,
}

#[derive(Clone)]
pub(crate) struct TemplateEntry {
    pub(crate) template: ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) options: ResourceOptions,
    pub(crate) handler: Arc<dyn Handler>,
    /// Lists resources of the template.
    pub(crate) list: Option<Arc<dyn Handler>>,
}

#[derive(Clone)]
pub(crate) struct PromptEntry {
    pub(crate) prompt: Prompt,
    pub(crate) options: PromptOptions,
    pub(crate) handler: Arc<dyn Handler>,
}

impl ToolEntry {
    /// Checks a tool.
    pub(super) fn new(
        mut tool: Tool,
        options: ToolOptions,
        handler: Arc<dyn Handler>,
        default_rate: Option<Rate>,
    ) -> Result<Self, Error> {
        let name = &tool.name;
        check_name("tool", name)?;
        if !is_recommended_name(name) {
            tracing::warn!(
                tool = name,
                "clients may refuse a tool whose name isn't 1 to 128 of A-Z, a-z, 0-9, _, - and ."
            );
        }
        options.check()?;
        if options.timeout == Some(Duration::ZERO) {
            return Err(Error::usage(format!(
                "tool {name:?}: `timeout` must be longer than 0"
            )));
        }
        checked(&format_args!("tool {name:?}"), checks::tool(&tool))?;
        let schema_error = |which: &str, error: &dyn std::fmt::Display| {
            Error::usage(format!(
                "the {which} of the tool {name} is unusable: {error}"
            ))
        };
        checks::author_schema(&tool.input_schema)
            .map_err(|reason| schema_error("input schema", &reason))?;
        tool.output_schema
            .as_ref()
            .map_or(Ok(()), checks::author_schema)
            .map_err(|reason| schema_error("output schema", &reason))?;
        require_object_type(&mut tool.input_schema)
            .map_err(|error| schema_error("input schema", &error))?;
        add_empty_properties(&mut tool.input_schema);
        let input = CompiledSchema::compile(&tool.input_schema)
            .map_err(|error| schema_error("input schema", &error))?;
        let output = tool
            .output_schema
            .as_ref()
            .map(CompiledSchema::compile)
            .transpose()
            .map_err(|error| schema_error("output schema", &error))?;
        let headers = ParamHeaders::compile(&tool.input_schema)
            .map_err(|error| schema_error("x-mcp-header", &error))?;
        let rate = options.rate.or(default_rate);
        Ok(Self {
            input: Some(input),
            output,
            wrapped: tool.output_schema.as_ref().is_some_and(adapt::wraps_output),
            headers,
            bucket: rate.map(|rate| (rate, Arc::default())),
            tool,
            options,
            handler,
        })
    }

    /// Returns whether the rate limit admits a call at the time that `now` returns. `now` is called only for tools with
    /// a limit.
    pub(crate) fn admit(&self, now: impl FnOnce() -> Duration) -> bool {
        self.bucket.as_ref().is_none_or(|(rate, bucket)| {
            bucket
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(*rate, now())
        })
    }
}

impl ResourceEntry {
    /// Checks a resource.
    pub(super) fn new(
        resource: Resource,
        options: ResourceOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        options.check()?;
        options.check_unchecked_variables(None)?;
        checked(
            &format_args!("resource {:?}", resource.uri),
            checks::resource(&resource),
        )?;
        Ok(Self {
            resource,
            options,
            handler,
        })
    }
}

impl TemplateEntry {
    /// Checks a resource template.
    pub(super) fn new(
        template: ResourceTemplate,
        options: ResourceOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        options.check()?;
        let text = &template.uri_template;
        let pattern = parsed(text)?;
        options.check_unchecked_variables(Some(&pattern))?;
        checked(
            &format_args!("resource template {text:?}"),
            checks::resource_template(&template),
        )?;
        Ok(Self {
            template,
            pattern,
            options,
            handler,
            list: None,
        })
    }
}

impl PromptEntry {
    /// Checks a prompt.
    pub(super) fn new(
        prompt: Prompt,
        options: PromptOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        options.check()?;
        let name = &prompt.name;
        check_name("prompt", name)?;
        checked(&format_args!("prompt {name:?}"), checks::prompt(&prompt))?;
        Ok(Self {
            prompt,
            options,
            handler,
        })
    }
}

impl FeatureEntry for ToolEntry {
    const KIND: CallKind = CallKind::Tool;
    const CHANGE: Change = Change::Tools;
    const IS_COMPLETED: bool = false;

    fn list(registry: &Registry) -> &ItemList<Self> {
        &registry.tools
    }

    fn list_mut(registry: &mut Registry) -> &mut ItemList<Self> {
        &mut registry.tools
    }

    fn key(&self) -> &str {
        &self.tool.name
    }

    fn tags(&self) -> &[String] {
        &self.options.tags
    }

    fn prefixed_key(prefix: &str, name: &str) -> String {
        format!("{prefix}_{name}")
    }

    fn with_key(&self, name: &str) -> Result<Self, Error> {
        let mut copy = self.clone();
        name.clone_into(&mut copy.tool.name);
        Ok(copy)
    }

    fn transformed_by(&self, transform: &ToolTransform) -> Result<Self, Error> {
        self.transformed(transform)
    }
}

impl FeatureEntry for ResourceEntry {
    const KIND: CallKind = CallKind::Resource;
    const CHANGE: Change = Change::Resources;
    const IS_COMPLETED: bool = false;

    fn list(registry: &Registry) -> &ItemList<Self> {
        &registry.resources
    }

    fn list_mut(registry: &mut Registry) -> &mut ItemList<Self> {
        &mut registry.resources
    }

    fn key(&self) -> &str {
        &self.resource.uri
    }

    fn tags(&self) -> &[String] {
        &self.options.tags
    }

    fn prefixed_key(prefix: &str, uri: &str) -> String {
        prefixed_uri(prefix, uri)
    }

    fn with_key(&self, uri: &str) -> Result<Self, Error> {
        let mut copy = self.clone();
        uri.clone_into(&mut copy.resource.uri);
        Ok(copy)
    }
}

impl FeatureEntry for TemplateEntry {
    const KIND: CallKind = CallKind::Resource;
    const CHANGE: Change = Change::Resources;
    const IS_COMPLETED: bool = true;

    fn list(registry: &Registry) -> &ItemList<Self> {
        &registry.templates
    }

    fn list_mut(registry: &mut Registry) -> &mut ItemList<Self> {
        &mut registry.templates
    }

    fn key(&self) -> &str {
        &self.template.uri_template
    }

    fn tags(&self) -> &[String] {
        &self.options.tags
    }

    fn prefixed_key(prefix: &str, template: &str) -> String {
        prefixed_uri(prefix, template)
    }

    fn with_key(&self, template: &str) -> Result<Self, Error> {
        let pattern = parsed(template)?;
        let mut copy = self.clone();
        template.clone_into(&mut copy.template.uri_template);
        Ok(Self { pattern, ..copy })
    }
}

impl FeatureEntry for PromptEntry {
    const KIND: CallKind = CallKind::Prompt;
    const CHANGE: Change = Change::Prompts;
    const IS_COMPLETED: bool = true;

    fn list(registry: &Registry) -> &ItemList<Self> {
        &registry.prompts
    }

    fn list_mut(registry: &mut Registry) -> &mut ItemList<Self> {
        &mut registry.prompts
    }

    fn key(&self) -> &str {
        &self.prompt.name
    }

    fn tags(&self) -> &[String] {
        &self.options.tags
    }

    fn prefixed_key(prefix: &str, name: &str) -> String {
        format!("{prefix}_{name}")
    }

    fn with_key(&self, name: &str) -> Result<Self, Error> {
        let mut copy = self.clone();
        name.clone_into(&mut copy.prompt.name);
        Ok(copy)
    }
}

/// Puts a prefix before the path of a URI or URI template: `note://all` becomes `note://work/all`, and `note:all` becomes
/// `note:work/all`. A URI of a template gets the same prefix as the template.
pub(super) fn prefixed_uri(prefix: &str, uri: &str) -> String {
    match uri.split_once(':') {
        Some((scheme, rest)) => match rest.strip_prefix("//") {
            Some(rest) => format!("{scheme}://{prefix}/{rest}"),
            None => format!("{scheme}:{prefix}/{rest}"),
        },
        // Not registered: URIs have a scheme.
        None => format!("{prefix}/{uri}"),
    }
}

/// Returns the URI that [`prefixed_uri`] was made of, if it has the prefix.
pub(super) fn unprefixed_uri(prefix: &str, uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let (slashes, rest) = match rest.strip_prefix("//") {
        Some(rest) => ("//", rest),
        None => ("", rest),
    };
    let own = rest.strip_prefix(prefix)?.strip_prefix('/')?;
    Some(format!("{scheme}:{slashes}{own}"))
}

fn parsed(template: &str) -> Result<UriTemplate, Error> {
    UriTemplate::parse(template)
        .map_err(|error| Error::usage(format!("{template} is not a URI template: {error}")))
}

/// Refuses names that clients cannot write into a prompt, a log or a header.
fn check_name(kind: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::usage(format!("a {kind} needs a name")));
    }
    match name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        false => Ok(()),
        true => Err(Error::usage(format!(
            "the {kind} {name:?} has a space or a control character in its name: use \"_\" instead, and `title` for the \
             name that users see"
        ))),
    }
}

/// Turns the result of checking a definition into a usage error, or logs its warning.
fn checked(
    definition: &std::fmt::Arguments<'_>,
    outcome: Result<Option<String>, String>,
) -> Result<(), Error> {
    match outcome {
        Ok(None) => {}
        Ok(Some(warning)) => tracing::warn!("{definition}: {warning}"),
        Err(reason) => return Err(Error::usage(format!("{definition}: {reason}"))),
    }
    Ok(())
}

/// Adds an empty `properties` to an arguments schema that does not describe its members: hosts with strict function
/// calling reject objects without it.
fn add_empty_properties(schema: &mut Value) {
    const OTHERS: [&str; 5] = ["properties", "$ref", "allOf", "anyOf", "oneOf"];
    if let Some(members) = schema.as_object_mut()
        && members.get("type") == Some(&Value::from("object"))
        && !OTHERS.iter().any(|name| members.contains_key(*name))
    {
        members.insert("properties".into(), Value::Object(Default::default()));
    }
}

/// Adds `"type": "object"` to the schema of a tool's arguments, which every revision requires.
///
/// # Errors
///
/// If the schema has another type.
fn require_object_type(schema: &mut Value) -> Result<(), &'static str> {
    let members = schema.as_object_mut().ok_or("must be an object")?;
    for alternatives in ["oneOf", "anyOf"] {
        let alternatives = members.get(alternatives).and_then(Value::as_array);
        let is_other = |schema: &Value| match schema.get("type") {
            Some(Value::Array(kinds)) => !kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind != "object",
            None => false,
        };
        if alternatives.is_some_and(|all| !all.is_empty() && all.iter().all(is_other)) {
            return Err("none of its alternatives has the type \"object\"");
        }
    }
    let kind = members.entry("type").or_insert_with(|| "object".into());
    if kind == "object" {
        Ok(())
    } else {
        Err("its type is not \"object\"")
    }
}
