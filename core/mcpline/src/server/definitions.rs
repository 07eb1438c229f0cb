//! Features as values: a definition with its options and its handler, to add to a server.

use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::session::Rate;
use mcpline_protocol::vocabulary::{
    Annotations, CacheHints, Extra, Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Tool,
    ToolAnnotations,
};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde_json::Value;

use crate::error::Error;

use super::handler_function::{HandlerFunction, NoArguments};
use super::{
    Handler, IntoPromptReply, IntoResourceList, IntoResourceReply, IntoToolReply, PromptOptions,
    ResourceOptions, Server, ToolOptions, typed_handlers,
};

/// Features that can be added to a server: one definition, several, or those of a type with
/// [`#[mcpline::tools]`](macro@crate::tools).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no features to add to a server",
    note = "use a `ToolDefinition`, `ResourceDefinition` or `PromptDefinition`, or put `#[mcpline::tools]` on an `impl` \
            block of the type"
)]
pub trait Definitions {
    /// Adds the features to a server.
    ///
    /// # Errors
    ///
    /// As for [`Server::add`].
    fn add_to(self, server: &Server) -> Result<(), Error>;
}

/// A type whose methods are features. `#[mcpline::tools]` implements it.
pub trait Features: Send + Sync + 'static {
    /// Adds the features to a server.
    ///
    /// # Errors
    ///
    /// As for [`Server::add`].
    fn add_features(self: &Arc<Self>, server: &Server) -> Result<(), Error>;
}

impl<T: Features> Definitions for T {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        Arc::new(self).add_features(server)
    }
}

impl<T: Features> Definitions for Arc<T> {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        self.add_features(server)
    }
}

impl<D: Definitions> Definitions for Vec<D> {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        self.into_iter().try_for_each(|one| one.add_to(server))
    }
}

impl Server {
    /// Adds features. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a name, URI or template is taken, or a definition is invalid; see
    /// [`Server::add_tool`], [`Server::add_resource`], [`Server::add_resource_template`] and [`Server::add_prompt`].
    /// Features before the one that failed were added.
    pub fn add(&self, definitions: impl Definitions) -> Result<(), Error> {
        definitions.add_to(self)
    }

    /// Adds features to a server that is being built.
    ///
    /// # Panics
    ///
    /// If a name is taken or a definition is invalid, which is a mistake in the program. [`Server::add`] returns the
    /// error instead.
    #[must_use]
    pub fn with(self, definitions: impl Definitions) -> Self {
        match self.add(definitions) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A tool with its definition, options and handler. Nothing is checked before [`Server::add`], which returns an error.
///
/// ```
/// use mcpline::server::ToolDefinition;
/// use mcpline::{Context, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Forecast {
///     city: String,
/// }
///
/// # fn main() -> Result<(), mcpline::Error> {
/// let forecast = ToolDefinition::new("forecast", |forecast: Forecast| async move {
///     format!("{}: sunny", forecast.city)
/// })
/// .title("Weather forecast")
/// .description("Forecast for a city")
/// .read_only(true)
/// .scopes(["weather:read"]);
/// let server = Server::new("weather", "1.0.0");
/// server.add(forecast)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a definition does nothing until it is added to a server (`Server::add`)"]
pub struct ToolDefinition {
    tool: Tool,
    options: ToolOptions,
    handler: Arc<dyn Handler>,
}

impl ToolDefinition {
    /// Creates a tool. The schemas of its arguments and of its structured content are derived from the types of the
    /// handler.
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    pub fn new<M, F>(name: impl Into<String>, handler: F) -> Self
    where
        F: HandlerFunction<M, Arguments: JsonSchema, Output: IntoToolReply>,
    {
        let schema = super::object_schema(typed_handlers::schema_of::<F::Arguments>());
        Self::with_schema(name, schema, handler)
    }

    /// Creates a tool with a JSON Schema of its arguments.
    pub fn with_schema<M, F>(name: impl Into<String>, input_schema: Value, handler: F) -> Self
    where
        F: HandlerFunction<M, Output: IntoToolReply>,
    {
        let mut tool = Tool::new(name, input_schema);
        tool.output_schema = F::Output::output_schema();
        Self::with_handler(tool, typed_handlers::tool_handler(handler))
    }

    /// Creates a tool with a complete definition and a handler of raw calls.
    pub fn with_handler(tool: Tool, handler: Arc<dyn Handler>) -> Self {
        Self {
            tool,
            options: ToolOptions::default(),
            handler,
        }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// Sets the description for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.tool.description = Some(description.into());
        self
    }

    /// Says whether the tool changes nothing ([`ToolAnnotations::read_only_hint`]).
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.hints().read_only_hint = Some(is_read_only);
        self
    }

    /// Says whether the tool may destroy something ([`ToolAnnotations::destructive_hint`]).
    pub fn destructive(mut self, is_destructive: bool) -> Self {
        self.hints().destructive_hint = Some(is_destructive);
        self
    }

    /// Says whether calling the tool again with the same arguments has no further effect
    /// ([`ToolAnnotations::idempotent_hint`]).
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.hints().idempotent_hint = Some(is_idempotent);
        self
    }

    /// Says whether the tool interacts with external entities ([`ToolAnnotations::open_world_hint`]).
    pub fn open_world(mut self, is_open_world: bool) -> Self {
        self.hints().open_world_hint = Some(is_open_world);
        self
    }

    fn hints(&mut self) -> &mut ToolAnnotations {
        self.tool.annotations.get_or_insert_default()
    }

    /// Replaces all annotations.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Sets the icons.
    pub fn icons(mut self, icons: Vec<Icon>) -> Self {
        self.tool.icons = Some(icons);
        self
    }

    /// Sets the metadata (`_meta`).
    pub fn meta(mut self, meta: Extra) -> Self {
        self.tool.meta = Some(meta);
        self
    }

    /// Replaces the JSON Schema of the structured content.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.tool.output_schema = Some(schema);
        self
    }

    /// Sets the scopes that a caller needs, all of them ([`ToolOptions::scopes`]).
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_scopes(scopes);
        self
    }

    /// Sets the tags, by which [`Server::enable`] and [`Server::disable`] select features ([`ToolOptions::tags`]).
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_tags(tags);
        self
    }

    /// Sets the maximum rate of calls, server-wide ([`ToolOptions::rate`]).
    pub fn rate(mut self, rate: Rate) -> Self {
        self.options.rate = Some(rate);
        self
    }

    /// Sets how long a handler may run ([`ToolOptions::timeout`]).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Says whether the handler must never run twice for one request ([`ToolOptions::run_once`]).
    pub fn run_once(mut self, runs_once: bool) -> Self {
        self.options.run_once = runs_once;
        self
    }
}

impl Definitions for ToolDefinition {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        server.add_tool(self.tool, self.options, self.handler)
    }
}

impl std::fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolDefinition")
            .field("tool", &self.tool)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Makes the handler of a resource, whose contents have this MIME type.
type MakeHandler = Box<dyn FnOnce(Option<String>) -> Arc<dyn Handler> + Send>;

/// A resource or a resource template with its definition, options and handler. Nothing is checked before
/// [`Server::add`], which returns an error.
///
/// ```
/// use mcpline::Server;
/// use mcpline::server::ResourceDefinition;
///
/// #[derive(serde::Deserialize)]
/// struct Note {
///     id: String,
/// }
///
/// # fn main() -> Result<(), mcpline::Error> {
/// let server = Server::new("notes", "1.0.0");
/// server.add(vec![
///     ResourceDefinition::new("note://index", "index", || async { "1, 2, 3" }),
///     ResourceDefinition::template("note://{id}", "note", |note: Note| async move {
///         format!("the note {}", note.id)
///     })
///     .mime_type("text/plain"),
/// ])?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a definition does nothing until it is added to a server (`Server::add`)"]
pub struct ResourceDefinition {
    target: ResourceTarget,
    options: ResourceOptions,
    handler: MakeHandler,
    list: Option<Arc<dyn Handler>>,
}

#[derive(Debug)]
enum ResourceTarget {
    Resource(Box<Resource>),
    Template(Box<ResourceTemplate>),
}

/// Sets a member that resources and templates have.
macro_rules! set {
    ($definition:ident.$member:ident = $value:expr) => {
        match &mut $definition.target {
            ResourceTarget::Resource(resource) => resource.$member = Some($value),
            ResourceTarget::Template(template) => template.$member = Some($value),
        }
    };
}

impl ResourceDefinition {
    /// Creates a resource. Its handler takes no arguments.
    pub fn new<M, F>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: HandlerFunction<M, Output: IntoResourceReply>,
    {
        let resource = Box::new(Resource::new(uri, name));
        Self::of(ResourceTarget::Resource(resource), handler)
    }

    /// Creates a resource template (RFC 6570). The arguments of its handler are the variables.
    pub fn template<M, F>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Self
    where
        F: HandlerFunction<M, Output: IntoResourceReply>,
    {
        let template = Box::new(ResourceTemplate::new(uri_template, name));
        Self::of(ResourceTarget::Template(template), handler)
    }

    fn of<M, F>(target: ResourceTarget, handler: F) -> Self
    where
        F: HandlerFunction<M, Output: IntoResourceReply>,
    {
        Self {
            target,
            options: ResourceOptions::default(),
            handler: Box::new(move |mime_type| {
                typed_handlers::resource_handler(mime_type, handler)
            }),
            list: None,
        }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        set!(self.title = title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        set!(self.description = description.into());
        self
    }

    /// Sets the MIME type of the contents.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        set!(self.mime_type = mime_type.into());
        self
    }

    /// Sets the annotations.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        set!(self.annotations = annotations);
        self
    }

    /// Sets the icons.
    pub fn icons(mut self, icons: Vec<Icon>) -> Self {
        set!(self.icons = icons);
        self
    }

    /// Sets the metadata (`_meta`).
    pub fn meta(mut self, meta: Extra) -> Self {
        set!(self.meta = meta);
        self
    }

    /// Sets the scopes that a caller needs, all of them ([`ResourceOptions::scopes`]).
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_scopes(scopes);
        self
    }

    /// Sets the tags, by which [`Server::enable`] and [`Server::disable`] select features ([`ResourceOptions::tags`]).
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_tags(tags);
        self
    }

    /// Sets how long clients may cache the contents, and who may ([`ResourceOptions::cache`]).
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.options = self.options.with_cache(cache);
        self
    }

    /// Sets the variables that may have any value ([`ResourceOptions::unchecked_variables`]).
    pub fn unchecked_variables<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        self.options = self.options.with_unchecked_variables(names);
        self
    }

    /// Sets the function that lists resources of a template, with the [`Context`](super::Context) or without parameters; see
    /// [`Server::set_resource_template_list`].
    ///
    /// ```
    /// use mcpline::Server;
    /// use mcpline::server::ResourceDefinition;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Log {
    ///     day: String,
    /// }
    ///
    /// let log = ResourceDefinition::template("log://{day}", "log", |log: Log| async move {
    ///     format!("what happened on {}", log.day)
    /// })
    /// .list(|| async { vec!["log://monday", "log://tuesday"] });
    /// Server::new("logs", "1.0.0").add(log)?;
    /// # Ok::<(), mcpline::Error>(())
    /// ```
    pub fn list<M, F>(mut self, handler: F) -> Self
    where
        F: HandlerFunction<M, Arguments = NoArguments, Output: IntoResourceList>,
    {
        self.list = Some(typed_handlers::resource_list_handler(handler));
        self
    }
}

impl Definitions for ResourceDefinition {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        match self.target {
            ResourceTarget::Resource(resource) => {
                if self.list.is_some() {
                    return Err(Error::usage(format!(
                        "resource {:?}: only a resource template lists others",
                        resource.uri
                    )));
                }
                let handler = (self.handler)(resource.mime_type.clone());
                server.add_resource_with(*resource, self.options, handler)
            }
            ResourceTarget::Template(template) => {
                let handler = (self.handler)(template.mime_type.clone());
                server.add_template(*template, self.options, handler, self.list)
            }
        }
    }
}

impl std::fmt::Debug for ResourceDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceDefinition")
            .field("target", &self.target)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A prompt with its definition, options and handler. Nothing is checked before [`Server::add`], which returns an error.
///
/// ```
/// use mcpline::Server;
/// use mcpline::server::PromptDefinition;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Plan {
///     /// The name of a city.
///     city: String,
/// }
///
/// # fn main() -> Result<(), mcpline::Error> {
/// let plan = PromptDefinition::new("plan", |plan: Plan| async move {
///     format!("Plan a day in {}.", plan.city)
/// })
/// .description("Plan a day");
/// let server = Server::new("travel", "1.0.0");
/// server.add(plan)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a definition does nothing until it is added to a server (`Server::add`)"]
pub struct PromptDefinition {
    prompt: Prompt,
    options: PromptOptions,
    handler: Arc<dyn Handler>,
    /// An argument whose type is not that of texts.
    unusable: Option<String>,
}

impl PromptDefinition {
    /// Creates a prompt. Its arguments are the fields of the type that the handler takes, with their documentation. They
    /// must be strings, because clients send no others (every revision, `server/prompts`).
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    pub fn new<M, F>(name: impl Into<String>, handler: F) -> Self
    where
        F: HandlerFunction<M, Arguments: JsonSchema, Output: IntoPromptReply>,
    {
        let schema = typed_handlers::schema_of::<F::Arguments>();
        let derived = derived_arguments(&schema);
        let mut definition = Self::with_arguments(name, Vec::new(), handler);
        match derived {
            Ok(arguments) if arguments.is_empty() => definition.prompt.arguments = None,
            Ok(arguments) => definition.prompt.arguments = Some(arguments),
            Err(argument) => definition.unusable = Some(argument),
        }
        definition
    }

    /// Creates a prompt with these arguments.
    pub fn with_arguments<M, F>(
        name: impl Into<String>,
        arguments: Vec<PromptArgument>,
        handler: F,
    ) -> Self
    where
        F: HandlerFunction<M, Output: IntoPromptReply>,
    {
        let mut prompt = Prompt::new(name);
        prompt.arguments = (!arguments.is_empty()).then_some(arguments);
        Self {
            prompt,
            options: PromptOptions::default(),
            handler: typed_handlers::prompt_handler(handler),
            unusable: None,
        }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.prompt.description = Some(description.into());
        self
    }

    /// Sets the icons.
    pub fn icons(mut self, icons: Vec<Icon>) -> Self {
        self.prompt.icons = Some(icons);
        self
    }

    /// Sets the metadata (`_meta`).
    pub fn meta(mut self, meta: Extra) -> Self {
        self.prompt.meta = Some(meta);
        self
    }

    /// Sets the scopes that a caller needs, all of them ([`PromptOptions::scopes`]).
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_scopes(scopes);
        self
    }

    /// Sets the tags, by which [`Server::enable`] and [`Server::disable`] select features ([`PromptOptions::tags`]).
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.options = self.options.with_tags(tags);
        self
    }
}

impl Definitions for PromptDefinition {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        if let Some(argument) = self.unusable {
            return Err(Error::usage(format!(
                "prompt {:?}: the argument {argument:?} is not a string: clients send no other values",
                self.prompt.name
            )));
        }
        server.add_prompt_with(self.prompt, self.options, self.handler)
    }
}

impl std::fmt::Debug for PromptDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptDefinition")
            .field("prompt", &self.prompt)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Returns the arguments that a schema describes, or the name of one that no string matches.
#[cfg(feature = "schemars")]
fn derived_arguments(schema: &Value) -> Result<Vec<PromptArgument>, String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(Vec::new());
    };
    let required = schema.get("required").and_then(Value::as_array);
    let arguments = properties.iter().map(|(name, property)| {
        if !may_be_string(property) {
            return Err(name.clone());
        }
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let mut argument = PromptArgument::new(name).with_required(is_required);
        let description = property.get("description").and_then(Value::as_str);
        argument.description = description.map(str::to_owned);
        Ok(argument)
    });
    arguments.collect()
}

/// Whether a schema accepts strings, as far as its `type` says.
#[cfg(feature = "schemars")]
fn may_be_string(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(kind) => kind == "string",
        None => true,
    }
}
